"""Nothing that code tries in the hardened tier gets through, whoever the gateway runs as; and the page says what is."""

import os
from concurrent.futures import ThreadPoolExecutor

from tests.escape.table import COLUMNS, run, written
from tests.sandbox.desk import hardened

ANEW = "python -m tests.escape.table writes the page anew"
TOO_LATE = 3  # bare code that the machine gave no time for what it tried: it proves nothing about the tier


async def test_what_code_achieves_is_what_the_page_says() -> None:
    await hardened()
    columns = [column for column in COLUMNS if os.geteuid() == 0 or column.endswith("ordinary user")]
    with ThreadPoolExecutor() as threads:
        found = dict(zip(columns, threads.map(run, columns), strict=True))
    page = written()
    assert {column: set(found[column]) for column in columns} == {column: set(page[column]) for column in columns}, ANEW
    for column in columns:
        if column.startswith("hardened"):
            assert {probe for probe, end in found[column].items() if end != "blocked"} == set()
            assert {*page[column].values()} == {"blocked"}, ANEW
        else:
            differs = {probe: end for probe, end in found[column].items() if end != page[column][probe]}
            assert [probe for probe, end in differs.items() if end == "open"] == [], ANEW
            assert len(differs) <= TOO_LATE, f"{differs}: {ANEW}"

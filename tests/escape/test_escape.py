"""Nothing that code tries in the hardened tier gets through, whoever the gateway runs as; and the page says what is."""

import os
from concurrent.futures import ThreadPoolExecutor

from tests.escape.table import COLUMNS, run, written
from tests.sandbox.desk import hardened


async def test_what_code_achieves_is_what_the_page_says() -> None:
    await hardened()
    columns = [column for column in COLUMNS if os.geteuid() == 0 or column.endswith("ordinary user")]
    with ThreadPoolExecutor() as threads:
        found = dict(zip(columns, threads.map(run, columns), strict=True))
    page = written()
    assert found == {column: page[column] for column in columns}, "python -m tests.escape.table writes the page anew"
    for column in columns:
        assert {*found[column].values()} == {"blocked"} or not column.startswith("hardened")

"""Nothing that code tries in the hardened tier gets through, whoever the gateway runs as; and the page says what is."""

import os

import pytest

from tests.escape.table import COLUMNS, run, written
from tests.sandbox.desk import hardened


@pytest.mark.parametrize("column", COLUMNS)
async def test_what_code_achieves_is_what_the_page_says(column: str) -> None:
    if column.endswith(", root") and os.geteuid() != 0:
        pytest.skip("only root can try what root can")
    await hardened()
    found = run(column)
    assert found == written()[column], "python -m tests.escape.table writes the page anew"
    if column.startswith("hardened"):
        assert {*found.values()} == {"blocked"}

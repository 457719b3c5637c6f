"""The page on rules is made of the rules."""

from __future__ import annotations

import re
from pathlib import Path

from eagleops.lint import page

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/lint.md"


def test_the_table_of_rules_is_current() -> None:
    """After a rule has come, gone or changed: put ``page.table()`` between the marks."""
    text = PAGE.read_text(encoding="utf-8")

    assert text.partition(page.BEGIN)[2].partition(page.END)[0].strip() == page.table().strip()


def test_a_name_keeps_its_capitals() -> None:
    """No word of the page is a name with its first letter made small."""
    assert set(re.findall(r"\b[a-z][A-Z]{2,}", page.table())) <= {"vLLM"}

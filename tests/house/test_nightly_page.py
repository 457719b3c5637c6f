"""The page on nightly checks is made of the catalogue, and the catalogue is of what there is."""

from __future__ import annotations

import re
from pathlib import Path

from eagleops.nights import page
from eagleops.nights.catalogue import DOCTOR, KINDS


def test_the_tables_of_checks_are_current(checkout: Path) -> None:
    """After a kind has come, gone or changed: put ``page.text()`` between the marks."""
    text = (checkout / "docs/reference/nightly.md").read_text(encoding="utf-8")

    assert text.partition(page.BEGIN)[2].partition(page.END)[0].strip() == page.text().strip()


def test_every_kind_says_what_it_reads_and_why(checkout: Path) -> None:
    """In sentences, and with a unit where there is a limit."""
    for kind in KINDS.values():
        assert kind.reads.endswith("."), kind.id
        assert kind.why.endswith("."), kind.id
        assert bool(kind.unit) is (kind.limit is not None), kind.id
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.id)
        # A cell of a table; and a colon separates a kind from what it is about.
        assert "|" not in kind.reads + kind.why


def test_the_checks_of_doctor_are_those_that_doctor_makes(modules) -> None:
    """Only those can be ruled by name: a name that is wrong would be in silence."""
    made = {
        name
        for module in modules
        if module.name.startswith("eagleops.workflows.")
        for name in re.findall(r'\bCheck\(\s*"([a-z0-9-]+)",', module.text)
    }

    assert made == set(DOCTOR)

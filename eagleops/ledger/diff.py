"""What changed between two runs, the likeliest reason for another figure first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.ledger.aspects import READERS, lines_of
from eagleops.ledger.lines import SECTIONS, TITLES, Line, Measured, Value, named, rank, short
from eagleops.ledger.run import Header, Run
from eagleops.remote.redact import REDACTED
from eagleops.view import Column, Table, Text, Tone, View

ABSENT = "-"
# Of a boot's name nothing is worth a word but that it is another.
REBOOTED = {"boot_id": "the machine was rebooted", "host's boot_id": "its host was rebooted"}
# A section's rows beyond these are counted: 64 files of weights are one piece of news.
MOST_ROWS = 15


@attrs.frozen
class Change:
    """One thing that is not the same.

    Attributes:
        section: ``env``, ``args``, ``patches``, ``model``, ``versions``, ``clocks`` or ``machine``.
        before: In the first run; None where it was not there.
        gpus: The indices of the GPUs that it is about; empty where it is about none.
    """

    section: str
    what: str
    before: str | None
    after: str | None
    gpus: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The change for within a sentence: ``GPU 0-7: power_limit_w: 700 → 600``."""
        if self.what in REBOOTED:
            return REBOOTED[self.what]
        before, after = ("none" if s is None else short(s) for s in (self.before, self.after))
        return f"{named(self.what, self.gpus)}: {before} → {after}"

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON."""
        return {**attrs.asdict(self), "gpus": list(self.gpus)}


@attrs.frozen
class RunDiff:
    """Two runs side by side.

    Attributes:
        changes: Ordered by how likely each matters.
        unchanged: How many facts are the same, by section.
        not_compared: What cannot be compared, each with the reason.
    """

    before: Header
    after: Header
    changes: tuple[Change, ...]
    unchanged: Mapping[str, int]
    not_compared: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the two could be compared."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """The comparison as the ``diff --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.after.host,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "changes": [change.to_dict() for change in self.changes],
            "unchanged": dict(self.unchanged),
            "not_compared": list(self.not_compared),
        }

    def view(self) -> View:
        """The changes, and what they stand against."""
        tables = tuple(_section_table(self, section) for section in SECTIONS)
        shown = tuple(table for table in tables if table.rows)
        notes = [Text(f"Not compared: {told}", Tone.WARNING) for told in self.not_compared]
        return View(shown, self._conclusion(), (Text(_figures(self)), *notes))

    def _conclusion(self) -> Text:
        same = sum(self.unchanged.values())
        if not self.changes:
            return Text(f"No change was seen; {same} facts are the same.", Tone.GOOD)
        by_section = [
            f"{count} {section}"
            for section in SECTIONS
            if (count := sum(change.section == section for change in self.changes))
        ]
        return Text(f"Changed: {', '.join(by_section)}. The same: {same} facts.", Tone.WARNING)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def diff(before: Run, after: Run) -> RunDiff:
    """Compares two runs by everything that was recorded of both.

    What was recorded of one alone is named in ``not_compared``; so is a secret, whose value
    is in no ledger.
    """
    shared, lacking = _shared_parts(before, after)
    same_host = before.header.host == after.header.host
    old = _keyed(lines_of(before, shared, with_times=same_host))
    new = _keyed(lines_of(after, shared, with_times=same_host))
    changes: list[Change] = []
    unchanged = dict.fromkeys(SECTIONS, 0)
    secrets = []
    for key in {**old, **new}:
        section, what, gpu = key
        was, now = old.get(key), new.get(key)
        if was == now and _is_redacted(was):
            secrets.append(what)
        elif _same(was, now):
            unchanged[section] += 1
        else:
            gpus = () if gpu is None else (gpu,)
            changes.append(Change(section, what, _text(was), _text(now), gpus))
    told = [f"{name}: its value is in no ledger" for name in sorted(set(secrets))]
    return RunDiff(
        before.header,
        after.header,
        tuple(sorted(_gathered(changes), key=_rank)),
        {section: count for section, count in unchanged.items() if count},
        (*lacking, *told),
    )


def in_words(changes: Sequence[Change], most: int) -> str:
    """The first of some changes for within a sentence, and how many more there are."""
    more = len(changes) - most
    told = [change.words for change in changes[:most]]
    return "; ".join([*told, *([f"and {more:,} more"] if more > 0 else [])])


Key = tuple[str, str, int | None]


def _shared_parts(before: Run, after: Run) -> tuple[list[str], list[str]]:
    shared, lacking = [], []
    for part in READERS:
        there = [run for run in (before, after) if isinstance(run.part(part), Mapping)]
        if len(there) == 1:
            lacks = before if there[0] is after else after
            lacking.append(f"{part}: not recorded of run {lacks.header.id}")
        elif there:
            shared.append(part)
    return shared, lacking


def _keyed(lines: Iterable[Line]) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for line in lines:
        key = (line.section, line.what, line.gpu)
        if key in found and found[key] != line.value:  # two copies of a library, for example
            found[key] = f"{found[key]}; {line.value}"
        else:
            found[key] = line.value
    return found


def _same(was: Value | None, now: Value | None) -> bool:
    if isinstance(was, Measured) or isinstance(now, Measured):
        if not (isinstance(was, Measured) and isinstance(now, Measured)):
            # A reason that throttled for no time at all is not told.
            only = was if isinstance(was, Measured) else now
            return isinstance(only, Measured) and not only.differs(attrs.evolve(only, value=0.0))
        return not was.differs(now)
    return was == now


def _is_redacted(value: Value | None) -> bool:
    return isinstance(value, str) and REDACTED in value


def _text(value: Value | None) -> str | None:
    return None if value is None else str(value)


def _gathered(changes: Iterable[Change]) -> Iterator[Change]:
    """One change for all GPUs that have the same."""
    alike: dict[tuple[str, str, str | None, str | None], list[int]] = {}
    for change in changes:
        if change.gpus:
            key = (change.section, change.what, change.before, change.after)
            alike.setdefault(key, []).extend(change.gpus)
        else:
            yield change
    for (section, what, was, now), gpus in alike.items():
        yield Change(section, what, was, now, tuple(sorted(gpus)))


def _rank(change: Change) -> tuple[Any, ...]:
    return *rank(change.section, change.what), change.gpus


def _section_table(told: RunDiff, section: str) -> Table:
    changes = [change for change in told.changes if change.section == section]
    rows = [
        (named(change.what, change.gpus), cell(change.before), cell(change.after))
        for change in changes[:MOST_ROWS]
    ]
    if len(changes) > MOST_ROWS:
        rows.append((f"and {len(changes) - MOST_ROWS} more: see --json", "", ""))
    columns = (Column("what"), Column(_head(told.before)), Column(_head(told.after)))
    return Table(columns, tuple(rows), title=TITLES[section])


def cell(text: str | None) -> str:
    """One side of a change for a table's cell."""
    return ABSENT if text is None else short(text)


def _head(run: Header) -> str:
    return "now" if run.id is None else f"run {run.id}"


def _figures(told: RunDiff) -> str:
    before, after = told.before, told.after
    heads = [
        f"{_head(run)}: {run.profile} on {run.host}, {run.created_utc[:19]}Z, "
        + (f"{run.tok_s:.1f} tok/s" if run.tok_s is not None else run.outcome)
        for run in (before, after)
    ]
    if before.tok_s and after.tok_s is not None:
        heads.append(f"{100 * (after.tok_s / before.tok_s - 1):+.1f} %")
    return "; ".join(heads)

"""What of a night is news, so that each fault is told once when it begins and once when it ends.

Nothing is remembered but the nights: what was told before follows from them. So a night that
is told again says the same, and so does one that was cut off and taken up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.nights.catalogue import KINDS
from eagleops.nights.fault import RANKS, Ending, Fault, is_lasting
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night

# A host and a check's name.
Key = tuple[str, str]


@attrs.frozen
class News:
    """What of one night is news, and what is not; each list by severity, host and check.

    Attributes:
        began: Faults that no night before knew.
        worsened: Faults that were warnings, and have failed tonight for the first time.
        ended: Faults that are over.
        events: Faults of one night, of kinds that do not last: told whenever they are seen.
        standing: Faults that began before, are not over, and are no news.
    """

    began: tuple[Fault, ...] = ()
    worsened: tuple[Fault, ...] = ()
    ended: tuple[Fault, ...] = ()
    events: tuple[Fault, ...] = ()
    standing: tuple[Fault, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether there is any news."""
        return bool(self.began or self.worsened or self.ended or self.events)

    @property
    def lists(self) -> dict[str, tuple[Fault, ...]]:
        """Each of the lists by its name."""
        return attrs.asdict(self, recurse=False)

    @property
    def open(self) -> tuple[Fault, ...]:
        """The faults that lasted into the night's end: new, worse, and standing ones."""
        return _sorted((*self.began, *self.worsened, *self.standing))

    def to_dict(self) -> dict[str, Any]:
        """The news as JSON."""
        return {name: [fault.to_dict() for fault in of] for name, of in self.lists.items()}


def news(history: Iterable[Night], tonight: Night) -> News:
    """What of ``tonight`` is news after the nights of ``history``.

    A fault of a lasting kind begins with the first ``warn`` or ``fail`` and ends with the next
    ``pass``, or when the suite no longer asks for the check. A ``skip``, or a check that was not
    reached, leaves it as it was: nothing is known. It is told as worse once, when a warning has
    become a failure. A kind that does not last gives an event a night that sees it.

    Args:
        history: Finished nights of the same suite, in any order; tonight's may be among them.
            A night that began after ``tonight`` is passed over: a clock was wrong.
        tonight: The night to be told of.

    Raises:
        ValueError: if a night's ``began_utc`` is no time.
    """
    return chronicle_until(history, tonight)[-1][1]


def open_faults(history: Iterable[Night]) -> tuple[Fault, ...]:
    """The lasting faults that are not over after the last of these nights."""
    told = [news for _, news in chronicle(history)]
    return told[-1].open if told else ()


def chronicle(nights: Iterable[Night]) -> Iterator[tuple[Night, News]]:
    """Each night, the earliest first, with what was news in it."""
    last = {night.uuid: night for night in nights}
    standing: Mapping[Key, Fault] = {}
    for night in sorted(last.values(), key=lambda night: night.order):
        told = _told(standing, night)
        standing = {(fault.host, fault.check): fault for fault in told.open}
        yield night, told


def chronicle_until(history: Iterable[Night], tonight: Night) -> list[tuple[Night, News]]:
    """The chronicle whose last night is ``tonight``; arguments as :func:`news`."""
    before = [n for n in history if n.uuid != tonight.uuid and n.order < tonight.order]
    return list(chronicle((*before, tonight)))


def _told(standing: Mapping[Key, Fault], night: Night) -> News:
    seen = {(finding.host, finding.id): finding for finding in night.findings}
    looked_at = _looked_at(seen.values())
    began: list[Fault] = []
    worsened: list[Fault] = []
    ended: list[Fault] = []
    events: list[Fault] = []
    still: list[Fault] = []
    for key, finding in seen.items():
        if finding.bad and not is_lasting(finding.kind):
            events.append(Fault.begun(night, finding))
        elif finding.bad and key not in standing:
            began.append(Fault.begun(night, finding))
    for key, fault in standing.items():
        found = seen.get(key)
        if found is not None and found.bad:
            again = fault.seen_again(night, found)
            (still if again.worst == fault.worst else worsened).append(again)
        elif ending := _ending(fault, night, seen, looked_at):
            ended.append(fault.over(night, ending, found or seen.get((fault.host, fault.kind))))
        else:
            still.append(fault.not_seen())
    return News(*map(_sorted, (began, worsened, ended, events, still)))


def _looked_at(findings: Iterable[Finding]) -> dict[Key, set[str]]:
    """Per host and kind, the subjects of which something is known tonight."""
    known: dict[Key, set[str]] = {}
    for finding in findings:
        if finding.state != "skip":
            known.setdefault((finding.host, finding.kind), set()).add(finding.subject)
    return known


def _ending(
    fault: Fault,
    night: Night,
    seen: Mapping[Key, Finding],
    looked_at: Mapping[Key, set[str]],
) -> Ending | None:
    """Why a fault that was not seen again is over; None where it may still be there."""
    own = seen.get((fault.host, fault.check))
    if own is not None and own.state == "pass":
        return "passed"
    if not _is_asked(fault, night):
        return "not_checked"
    kind = KINDS.get(fault.kind)
    if own is not None or kind is None or kind.of != "host":
        return None
    # Such a kind finds its subjects on the host, and all of them in one look: what it does not
    # name any more is gone, be it a GPU or the trouble of the kind as a whole.
    subjects = looked_at.get((fault.host, fault.kind), set())
    whole = seen.get((fault.host, fault.kind))
    if fault.subject and whole is not None and whole.state == "pass":
        return "passed"
    if subjects - {""}:
        return "not_checked" if fault.subject else "passed"
    return None


def _is_asked(fault: Fault, night: Night) -> bool:
    if not night.asked:
        return True
    checks: Sequence[str] = night.asked.get(fault.host, ())
    return fault.check in checks or fault.kind in checks


def _sorted(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda f: (-RANKS[f.state], f.host, f.check)))

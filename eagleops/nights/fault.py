"""A fault: what a check saw, from the night in which it began to the one in which it ended."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from eagleops.nights.catalogue import KINDS
from eagleops.nights.finding import Finding, State, kind_and_subject
from eagleops.nights.night import Night

Bad = Literal["warn", "fail"]
Ending = Literal["passed", "not_checked"]
NOT_CHECKED = "no longer checked"
# The worse, the higher.
RANKS: dict[State, int] = {"skip": 0, "pass": 1, "warn": 2, "fail": 3}


@attrs.frozen(kw_only=True)
class Fault:
    """One fault of one check on one host.

    Attributes:
        check: The check's name, with its subject: ``speed:eagle3-2step``.
        state: As it was last seen.
        worst: The worst that it has been.
        began_utc: When the night began that saw it first; ``seen_utc``, the one that saw it last.
        nights: How many nights saw it.
        blind_nights: How many nights in a row, up to now, could not look.
        message: What was seen last; as ``value``, ``unit``, ``limit`` and ``run_id``.
        ended_utc: When the night began in which it ended; None while it stands, and for an event.
        ending: Why it ended: the check passed, or the suite no longer asks for it.
        ended_message: What was seen then.
    """

    host: str
    check: str
    state: Bad
    worst: Bad
    began_utc: str
    seen_utc: str
    nights: int = 1
    blind_nights: int = 0
    message: str = ""
    value: float | str | None = None
    unit: str = ""
    limit: float | str | None = None
    run_id: int | None = None
    ended_utc: str | None = None
    ending: Ending | None = None
    ended_message: str = ""

    @property
    def kind(self) -> str:
        """The check's kind: its name up to the colon."""
        return kind_and_subject(self.check)[0]

    @property
    def subject(self) -> str:
        """What of several the check is about; empty for none."""
        return kind_and_subject(self.check)[1]

    def to_dict(self) -> dict[str, Any]:
        """The fault as JSON."""
        return attrs.asdict(self)

    @classmethod
    def begun(cls, night: Night, finding: Finding) -> Fault:
        """The fault that this finding is the first of."""
        return cls(
            host=finding.host,
            check=finding.id,
            began_utc=night.began_utc,
            seen_utc=night.began_utc,
            worst=_bad(finding),
            **_as_seen(finding),
        )

    def seen_again(self, night: Night, finding: Finding) -> Fault:
        """The fault after another night that saw it."""
        seen = _bad(finding)
        return attrs.evolve(
            self,
            worst=seen if RANKS[seen] > RANKS[self.worst] else self.worst,
            seen_utc=night.began_utc,
            nights=self.nights + 1,
            blind_nights=0,
            **_as_seen(finding),
        )

    def not_seen(self) -> Fault:
        """The fault after a night that could not look."""
        return attrs.evolve(self, blind_nights=self.blind_nights + 1)

    def over(self, night: Night, ending: Ending, finding: Finding | None) -> Fault:
        """The fault after the night in which it ended, and what that night saw instead."""
        seen = "" if finding is None else finding.message
        said = seen if ending == "passed" else NOT_CHECKED
        return attrs.evolve(
            self, ended_utc=night.began_utc, ending=ending, ended_message=said, blind_nights=0
        )


def is_lasting(kind: str) -> bool:
    """Whether a fault of that kind holds until a night passes without it.

    A kind that only a newer version knows is taken for one that does, as most do.
    """
    known = KINDS.get(kind)
    return known is None or known.lasting


def _bad(finding: Finding) -> Bad:
    return "fail" if finding.state == "fail" else "warn"


def _as_seen(finding: Finding) -> dict[str, Any]:
    return {
        "state": _bad(finding),
        "message": finding.message,
        "value": finding.value,
        "unit": finding.unit,
        "limit": finding.limit,
        "run_id": finding.run_id,
    }

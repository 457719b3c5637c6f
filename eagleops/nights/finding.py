"""A finding: what one check saw on one host in one night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

State = Literal["pass", "warn", "fail", "skip"]
STATES: tuple[State, ...] = ("pass", "warn", "fail", "skip")
SEPARATOR = ":"


def check_name(kind: str, subject: str = "") -> str:
    """The name of a check: its kind, and after a colon what of several it is about."""
    return f"{kind}{SEPARATOR}{subject}" if subject else kind


def kind_and_subject(check: str) -> tuple[str, str]:
    """What a check's name is made of; an empty subject for none."""
    kind, _, subject = check.partition(SEPARATOR)
    return kind, subject


@attrs.frozen
class Finding:
    """What one check saw.

    Attributes:
        id: The check's stable name: a kind of :mod:`eagleops.nights.catalogue`, and where it
            is about one of several things, a colon and that: ``speed:eagle3-2step``.
        host: As in hosts.yaml.
        state: ``skip`` where it could not be looked at, and nothing is known.
        message: What was seen, and where it is not well, the way out.
        value: What was compared with ``limit``; None where there is no such figure.
        unit: Of both.
        run_id: The ledger's run that it is about; None for none.
        facts: More, as JSON.
    """

    id: str
    host: str
    state: State
    message: str
    value: float | str | None = None
    unit: str = ""
    limit: float | str | None = None
    run_id: int | None = None
    facts: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def kind(self) -> str:
        """The check's kind: its name up to the colon."""
        return kind_and_subject(self.id)[0]

    @property
    def subject(self) -> str:
        """What of several it is about, a profile for example; empty for none."""
        return kind_and_subject(self.id)[1]

    @property
    def bad(self) -> bool:
        """Whether it is a fault."""
        return self.state in {"warn", "fail"}

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {**attrs.asdict(self), "facts": dict(self.facts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """A finding from its JSON; keys that a newer version wrote are passed over."""
        known = {field.name for field in attrs.fields(cls)}
        return cls(**{name: value for name, value in data.items() if name in known})

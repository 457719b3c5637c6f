"""A comparison before it is run: what is measured in which order, and what is not fair in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import attrs

from eagleops.comparison.fairness import Remark, remarks
from eagleops.comparison.order import Order, rounds
from eagleops.comparison.planning import ALPHA, SMALLEST_PCT, restarts_to_reach
from eagleops.engines import engine
from eagleops.errors import UsageError
from eagleops.measuring import prompts
from eagleops.profile import Profile
from eagleops.view import Column, Table, Text, Tone, View
from eagleops.workflows.lint import checked

LEAST_PROFILES = 2


@attrs.frozen(kw_only=True)
class Protocol:
    """How profiles are compared.

    Attributes:
        restarts: Servers of each profile: the unit that is repeated.
        runs: Requests to each server that count; ``warmups`` more before them do not.
        tokens: Of each request.
        prompt: The name of a shipped text.
        order: Of the profiles within a round; ``seed`` of a random one.
        cool_down_s: How long to wait at most until the GPUs are where they started; 0: not.
        smallest_pct: The smallest difference that matters.
        alpha: The share of false alarms among comparisons of equals.
        meant: Keys that are meant to differ.
        keep_throttled: Let requests count during which a GPU was slowed down.
    """

    restarts: int = 5
    runs: int = 5
    tokens: int = 256
    warmups: int = 1
    prompt: str = "prose"
    order: Order = "abba"
    seed: int = 0
    cool_down_s: float = 300.0
    smallest_pct: float = SMALLEST_PCT
    alpha: float = ALPHA
    meant: tuple[str, ...] = ()
    keep_throttled: bool = False

    def __attrs_post_init__(self) -> None:
        counts = (("restarts", self.restarts), ("runs", self.runs))
        for name, count in counts:
            if count < 1:
                raise UsageError(problem=f"at least 1 is needed, not {count}", where=f"--{name}")

    def to_dict(self) -> dict[str, Any]:
        """The protocol as JSON."""
        return {**attrs.asdict(self), "meant": list(self.meant)}


@attrs.frozen
class ComparePlan:
    """What a comparison is going to do.

    Attributes:
        profiles: The baseline first.
        schedule: Each profile's name and the number of its restart, in order.
        remarks: What differs beside what is meant to, and what an engine does silently.
    """

    host: str
    profiles: tuple[Profile, ...]
    protocol: Protocol
    schedule: tuple[tuple[str, int], ...]
    remarks: tuple[Remark, ...]

    @property
    def ok(self) -> bool:
        """Always: a plan that cannot be followed is an error."""
        return True

    @property
    def least_restarts(self) -> int:
        """Of each profile, below which no difference whatever can be shown."""
        return restarts_to_reach(self.protocol.alpha / (len(self.profiles) - 1))

    @property
    def identity(self) -> str:
        """What has to be the same for measurements to be of one comparison.

        Not the number of restarts: a comparison may go on to more of them.
        """
        protocol = self.protocol
        told = {
            "host": self.host,
            "profiles": [
                {k: v for k, v in profile.to_dict().items() if k not in {"origin", "sources"}}
                for profile in self.profiles
            ],
            "requests": [protocol.runs, protocol.tokens, protocol.warmups, protocol.prompt],
        }
        text = json.dumps(told, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            "ok": self.ok,
            "host": self.host,
            "profiles": [profile.name for profile in self.profiles],
            "protocol": self.protocol.to_dict(),
            "schedule": [{"profile": name, "restart": number} for name, number in self.schedule],
            "fairness": [remark.to_dict() for remark in self.remarks],
            "least_restarts": self.least_restarts,
        }

    def view(self) -> View:
        """What is not fair, and what is going to be done."""
        protocol = self.protocol
        order = ", ".join(name for name, _ in self.schedule[: 2 * len(self.profiles)])
        more = ", ..." if len(self.schedule) > 2 * len(self.profiles) else ""
        told = (
            f"{self.host}: {protocol.restarts} restarts of each of {len(self.profiles)} profiles, "
            f"{protocol.runs} requests of {protocol.tokens} tokens each: {order}{more}"
        )
        return View(
            (remark_table(self.remarks),) if self.remarks else (), Text(told), self._notes()
        )

    def _notes(self) -> tuple[Text, ...]:
        if self.protocol.restarts >= self.least_restarts:
            return ()
        told = (
            f"{self.protocol.restarts} restarts of each cannot show any difference: "
            f"at least {self.least_restarts} are needed (--restarts {self.least_restarts})."
        )
        return (Text(told, Tone.WARNING),)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def remark_table(found: Sequence[Remark]) -> Table:
    """A row a remark."""
    rows = tuple(
        (remark.profile, Text(remark.message, Tone.WARNING), remark.way_out) for remark in found
    )
    columns = (Column("profile", wrap=False), Column("differs, beside what is meant to"))
    return Table((*columns, Column("what pins both sides")), rows, title="Fairness")


def plan_comparison(
    host: str, python: str, profiles: Sequence[Profile], protocol: Protocol
) -> ComparePlan:
    """What comparing ``profiles`` on ``host`` is going to do. Asks no machine.

    Args:
        host: The machine's name.
        python: Its interpreter.
        profiles: The baseline first.
        protocol: How.

    Raises:
        UsageError: for fewer than two profiles, or one that is named twice.
        ProfileError: if one of them cannot be launched.
    """
    names = [profile.name for profile in profiles]
    if len(names) < LEAST_PROFILES:
        raise UsageError(
            problem="a comparison needs two profiles: the baseline, and what is compared with it",
            way_out="For example: eagleops compare --profiles baseline,eagle3-2step.",
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(
            problem=f"{twice} is named twice",
            way_out="A profile that differs in nothing needs another name in hosts.yaml.",
        )
    prompts.prompt(protocol.prompt)
    for profile in profiles:
        checked(profile)
        engine(profile.engine).command(profile, profile.python or python)
    counts: dict[str, int] = {}
    schedule = []
    for line in rounds(names, protocol.restarts, protocol.order, protocol.seed):
        for name in line:
            counts[name] = counts.get(name, 0) + 1
            schedule.append((name, counts[name]))
    baseline, *others = profiles
    found = tuple(one for other in others for one in remarks(baseline, other, protocol.meant))
    return ComparePlan(host, tuple(profiles), protocol, tuple(schedule), found)

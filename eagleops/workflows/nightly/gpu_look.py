"""One look at a property of every GPU, and the finding that comes of it.

What a GPU does not tell is neither well nor ill: it is named in the message, and where no GPU
tells anything the finding is that nothing is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import attrs

from eagleops.nights.finding import Finding
from eagleops.nights.night import instant
from eagleops.nights.rule import Rule
from eagleops.workflows.nightly.report import CANNOT_TELL

Facts = Mapping[str, Any]
# Of a GPU's time, which NVML tells of the last sixth of a second to a second: one that does so
# much works for somebody, wherever that one stands.
AT_WORK_PCT = 5
# A GPU that was not seen for so long was taken out on purpose.
MISSED_DAYS = 14
# So many in a row are told by the first and the last.
RUN = 3


def named(indices: Iterable[int]) -> str:
    """GPUs as people name them: ``GPU 3``, ``GPUs 0 to 3, 5``."""
    those = sorted(set(indices))
    runs = [
        [index for _, index in run]
        for _, run in itertools.groupby(enumerate(those), lambda pair: pair[1] - pair[0])
    ]
    parts = [
        f"{run[0]} to {run[-1]}" if len(run) >= RUN else ", ".join(map(str, run)) for run in runs
    ]
    return f"{'GPU' if len(those) == 1 else 'GPUs'} {', '.join(parts)}"


@attrs.define(slots=False)
class Gpus:
    """The GPUs of a host now and in the last night.

    Attributes:
        problem: What the driver says; None for nothing.
        idle: Whether nothing works on any.
        minutes_since: From the last night to now, by the machine's clock; 0 where not known.
        had_log: Whether the last night could read the kernel's log.
        known: Those that nights of the last :data:`MISSED_DAYS` saw, each with ``seen_utc``.
    """

    now: tuple[Facts, ...]
    before: tuple[Facts, ...]
    problem: str | None
    idle: bool
    minutes_since: float
    had_log: bool = False
    known: tuple[Facts, ...] = ()

    @classmethod
    def of(cls, told: Facts, before: Facts | None, *, idle: bool) -> Gpus:
        """Of what operation ``health`` told, now and then."""
        earlier = before or {}
        return cls(
            tuple(told["gpus"]),
            tuple(earlier.get("gpus") or ()),
            told["problem"],
            idle,
            _minutes(earlier.get("time_utc"), told.get("time_utc")),
            earlier.get("kernel_log", {}).get("source", "none") != "none",
            tuple(told.get("known") or earlier.get("gpus") or ()),
        )

    def before_of(self, gpu: Facts) -> Facts | None:
        """The same GPU in the last night; None for one that has no name of its own."""
        return self._by_uuid.get(gpu["uuid"]) if gpu["uuid"] else None

    @property
    def gone(self) -> tuple[Facts, ...]:
        """Those that nights before saw and this one does not; one that was replaced is none."""
        here = {gpu[name] for gpu in self.now for name in ("uuid", "bus_id")}
        return tuple(g for g in self.known if g["uuid"] and not here & {g["uuid"], g["bus_id"]})

    @property
    def resting(self) -> tuple[Facts, ...]:
        """Those at which nothing works."""
        if not self.idle:
            return ()
        return tuple(gpu for gpu in self.now if (gpu["utilization_pct"] or 0) < AT_WORK_PCT)

    @cached_property
    def _by_uuid(self) -> dict[str | None, Facts]:
        return {gpu["uuid"]: gpu for gpu in self.before}


@attrs.define
class GpuLook:
    """What a property of the GPUs was seen to be.

    Attributes:
        good: What is said where nothing is wrong; ``{}`` stands for the figures.
        bad_words: What is wrong, a sentence each.
        silences: What was not told, and of which GPUs.
        seen: The figure of each GPU that told it.
    """

    good: str
    bad_words: list[str] = attrs.field(factory=list)
    silences: dict[str, list[int]] = attrs.field(factory=dict)
    seen: dict[int, float] = attrs.field(factory=dict)

    @property
    def worst(self) -> float | None:
        """The highest figure; None where there is none."""
        return max(self.seen.values(), default=None)

    def told(self, gpu: Facts, value: float) -> None:
        """One GPU told it."""
        self.seen[gpu["index"]] = value

    def bad(self, gpu: Facts, words: str) -> None:
        """Something is wrong with one GPU: ``has 4 of 16 PCIe lanes``."""
        self.bad_words.append(f"{named([gpu['index']])} {words}")

    def silent(self, gpu: Facts, why: str) -> None:
        """One GPU does not tell it."""
        self.silences.setdefault(why, []).append(gpu["index"])

    def finding(self, host: str, gpus: Gpus, rule: Rule, way_out: str = "") -> Finding:
        """What comes of it."""
        unsaid = [f"{named(of)}: {why}" for why, of in self.silences.items()]
        if self.bad_words:
            words = f"{'; '.join([*self.bad_words, *unsaid])}. {way_out}".rstrip()
            return rule.faulty(host, words, value=self.worst)
        if gpus.gone:
            unsaid.append(f"{named(gpu['index'] for gpu in gpus.gone)}: no longer there")
        if not self.seen:
            return rule.skipped(host, "; ".join(unsaid) or "no GPU tells it")
        words = f"{named(self.seen)}: {self.good.format(self._figures())}"
        return rule.passed(host, "; ".join([words, *unsaid]), value=self.worst)

    def _figures(self) -> str:
        low, high = min(self.seen.values()), max(self.seen.values())
        return f"{low:,.0f}" if f"{low:.0f}" == f"{high:.0f}" else f"{low:,.0f} to {high:,.0f}"


def untold(host: str, rule: Rule, why: str, *, told_before: bool = False) -> Finding:
    """A finding that a witness was blind.

    Where it told something in the last night, the night as a whole cannot tell; where it is blind
    every night, it is a property of the machine, and in the report.
    """
    return rule.skipped(host, why, facts={CANNOT_TELL: True} if told_before else {})


def days_between(then_utc: str, now_utc: str) -> float:
    """How many days lie between two times."""
    return (instant(now_utc) - instant(then_utc)).total_seconds() / 86_400


def _minutes(then: str | None, now: str | None) -> float:
    if not then or not now:
        return 0.0
    return max(0.0, (instant(now) - instant(then)).total_seconds() / 60)

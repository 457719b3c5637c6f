"""A night as it is being made: each finding on the disk before the next check begins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from eagleops.errors import NightsError
from eagleops.nights.finding import Finding
from eagleops.nights.night import Night, Outcome
from eagleops.nights.store import NightStore
from eagleops.workflows.trend import TrendReport

# In a host's journal: the steps that need not be taken again if the night is taken up.
DONE = "done"
# And what must be put right: what ran before, and what the night itself has started.
RESTORE = "restore"
LAUNCHED = "launched"
# What comes of JSON that is read as something else.
_OF_ANOTHER_SHAPE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@attrs.define(eq=False)
class NightLog:
    """The night, safe for the threads that look at its hosts.

    Attributes:
        before: The latest nights before it that were finished, with what they saw, the oldest
            first.
        told_before: All that were told, without what they saw: what is news follows from them.
        taken_up: Whether the night had been cut off.
        notices: What a person should know besides: what older nights had left to be put right,
            what became of a ledger.
        secrets: Values that must not be kept whatever name they stand under.
        trouble: Why what was found could not be kept; empty where it was.
        trends: The history of each figure that was judged, by host, profile and metric.
    """

    store: NightStore
    night: Night
    before: tuple[Night, ...] = ()
    told_before: tuple[Night, ...] = ()
    taken_up: bool = False
    secrets: tuple[str, ...] = attrs.field(default=(), repr=False)
    trouble: str = attrs.field(default="", init=False)
    notices: list[str] = attrs.field(factory=list, init=False)
    trends: dict[tuple[str, str, str], TrendReport] = attrs.field(factory=dict, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)

    def add(self, *findings: Finding) -> None:
        """Keeps findings; a check's later one stands in place of its earlier one."""
        with self._lock:
            kept = {(finding.host, finding.id): finding for finding in self.night.findings}
            kept.update({(finding.host, finding.id): finding for finding in findings})
            self._write(findings=tuple(kept.values()))

    def notice(self, words: str) -> None:
        """Keeps what a person should know besides, once."""
        with self._lock:
            if words and words not in self.notices:
                self.notices.append(words)

    def keep(self, host: str, **facts: Any) -> None:
        """Keeps what later nights of that host are compared with."""
        with self._lock:
            of_host = {**self.night.facts.get(host, {}), **facts}
            self._write(facts={**self.night.facts, host: of_host})

    def facts_before(
        self, host: str, name: str, use: Callable[[Any], object] = lambda _: None
    ) -> tuple[Any, str]:
        """What the last night that looked kept under ``name``, and when it began; or None.

        One that began after this night is passed over: a clock was wrong. So are facts of
        another shape, which another version wrote, or a person: they are told of.

        Args:
            host: Whose.
            name: In :attr:`Night.facts`.
            use: Uses the facts as they will be; it raises where they are of another shape.
        """
        for night in reversed(self.before):
            told = (night.facts.get(host) or {}).get(name)
            if told is None or night.order >= self.night.order:
                continue
            try:
                use(told)
            except _OF_ANOTHER_SHAPE:
                what = f"what the night of {night.began_utc[:16]} kept of its {name}"
                self.notice(f"{host}: {what} cannot be read, and is passed over")
                continue
            return told, night.began_utc
        return None, ""

    def history(self, limit: int) -> tuple[Night, ...]:
        """The latest nights that were told before this one, the oldest first.

        One that began after this night is passed over: a clock was wrong.
        """
        earlier = [night for night in self.told_before if night.order < self.night.order]
        return tuple(earlier[-limit:])

    def journal(self, host: str) -> Mapping[str, Any]:
        """What must be put right on that host, and what has been done."""
        with self._lock:
            return dict(self.night.journal.get(host) or {})

    def note(self, host: str, **entries: Any) -> None:
        """Notes what must be put right, before there is anything to be put right.

        Raises:
            NightsError: if it cannot be written: what is not noted must not be done.
        """
        with self._lock:
            noted = {**self.journal(host), **entries}
            self.store.write(
                self._changed(journal={**self.night.journal, host: noted}), secrets=self.secrets
            )

    def settle(self, host: str, **entries: Any) -> None:
        """Notes what is left to be put right; None for nothing."""
        with self._lock:
            noted = {**self.journal(host), **entries}
            kept = {name: entry for name, entry in noted.items() if entry is not None}
            self._write(journal={**self.night.journal, host: kept})

    def done(self, host: str, step: str) -> None:
        """Notes that a step need not be taken again."""
        with self._lock:
            steps = [*self.journal(host).get(DONE, ()), step]
            self.settle(host, **{DONE: steps})

    def is_done(self, host: str, step: str) -> bool:
        """Whether a step was taken before."""
        return step in self.journal(host).get(DONE, ())

    def tell(self, webhook: str, delivery: Mapping[str, Any]) -> None:
        """Notes what became of a message, so that it is not sent twice."""
        with self._lock:
            self._write(told={**self.night.told, webhook: dict(delivery)})

    def ending(self, outcome: Outcome, ended_utc: str) -> Night:
        """The night as it ends; on the disk it still runs."""
        with self._lock:
            return attrs.evolve(self.night, outcome=outcome, ended_utc=ended_utc)

    def end(self, outcome: Outcome, ended_utc: str) -> Night:
        """Ends the night; what could not be put right stays in its journal."""
        with self._lock:
            left = {
                host: unsettled
                for host, entries in self.night.journal.items()
                if (unsettled := _unsettled(entries))
            }
            self._write(outcome=outcome, ended_utc=ended_utc, journal=left)
            return self.night

    def begin(self) -> None:
        """Keeps the night before anything is touched.

        Raises:
            NightsError: if it cannot be kept.
        """
        self.store.write(self.night, secrets=self.secrets)

    def _write(self, **changes: Any) -> None:
        """Keeps what changed. A disk that is full by now costs no host its being put right."""
        night = self._changed(**changes)
        try:
            self.store.write(night, secrets=self.secrets)
        except NightsError as error:
            self.trouble = self.trouble or f"Not all of this night is kept: {error}"

    def _changed(self, **changes: Any) -> Night:
        self.night = attrs.evolve(self.night, **changes)
        return self.night


def told_nights(nights: Iterable[Night]) -> tuple[Night, ...]:
    """The nights that somebody was told of.

    Nobody is told of one that was interrupted: what it saw is told by the next.
    """
    return tuple(night for night in nights if night.outcome != "interrupted")


def unsettled(night: Night) -> dict[str, dict[str, Any]]:
    """What a night has left to be put right, by host."""
    found = {host: _unsettled(entries) for host, entries in night.journal.items()}
    return {host: entries for host, entries in found.items() if entries}


def without(night: Night, hosts: Iterable[str]) -> Night:
    """The night with nothing left to be put right on ``hosts``."""
    gone = set(hosts)
    left = {host: entries for host, entries in night.journal.items() if host not in gone}
    return attrs.evolve(night, journal=left)


def _unsettled(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entries[name] for name in (RESTORE, LAUNCHED) if entries.get(name)}

"""A night's report: what was found, what is new in it, and how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from eagleops.nights.faults import News
from eagleops.nights.finding import STATES, Finding
from eagleops.nights.night import Night
from eagleops.phrases import minute
from eagleops.view import Cell, Column, Table, Text, Tone, View

if TYPE_CHECKING:
    from eagleops.workflows.trend import TrendReport

TONES = {"pass": Tone.GOOD, "warn": Tone.WARNING, "fail": Tone.BAD, "skip": Tone.DIM}
# Whether a machine could be reached: what a command ends with status 4 for.
OF_THE_WAY_IN = frozenset({"reach", "host-key"})
# In a finding's facts: it is neither yes nor no, because a witness was blind.
CANNOT_TELL = "cannot_tell"
INTERRUPTED = 130


@attrs.frozen
class NightReport:
    """One night, and what it is held against.

    Attributes:
        night: What was found.
        news: What began, worsened and ended with it.
        history: The nights before it that were finished, the oldest first.
        trends: The history of each figure that was judged.
        reports: The place of each report that was written, by its kind: ``html``, ``junit``,
            ``json``, ``prometheus``.
        deliveries: What became of each message, by its webhook's name: ``ok``, ``status``,
            ``attempts``, ``problem``.
        notice: What a person should know besides, a sentence a line.
        trouble: Likewise, what of the night could not be kept, written or removed.
    """

    night: Night
    news: News
    history: tuple[Night, ...] = ()
    trends: tuple[TrendReport, ...] = ()
    reports: Mapping[str, str] = attrs.field(factory=dict)
    deliveries: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    notice: str = ""
    trouble: str = ""

    @property
    def notices(self) -> tuple[str, ...]:
        """The sentences of ``notice`` and of ``trouble``."""
        return (*self.notice.splitlines(), *self.trouble.splitlines())

    @property
    def is_told(self) -> bool:
        """Whether all of it was kept and written, and no message was lost."""
        return not self.trouble and all(told.get("ok") for told in self.deliveries.values())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks found."""
        return self.night.findings

    @property
    def by_host(self) -> dict[str, tuple[Finding, ...]]:
        """The findings of each host, of a check's several the last; a host without any has none."""
        hosts = dict.fromkeys((*self.night.hosts, *(found.host for found in self.findings)))
        return {
            host: tuple({f.id: f for f in self.findings if f.host == host}.values())
            for host in hosts
        }

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What is not well, the failures first."""
        bad = [finding for finding in self.findings if finding.bad]
        return tuple(sorted(bad, key=lambda finding: finding.state != "fail"))

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each state."""
        seen = Counter(finding.state for finding in self.findings)
        return {state: seen[state] for state in STATES}

    @property
    def exit_status(self) -> int:
        """As the command's: 0, 1 failed, 3 cannot tell, 4 unreachable hosts alone, 130."""
        if self.night.outcome == "interrupted":
            return INTERRUPTED
        failed = {finding.kind for finding in self.findings if finding.state == "fail"}
        if failed:
            return 4 if failed <= OF_THE_WAY_IN else 1
        blind = any(finding.facts.get(CANNOT_TELL) for finding in self.findings)
        return 3 if blind or self.night.outcome == "time_limit" else 0

    @property
    def ok(self) -> bool:
        """Whether all was looked at and nothing failed; warnings do not count."""
        return self.exit_status == 0

    @property
    def changed(self) -> bool:
        """Whether anything began, worsened or ended."""
        return self.news.changed

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``nightly --json`` document's body."""
        night = self.night
        return {
            "ok": self.ok,
            "host": night.hosts[0] if len(night.hosts) == 1 else None,
            "suite": night.suite,
            "night": night.uuid,
            "began_utc": night.began_utc,
            "ended_utc": night.ended_utc,
            "outcome": night.outcome,
            "exit_status": self.exit_status,
            "hosts": list(night.hosts),
            "counts": self.counts,
            "changed": self.changed,
            "news": self.news.to_dict(),
            "checks": [finding.to_dict() for finding in self.findings],
            "trends": [trend.to_dict() for trend in self.trends],
            "reports": dict(self.reports),
            "deliveries": {name: dict(told) for name, told in self.deliveries.items()},
            "notice": "\n".join(self.notices) or None,
        }

    def view(self) -> View:
        """The faults, what is new, what was skipped, the rest as counts; the verdict last."""
        tables = [self._fault_table()] if self.faults else []
        ended = self._ended_table()
        tables += [ended] if ended.rows else []
        if self.trends:
            tables.append(self._trend_table())
        tables.append(self._host_table())
        notes = [*self._skipped(), *self._told()]
        return View(tuple(tables), self._conclusion(), tuple(notes))

    def _repr_html_(self) -> str:
        return self.view().to_html()

    def _fault_table(self) -> Table:
        known = {
            (fault.host, fault.check): fault
            for faults in self.news.lists.values()
            for fault in faults
        }
        new = {(fault.host, fault.check) for fault in (*self.news.began, *self.news.events)}
        rows = []
        for finding in self.faults:
            key = (finding.host, finding.id)
            since = "tonight" if key in new or key not in known else known[key].began_utc[:10]
            rows.append(
                (
                    finding.host,
                    finding.id,
                    Text(finding.state, TONES[finding.state]),
                    Text(since, Tone.WARNING if since == "tonight" else Tone.PLAIN),
                    finding.message,
                )
            )
        columns = (
            Column("host", wrap=False),
            Column("check", wrap=False),
            Column("state", wrap=False),
            Column("since", wrap=False),
            Column("seen"),
        )
        return Table(columns, tuple(rows), title="Faults")

    def _ended_table(self) -> Table:
        rows = tuple(
            (fault.host, fault.check, fault.began_utc[:10], str(fault.nights), fault.message)
            for fault in self.news.ended
        )
        headings = ("host", "check", "since", "nights", "it was")
        return Table(tuple(map(Column, headings)), rows, title="Ended tonight")

    def _trend_table(self) -> Table:
        rows = []
        for trend in self.trends:
            series, latest = trend.series, trend.drift.latest
            figure = "" if latest is None else f"{latest.value:,.2f} {series.unit}"
            rows.append((series.host, series.profile, series.metric, figure, trend.drift.words))
        columns = (
            Column("host", wrap=False),
            Column("profile", wrap=False),
            Column("figure", wrap=False),
            Column("tonight", "right", wrap=False),
            Column("against its history"),
        )
        return Table(columns, tuple(rows), title="Measured")

    def _host_table(self) -> Table:
        columns = (Column("host"), *(Column(state, "right") for state in STATES))
        rows = []
        for host in self.night.hosts:
            seen = Counter(finding.state for finding in self.by_host[host])
            cells = (_count(seen[state], TONES[state]) for state in STATES)
            rows.append((host, *cells))
        title = f"{self.night.suite}: {minute(self.night.began_utc)}"
        return Table(columns, tuple(rows), title=title)

    def _skipped(self) -> Iterable[Text]:
        """Why what was skipped was: a reason that several checks share, once."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for finding in self.findings:
            if finding.state == "skip":
                reasons.setdefault((finding.host, finding.message), []).append(finding.id)
        for (host, why), checks in reasons.items():
            yield Text(f"{host}: skipped {', '.join(checks)}: {why}", Tone.DIM)

    def _told(self) -> Iterable[Text]:
        for kind, place in self.reports.items():
            yield Text(f"{kind}: {place}")
        for name, delivery in self.deliveries.items():
            if delivery.get("ok"):
                yield Text(f"message sent to {name}")
            else:
                told = f"message not delivered to {name}: {delivery.get('problem')}"
                yield Text(told, Tone.WARNING)
        for line in self.notices:
            yield Text(line, Tone.WARNING)

    def _conclusion(self) -> Text:
        counts, lists = self.counts, self.news.lists
        parts = [
            f"{counts['fail']} failed" if counts["fail"] else "",
            f"{counts['warn']} warned" if counts["warn"] else "",
            f"{counts['pass']} passed",
            f"{counts['skip']} skipped" if counts["skip"] else "",
        ]
        moved = [
            f"{len(lists[name])} {words}"
            for name, words in (
                ("began", "new"),
                ("worsened", "worse"),
                ("events", "of this night alone"),
                ("ended", "ended"),
            )
            if lists[name]
        ]
        change = f" ({', '.join(moved)})" if moved else ", nothing new"
        found = f"{self.night.suite}: {', '.join(filter(None, parts))}{change}"
        return Text(f"{self.night.cut_short} {found}".lstrip(), self._tone())

    def _tone(self) -> Tone:
        if self.exit_status in {1, 4, INTERRUPTED}:
            return Tone.BAD
        return Tone.WARNING if self.exit_status or self.counts["warn"] else Tone.GOOD


def _count(number: int, tone: Tone) -> Cell:
    return Text(str(number), tone) if number else Text("", Tone.DIM)

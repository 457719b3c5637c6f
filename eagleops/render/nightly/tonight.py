"""What the night itself found, host by host."""

from __future__ import annotations

from collections.abc import Mapping

from eagleops.nights.finding import Finding
from eagleops.workflows.nightly.report import NightReport

ENDINGS: Mapping[str, str] = {
    "time_limit": "The time limit ended the night before everything was looked at.",
    "interrupted": "The night was interrupted before everything was looked at.",
    "running": "The night was cut off before everything was looked at.",
}


def by_host(report: NightReport) -> dict[str, tuple[Finding, ...]]:
    """The findings of each host, of a check's several the last; a host without any has none."""
    hosts = dict.fromkeys((*report.night.hosts, *(found.host for found in report.findings)))
    return {
        host: tuple({f.id: f for f in report.findings if f.host == host}.values()) for host in hosts
    }

"""A night in one line, and faults as a sentence names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eagleops.nights.fault import Fault
from eagleops.nights.faults import News
from eagleops.nights.night import Night
from eagleops.nights.one_line import one_line
from eagleops.phrases import counted, listed

# What the lists of a night's news are called, in the order in which they are told.
TITLES: Mapping[str, str] = {
    "began": "New",
    "worsened": "Worse",
    "events": "Seen tonight",
    "ended": "Over",
}
# More faults, or more hosts, are counted.
MOST_NAMES = 4
MOST_CHARS = 500


def summary(night: Night, news: News) -> str:
    """What began and ended, and where, and how much still stands."""
    told = [
        f"{title}: {named(faults)}."
        for name, title in TITLES.items()
        if (faults := news.lists[name])
    ]
    told = told or [f"Nothing new on {_joined(night.hosts) or 'no host'}."]
    sentences = (f"Nightly {night.suite}.", night.cut_short, *told, _standing(news))
    return one_line(" ".join(filter(None, sentences)), MOST_CHARS)


def named(faults: Sequence[Fault]) -> str:
    """The checks by host, as far as a sentence holds them: ``disk and fan (warning) on box1``."""
    by_host: dict[str, list[str]] = {}
    for fault in faults:
        severity = " (warning)" if fault.state == "warn" else ""
        by_host.setdefault(fault.host, []).append(f"{fault.check}{severity}")
    if len(faults) > MOST_NAMES:
        return f"{counted(len(faults), 'fault')} on {_joined(list(by_host))}"
    return listed([f"{listed(checks)} on {host}" for host, checks in by_host.items()])


def _joined(hosts: Sequence[str]) -> str:
    return listed(hosts) if len(hosts) <= MOST_NAMES else counted(len(hosts), "host")


def _standing(news: News) -> str:
    count = len(news.standing)
    if count:
        return f"{count} still stand{'s' if count == 1 else ''}."
    return "Nothing else stands." if news.began or news.worsened else "Nothing stands."

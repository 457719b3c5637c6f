"""What a night tells outside, as eagleops' own document or in the shape of another service.

A message holds news, and of what still stands its count and its list: a channel reads each
fault twice, when it begins and when it ends. Texts in it come from machines and programs; what
reads like a secret is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from eagleops.ledger.redaction import without_secrets
from eagleops.nights import slack
from eagleops.nights.fault import RANKS
from eagleops.nights.faults import News
from eagleops.nights.finding import STATES
from eagleops.nights.night import Night
from eagleops.nights.one_line import one_line
from eagleops.nights.summary import summary

SCHEMA = 1
"""The version of :func:`json_message`'s document."""

TEXT_CHARS = 2000


def worth_telling(night: Night, news: News) -> bool:
    """Whether anybody wants to hear of it: there is news, or the night did not get through.

    Who interrupts a night by hand knows of it.
    """
    return news.changed or night.outcome == "time_limit"


def json_message(
    night: Night, news: News, *, report: str | None, secrets: Iterable[str] = ()
) -> dict[str, Any]:
    """The night's news as eagleops' own document; the page on JSON documents names its keys.

    Args:
        night: Which.
        news: Of it.
        report: Where the report is; None where none was written.
        secrets: Values that must not be sent whatever name they stand under.
    """
    seen = Counter(finding.state for finding in night.findings)
    worst = max((*news.open, *news.events), key=lambda f: RANKS[f.state], default=None)
    body = {
        "schema": SCHEMA,
        "event": "nightly",
        "suite": night.suite,
        "night": night.uuid,
        "began_utc": night.began_utc,
        "ended_utc": night.ended_utc,
        "outcome": night.outcome,
        "client": night.client,
        "hosts": list(night.hosts),
        "state": worst.state if worst else "pass",
        "changed": news.changed,
        "summary": summary(night, news),
        "counts": {state: seen[state] for state in STATES},
        **news.to_dict(),
        "report": report,
    }
    # Before anything is cut: half a secret would not be known for one.
    return dict(_readable(without_secrets({"message": body}, secrets)["message"]))


def slack_message(
    night: Night, news: News, *, report: str | None, secrets: Iterable[str] = ()
) -> dict[str, Any]:
    """The night's news for an incoming webhook of Slack; arguments as :func:`json_message`."""
    return slack.shaped(json_message(night, news, report=report, secrets=secrets))


def _readable(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _readable(item) for name, item in content.items()}
    if isinstance(content, list):
        return [_readable(item) for item in content]
    return one_line(content, TEXT_CHARS) if isinstance(content, str) else content

"""News that did not get through: told with the next night's, so that none is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eagleops.nights.fault import Fault
from eagleops.nights.faults import News, chronicle_until
from eagleops.nights.night import Night

# A fault, from its begin to its end.
Identity = tuple[str, str, str]


def news_with_missed(
    history: Iterable[Night], tonight: Night, heard: Callable[[Night], bool | None]
) -> News:
    """What of tonight is news to a reader who was not reached the last time, or several times.

    It goes back over the nights directly before whose message got lost; a night in which nothing
    was to be told does not end that. What began and ended in between is told as ended.

    Args:
        history: As :func:`eagleops.nights.faults.news`.
        tonight: The night to be told of.
        heard: Whether a night's message got through to this reader; None where none was sent.

    Raises:
        ValueError: if a night's ``began_utc`` is no time.
    """
    *earlier, (_, told) = chronicle_until(history, tonight)
    for night, older in reversed(earlier):
        got_through = heard(night)
        if got_through is False:
            told = _together(older, told)
        elif got_through or older.changed:
            break
    return told


def _together(older: News, newer: News) -> News:
    now = {_identity(fault): fault for fault in newer.open}
    began = _now(older.began, now) | _now(newer.began, now)
    worsened = _now(older.worsened, now) | _now(newer.worsened, now)
    return News(
        began=tuple(began.values()),
        worsened=tuple(fault for name, fault in worsened.items() if name not in began),
        ended=(*older.ended, *newer.ended),
        events=(*older.events, *newer.events),
        standing=tuple(f for name, f in now.items() if name not in began | worsened),
    )


def _now(faults: Iterable[Fault], now: dict[Identity, Fault]) -> dict[Identity, Fault]:
    return {name: now[name] for name in map(_identity, faults) if name in now}


def _identity(fault: Fault) -> Identity:
    return fault.host, fault.check, fault.began_utc

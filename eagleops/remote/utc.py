"""Times as text and back: RFC 3339 in UTC, and seconds since the epoch."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from eagleops.remote.failure import Failure

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def seconds(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time; Python 3.8 itself reads no ``Z``.

    Raises:
        Failure: ``bad_argument``.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise _no_time(text)
    day, clock, fraction, sign, hours, minutes = found.groups()
    try:
        local = datetime.strptime(day + clock + "+0000", "%Y-%m-%d%H:%M:%S%z")
    except ValueError:
        raise _no_time(text) from None
    offset_s = 3600.0 * int(hours or 0) + 60.0 * int(minutes or 0)
    whole_s = (local - _EPOCH).total_seconds() + float("0." + (fraction or "0"))
    return whole_s + offset_s if sign == "-" else whole_s - offset_s


def _no_time(text: str) -> Failure:
    problem = "{!r} is no time; expected RFC 3339: 2026-11-30T02:30:00Z".format(text)
    return Failure("bad_argument", problem)


def utc(at_s: float) -> str:
    """The time as RFC 3339 in UTC, to the millisecond."""
    stamp = (_EPOCH + timedelta(seconds=at_s)).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")

"""Figures, times and spans as a person reads them."""

from __future__ import annotations

from eagleops.nights.finding import Finding
from eagleops.nights.night import Night, instant

HOUR_S = 3600
MINUTE_S = 60
# Of larger figures every digit before the point is shown.
SIGNIFICANT_BELOW = 10_000


def took_s(night: Night) -> float | None:
    """How long a night took, in seconds; None of one that has no end."""
    if night.ended_utc is None:
        return None
    return (instant(night.ended_utc) - instant(night.began_utc)).total_seconds()


def span(seconds: float) -> str:
    """A span in the two units that matter: ``1 h 12 min``, ``42 min``, ``31 s``."""
    whole = round(seconds)
    if whole >= HOUR_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S} min"
    if whole >= MINUTE_S:
        return f"{round(whole / MINUTE_S)} min"
    return f"{whole} s"


def figure(value: float | str | None, unit: str = "") -> str:
    """A figure with its unit; nothing for none."""
    if value is None:
        return ""
    if isinstance(value, str):
        return f"{value} {unit}".strip()
    rounded = not isinstance(value, int) and abs(value) < SIGNIFICANT_BELOW
    return f"{f'{value:,.4g}' if rounded else f'{value:,}'} {unit}".strip()


def figures(finding: Finding) -> str:
    """What was compared, and with what; nothing where there is no such figure."""
    told = []
    if finding.value is not None:
        told.append(f"seen {figure(finding.value, finding.unit)}")
        if finding.limit is not None:
            told.append(f"limit {figure(finding.limit, finding.unit)}")
    return ", ".join(told)

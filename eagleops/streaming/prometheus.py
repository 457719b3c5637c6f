"""Prometheus's text format, as far as counters are read from it."""

from __future__ import annotations

import re

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})?\s+([^\s]+)(?:\s+-?\d+)?\s*\Z")


def totals(page: str) -> dict[str, float]:
    """The value of each metric, summed over its labels.

    Args:
        page: An exposition. Comments and lines that are no sample are passed over.
    """
    found: dict[str, float] = {}
    for line in page.splitlines():
        sample = None if line.startswith("#") else _SAMPLE.match(line)
        if sample is None:
            continue
        try:
            value = float(sample.group(2))
        except ValueError:
            continue
        found[sample.group(1)] = found.get(sample.group(1), 0.0) + value
    return found


def counter(values: dict[str, float], name: str) -> float | None:
    """A counter by its name with or without ``_total``; None where the page has neither."""
    return values.get(f"{name}_total", values.get(name))

"""Metrics in Prometheus' text form."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable, Mapping, Sequence


def labelled(name: str, labels: Mapping[str, str], value: float) -> str:
    """One sample's line."""
    inside = ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))
    return f"{name}{{{inside}}} {float(value)}" if inside else f"{name} {float(value)}"


def family(
    name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]
) -> list[str]:
    """A counter or a gauge with its samples."""
    head = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return head + [labelled(name, labels, value) for labels, value in samples]


class Histogram:
    """Observations, counted by their size. Safe for threads."""

    def __init__(self, boundaries: Sequence[float]) -> None:
        self._boundaries = sorted(boundaries)
        self._counts = [0] * (len(self._boundaries) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float, times: int = 1) -> None:
        """Counts a value in."""
        with self._lock:
            self._counts[bisect.bisect_left(self._boundaries, value)] += times
            self._sum += value * times

    def lines(self, name: str, about: str, labels: Mapping[str, str]) -> list[str]:
        """Its lines."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        lines = [f"# HELP {name} {about}", f"# TYPE {name} histogram"]
        running = 0
        for boundary, count in zip([*self._boundaries, float("inf")], counts, strict=True):
            running += count
            edge = "+Inf" if boundary == float("inf") else str(float(boundary))
            lines.append(labelled(f"{name}_bucket", {**labels, "le": edge}, running))
        lines.append(labelled(f"{name}_sum", labels, total))
        lines.append(labelled(f"{name}_count", labels, running))
        return lines

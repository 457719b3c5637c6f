"""What of a run is followed over time, and which way is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from eagleops.errors import UsageError
from eagleops.ledger import Run


@attrs.frozen(kw_only=True)
class Metric:
    """One figure of a run.

    Attributes:
        words: What it is called in a sentence.
        unit: Of its values; empty for a plain number.
        better: Which way is the better one.
        digits: After the point, where it is shown.
        part: The run's part that holds it; ``key`` its name there.
        heat: Whether a GPU that is slowed down moves it.
        asked: Whether it depends on what was asked: on the prompt and on the tokens.
    """

    name: str
    words: str
    unit: str
    better: Literal["higher", "lower"]
    digits: int
    part: str
    key: str
    heat: bool = True
    asked: bool = True

    def value(self, run: Run) -> float | None:
        """The run's figure; None where it has none, or none that a level could be made of."""
        body = run.part(self.part)
        told = body.get(self.key) if isinstance(body, Mapping) else None
        if isinstance(told, Mapping):
            told = told.get("median")
        return _positive(told)

    def show(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.{self.digits}f} {self.unit}".rstrip()

    def is_worse(self, value: float, than: float) -> bool:
        """Whether ``value`` is on the worse side of ``than``."""
        return value < than if self.better == "higher" else value > than


_ALL = (
    Metric(
        name="tok_s",
        words="decode speed",
        unit="tok/s",
        better="higher",
        digits=1,
        part="bench",
        key="tok_s",
    ),
    Metric(
        name="ttft_ms",
        words="time to the first token",
        unit="ms",
        better="lower",
        digits=1,
        part="bench",
        key="ttft_ms",
    ),
    # It moves with the model, the drafter and the prompt, not with heat.
    Metric(
        name="accept_length",
        words="accept length",
        unit="",
        better="higher",
        digits=3,
        part="bench",
        key="accept_length",
        heat=False,
    ),
    Metric(
        name="cycle_ms",
        words="time of a speculative cycle",
        unit="ms",
        better="lower",
        digits=2,
        part="bench",
        key="cycle_ms",
    ),
    Metric(
        name="ready_s",
        words="time to ready",
        unit="s",
        better="lower",
        digits=1,
        part="launch",
        key="ready_s",
        heat=False,
        asked=False,
    ),
)

METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
"""What can be followed, by name."""


def metric_of(name: str) -> Metric:
    """The metric of that name.

    Raises:
        UsageError: if there is none.
    """
    if name not in METRICS:
        raise UsageError(
            problem=f"there is no metric {name!r}",
            way_out=f"These are followed: {', '.join(METRICS)}.",
        )
    return METRICS[name]


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None

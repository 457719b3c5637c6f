"""Verdicts on several profiles against one, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from eagleops.comparison.break_even import BreakEven, break_even
from eagleops.comparison.difference import Difference, difference
from eagleops.comparison.planning import (
    ALPHA,
    SMALLEST_PCT,
    holm,
    restarts_for_precision,
    restarts_to_reach,
    spread_pct,
)
from eagleops.comparison.trial import Restarts

_SMALL = 10
# An interval narrower than this would read as "-27 to -27 %" in whole percents.
_NARROW = 4


@attrs.frozen
class Verdict:
    """One profile against the baseline.

    Attributes:
        difference: None where one of them has no restart that counts.
        break_even: None where the profile does not speculate, or was not measured.
        restarts_needed: Of each, until the interval is as narrow as the smallest difference
            that matters; None where no spread was seen.
        least_restarts: Of each, below which no difference whatever can be shown.
    """

    profile: str
    against: str
    difference: Difference | None
    break_even: BreakEven | None = None
    restarts_needed: int | None = None
    least_restarts: int = 4

    @property
    def conclusion(self) -> str:
        """``faster``, ``slower``, ``no_difference_shown``, or ``not_measured``."""
        return "not_measured" if self.difference is None else self.difference.conclusion

    @property
    def words(self) -> str:
        """The verdict in a sentence or two."""
        if self.difference is None:
            return f"{self.profile} cannot be compared with {self.against}: no restart counts."
        told = _told(self, self.difference)
        return f"{told} {_break_even_words(self.break_even)}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """As in ``compare --json``: ``verdict[]``."""
        facts = {} if self.difference is None else self.difference.to_dict()
        return {
            "profile": self.profile,
            "against": self.against,
            **facts,
            "conclusion": self.conclusion,
            "restarts_needed": self.restarts_needed,
            "words": self.words,
        }


def verdicts(
    baseline: Restarts,
    others: Sequence[Restarts],
    *,
    alpha: float = ALPHA,
    smallest_pct: float = SMALLEST_PCT,
    draft_tokens: Mapping[str, int | None] | None = None,
    host: str | None = None,
) -> tuple[Verdict, ...]:
    """Each of ``others`` against ``baseline``; several at once are each held to more (Holm).

    Args:
        baseline: What it is measured by.
        others: The rest.
        alpha: The share of false alarms among comparisons of equals, over all of them.
        smallest_pct: The smallest change that matters.
        draft_tokens: The most that a cycle of a profile can yield, by its name.
        host: Where it was measured.

    Raises:
        UsageError: if scipy is not installed.
    """
    plain = [_difference(baseline, other, alpha, smallest_pct) for other in others]
    levels = holm([None if one is None else one.p_value for one in plain], alpha)
    found = []
    for other, one, level in zip(others, plain, levels, strict=True):
        held = None if one is None else _difference(baseline, other, level, smallest_pct)
        spread = spread_pct(baseline.figures, other.figures) if one else None
        found.append(
            Verdict(
                other.profile,
                baseline.profile,
                held,
                _break_even(baseline, other, (draft_tokens or {}).get(other.profile), host),
                restarts_for_precision(spread, smallest_pct, level) if spread else None,
                restarts_to_reach(level),
            )
        )
    return tuple(found)


def _difference(
    baseline: Restarts, other: Restarts, alpha: float, smallest_pct: float
) -> Difference | None:
    if not baseline.figures or not other.figures:
        return None
    return difference(baseline.figures, other.figures, alpha=alpha, smallest_pct=smallest_pct)


def _break_even(
    baseline: Restarts, other: Restarts, drafts: int | None, host: str | None
) -> BreakEven | None:
    if baseline.mean_tok_s is None or other.cycle_ms is None:
        return None
    if baseline.cycle_ms is not None:
        return None  # it speculates itself: its speed tells of no plain step
    length = other.accept_length
    # A mean can lie above by rounding, or where the last cycle was counted whole.
    length = min(length, drafts) if length is not None and drafts else length
    return break_even(
        baseline_tok_s=baseline.mean_tok_s,
        cycle_ms=other.cycle_ms,
        accept_length=length,
        num_draft_tokens=drafts,
        host=host,
    )


def _told(verdict: Verdict, found: Difference) -> str:
    figures = f"{found.after:.1f} against {found.before:.1f} tok/s"
    if found.low_pct is None or found.high_pct is None:
        return (
            f"No difference shown between {verdict.profile} and {verdict.against} ({figures}): "
            f"{found.restarts[1]} and {found.restarts[0]} restarts tell nothing of their spread; "
            f"at least {verdict.least_restarts} of each are needed."
        )
    percent = 100 * (1 - found.alpha)
    digits = 0 if found.high_pct - found.low_pct >= _NARROW else 1
    low, high = (f"{end:+.{digits}f}" for end in (found.low_pct, found.high_pct))
    interval = f"{percent:.3g} % interval {low} to {high} %"
    if found.conclusion != "no_difference_shown":
        change = _unsigned(abs(found.change_pct))
        return (
            f"{verdict.profile} is {change} % {found.conclusion} than {verdict.against} "
            f"({figures}, {interval})."
        )
    lead = f"No difference shown between {verdict.profile} and {verdict.against}"
    return f"{lead} ({figures}, {interval}): {_why(verdict, found)}"


def _why(verdict: Verdict, found: Difference) -> str:
    matters = f"{found.smallest_pct:g} %"
    if found.shows_equality:
        return f"a change of {matters} or more is ruled out."
    if min(found.restarts) < verdict.least_restarts:
        return (
            f"{found.restarts[1]} restarts against {found.restarts[0]} cannot show any; at least "
            f"{verdict.least_restarts} of each are needed."
        )
    if verdict.restarts_needed and verdict.restarts_needed > min(found.restarts):
        return (
            f"changes that matter are not ruled out; about {verdict.restarts_needed} restarts of "
            f"each would tell within {matters}."
        )
    return f"changes around {matters} are not ruled out."


def _break_even_words(told: BreakEven | None) -> str:
    if told is None or told.accept_length is None:
        return ""
    return (
        f"A cycle takes {told.cycle_ms:.1f} ms, so it needs {told.needed_accept_length:.2f} "
        f"accepted tokens a cycle to break even; it has {told.accept_length:.2f}."
    )


def _unsigned(percent: float) -> str:
    return f"{percent:.0f}" if percent >= _SMALL else f"{percent:.1f}"

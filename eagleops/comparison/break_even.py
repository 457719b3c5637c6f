"""When speculative decoding pays: the accept length that it needs.

In one cycle the drafter proposes tokens and the target verifies them together. Be

* ``t0`` the time of one plain step of the target without speculation, which yields one token,
* ``T`` the time of one cycle (drafting, verifying and what lies between),
* ``L`` the accept length: tokens a cycle on the mean, the target's own token counted in.

Plain decoding yields ``1 / t0`` tokens a second and speculation ``L / T``. So the speed-up is
``L * t0 / T``, and speculation pays exactly if ``L > T / t0``: the needed accept length. Both
times have to be of the same concurrency: ``T / t0`` grows with the batch, because verifying
becomes bound by arithmetic instead of memory, while ``L`` does not.

A cycle yields at least 1 token and at most ``num_draft_tokens``, which counts the target's own
as engines do (SGLang with top-k 1: steps + 1). The speed at ``L = num_draft_tokens`` is what a
perfect drafter of the same cost would reach.

This is the measured form of the speed-up of Leviathan, Kalman, Matias: Fast Inference from
Transformers via Speculative Decoding, 2023, https://arxiv.org/abs/2211.17192, theorem 3.8:
``(1 - a^(g+1)) / ((1 - a) (g c + 1))`` has the expected tokens a cycle above, and the cycle's
time in plain steps below. Here both are measured, and neither the independence of acceptances
nor a verify as cheap as a plain step is assumed.

>>> sum_ = break_even(baseline_tok_s=82.2, cycle_ms=30.6, accept_length=1.84)
>>> round(sum_.needed_accept_length, 2)
2.52
>>> sum_.pays
False
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from eagleops.errors import UsageError
from eagleops.view import Column, Table, Text, Tone, View

# Without a word of the drafter's length the curve is drawn so far beyond what is needed.
ROWS_BEYOND = 2


@attrs.frozen(kw_only=True)
class BreakEven:
    """The sum, for one concurrency.

    Attributes:
        baseline_step_ms: Of a plain step.
        cycle_ms: Of one cycle: drafting, verifying and the rest.
        draft_ms, verify_ms: Its parts, where they were measured.
        accept_length: Tokens a cycle; None where it was not measured.
        num_draft_tokens: The most that a cycle can yield; None where it is not known.
        host: Where it was measured; None for a sum of given numbers.
    """

    baseline_step_ms: float
    cycle_ms: float
    draft_ms: float | None = None
    verify_ms: float | None = None
    accept_length: float | None = None
    num_draft_tokens: int | None = None
    host: str | None = None

    @property
    def ok(self) -> bool:
        """Always: that speculation does not pay is an answer, not a failure."""
        return True

    @property
    def baseline_tok_s(self) -> float:
        """The speed without speculation."""
        return 1000 / self.baseline_step_ms

    @property
    def needed_accept_length(self) -> float:
        """Tokens a cycle at which both are equally fast."""
        return self.cycle_ms / self.baseline_step_ms

    @property
    def margin(self) -> float | None:
        """Accepted tokens a cycle above what is needed; negative where they are too few."""
        return (
            None if self.accept_length is None else self.accept_length - self.needed_accept_length
        )

    @property
    def pays(self) -> bool | None:
        """Whether speculation is the faster one; None where no accept length is known."""
        return None if self.margin is None else self.margin > 0

    @property
    def can_pay(self) -> bool | None:
        """Whether a perfect drafter of the same cost would be; None without a draft length."""
        if self.num_draft_tokens is None:
            return None
        return self.num_draft_tokens > self.needed_accept_length

    @property
    def ceiling_tok_s(self) -> float | None:
        """The most that a perfect drafter could reach."""
        return None if self.num_draft_tokens is None else self.speed_at(self.num_draft_tokens)

    @property
    def curve(self) -> tuple[tuple[int, float], ...]:
        """The speed at each whole accept length from 1 on."""
        last = self.num_draft_tokens or math.ceil(self.needed_accept_length) + ROWS_BEYOND
        return tuple((length, self.speed_at(length)) for length in range(1, last + 1))

    def speed_at(self, accept_length: float) -> float:
        """Tokens a second at an accept length."""
        return 1000 * accept_length / self.cycle_ms

    def change_pct(self, accept_length: float) -> float:
        """The same against the baseline, in percent."""
        return 100 * (accept_length / self.needed_accept_length - 1)

    def to_dict(self) -> dict[str, Any]:
        """The sum as the ``break-even --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "baseline_tok_s": self.baseline_tok_s,
            "baseline_step_ms": self.baseline_step_ms,
            "cycle_ms": self.cycle_ms,
            "draft_ms": self.draft_ms,
            "verify_ms": self.verify_ms,
            "needed_accept_length": self.needed_accept_length,
            "accept_length": self.accept_length,
            "margin": self.margin,
            "pays": self.pays,
            "num_draft_tokens": self.num_draft_tokens,
            "ceiling_tok_s": self.ceiling_tok_s,
            "curve": [
                {"accept_length": length, "tok_s": speed, "change_pct": self.change_pct(length)}
                for length, speed in self.curve
            ],
        }

    def view(self) -> View:
        """The curve as a table, and the answer."""
        columns = (
            Column("accept length", "right"),
            Column("tok/s", "right"),
            Column("against the baseline", "right"),
        )
        rows = tuple(
            (f"{length}", f"{speed:.1f}", _change(self.change_pct(length)))
            for length, speed in self.curve
        )
        table = Table(columns, rows, title=f"Speed with a cycle of {self.cycle_ms:g} ms")
        ceiling = () if self.num_draft_tokens is None else (Text(self._ceiling()),)
        tone = {True: Tone.GOOD, False: Tone.WARNING, None: Tone.PLAIN}[self.pays]
        return View((table,), Text(self.conclusion, tone), ceiling)

    @property
    def conclusion(self) -> str:
        """The answer in words."""
        needs = (
            f"A cycle takes {self.cycle_ms:.1f} ms and a plain step {self.baseline_step_ms:.1f} "
            f"ms, so it needs {self.needed_accept_length:.2f} accepted tokens a cycle to break even"
        )
        if self.accept_length is None:
            return f"{needs}."
        verdict = "speculation pays" if self.pays else "speculation does not pay"
        return (
            f"{needs}; it has {self.accept_length:.2f}: {verdict} "
            f"({self.speed_at(self.accept_length):.1f} against {self.baseline_tok_s:.1f} tok/s)."
        )

    def _ceiling(self) -> str:
        drafts = self.num_draft_tokens or 1
        told = (
            f"A perfect drafter would reach {self.speed_at(drafts):.1f} tok/s "
            f"({_change(self.change_pct(drafts))}) with {drafts} tokens a cycle"
        )
        return f"{told}." if self.can_pay else f"{told}: at this cycle time none can pay."

    def _repr_html_(self) -> str:
        return self.view().to_html()


def break_even(
    *,
    baseline_tok_s: float | None = None,
    baseline_step_ms: float | None = None,
    cycle_ms: float | None = None,
    draft_ms: float | None = None,
    verify_ms: float | None = None,
    accept_length: float | None = None,
    num_draft_tokens: int | None = None,
    host: str | None = None,
) -> BreakEven:
    """The break-even of speculative decoding, from measured or given numbers.

    Args:
        baseline_tok_s: Speed without speculation, one stream; or
        baseline_step_ms: the time of one plain step.
        cycle_ms: The time of one cycle; or
        draft_ms: the time to draft, and
        verify_ms: the time to verify, whose sum is then the cycle.
        accept_length: Tokens a cycle, the target's own counted in; at least 1.
        num_draft_tokens: The most that a cycle can yield, the target's own counted in.
        host: Where it was measured.

    Raises:
        UsageError: if a number is missing, or is not one that can be.
    """
    numbers = {
        "baseline-tps": baseline_tok_s,
        "baseline-step-ms": baseline_step_ms,
        "cycle-ms": cycle_ms,
        "draft-ms": draft_ms,
        "verify-ms": verify_ms,
    }
    for name, value in numbers.items():
        if value is not None and not (math.isfinite(value) and value > 0):
            raise _wrong(name, f"it must be above 0, not {value:g}")
    for name, least in (("accept-length", accept_length), ("num-draft-tokens", num_draft_tokens)):
        if least is not None and not (math.isfinite(least) and least >= 1):
            raise _wrong(name, f"it counts the target's own token: at least 1, not {least:g}")
    if accept_length is not None and num_draft_tokens and accept_length > num_draft_tokens:
        raise _wrong(
            "accept-length",
            f"a cycle cannot yield {accept_length:g} of {num_draft_tokens} tokens",
        )
    step_ms = 1000 / baseline_tok_s if baseline_tok_s else baseline_step_ms
    if step_ms is None:
        raise _wrong("baseline-tps", "the speed without speculation is missing")
    if cycle_ms is None and draft_ms is not None and verify_ms is not None:
        cycle_ms = draft_ms + verify_ms
    if cycle_ms is None:
        raise _wrong("cycle-ms", "the time of one cycle is missing")
    return BreakEven(
        baseline_step_ms=step_ms,
        cycle_ms=cycle_ms,
        draft_ms=draft_ms,
        verify_ms=verify_ms,
        accept_length=accept_length,
        num_draft_tokens=num_draft_tokens,
        host=host,
    )


def _wrong(flag: str, problem: str) -> UsageError:
    return UsageError(
        problem=problem,
        where=f"--{flag}",
        way_out="For example: eagleops break-even --baseline-tps 82.2 --cycle-ms 30.6.",
    )


def _change(percent: float) -> str:
    return f"{percent:+.1f} %"

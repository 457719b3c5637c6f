"""Commands that compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from eagleops.tasks.api_key import api_key
from eagleops.tasks.command import HOST_HELP, Call, command

if TYPE_CHECKING:
    from eagleops.comparison.break_even import BreakEven
    from eagleops.workflows.compare_plan import ComparePlan, Protocol
    from eagleops.workflows.compare_result import CompareResult
    from eagleops.workflows.sweep import SweepResult

MEASURING_HELP = {
    "restarts": "servers of each profile, one after the other: the unit that is repeated",
    "runs": "requests to each server that count",
    "tokens": "of each request",
    "warmups": "requests to each server before that do not count",
    "prompt": "a shipped text: code, long, prose or short",
    "order": "of the profiles: abba (every second round backwards), given or random",
    "seed": "of a random order",
    "cool-down": "seconds to wait at most until the GPUs are where they started; 0: do not wait",
    "smallest": "the smallest difference that matters, in percent",
    "keep-throttled": "let requests count during which a GPU was slowed down",
    "resume": "keep what an interrupted comparison of the same profiles has measured",
    "report": "write the report to this HTML file",
    "direct": "connect to the machine's address, not through SSH",
    "timeout": "seconds to wait until a server is ready",
}


@attrs.frozen(kw_only=True)
class Measuring:
    """The flags of every command that measures profile against profile."""

    restarts: int = 5
    runs: int = 5
    tokens: int = 256
    warmups: int = 1
    prompt: str = "prose"
    order: str = "abba"
    seed: int = 0
    cool_down: float = 300.0
    smallest: float = 2.0
    keep_throttled: bool = False
    resume: bool = False
    report: str | None = None
    direct: bool = False
    timeout: float = 3600.0

    def protocol(self, meant: Sequence[str] = ()) -> Protocol:
        """How is measured.

        Raises:
            UsageError: if the order is none, or a count is below 1.
        """
        from eagleops.comparison.order import order_of
        from eagleops.workflows.compare_plan import Protocol

        return Protocol(
            restarts=self.restarts,
            runs=self.runs,
            tokens=self.tokens,
            warmups=self.warmups,
            prompt=self.prompt,
            order=order_of(self.order),
            seed=self.seed,
            cool_down_s=self.cool_down,
            smallest_pct=self.smallest,
            keep_throttled=self.keep_throttled,
            meant=tuple(meant),
        )

    def settings(self) -> dict[str, Any]:
        """As :func:`eagleops.library.compare.compare` takes them."""
        return {
            "report": self.report,
            "resume": self.resume,
            "timeout_s": self.timeout,
            "direct": self.direct,
            "api_key": api_key(),
        }


@command(
    help={
        "baseline-tps": "speed without speculation, in tokens a second of one stream",
        "baseline-step-ms": "the same as the time of one plain step",
        "cycle-ms": "what one cycle of drafting and verifying takes",
        "draft-ms": "with verify-ms, in place of cycle-ms",
        "verify-ms": "with draft-ms, in place of cycle-ms",
        "accept-length": "tokens a cycle, the target's own counted in",
        "num-draft-tokens": "the most that a cycle can yield, the target's own counted in",
    }
)
def break_even(
    call: Call,
    baseline_tps: float = 0.0,
    baseline_step_ms: float = 0.0,
    cycle_ms: float = 0.0,
    draft_ms: float = 0.0,
    verify_ms: float = 0.0,
    accept_length: float = 0.0,
    num_draft_tokens: int = 0,
) -> BreakEven:
    """The accept length that speculative decoding needs, by given numbers; asks no machine."""
    from eagleops.comparison.break_even import break_even as sum_of

    del call
    return sum_of(
        baseline_tok_s=baseline_tps or None,
        baseline_step_ms=baseline_step_ms or None,
        cycle_ms=cycle_ms or None,
        draft_ms=draft_ms or None,
        verify_ms=verify_ms or None,
        accept_length=accept_length or None,
        num_draft_tokens=num_draft_tokens or None,
    )


@command(
    help={
        **HOST_HELP,
        **MEASURING_HELP,
        "profiles": "names of profiles, the baseline first: A,B[,C]",
        "meant": "a key that is meant to differ, for example env.NCCL_PROTO; may be given again",
        "dry-run": "show the plan and what is not fair in it; touch nothing",
        "fail-if-slower": "exit status 1 if a profile is slower than the baseline",
    },
    repeatable=["meant"],
    groups={"measuring": Measuring},
)
def compare(
    call: Call,
    meant: list[str],
    measuring: Measuring,
    profiles: str | None = None,
    host: str | None = None,
    dry_run: bool = False,
    fail_if_slower: bool = False,
) -> ComparePlan | CompareResult:
    """For each profile reset, launch, verify, bench, again and again; then one answer."""
    from eagleops.library.compare import compare as run_comparison
    from eagleops.library.compare import plan

    protocol = measuring.protocol(meant)
    target = call.host(host)
    names = [name.strip() for name in (profiles or "").split(",") if name.strip()]
    planned = plan(target, names, protocol)
    if dry_run:
        return planned
    _show_before(call, planned)
    with call.progress() as progress:
        result = run_comparison(
            target,
            planned.profiles,
            protocol,
            progress=progress,
            **measuring.settings(),
        )
    return attrs.evolve(result, fail_if_slower=fail_if_slower)


@command(
    help={
        **HOST_HELP,
        **MEASURING_HELP,
        "profile": "the profile whose values are varied (hosts.yaml's default without)",
        "vary": "KEY=V1,V2: args.NAME, env.NAME or sim.NAME; may be given again",
        "write-profile": "write the best point as a profile to this file",
    },
    repeatable=["vary"],
    groups={"measuring": Measuring},
)
def sweep(
    call: Call,
    vary: list[str],
    measuring: Measuring,
    profile: str | None = None,
    host: str | None = None,
    write_profile: str | None = None,
) -> SweepResult:
    """A grid over a profile's values: each point as `compare` measures, the best one told."""
    from pathlib import Path

    from eagleops.library.compare import sweep as run_sweep
    from eagleops.workflows import sweep as workflow

    protocol = measuring.protocol()
    with call.progress() as progress:
        result = run_sweep(
            call.host(host),
            call.library().profile(profile),
            vary,
            protocol,
            progress=progress,
            **measuring.settings(),
        )
    if write_profile:
        workflow.write_profile(result, Path(write_profile))
    return result


def _show_before(call: Call, planned: ComparePlan) -> None:
    """Names what is not fair before hours of measuring: who reads it can still interrupt."""
    if not call.json:
        from eagleops.render.console import stderr

        stderr().print(planned.view())

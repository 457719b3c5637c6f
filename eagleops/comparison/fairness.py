"""What differs between two profiles beside what is meant to, and what an engine changes silently.

A comparison answers one question; a flag that differs by the way asks another one with it.
SGLang's silent changes were read in its arg_groups/speculative_hook.py (0.5.23, the lines that
the rows name) and hold since 0.4.6 unless a row says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

import attrs

from eagleops.engines.flags import dashed, given
from eagleops.profile import ArgValue, Profile
from eagleops.remote import redact

SPECULATION = "args.speculative-*"
# Fields of a profile that say nothing of the server, or only how the embedded box pretends.
_FIELDS = ("engine", "model", "port", "python", "cwd", "gpus", "command", "inherit")


@attrs.frozen
class Remark:
    """One thing that makes a comparison less than fair.

    Attributes:
        kind: ``differs``, said by the profiles; or ``silent``, done by the engine.
        key: As in hosts.yaml: ``args.max-running-requests``.
        profile: The one that is compared with the baseline.
        message: In words.
        way_out: What pins both sides; empty where nothing does.
    """

    kind: Literal["differs", "silent"]
    key: str
    profile: str
    message: str
    way_out: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The remark as JSON."""
        return attrs.asdict(self)


def speculates(profile: Profile) -> bool:
    """Whether a profile asks for speculative decoding."""
    return any(_is_speculative(_plain(name)) for name in profile.args)


def draft_tokens(profile: Profile) -> int | None:
    """The most tokens that a cycle of this profile can yield, the target's own counted in.

    None without speculation, or where the profile leaves it to the engine.
    """
    if profile.engine == "vllm":
        config = given(profile, "speculative-config")
        drafts = config.get("num_speculative_tokens") if isinstance(config, Mapping) else None
        return None if drafts is None else int(drafts) + 1
    steps = given(profile, "speculative-num-steps")
    if isinstance(steps, str) and steps.isdecimal() and _top_k(profile) == "1":
        # Whatever num-draft-tokens says: SGLang sets it to this with top-k 1.
        return int(steps) + 1
    drafts = given(profile, "speculative-num-draft-tokens")
    return int(drafts) if isinstance(drafts, str) and drafts.isdecimal() else None


def remarks(baseline: Profile, other: Profile, meant: Collection[str] = ()) -> tuple[Remark, ...]:
    """What is to be known before ``other`` is compared with ``baseline``.

    Args:
        baseline: What it is measured by.
        other: The other one.
        meant: Keys that are meant to differ: ``env.NCCL_PROTO``, or ``env.*`` for all of a
            mapping. Where one side speculates and the other does not, speculation's flags are
            meant anyway; where nothing else differs, what differs is.
    """
    found = tuple(_differences(baseline, other))
    allowed = {*meant, *((SPECULATION,) if speculates(baseline) or speculates(other) else ())}
    beside = [one for one in found if not any(_covers(key, one.key) for key in allowed)]
    if len(beside) == len(found) and len({one.key for one in found}) == 1:
        beside = []  # the one thing that differs is what is compared
    return (*beside, *_silent(baseline, other))


def _differences(baseline: Profile, other: Profile) -> Iterator[Remark]:
    for field in _FIELDS:
        was, now = getattr(baseline, field), getattr(other, field)
        if was != now and field != "port":
            yield _differs(field, other, _shown(field, was), _shown(field, now))
    for field in ("args", "env"):
        was, now = getattr(baseline, field), getattr(other, field)
        for name in dict.fromkeys((*was, *now)):
            before, after = was.get(name), now.get(name)
            if before != after:
                yield _differs(f"{field}.{name}", other, _shown(name, before), _shown(name, after))


def _differs(key: str, other: Profile, was: str, now: str) -> Remark:
    return Remark("differs", key, other.name, f"{key} differs: {was} in the baseline, {now} here")


def _silent(baseline: Profile, other: Profile) -> Iterator[Remark]:
    if speculates(baseline) == speculates(other):
        return
    speculating, plain = (other, baseline) if speculates(other) else (baseline, other)
    if other.engine == "sglang" and baseline.engine == "sglang":
        yield from _silent_sglang(speculating, plain, other.name)
    elif other.engine == "vllm" and baseline.engine == "vllm":
        yield from _kv_pool(speculating, plain, other.name, "num-gpu-blocks-override", "vLLM")


def _silent_sglang(speculating: Profile, plain: Profile, name: str) -> Iterator[Remark]:
    if given(speculating, "max-running-requests") is None:  # lines 1086-1094
        yield Remark(
            "silent",
            "args.max-running-requests",
            name,
            f"SGLang sets max_running_requests to 48 in {speculating.name}, because it speculates "
            "and does not say it",
            "Give --max-running-requests the same value on both sides.",
        )
    if given(plain, "enable-mixed-chunk") is not None:
        yield Remark(
            "silent",
            "args.enable-mixed-chunk",
            name,
            f"SGLang turns mixed chunks off in {speculating.name}; {plain.name} has them on",
            f"Take --enable-mixed-chunk out of {plain.name}.",
        )
    yield from _kv_pool(speculating, plain, name, "max-total-tokens", "SGLang")
    if not _same(speculating, plain, "cuda-graph-max-bs", "cuda-graph-bs"):
        yield Remark(
            "silent",
            "args.cuda-graph-max-bs",
            name,
            "The batch sizes that SGLang captures CUDA graphs for follow from the requests it "
            "allows at once, which speculation changes",
            "Give --cuda-graph-max-bs the same value on both sides.",
        )
    if given(speculating, "disable-overlap-schedule") != given(plain, "disable-overlap-schedule"):
        return
    if given(plain, "disable-overlap-schedule") is None:
        yield Remark(
            "silent",
            "args.disable-overlap-schedule",
            name,
            f"SGLang 0.5.6 to 0.5.10 turn the overlap scheduler off in {speculating.name}, unless "
            "SGLANG_ENABLE_SPEC_V2 is set",
            "With these versions give --disable-overlap-schedule on both sides.",
        )


def _kv_pool(
    speculating: Profile, plain: Profile, name: str, flag: str, engine: str
) -> Iterator[Remark]:
    if not _same(speculating, plain, flag):
        yield Remark(
            "silent",
            f"args.{flag}",
            name,
            f"{engine}'s KV pool is smaller in {speculating.name}: the drafter's weights and its "
            "KV cache come out of the same memory",
            f"Give --{flag} the same value on both sides, one that fits with the drafter.",
        )


def _same(one: Profile, other: Profile, *flags: str) -> bool:
    """Whether one of these flags is given on both sides, with one value."""
    return any(
        given(one, flag) is not None and given(one, flag) == given(other, flag) for flag in flags
    )


def _top_k(profile: Profile) -> ArgValue | None:
    return given(profile, "speculative-eagle-topk")


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _is_speculative(name: str) -> bool:
    return name.startswith("speculative-")


def _covers(pattern: str, key: str) -> bool:
    field, _, name = key.partition(".")
    normal = f"{field}.{_plain(name)}" if field == "args" else key
    return normal.startswith(pattern[:-1]) if pattern.endswith("*") else pattern in {key, normal}


def _shown(name: str, value: Any) -> str:
    if value is None or value == ():
        return "not given"
    if value is True:
        return f"{dashed(name)} given"
    if isinstance(value, str):
        return redact.value(name, value)
    return str(redact.json_value(list(value) if isinstance(value, tuple) else value, name))

"""Rules on how much: GPUs, heads, memory, context."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject

_TP, _PP, _DP = (
    ("tp-size", "tensor-parallel-size"),
    ("pp-size", "pipeline-parallel-size"),
    ("dp-size", "data-parallel-size"),
)
_MEMORY = ("mem-fraction-static", "gpu-memory-utilization")
_CONTEXT = ("context-length", "max-model-len")
_OVERWRITE = {
    "sglang": "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    "vllm": "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
}
_MOST_MEMORY = 0.95
_UNITS = {"": 1, "k": 1000, "m": 10**6, "g": 10**9, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def world(subject: Subject) -> int:
    """How many GPUs of this machine the profile asks for."""
    tp, pp, dp = (max(subject.integer(*names) or 1, 1) for names in (_TP, _PP, _DP))
    # vLLM counts the replicas of all machines; these two say which of them are here.
    if subject.given("data-parallel-rank") is not None:
        dp = 1
    dp = subject.integer("data-parallel-size-local") or dp
    shared = subject.profile.engine == "sglang" and subject.given("enable-dp-attention") is not None
    nodes = max(subject.integer("nnodes") or 1, 1)
    return max(tp * pp * (1 if shared else dp) // nodes, 1)


@rule("gpus", "error", "sglang", "vllm")
def gpus(subject: Subject) -> Iterator[Told]:
    """There are as many GPUs as the parallel sizes ask for."""
    if subject.text("distributed-executor-backend") == "ray" or subject.given("use-ray"):
        return  # Ray places them, on whichever machines it has
    needed = world(subject)
    place = subject.place(*_TP, *_PP, *_DP)
    visible = _visible(subject)
    if visible is not None and needed > visible:
        named = "gpus" if subject.profile.gpus is not None else "CUDA_VISIBLE_DEVICES"
        message = f"the parallel sizes ask for {needed} GPUs, and {named} leaves {visible}"
        yield place, message, "Lower a size, or give it more GPUs."
    there = subject.facts.gpu_count
    if there is not None and needed > there:
        message = f"the parallel sizes ask for {needed} GPUs, and {subject.facts.where} has {there}"
        yield place, message, "Lower a size."
    elif there is not None and subject.profile.gpus and max(subject.profile.gpus) >= there:
        message = f"gpus names {max(subject.profile.gpus)}, and {subject.facts.where} has 0 to "
        yield subject.profile.place("gpus"), f"{message}{there - 1}", ""


def _visible(subject: Subject) -> int | None:
    if subject.profile.gpus is not None:
        return len(subject.profile.gpus)
    devices = subject.profile.env.get("CUDA_VISIBLE_DEVICES")
    return None if devices is None else len([one for one in devices.split(",") if one.strip()])


@rule("heads", "error", "sglang", "vllm")
def heads(subject: Subject) -> Iterator[Told]:
    """The model's attention heads can be shared out evenly (asked with --host)."""
    tp, count = subject.integer(*_TP), _of_model(subject.facts.model, "num_attention_heads")
    if tp and count and count % tp:
        fits = [n for n in (1, 2, 4, 8, 16, 32) if count % n == 0 and n <= tp]
        message = f"{count} attention heads cannot be shared out among {tp} GPUs"
        yield subject.place(*_TP), message, f"{fits[-1]} would do."


@rule("memory-fraction", "error", "sglang", "vllm")
def memory(subject: Subject) -> Iterator[Told]:
    """The share of GPU memory is one, and leaves room for CUDA graphs and activations."""
    text = subject.text(*_MEMORY)
    if text is None:
        return
    where, name = subject.place(*_MEMORY), next(n for n in _MEMORY if n in subject.flags)
    try:
        share = float(text)
    except ValueError:
        yield where, f"{name} takes a share such as 0.88, not {text!r}", ""
        return
    if not 0 < share <= 1:
        hint = f"Write {share / 100:g}." if 1 < share <= 100 else ""  # noqa: PLR2004 - percent
        yield where, f"{name} is a share of a GPU's memory, above 0 and 1 at most, not {text}", hint
    elif share > _MOST_MEMORY:
        message = f"{name} {text} leaves less than 5 % for activations and CUDA graphs: a long "
        yield where, message + "prompt may end the server", "0.88 to 0.92 are usual.", "warning"


@rule("context-length", "error", "sglang", "vllm")
def context(subject: Subject) -> Iterator[Told]:
    """The context is no longer than the model's, unless that is asked for; and then it is given."""
    variable = _OVERWRITE[subject.profile.engine]
    allowed = subject.profile.env.get(variable, "0").lower() in {"1", "true", "yes"}
    asked = _length(subject.text(*_CONTEXT))
    if allowed and subject.given(*_CONTEXT) is None:
        message = f"{variable} lets a context be longer than the model's, and none is given"
        fix = f"Take it out, or give {_CONTEXT[subject.profile.engine == 'vllm']}."
        yield subject.env_place(variable), message, fix, "note"
    longest = _of_model(subject.facts.model, "max_position_embeddings")
    if asked and longest and asked > longest and not allowed:
        message = f"a context of {asked} is more than the model's {longest}: the engine refuses it"
        yield subject.place(*_CONTEXT), message, f"Lower it, or set {variable}=1."


def _length(text: str | None) -> int | None:
    number = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text or "")
    return int(float(number[1]) * _UNITS[number[2]]) if number else None


def _of_model(model: Mapping[str, Any] | None, name: str) -> int | None:
    if model is None:
        return None
    nested = model.get("text_config")
    value = model.get(name) or (nested.get(name) if isinstance(nested, Mapping) else None)
    return value if isinstance(value, int) else None


@rule("custom-all-reduce", "note", "sglang", "vllm")
def custom_all_reduce(subject: Subject) -> Iterator[Told]:
    """The engine's own all-reduce is switched off only where that means something."""
    if subject.given("disable-custom-all-reduce") is None:
        return
    where, needed = subject.place("disable-custom-all-reduce"), world(subject)
    if needed == 1:
        yield where, "one GPU has nothing to reduce: the flag does nothing", "Take it out."
    elif subject.facts.nvlink:
        message = "these GPUs have NVLink, where the engine's own all-reduce is faster for small "
        yield where, message + "messages: the flag costs speed", "Take it out.", "warning"
    elif subject.facts.nvlink is False and needed > 2:  # noqa: PLR2004 - more than a pair
        message = (
            f"with {needed} GPUs and no NVLink the engine leaves its own all-reduce by itself: "
        )
        yield where, message + "the flag does nothing", "Take it out, or keep it as a reminder."

"""Rules on speculative decoding."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from eagleops.lint.rule import Told, rule
from eagleops.lint.subject import Subject

# SGLang 0.5.23, arg_groups/speculative_hook.py; 0.5.12 and newer take plugins' names too.
ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO")
# EAGLE and NEXTN can draft with layers of the model itself.
_NEED_DRAFT = {"EAGLE3", "STANDALONE", "DFLASH"}
_COUNTS = ("speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens")
_DRAFT = ("speculative-draft-model-path", "speculative-draft-model")
# vLLM 0.9 to 0.33, config/speculative.py; beside them one for each kind of MTP: *_mtp.
METHODS = (
    "ngram",
    "ngram_gpu",
    "medusa",
    "mlp_speculator",
    "draft_model",
    "suffix",
    "custom_class",
    "eagle",
    "eagle3",
    "mtp",
    "dflash",
    "dspark",
    "extract_hidden_states",
)
_METHODS_WITH_DRAFT = {"eagle", "eagle3", "draft_model", "medusa", "mlp_speculator", "dflash"}


def _algorithm(subject: Subject) -> str | None:
    given = subject.text("speculative-algorithm")
    return None if given is None or given.upper() == "NONE" else given.upper()


@rule("spec-tokens", "error", "sglang")
def tokens(subject: Subject) -> Iterator[Told]:
    """With top-k 1 there is one draft token more than there are steps; else as many as can be."""
    steps, top_k, drafts = (subject.integer(name) for name in _COUNTS)
    if _algorithm(subject) is None or _algorithm(subject) == "NGRAM" or steps is None:
        return
    where = subject.place("speculative-num-draft-tokens")
    if top_k == 1 and drafts is not None and drafts != steps + 1:
        yield (
            where,
            (
                f"with speculative-eagle-topk 1 a draft is a chain: {steps} steps make {steps + 1} "
                f"tokens, and SGLang replaces the {drafts} without stopping"
            ),
            f"Write speculative-num-draft-tokens: {steps + 1}.",
        )
    elif top_k is not None and top_k > 1 and drafts is not None and drafts > steps * top_k + 1:
        yield (
            where,
            f"{steps} steps with top-k {top_k} make {steps * top_k + 1} tokens, not {drafts}",
            f"Write {steps * top_k + 1} or less.",
        )


@rule("spec-partial", "error", "sglang")
def partial(subject: Subject) -> Iterator[Told]:
    """Steps, top-k and draft tokens are given together, or none of them."""
    given = [name for name in _COUNTS if subject.given(name) is not None]
    algorithm = _algorithm(subject)
    if algorithm in {None, "NGRAM"} or not given or _COUNTS[0] in given:
        return
    yield (
        subject.place(*given),
        (
            f"{given[0]} is given and speculative-num-steps is not: SGLang ends with an "
            "AssertionError that says nothing"
        ),
        "Give all three, or none: then it chooses.",
    )


@rule("spec-idle", "warning", "sglang")
def idle(subject: Subject) -> Iterator[Told]:
    """Flags of speculation stand beside an algorithm."""
    if _algorithm(subject) is not None:
        return
    given = [name for name in subject.flags if name.startswith("speculative-")]
    given = [name for name in given if name != "speculative-algorithm"]
    if given:
        message = f"{', '.join(given)}: without speculative-algorithm nothing is speculated"
        yield subject.place(given[0]), message, "Add speculative-algorithm, or take them out."


@rule("spec-algorithm", "error", "sglang")
def algorithm(subject: Subject) -> Iterator[Told]:
    """The algorithm is one that SGLang has."""
    given = subject.text("speculative-algorithm")
    if given is None or given in ALGORITHMS or given.upper() == "NONE":
        return
    where = subject.place("speculative-algorithm")
    if given.upper() in ALGORITHMS:
        message = f"{given!r}: up to 0.5.10 SGLang refuses an algorithm in lower case"
        yield where, message, f"Write {given.upper()}.", "warning"
        return
    near = difflib.get_close_matches(given.upper(), ALGORITHMS, n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]}?" if near else f"It has {', '.join(ALGORITHMS)}."
    message = f"SGLang has no algorithm {given!r}, unless a plugin adds it (0.5.12 and newer)"
    yield where, message, hint, "error" if near else "warning"


@rule("spec-draft", "error", "sglang")
def draft(subject: Subject) -> Iterator[Told]:
    """An algorithm that needs a draft model has one, and one that needs none has none."""
    name, path = _algorithm(subject), subject.given(*_DRAFT)
    where = subject.place("speculative-algorithm")
    if name in _NEED_DRAFT and path is None:
        message = f"{name} drafts with a model of its own, and none is named"
        yield where, message, "Add speculative-draft-model-path."
    if name == "NGRAM" and path is not None:
        message = "NGRAM drafts from the text itself: it reads no draft model"
        yield subject.place(*_DRAFT), message, "Take speculative-draft-model-path out.", "warning"
    if path is not None and path == subject.profile.model and name != "NEXTN":
        message = "the draft model is the model itself: a draft then costs what a step does"
        yield subject.place(*_DRAFT), message, "Name the draft model's path.", "warning"


@rule("spec-conflict", "error", "sglang")
def conflict(subject: Subject) -> Iterator[Told]:
    """Nothing is asked for that speculation excludes or switches off."""
    name = _algorithm(subject)
    if name is None:
        return
    if name == "STANDALONE" and subject.given("enable-dp-attention") is not None:
        message = "STANDALONE speculation does not go with DP attention: SGLang ends at its start"
        yield subject.place("enable-dp-attention"), message, "Take one of them out."
    if subject.given("enable-mixed-chunk") is not None:
        message = "speculation switches mixed chunks off: enable-mixed-chunk does nothing"
        yield subject.place("enable-mixed-chunk"), message, "Take it out.", "warning"
    if "SGLANG_ENABLE_SPEC_V2" in subject.profile.env:
        message = "SGLang reads SGLANG_ENABLE_SPEC_V2 up to 0.5.12; newer ones always overlap"
        fix = "Take it out; disable-overlap-schedule is today's switch."
        yield subject.env_place("SGLANG_ENABLE_SPEC_V2"), message, fix, "note"


@rule("spec-requests", "note", "sglang")
def requests(subject: Subject) -> Iterator[Told]:
    """A comparison with a baseline is fair: both run as many requests at once."""
    if _algorithm(subject) is not None and subject.given("max-running-requests") is None:
        yield (
            subject.place("speculative-algorithm"),
            (
                "with speculation SGLang runs 48 requests at most, without it more: a comparison "
                "at high load is then not fair"
            ),
            "Give max-running-requests in both profiles.",
        )


@rule("spec-fake", "warning", "sglang")
def fake(subject: Subject) -> Iterator[Told]:
    """Acceptance is measured, not made up."""
    if subject.profile.env.get("SGLANG_SIMULATE_ACC_LEN", "-1") not in {"-1", "0", ""}:
        yield (
            subject.env_place("SGLANG_SIMULATE_ACC_LEN"),
            (
                "SGLANG_SIMULATE_ACC_LEN makes up how many drafts are accepted: text and speed are "
                "false"
            ),
            "Take it out, unless it is the scheduler that is measured.",
        )


@rule("spec-vocabulary", "error", "sglang", "vllm")
def vocabulary(subject: Subject) -> Iterator[Told]:
    """The model and its draft speak the same vocabulary (asked with --host)."""
    model, small = subject.facts.model, subject.facts.draft
    if model is None or small is None or _mixed(subject):
        return
    sizes = _vocabulary(model), _vocabulary(small)
    if None not in sizes and sizes[0] != sizes[1]:
        yield (
            subject.place(*_DRAFT, "speculative-config"),
            (
                f"the model's vocabulary has {sizes[0]} tokens, its draft's {sizes[1]}: the drafts "
                "would mean something else"
            ),
            "Name the draft that was trained for this model.",
        )


def _mixed(subject: Subject) -> bool:
    config = subject.given("speculative-config")
    return isinstance(config, Mapping) and bool(config.get("use_heterogeneous_vocab"))


def _vocabulary(config: Mapping[str, Any]) -> int | None:
    nested = config.get("text_config")
    size = config.get("vocab_size") or (
        nested.get("vocab_size") if isinstance(nested, Mapping) else None
    )
    return size if isinstance(size, int) else None


@rule("spec-config", "error", "vllm")
def config(subject: Subject) -> Iterator[Told]:
    """The speculative-config of vLLM is JSON that names a method, its draft and its length."""
    given = subject.given("speculative-config")
    if given is None:
        return
    where = subject.place("speculative-config")
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            yield where, "speculative-config is no JSON", "Write it as a mapping: {method: ngram}."
            return
    if not isinstance(given, Mapping):
        yield where, "speculative-config takes one JSON object", "Write it as a mapping."
        return
    yield from _config(where, given)


def _config(where: str, given: Mapping[str, Any]) -> Iterator[Told]:
    method = given.get("method")
    if method is None and "model" not in given:
        yield where, "speculative-config names neither a method nor a model", "Add method."
    if isinstance(method, str) and method not in METHODS and not method.endswith("_mtp"):
        near = difflib.get_close_matches(method.lower(), METHODS, n=1, cutoff=0.6)
        hint = f"Did you mean {near[0]}?" if near else ""
        yield where, f"vLLM has no method {method!r}", hint, "error" if near else "warning"
    if method in _METHODS_WITH_DRAFT and "model" not in given:
        yield (
            where,
            f"method {method} drafts with a model of its own, and none is named",
            ("Add model to speculative-config."),
        )
    length = given.get("num_speculative_tokens")
    if length is None and method not in {"mtp", "suffix"} and not str(method).endswith("_mtp"):
        message = (
            "without num_speculative_tokens vLLM looks for it in the draft's config, and ends "
        )
        yield where, message + "where there is none", "Add num_speculative_tokens.", "warning"
    elif length is not None and (not isinstance(length, int) or length < 1):
        yield where, f"num_speculative_tokens is {length!r}, and must be 1 or more", ""

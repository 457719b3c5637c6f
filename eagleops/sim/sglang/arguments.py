"""The command line of ``sglang.launch_server``: the real one's flags, and no other.

``arguments.json`` holds every field of SGLang 0.5.17's ServerArgs with its default, as a
real server told them at /server_info.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

_ALIASES = {
    "model_path": ("--model",),
    "tp_size": ("--tensor-parallel-size", "--tp"),
    "pp_size": ("--pipeline-parallel-size", "--pp"),
    "dp_size": ("--data-parallel-size", "--dp"),
    "ep_size": ("--expert-parallel-size", "--ep"),
    "dist_init_addr": ("--nccl-init-addr",),
    "speculative_draft_model_path": ("--speculative-draft-model",),
    "cuda_graph_max_bs_decode": ("--cuda-graph-max-bs",),
    "cuda_graph_bs_decode": ("--cuda-graph-bs",),
}
_DEPRECATED = {
    "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
    "--cuda-graph-bs": "--cuda-graph-bs-decode",
}
# Bare flags whose default is neither yes nor no.
_BARE = frozenset(
    {"enable_multimodal", "enable_lora", "enable_lora_overlap_loading", "dcp_replicate_q_proj"}
)
_LISTS = frozenset({"cuda_graph_bs_decode", "cuda_graph_bs_prefill", "lora_paths", "numa_node"})
_NO_FLAG = frozenset({"custom_sigquit_handler"})
_ALGORITHMS = frozenset(
    {"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO"}
)

MEM_FRACTION_STATIC = 0.87

Arguments = dict[str, Any]


class BadCombination(Exception):
    """Flags that each are known and together are refused.

    Attributes:
        error: The type of the real one's exception.
    """

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


def defaults() -> Arguments:
    """Every field of the real ServerArgs with its default."""
    text = resources.files("eagleops.sim.sglang").joinpath("arguments.json").read_text("utf-8")
    fields: Arguments = json.loads(text)
    return fields


def parse(argv: Sequence[str]) -> tuple[Arguments, list[str]]:
    """The arguments, resolved as the engine does, and the lines that it says about them.

    Raises:
        SystemExit: with status 2, for a flag that is unknown or badly used.
        BadCombination: for flags that do not go together.
    """
    given = vars(_parser().parse_args(argv))
    said = [
        f"\033[1;33m'{old}' is deprecated and will be removed in a future release. "
        f"Use '{new}' instead.\033[0m"
        for old, new in _DEPRECATED.items()
        if any(word.partition("=")[0] == old for word in argv)
    ]
    arguments = {**defaults(), **given}
    arguments["tokenizer_path"] = arguments["tokenizer_path"] or arguments["model_path"]
    arguments["served_model_name"] = arguments["served_model_name"] or arguments["model_path"]
    if arguments["mem_fraction_static"] is None:
        arguments["mem_fraction_static"] = MEM_FRACTION_STATIC
    return arguments, said + _resolve_speculation(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="launch_server.py", description="Simulated: see eagleops.sim."
    )
    for name, default in defaults().items():
        if name not in _NO_FLAG:
            flags = [f"--{name.replace('_', '-')}", *_ALIASES.get(name, ())]
            parser.add_argument(*flags, dest=name, **_kind(name, default))
    return parser


def _kind(name: str, default: Any) -> dict[str, Any]:
    if name in _BARE or isinstance(default, bool):
        return {"action": "store_true", "default": default}
    if name in _LISTS or isinstance(default, list):
        return {"nargs": "+", "default": default}
    if isinstance(default, dict):
        return {"type": json.loads, "default": default}
    kind = type(default) if isinstance(default, int | float) else _number_or_text
    return {
        "type": kind,
        "default": default,
        "required": name == "model_path",
        "metavar": name.upper(),
    }


def _number_or_text(word: str) -> int | float | str:
    if re.fullmatch(r"[+-]?[0-9]+", word):
        return int(word)
    return float(word) if re.fullmatch(r"[+-]?[0-9]*\.[0-9]+", word) else word


def _resolve_speculation(arguments: Arguments) -> list[str]:
    """Fills in and adjusts the speculative arguments in place, and says so as the engine does."""
    algorithm = arguments["speculative_algorithm"]
    if algorithm is None:
        return []
    if algorithm not in _ALGORITHMS:
        raise BadCombination("ValueError", f"Unknown speculative algorithm name: {algorithm}")
    said = []
    if arguments["max_running_requests"] is None:
        arguments["max_running_requests"] = 48
        said.append(
            "Max running requests is reset to 48 for speculative decoding. You can override this "
            "by explicitly setting --max-running-requests."
        )
    steps, topk, draft = (
        f"speculative_{n}" for n in ("num_steps", "eagle_topk", "num_draft_tokens")
    )
    if arguments[steps] is None:
        if arguments[topk] is not None or arguments[draft] is not None:
            raise BadCombination("AssertionError", "")
        arguments.update({steps: 3, topk: 1, draft: 4})
    if arguments[topk] == 1 and arguments[draft] != arguments[steps] + 1:
        said.append(
            "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when "
            "speculative_eagle_topk == 1"
        )
        arguments[draft] = arguments[steps] + 1
    return said

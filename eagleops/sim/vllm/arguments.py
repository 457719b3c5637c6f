"""The command line of ``vllm serve``: the real one's flags, and no other.

``flags.json`` holds the flags of vLLM 0.32.0, as its own parser told them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

GPU_MEMORY_UTILIZATION = 0.92
DEFAULT_MODEL = "Qwen/Qwen3-0.6B"

_KINDS: dict[str, dict[str, Any]] = {
    "pair": {"action": argparse.BooleanOptionalAction},
    "switch": {"action": "store_true"},
    "int": {"type": int},
    "float": {"type": float},
    "value": {},
    "list": {"nargs": "+"},
    "optional": {"nargs": "?", "const": ""},
    "append": {"action": "append"},
}
# The dashed words that begin a value which is JSON: --speculative-config.method eagle3
_DOT = "."


class Arguments:
    """The arguments of one start.

    Attributes:
        given: What the command line says, by name: ``tensor_parallel_size``.
    """

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    @property
    def model(self) -> str:
        """The model's path or name."""
        return str(self.given.get("model_tag") or self.given.get("model") or DEFAULT_MODEL)

    @property
    def served_name(self) -> str:
        """The name that requests have to use."""
        names = self.given.get("served_model_name")
        return str(names[0]) if names else self.model

    @property
    def host(self) -> str:
        """Where it listens."""
        return str(self.given.get("host") or "0.0.0.0")  # noqa: S104 - as the real one

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.given.get("port", 8000))

    @property
    def ranks(self) -> int:
        """Workers: one a GPU."""
        return int(self.given.get("tensor_parallel_size", 1))

    @property
    def gpu_memory_utilization(self) -> float:
        """The share of each GPU's memory that it takes."""
        return float(self.given.get("gpu_memory_utilization", GPU_MEMORY_UTILIZATION))

    @property
    def max_model_len(self) -> int:
        """Tokens that a request may have."""
        return int(self.given.get("max_model_len", 262144))

    @property
    def drafts(self) -> int:
        """Tokens drafted in each speculative cycle; 0 without speculation."""
        config = self.given.get("speculative_config")
        return int(config["num_speculative_tokens"]) if config else 0


def parse(argv: Sequence[str]) -> Arguments:
    """The arguments of ``serve``, without that word.

    Raises:
        SystemExit: with status 2, for a flag that is unknown or badly used.
    """
    parser = _parser()
    given = vars(parser.parse_args(_undotted(argv)))
    config = given.get("speculative_config")
    if config is not None:
        try:
            given["speculative_config"] = json.loads(config)
            given["speculative_config"]["num_speculative_tokens"]
        except (ValueError, KeyError, TypeError):
            parser.error(
                f"argument --speculative-config/-sc: Value {config} cannot be converted to a "
                "config with num_speculative_tokens."
            )
    return Arguments(given)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vllm serve",
        description="Simulated: see eagleops.sim.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("model_tag", nargs="?")
    text = resources.files("eagleops.sim.vllm").joinpath("flags.json").read_text("utf-8")
    for kind, *flags in json.loads(text):
        parser.add_argument(*flags, **_KINDS[kind])
    return parser


def _undotted(argv: Sequence[str]) -> list[str]:
    """``argv`` with underscores in flags as dashes, and ``--a.b value`` folded into JSON."""
    out: list[str] = []
    nested: dict[str, dict[str, Any]] = {}
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if not flag.startswith("--"):
            out.append(word)
            continue
        flag = flag.replace("_", "-")
        head, dot, key = flag.partition(_DOT)
        if not dot:
            out.append(f"{flag}{equals}{value}")
            continue
        text = value if equals else next(words, "")
        nested.setdefault(head, {})[key.replace("-", "_")] = _json_or_text(text)
    return out + [f"{head}={json.dumps(value)}" for head, value in nested.items()]


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

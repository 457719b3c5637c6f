"""SGLang, 0.4.6 and newer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.engines.failures import Cause, diagnosed
from eagleops.engines.flags import agreed, count, given, required, with_port
from eagleops.engines.launch_env import launch_environment
from eagleops.engines.overrides import Override, applicable, sets
from eagleops.engines.probes import probe, readiness
from eagleops.engines.roles import Role, python_role
from eagleops.engines.sglang_failures import SIGNS
from eagleops.engines.sglang_overrides import RULES
from eagleops.engines.workers import ExpectedWorker, ExpectedWorkers, expected
from eagleops.profile import Profile

MODEL = ("model-path", "model")
# argparse takes any unambiguous beginning of a flag; these are the ones that people use.
TP = ("tp-size", "tensor-parallel-size", "tp")
PP = ("pp-size", "pipeline-parallel-size", "pp")
DP = ("dp-size", "data-parallel-size", "dp")

_TITLE = re.compile(
    r"(?P<family>sglang|sgl_diffusion)::"
    r"(?P<name>scheduler|detokenizer_router|detokenizer|data_parallel_controller|tokenizer_worker)"
    r"(?:_(?P<rank>[A-Z][A-Z_]*\d+(?:_[A-Z][A-Z_]*\d+)*)|_(?P<index>\d+)|:(?P<pid>\d+))?$"
)
_RAY = re.compile(r"ray::(?P<actor>\S+)")
_MAIN = re.compile(
    r"(?:^|\s|/)(?:-m sglang\.launch_server|sglang serve|sglang/launch_server\.py)\b"
)


@attrs.frozen
class SGLang:
    """The adapter of SGLang. Facts: its source, 0.4.6.post5 to 0.5.23."""

    name: str = "sglang"

    def command(self, profile: Profile, python: str) -> tuple[str, ...]:
        """``python -m sglang.launch_server --model-path MODEL FLAGS --port PORT``.

        ``sglang serve`` is newer, and a script of one environment; the module is in every
        version and runs under the interpreter that the profile names.

        Raises:
            ProfileError: without a model or a port, or where args contradict them.
        """
        model = required(profile, "model", *MODEL, example="/path/to/model")
        port = required(profile, "port", "port", example="30000")
        head = [python, "-m", "sglang.launch_server"]
        if not agreed(profile, "model", model, *MODEL):
            head += ["--model-path", model]
        return (*head, *with_port(profile, port))

    def environment(self, profile: Profile, *, nccl_log: bool = True) -> dict[str, str]:
        """See :func:`~eagleops.engines.launch_env.launch_environment`."""
        return launch_environment(profile, nccl_log=nccl_log)

    def readiness(self, profile: Profile) -> Mapping[str, Any] | None:
        """/health_generate, which generates a token; /health where a version lacks it.

        Before 0.5, /health says yes while the warm-up still runs. A server with an API key
        answers /health without it but not /model_info, and one that fetches from ModelScope
        serves under another path: their identity is then not asked for.
        """
        if profile.port is None:
            return None
        blind = given(profile, "api-key") or sets("SGLANG_USE_MODELSCOPE")(profile)
        identity = {
            "paths": ["/model_info", "/get_model_info"],
            "field": "model_path",
            "equals": profile.model,
        }
        return readiness(
            port=profile.port,
            probes=[probe("/health_generate", missing_ok=True), probe("/health")],
            identity=None if blind else identity,
        )

    def expected_workers(self, profile: Profile) -> ExpectedWorkers:
        """A scheduler for each rank of this node, and what stands around them.

        Raises:
            ProfileError: if a flag that holds a number does not.
        """
        if given(profile, "use-ray"):
            return ExpectedWorkers((), "Ray starts the schedulers, outside the server's tree")
        return ExpectedWorkers((*_schedulers(profile), *_around(profile)))

    def role(self, title: str, argv: Sequence[str]) -> Role | None:
        """Reads titles as 0.4.6 to 0.5.23 write them."""
        if found := _TITLE.match(title.strip("\0 ")):
            computes = found["name"] == "scheduler"
            return Role(found["name"], found["rank"] or found["index"], computes)
        if found := _RAY.match(title):
            computes = "Scheduler" in found["actor"]
            return Role("scheduler" if computes else "ray", None, computes)
        return python_role(argv) or (Role("server") if _MAIN.search(" ".join(argv)) else None)

    def overrides(self, profile: Profile) -> tuple[Override, ...]:
        """See :mod:`eagleops.engines.sglang_overrides`."""
        return applicable(RULES, profile)

    def diagnose(
        self, log_lines: Sequence[str], exit_status: int | None, signal: str | None
    ) -> Cause | None:
        """See :mod:`eagleops.engines.failures`. Its exit status never tells: -9 is its own."""
        return diagnosed(SIGNS, log_lines, exit_status, signal)


def _schedulers(profile: Profile) -> Iterator[ExpectedWorker]:
    tp, pp, dp = count(profile, *TP), count(profile, *PP), count(profile, *DP)
    # With DP attention the ranks of the data-parallel groups are the tensor-parallel ones.
    replicas = 1 if given(profile, "enable-dp-attention") else dp
    pp_ranks, tp_ranks = _of_this_node(profile, tp, pp)
    for dp_rank in range(replicas):
        for pp_rank in pp_ranks:
            for tp_rank in tp_ranks:
                ranks = {
                    **({"DP": dp_rank} if replicas > 1 else {}),
                    **({"PP": pp_rank} if pp > 1 else {}),
                    **({"TP": tp_rank} if tp > 1 else {}),
                }
                yield expected("scheduler", "sglang::scheduler", ranks)


def _of_this_node(profile: Profile, tp: int, pp: int) -> tuple[range, range]:
    # entrypoints/engine.py, _calculate_rank_ranges
    nodes = max(count(profile, "nnodes"), 1)
    node = count(profile, "node-rank", default=0)
    nodes_per_stage = max(nodes // max(pp, 1), 1)
    stages, per_node = max(pp // nodes, 1), tp // nodes_per_stage
    first_stage, first_tp = stages * (node // nodes_per_stage), per_node * (node % nodes_per_stage)
    return range(first_stage, first_stage + stages), range(first_tp, first_tp + per_node)


def _around(profile: Profile) -> Iterator[ExpectedWorker]:
    if count(profile, *DP) > 1:
        yield expected("data_parallel_controller", "sglang::data_parallel_controller")
    serves_http = not sets("SGLANG_RUST_SERVER")(profile) and not given(profile, "grpc-mode")
    if count(profile, "node-rank", default=0) > 0 or not serves_http:
        return
    detokenizers = count(profile, "detokenizer-worker-num")
    for _ in range(detokenizers):
        yield expected("detokenizer", "sglang::detokenizer")
    if detokenizers > 1:
        yield expected("detokenizer_router", "sglang::detokenizer_router")
    tokenizers = count(profile, "tokenizer-worker-num")
    for _ in range(tokenizers if tokenizers > 1 else 0):
        yield expected("tokenizer_worker", "sglang::tokenizer_worker")

"""vLLM, 0.9 and newer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from eagleops.engines.failures import Cause, diagnosed
from eagleops.engines.flags import agreed, count, given, required, with_port
from eagleops.engines.launch_env import launch_environment
from eagleops.engines.overrides import Override, applicable
from eagleops.engines.probes import probe, readiness
from eagleops.engines.roles import Role, python_role
from eagleops.engines.vllm_failures import SIGNS
from eagleops.engines.vllm_overrides import RULES
from eagleops.engines.workers import ExpectedWorker, ExpectedWorkers, expected
from eagleops.profile import Profile

MODEL = ("model",)
TP = ("tensor-parallel-size", "tp")
PP = ("pipeline-parallel-size", "pp")
DP = ("data-parallel-size", "dp")
PCP = ("prefill-context-parallel-size", "pcp")
# argparse's "append": given once for each value.
REPEATED = ("middleware",)

_NAMES = {
    "EngineCore": "engine_core",
    "Worker": "worker",
    "APIServer": "api_server",
    "DPCoordinator": "dp_coordinator",
}
# The prefix is VLLM unless VLLM_PROCESS_NAME_PREFIX says otherwise.
_TITLE = re.compile(
    r"\S+?::(?P<name>EngineCore|Worker|APIServer|DPCoordinator)"
    r"(?:_(?P<rank>[A-Z]+\d+(?:_[A-Z]+\d+)*)|_(?P<index>\d+))?$"
)
_RAY = re.compile(r"ray::(?P<actor>\S+)")
_MAIN = re.compile(
    r"(?:^|\s|/)(?:-m vllm\.entrypoints\.(?:cli\.main|openai\.api_server)|vllm serve)\b"
)


@attrs.frozen
class VLLM:
    """The adapter of vLLM. Facts: its source, 0.32.0, and what older versions are known for."""

    name: str = "vllm"

    def command(self, profile: Profile, python: str) -> tuple[str, ...]:
        """``python -m vllm.entrypoints.cli.main serve MODEL FLAGS --port PORT``.

        That module is what the ``vllm`` script runs (from 0.8 on), under the interpreter that
        the profile names. ``vllm.entrypoints.openai.api_server`` is deprecated (0.32 says so at
        each start), and never knew several API servers or ``--headless``.

        Raises:
            ProfileError: without a model or a port, or where args contradict them.
        """
        model = required(profile, "model", *MODEL, example="/path/to/model")
        port = required(profile, "port", "port", example="8000")
        agreed(profile, "model", model, *MODEL)
        head = (python, "-m", "vllm.entrypoints.cli.main", "serve", model)
        return (*head, *with_port(profile, port, without=MODEL, repeated=REPEATED))

    def environment(self, profile: Profile, *, nccl_log: bool = True) -> dict[str, str]:
        """See :func:`~eagleops.engines.launch_env.launch_environment`."""
        return launch_environment(profile, nccl_log=nccl_log)

    def readiness(self, profile: Profile) -> Mapping[str, Any] | None:
        """/health, and in /v1/models the model's path, or the name it is served under.

        With an API key /v1/models is closed: the identity is then not asked for.
        """
        if profile.port is None or given(profile, "headless"):
            return None
        served = given(profile, "served-model-name")
        name = served[0] if isinstance(served, tuple) and served else served
        identity = {
            "paths": ["/v1/models"],
            "field": "data.*.id" if name else "data.*.root",
            "equals": name or profile.model,
        }
        closed = given(profile, "api-key") or "VLLM_API_KEY" in {*profile.env, *profile.inherit}
        return readiness(
            port=profile.port,
            probes=[probe("/health")],
            identity=None if closed else identity,
        )

    def expected_workers(self, profile: Profile) -> ExpectedWorkers:
        """An engine core for each data-parallel rank of this node, and its workers.

        Raises:
            ProfileError: if a flag that holds a number does not.
        """
        local = _local_engines(profile)
        cores = tuple(_engine_cores(profile, local))
        if given(profile, "distributed-executor-backend") == "ray":
            return ExpectedWorkers(cores, "Ray starts the workers, outside the server's tree")
        return ExpectedWorkers((*cores, *_workers(profile, local), *_api_servers(profile)))

    def role(self, title: str, argv: Sequence[str]) -> Role | None:
        """Reads titles as 0.9 to 0.32 write them, whatever their prefix."""
        title = title.strip("\0 ")
        if found := _RAY.match(title):
            computes = "Worker" in found["actor"]
            return Role("worker" if computes else "ray", None, computes)
        if found := _TITLE.match(title):
            role = _NAMES[found["name"]]
            # One GPU has no worker of its own: the engine core runs the model.
            return Role(role, found["rank"] or found["index"], role in {"worker", "engine_core"})
        return python_role(argv) or (Role("server") if _MAIN.search(" ".join(argv)) else None)

    def overrides(self, profile: Profile) -> tuple[Override, ...]:
        """See :mod:`eagleops.engines.vllm_overrides`."""
        return applicable(RULES, profile)

    def diagnose(
        self, log_lines: Sequence[str], exit_status: int | None, signal: str | None
    ) -> Cause | None:
        """See :mod:`eagleops.engines.failures`."""
        return diagnosed(SIGNS, log_lines, exit_status, signal)


def _local_engines(profile: Profile) -> range:
    """The data-parallel ranks whose engine core runs on this node."""
    own_rank = given(profile, "data-parallel-rank", "dpn")
    if own_rank is not None:
        rank = count(profile, "data-parallel-rank", "dpn")
        return range(rank, rank + 1)
    size = count(profile, *DP)
    local = count(profile, "data-parallel-size-local", "dpl", default=size)
    first = count(profile, "data-parallel-start-rank", "dpr", default=0)
    return range(first, first + local)


def _engine_cores(profile: Profile, local: range) -> Iterator[ExpectedWorker]:
    # The second and later nodes of one engine run workers alone.
    if count(profile, *DP) == 1 and count(profile, "node-rank", "r", default=0) > 0:
        return
    for rank in local:
        ranks = {"DP": rank} if count(profile, *DP) > 1 else {}
        yield expected("engine_core", "VLLM::EngineCore", ranks)


def _workers(profile: Profile, local: range) -> Iterator[ExpectedWorker]:
    tp, pp, pcp = count(profile, *TP), count(profile, *PP), count(profile, *PCP)
    world = tp * pp * pcp
    if world == 1:
        return
    # config/parallel.py, nnodes_within_dp
    groups = count(profile, *DP) // max(len(local), 1)
    nodes = max(count(profile, "nnodes", "n") // max(groups, 1), 1)
    share = world // nodes
    first = share * (count(profile, "node-rank", "r", default=0) % nodes)
    for dp_rank in local:
        for rank in range(first, first + share):
            ranks = {
                **({"PP": rank // (tp * pcp)} if pp > 1 else {}),
                **({"PCP": rank // tp % pcp} if pcp > 1 else {}),
                **({"TP": rank % tp} if tp > 1 else {}),
            }
            # The title names the data-parallel rank too, in newer versions.
            lead = f"VLLM::Worker_DP{dp_rank}" if len(local) > 1 else "VLLM::Worker"
            yield expected("worker", lead, ranks)


def _api_servers(profile: Profile) -> Iterator[ExpectedWorker]:
    servers = count(profile, "api-server-count", "asc")
    for rank in range(servers if servers > 1 else 0):
        yield ExpectedWorker("api_server", str(rank), f"VLLM::APIServer_{rank}")

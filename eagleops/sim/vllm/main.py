"""The main process of the stand-in vLLM: the API server."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from eagleops.sim.clock import TokenClock
from eagleops.sim.engine import visible_gpus
from eagleops.sim.layout import Layout
from eagleops.sim.memory import Plan
from eagleops.sim.settings import Settings, SimError
from eagleops.sim.vllm import __version__
from eagleops.sim.vllm.arguments import Arguments, parse
from eagleops.sim.vllm.environment import set_own_variables
from eagleops.sim.vllm.log import Log


class Launch(NamedTuple):
    """One start of a server.

    Attributes:
        began_s: By :func:`time.monotonic`.
        gpus: The box's GPUs that are visible, in the order of the ranks.
    """

    layout: Layout
    arguments: Arguments
    settings: Settings
    plan: Plan
    gpus: tuple[int, ...]
    began_s: float

    def clock(self) -> TokenClock:
        """The server's pace.

        Raises:
            SimError: if a cycle would have to yield more tokens than it can.
        """
        return TokenClock.of(self.settings, self.arguments.drafts)


def _prepared(argv: Sequence[str], log: Log) -> Launch:
    layout = Layout.of_this_process()
    began_s = time.monotonic()
    arguments = parse(argv)
    try:
        settings = Settings.of_this_process()
        plan = Plan.of(arguments.gpu_memory_utilization - 0.015)
        gpus = visible_gpus(layout.identity().gpus)
        launch = Launch(layout, arguments, settings, plan, gpus, began_s)
        launch.clock()
    except SimError as error:
        raise SystemExit(f"vllm serve: error: {error}") from None
    log(
        "api_utils.py:347",
        f"SIMULATED: this is no real vLLM but eagleops' stand-in, version {__version__}, on the "
        f"embedded box {layout.root}. No GPU is used.",
    )
    log("api_utils.py:286", f"non-default args: {json.dumps(arguments.given)}")
    return launch


def _run(argv: Sequence[str]) -> NoReturn:
    log = Log("APIServer")
    launch = _prepared(argv, log)
    set_own_variables(launch.arguments.ranks)
    # Loads the HTTP server's modules, which a command line that is refused needs not.
    from eagleops.sim.vllm.tree import run

    raise SystemExit(run(launch, log))


def serve_command() -> NoReturn:
    """Entry point of ``vllm``: its subcommand ``serve`` alone."""
    if sys.argv[1:2] == ["--version"]:
        print(__version__)
        raise SystemExit(0)
    if sys.argv[1:2] != ["serve"]:
        print("usage: vllm [-h] [-v] {serve} ...\nvllm: error: simulated: it knows `serve` alone")
        raise SystemExit(2)
    _run(sys.argv[2:])


def api_server() -> NoReturn:
    """Entry point of ``python -m vllm.entrypoints.openai.api_server``."""
    _run(sys.argv[1:])

"""The main process of the stand-in SGLang: starts the workers, then serves."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from eagleops.sim.clock import TokenClock
from eagleops.sim.engine import visible_gpus
from eagleops.sim.layout import Layout
from eagleops.sim.memory import Plan
from eagleops.sim.settings import Settings, SimError
from eagleops.sim.sglang import __version__
from eagleops.sim.sglang.arguments import Arguments, BadCombination, parse
from eagleops.sim.sglang.environment import set_own_variables
from eagleops.sim.sglang.log import Log
from eagleops.sim.sglang.scheduler import Job


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

    @property
    def ranks(self) -> int:
        """How many schedulers there are."""
        return int(self.arguments["tp_size"])

    @property
    def speculative(self) -> bool:
        """Whether it decodes speculatively."""
        return self.arguments["speculative_algorithm"] is not None

    def jobs(self) -> list[Job]:
        """What each scheduler is to do."""
        check = os.environ.get("SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK", "1")
        comm_id = int(secrets.token_hex(8), 16)
        return [
            Job(
                rank,
                self.ranks,
                self.gpus,
                self.layout,
                self.settings,
                self.plan,
                os.getpid(),
                self.began_s,
                comm_id,
                self.speculative,
                check.lower() not in {"0", "false"},
            )
            for rank in range(self.ranks)
        ]

    def clock(self) -> TokenClock:
        """The server's pace.

        Raises:
            SimError: if a cycle would have to yield more tokens than it can.
        """
        # With top-k 1 a cycle drafts as many tokens as it has steps.
        steps = int(self.arguments["speculative_num_steps"] or 0) if self.speculative else 0
        return TokenClock.of(self.settings, steps)


def _prepared(argv: Sequence[str], log: Log) -> Launch:
    """The launch that a command line asks for, or the real one's way to refuse it."""
    layout = Layout.of_this_process()
    began_s = time.monotonic()
    try:
        arguments, said = parse(argv)
        settings = Settings.of_this_process()
        gpus = visible_gpus(layout.identity().gpus)[int(arguments["base_gpu_id"]) :]
        plan = Plan.of(float(arguments["mem_fraction_static"]))
        launch = Launch(layout, arguments, settings, plan, gpus, began_s)
        launch.clock()
    except BadCombination as error:
        print(f"Traceback (most recent call last):\n{error.error}: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except SimError as error:
        raise SystemExit(f"launch_server.py: error: {error}") from None
    log(
        f"SIMULATED: this is no real SGLang but eagleops' stand-in {__version__}, on the embedded "
        f"box {layout.root}. No GPU is used."
    )
    for line in said:
        log(line)
    values = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    log(f"server_args=ServerArgs({values})")
    return launch


def main() -> NoReturn:
    """Entry point of ``python -m sglang.launch_server``."""
    log = Log()
    launch = _prepared(sys.argv[1:], log)
    set_own_variables(launch.arguments)
    # Loads the HTTP server's modules, which a command line that is refused needs not.
    from eagleops.sim.sglang.tree import run

    raise SystemExit(run(launch, log))

"""A profile's ``sim:`` section: what its simulated server shall be like.

================== ========================================================================
``tok_s``          plain decoding: so many tokens a second (82.2)
``cycle_ms``       speculative decoding: one cycle of drafting and verifying takes so long
                   (30.6); used when the engine's flags ask for speculation
``accept_length``  and yields so many tokens on the mean (1.84)
``ttft_ms``        time to the first token (60)
``noise_pct``      each request's pace differs by so much, one standard deviation (0)
``seed``           of the noise (0)
``speed``          1 is real time; 10 makes decoding and start-up ten times as fast
``start_s``        from start to the HTTP socket (1.5)
``warmup_s``       from there to ready, at the least (0.3)
``stop_s``         from SIGTERM to the end, at the least (0.2)
``fail``           how it fails: a name in :data:`FAILURES`
``fail_rank``      the rank that does (0)
``after_s``        and when, for the failures that come after it was ready (1)
``orphans``        true: workers outlive a main process that was killed (as the real ones:
                   SGLang's die with it, vLLM 0.32's live on)
================== ========================================================================
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from eagleops.sim.layout import PROFILE_VARIABLE

FAILURES = frozenset(
    (
        # while starting
        "exit",  # the main process ends with status 1 and a traceback
        "hang",  # the workers never get past their first collective
        "import",  # a module is missing, deep in a worker
        "killed",  # a worker is killed from outside (the kernel's OOM killer)
        "memory",  # the KV cache does not fit
        "nccl",  # NCCL fails
        "oom",  # CUDA runs out of memory
        "port",  # the port is taken, which shows at the very end of the start
        "segv",  # the main process dies by SIGSEGV
        "warmup",  # the warm-up request fails
        # when it is ready
        "crash",  # a worker dies
        "serve",  # the first completion kills it
        "stall",  # tokens stop coming, in the middle of a reply
        "unhealthy",  # /health answers 503
    )
)


class SimError(Exception):
    """A ``sim:`` section that cannot be followed."""


class Settings(NamedTuple):
    """The section's values: see the module's table. Times are as written, before ``speed``."""

    tok_s: float = 82.2
    cycle_ms: float = 30.6
    accept_length: float = 1.84
    ttft_ms: float = 60.0
    noise_pct: float = 0.0
    seed: int = 0
    speed: float = 1.0
    start_s: float = 1.5
    warmup_s: float = 0.3
    stop_s: float = 0.2
    fail: str = ""
    fail_rank: int = 0
    after_s: float = 1.0
    orphans: bool | None = None

    @classmethod
    def of_this_process(cls) -> Settings:
        """The section that this process was started with.

        Raises:
            SimError: if it cannot be followed.
        """
        return cls.parse(os.environ.get(PROFILE_VARIABLE) or "{}")

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Reads a section from JSON.

        Raises:
            SimError: for a value that is unknown, of the wrong kind or out of range.
        """
        section = json.loads(text)
        unknown = set(section) - set(cls._fields)
        if unknown:
            raise SimError(f"no such value in `sim:`: {', '.join(sorted(unknown))}")
        defaults = cls()
        values = {name: _typed(name, value, defaults) for name, value in section.items()}
        settings = cls(**values)
        settings._check()
        return settings

    def _check(self) -> None:
        for name in ("tok_s", "cycle_ms", "speed"):
            if getattr(self, name) <= 0:
                raise SimError(f"`sim: {name}` must be above 0, not {getattr(self, name):g}")
        if self.accept_length < 1:
            raise SimError(
                f"`sim: accept_length` counts the target's own token: it is at least 1, not "
                f"{self.accept_length:g}"
            )
        if self.fail and self.fail not in FAILURES:
            known = ", ".join(sorted(FAILURES))
            raise SimError(f"`sim: fail` knows {known}; not {self.fail}")


def _typed(name: str, value: Any, defaults: Settings) -> Any:
    default = False if name == "orphans" else getattr(defaults, name)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise SimError(f"`sim: {name}` is {type(default).__name__}, not {value!r}")
    return value

"""Environment truth: what each worker of a server really runs with, and how one knows.

Three witnesses speak of a variable in a process: ``initial`` (``/proc/PID/environ``: what exec
gave it, where nobody has written over it since), ``live`` (the C library's environment: what
getenv finds now) and ``effective`` (NCCL's own log: what NCCL took and what it refused).
:func:`verdict` weighs them; what none of them can see is ``unknown``, never ``missing``.

Everything here is a pure function of what :mod:`eagleops.remote.environ` has read.
"""

from __future__ import annotations

from eagleops.environment.judging import Engine, Expectation, judge
from eagleops.environment.report import EnvReport, ProcessReport, VariableReport
from eagleops.environment.story import Story
from eagleops.environment.verdict import Kind, Verdict
from eagleops.environment.weighing import verdict
from eagleops.environment.witnesses import Ancestor, Effective, Initial, Live, Witnesses

__all__ = [
    "Ancestor",
    "Effective",
    "Engine",
    "EnvReport",
    "Expectation",
    "Initial",
    "Kind",
    "Live",
    "ProcessReport",
    "Story",
    "VariableReport",
    "Verdict",
    "Witnesses",
    "judge",
    "verdict",
]

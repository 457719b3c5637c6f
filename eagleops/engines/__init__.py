"""Engines: how each is started, seen and understood. One adapter each, all of them pure."""

from eagleops.engines.base import Engine
from eagleops.engines.description import describe
from eagleops.engines.failures import Cause
from eagleops.engines.overrides import Override
from eagleops.engines.registry import ENGINES, engine
from eagleops.engines.roles import Role
from eagleops.engines.workers import ExpectedWorker, ExpectedWorkers

__all__ = [
    "ENGINES",
    "Cause",
    "Engine",
    "ExpectedWorker",
    "ExpectedWorkers",
    "Override",
    "Role",
    "describe",
    "engine",
]

"""The operations by name. Each is a generator: it yields events and returns its result."""

from __future__ import annotations

from typing import Any, Callable, Dict, Generator

from eagleops.remote.environ import environ
from eagleops.remote.execute import execute
from eagleops.remote.kill import kill

Operation = Callable[..., Generator[Dict[str, Any], None, Dict[str, Any]]]

OPERATIONS: Dict[str, Operation] = {
    "environ": environ,
    "execute": execute,
    "kill": kill,
}

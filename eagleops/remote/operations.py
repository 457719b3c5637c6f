"""The operations by name. Each is a generator: it yields events and returns its result."""

from __future__ import annotations

from typing import Any, Callable, Dict, Generator

from eagleops.remote.doctor import doctor
from eagleops.remote.drain import drain
from eagleops.remote.environ import environ
from eagleops.remote.execute import execute
from eagleops.remote.installation import installation
from eagleops.remote.kill import kill
from eagleops.remote.reserve import reserve
from eagleops.remote.servers import servers
from eagleops.remote.snapshot import snapshot
from eagleops.remote.spawn import spawn
from eagleops.remote.stop import stop
from eagleops.remote.tail import tail
from eagleops.remote.watch import watch

Operation = Callable[..., Generator[Dict[str, Any], None, Dict[str, Any]]]

OPERATIONS: Dict[str, Operation] = {
    "doctor": doctor,
    "drain": drain,
    "environ": environ,
    "execute": execute,
    "installation": installation,
    "kill": kill,
    "reserve": reserve,
    "servers": servers,
    "snapshot": snapshot,
    "spawn": spawn,
    "stop": stop,
    "tail": tail,
    "watch": watch,
}

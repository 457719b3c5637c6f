"""Operation ``release``: a launch that comes to nothing gives the machine back."""

from __future__ import annotations

from typing import Any, Dict, Generator

from eagleops.remote.context import Context
from eagleops.remote.reserve import give_back


def release(context: Context, launch_id: str) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Ends the reservation of the launch of that id; ``released`` says whether it had one."""
    yield {"event": "releasing"}
    return {"released": give_back(context, launch_id)}

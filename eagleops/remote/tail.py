"""Operation ``tail``: a server's log, and what is added to it."""

from __future__ import annotations

from typing import Any, Dict, Generator, List

from eagleops.remote.context import Context
from eagleops.remote.log_lines import MAX_BEHIND_BYTES, LogFollower, readable
from eagleops.remote.servers import find_record

POLL_S = 0.05
BATCH_LINES = 1000


def tail(
    context: Context, name: str, lines: int = 100, follow: bool = False
) -> Generator[Dict[str, Any], None, Dict[str, Any]]:
    """Yields the last ``lines`` lines of the log of ``name``, whether it lives or not.

    Lines further back than 4 MiB are not looked for.

    Args:
        context: The operation's surroundings.
        name: The server's.
        lines: How many.
        follow: Stay, and yield what is added, until the server has ended.

    Raises:
        Failure: ``no_such_server``.
    """
    record = find_record(context, name)
    log = LogFollower(record.log, backlog_bytes=MAX_BEHIND_BYTES)
    there = log.catch_up() if follow else log.finish()
    yield from _events(there[-lines:] if lines > 0 else [])
    while follow:
        ended = record.main() is None
        yield from _events(log.finish() if ended else log.catch_up())
        if ended:
            break
        context.sleep(POLL_S)
    return {"log": record.log}


def _events(lines: List[bytes]) -> Generator[Dict[str, Any], None, None]:
    for start in range(0, len(lines), BATCH_LINES):
        batch = lines[start : start + BATCH_LINES]
        yield {"event": "log", "lines": [readable(line) for line in batch]}

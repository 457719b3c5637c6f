"""A regular expression of the user's own in what a program said: it may take for ever.

Some expressions try every way to split a text, and Python's ``re`` hears neither signals nor time
limits meanwhile, nor does any other thread. So it searches in a process of its own.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence

from eagleops.errors import CannotTell
from eagleops.transport.local import LocalTransport

LIMIT_S = 10.0
# Its alarm ends it, whatever became of us.
_PROGRAM = """
import json, re, signal, sys
limit_s, expression, text = json.load(sys.stdin)
signal.setitimer(signal.ITIMER_REAL, limit_s)
found = re.search(expression, text, re.MULTILINE)
json.dump(None if found is None else found.groups(), sys.stdout)
"""


def search(expression: str, text: str) -> Sequence[str | None] | None:
    """The groups of the first place in ``text`` that fits; None where none does.

    Args:
        expression: Python's; ``^`` and ``$`` stand for each line's ends.
        text: Any.

    Raises:
        CannotTell: if :data:`LIMIT_S` do not do.
    """
    asked = json.dumps([LIMIT_S, expression, text]).encode("ascii")
    done = LocalTransport().run([sys.executable, "-I", "-c", _PROGRAM], stdin=asked)
    if done.exit_status == 0:
        groups: Sequence[str | None] | None = json.loads(done.stdout)
        return groups
    if done.exit_status == -signal.SIGALRM:
        raise CannotTell(
            problem=f"{expression!r} was searched for in {len(text):,} characters of output for "
            f"{LIMIT_S:g} s, to no end",
            way_out="Repeat nothing that itself repeats: not (a+)+ but a+.",
        )
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    why = said[-1] if said else f"it ended with status {done.exit_status}"
    raise CannotTell(problem=f"{expression!r} could not be searched for: {why}")

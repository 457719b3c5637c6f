r"""argv to the one command line that the login shell behind SSH reads: the only place that quotes.

SSH carries no argv: sshd hands one string to the user's login shell. The line is written so
that sh, dash, bash, zsh and fish all read the same words from it: text in single quotes,
and backslash and single quote outside of quotes, as ``\\`` and ``\'``, for fish knows
escapes inside single quotes and the others do not. ``exec`` in front keeps the shell's own
functions and built-ins of the same name out (zsh's built-ins but), and leaves no shell
behind to wait.
"""

from __future__ import annotations

import re

from eagleops.errors import EagleError
from eagleops.transport.base import Argv, encode

# MAX_ARG_STRLEN of Linux: the line is one argument of `sh -c`, its closing NUL included.
LINE_LIMIT_BYTES = 131072

_SPECIAL = re.compile(rb"([\\'])")


def quote(argument: bytes) -> bytes:
    r"""``argument`` as one word for every login shell in use.

    >>> quote(b"it's 5 $")
    b"'it'\\''s 5 $'"
    """
    if not argument:
        return b"''"
    runs = _SPECIAL.split(argument)
    return b"".join(b"\\" + run if run in {b"\\", b"'"} else _in_quotes(run) for run in runs)


def command_line(argv: Argv) -> bytes:
    """The line from which a login shell execs ``argv`` byte for byte.

    Raises:
        ValueError: as :func:`eagleops.transport.base.encode`.
        EagleError: if the line is longer than the kernel hands to a shell.
    """
    line = b"exec " + b" ".join(quote(argument) for argument in encode(argv))
    if len(line) >= LINE_LIMIT_BYTES:
        raise EagleError(
            problem=f"the command is {len(line)} bytes long once quoted, and a login shell's one "
            f"argument holds at most {LINE_LIMIT_BYTES - 1} (Linux: MAX_ARG_STRLEN 131072)",
            way_out="Send long values over stdin or in a session's request: neither has a limit.",
        )
    return line


def _in_quotes(run: bytes) -> bytes:
    return b"'" + run + b"'" if run else b""

"""The witness ``initial``: what ``/proc/PID/environ`` still holds of the environment at exec.

The kernel shows there the memory in which it once laid the strings of the environment. A
process may write over it, and a title library does: it takes the memory of argv and of as
much of the environment as follows it without a gap, and fills it with the title and zeros.
So the bytes say of themselves whether they can be believed:

- strings that ``exec`` laid down are not empty, each ends in one zero byte, and so does the
  whole; where two zero bytes meet, somebody has written;
- a title that is longer than argv runs on into the environment: then the byte before it is
  no zero.

A block that was written over says what it still shows, and nothing about what it does not.
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

WHOLE = "whole"
PARTLY_OVERWRITTEN = "partly_overwritten"
OVERWRITTEN = "overwritten"
EMPTY = "empty"
UNREADABLE = "unreadable"


class Block(NamedTuple):
    """What one block says.

    Attributes:
        state: WHOLE: as exec laid it, so a name that is not here was not given.
            PARTLY_OVERWRITTEN or OVERWRITTEN: what is not here may have been given.
            EMPTY: there is no block (a kernel thread, a zombie).
        variables: Names and values; of a name given twice the first, which ``getenv`` finds.
        nameless: Strings without ``=``, or with nothing before it.
        size: Bytes of the block.
        overwritten_bytes: How many of them, from the start, were written over.
    """

    state: str
    variables: Dict[bytes, bytes]
    nameless: Tuple[bytes, ...]
    size: int
    overwritten_bytes: int


def parse(
    content: bytes, region_bytes: Optional[int] = None, title_runs_on: Optional[bool] = None
) -> Block:
    """Reads the bytes of ``/proc/PID/environ``.

    Args:
        content: All that could be read.
        region_bytes: Length of the memory that the kernel shows there (``env_end`` less
            ``env_start`` in ``/proc/PID/stat``); None where that is not known, and 0 for a
            process that was started with no variable at all.
        title_runs_on: Whether the byte before the region is no zero; None where unknown.
    """
    if not content:
        return Block(WHOLE if region_bytes == 0 else EMPTY, {}, (), 0, 0)
    size = max(len(content), region_bytes or 0)
    strings, overwritten = _believable(content, title_runs_on)
    cut_short = len(content) < size
    variables, nameless = split(strings)
    if not strings:
        state = OVERWRITTEN
    elif overwritten is None and not cut_short:
        state = WHOLE
    else:
        state = PARTLY_OVERWRITTEN
    prefix = size if state == OVERWRITTEN else overwritten or 0
    return Block(state, variables, tuple(nameless), size, prefix)


def split(strings: List[bytes]) -> Tuple[Dict[bytes, bytes], List[bytes]]:
    """Strings as variables, and those that ``getenv`` cannot find by a name."""
    variables: Dict[bytes, bytes] = {}
    nameless: List[bytes] = []
    for string in strings:
        name, equals, value = string.partition(b"=")
        if name and equals:
            variables.setdefault(name, value)
        else:
            nameless.append(string)
    return variables, nameless


def _believable(content: bytes, title_runs_on: Optional[bool]) -> Tuple[List[bytes], Optional[int]]:
    """The strings that nobody wrote over, and where they begin: None if nobody wrote at all.

    A string next to two meeting zeros may itself be a remainder, so it is left out, but for
    the one that follows: title libraries take whole strings.
    """
    rest = content.lstrip(b"\0")
    zeros = len(content) - len(rest)
    if not rest:
        return [], zeros
    pieces = rest.split(b"\0")
    tail = pieces.pop()  # empty where the last string is closed
    doubtful = {at - 1 for at, piece in enumerate(pieces) if not piece}
    if tail:
        doubtful.add(len(pieces))
        pieces.append(tail)
    if not zeros and _starts_with_a_title(pieces, title_runs_on):
        doubtful.add(0)
        if len(pieces) > 1 and pieces[1]:
            doubtful.add(1)  # no zeros between: the rest of the variable that the title cut
    strings = [piece for at, piece in enumerate(pieces) if piece and at not in doubtful]
    if not zeros and len(strings) == len(pieces):
        return strings, None
    return strings, zeros + _prefix_bytes(pieces, doubtful)


def _starts_with_a_title(pieces: List[bytes], title_runs_on: Optional[bool]) -> bool:
    if title_runs_on is None:
        return bool(pieces[0]) and b"=" not in pieces[0]
    return title_runs_on


def _prefix_bytes(pieces: List[bytes], doubtful: "set[int]") -> int:
    offset = 0
    for at, piece in enumerate(pieces):
        if piece and at not in doubtful:
            return offset
        offset += len(piece) + 1
    return offset

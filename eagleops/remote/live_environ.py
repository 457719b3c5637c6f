"""The witness ``live``: the C library's environment of a running process, which getenv reads.

Reading is repeated until two readings in a row agree; the process runs on meanwhile.
"""

from __future__ import annotations

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from eagleops.remote import elf
from eagleops.remote.elf import Word
from eagleops.remote.elf_sections import ReadFile
from eagleops.remote.environ_block import split
from eagleops.remote.environ_symbol import ENVIRON, PROGRAM_NAME, Place, find_variable
from eagleops.remote.memory import CannotRead, Memory, Starting
from eagleops.remote.program_image import addresses

MAX_POINTERS = 65_536
MAX_STRING_BYTES = 2 * 1024 * 1024
READINGS = 8

# environ's value, the pointers it leads to, the strings that those lead to.
Reading = Tuple[int, List[int], List[bytes]]


class Live(NamedTuple):
    """A live environment.

    Attributes:
        variables: Names and values; of a name that stands there twice the first, which
            ``getenv`` finds.
        nameless: Strings that ``getenv`` cannot find by a name.
        holder: The object that holds ``environ``: a library's path, or "the executable".
    """

    variables: Dict[bytes, bytes]
    nameless: Tuple[bytes, ...]
    holder: str


def read_live(memory: Memory, auxv: bytes, executable: ReadFile, maps: Callable[[], bytes]) -> Live:
    """The environment that ``getenv`` searches in that process now.

    Args:
        memory: Of the process.
        auxv: Its ``/proc/PID/auxv``.
        executable: Reads ``/proc/PID/exe``.
        maps: Reads ``/proc/PID/maps``; asked only where the link map cannot be followed.

    Raises:
        CannotRead: with the reason; never a guess.
    """
    elf.check_host()
    where = (memory, auxv, executable, maps)
    place = find_variable(ENVIRON, *where)
    before: Optional[Reading] = None
    for _ in range(READINGS):
        memory.forget()
        now = _read_strings(memory, place)
        if now == before:
            variables, nameless = split(now[2])
            return Live(variables, tuple(nameless), place.holder)
        if not now[0]:
            _check_started(memory, find_variable(PROGRAM_NAME, *where))
        before = now
    raise CannotRead("the environment changed each time it was read")


def _check_started(memory: Memory, name: Place) -> None:
    """Environ is null before the C library has started, and after ``clearenv``.

    Raises:
        Starting: if it has not started yet.
    """
    at = addresses(memory, name.word, name.address, 1)[0]
    if not at or not memory.string(at, MAX_STRING_BYTES):
        raise Starting("the C library has not started in the process yet")


def _read_strings(memory: Memory, place: Place) -> Reading:
    start = addresses(memory, place.word, place.address, 1)[0]
    pointers = _read_pointers(memory, place.word, start) if start else []
    memory.load(pointers)
    return start, pointers, [memory.string(address, MAX_STRING_BYTES) for address in pointers]


def _read_pointers(memory: Memory, word: Word, at: int) -> List[int]:
    pointers: List[int] = []
    while len(pointers) <= MAX_POINTERS:
        chunk = memory.some(at, 256 * word.size)
        usable = len(chunk) - len(chunk) % word.size
        if not usable:
            raise CannotRead("environ runs into no memory at 0x{:x}".format(at))
        for (pointer,) in word.address.iter_unpack(chunk[:usable]):
            if not pointer:
                return pointers
            pointers.append(pointer)
        at += usable
    raise CannotRead("environ has more than {} entries: no real one".format(MAX_POINTERS))

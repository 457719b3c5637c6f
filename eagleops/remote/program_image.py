"""A running program as its own memory describes it: its headers, and the objects it has loaded.

Files are asked for nothing but, where memory does not tell it, the program's own header: they
may be deleted or replaced since, or lie in another mount namespace.
"""

from __future__ import annotations

import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from eagleops.remote import elf
from eagleops.remote.elf import Dynamic, Header, Segment, Word
from eagleops.remote.elf_sections import ReadFile
from eagleops.remote.memory import CannotRead, Memory, Starting

GLIBC_DEBUG = b"_r_debug"
MUSL_DEBUG = b"_dl_debug_addr"  # a pointer to it

AT_PHDR, AT_PHENT, AT_PHNUM, AT_BASE, AT_ENTRY = 3, 4, 5, 7, 9

MAX_OBJECTS = 8192
MAX_PATH_BYTES = 4096
EXECUTABLE = "the executable"


class Image(NamedTuple):
    """The program that the kernel started, as its auxiliary vector describes it."""

    memory: Memory
    word: Word
    segments: List[Segment]
    base: int
    interpreter: int

    @property
    def dynamically_linked(self) -> bool:
        """Whether a dynamic linker has loaded it."""
        return elf.find_segment(self.segments, elf.PT_INTERP) is not None

    def dynamic(self) -> Optional[Dynamic]:
        """Its dynamic section; None for a program that has none."""
        segment = elf.find_segment(self.segments, elf.PT_DYNAMIC)
        if segment is None:
            return None
        return Dynamic(self.memory, self.word, self.base, self.base + segment.address)


class Loaded(NamedTuple):
    """An entry of the dynamic linker's list of objects.

    Attributes:
        base: What the object's addresses are moved by.
        path_at: Where its path lies.
        dynamic_at: Where its dynamic section lies; 0 for none.
    """

    base: int
    path_at: int
    dynamic_at: int


def parse_auxv(content: bytes) -> Tuple[Word, Dict[int, int]]:
    """The auxiliary vector, and the class of the process that it was made for.

    Raises:
        Starting: if it describes no program.
    """
    for word in (elf.WORD_64, elf.WORD_32):
        pair = struct.Struct("<QQ" if word is elf.WORD_64 else "<II")
        entries: Dict[int, int] = {}
        for tag, value in pair.iter_unpack(content[: len(content) - len(content) % pair.size]):
            if tag == 0:
                break
            entries.setdefault(tag, value)
        if entries.get(AT_PHENT) == word.program.size and entries.get(AT_PHDR):
            return word, entries
    raise Starting("the kernel describes no program: the process is starting or ending")


def image_of(memory: Memory, auxv: bytes, executable: ReadFile) -> Image:
    """The program of a process.

    Args:
        memory: Of the process.
        auxv: Its ``/proc/PID/auxv``.
        executable: Reads ``/proc/PID/exe``; asked only where memory does not show the header.

    Raises:
        CannotRead: if it cannot be told where the program lies.
    """
    word, entries = parse_auxv(auxv)
    count = min(entries.get(AT_PHNUM, 0), elf.MAX_PROGRAM_HEADERS)
    at = entries[AT_PHDR]
    segments = elf.parse_segments(word, memory.exact(at, count * word.program.size or 1))
    own = elf.find_segment(segments, elf.PT_PHDR)
    if own is not None:
        base = at - own.address
    else:
        header = _header(memory, word, at, executable)
        base = 0 if header.fixed else entries.get(AT_ENTRY, 0) - header.entry
    if base < 0:
        raise CannotRead("the program's headers make no sense")
    return Image(memory, word, segments, base, entries.get(AT_BASE, 0))


def loaded_objects(image: Image, first: int) -> Iterator[Loaded]:
    """The dynamic linker's list from ``first`` on: the executable, then in link order.

    Raises:
        CannotRead: if the list makes no sense.
    """
    at = first
    for _ in range(MAX_OBJECTS):
        base, path_at, dynamic_at, following = addresses(image.memory, image.word, at, 4)
        yield Loaded(base, path_at, dynamic_at)
        if not following:
            return
        at = following
    raise CannotRead("the list of loaded objects has no end")


def library_paths(image: Image) -> Optional[List[str]]:
    """Paths of the libraries that the program has loaded; None where there is no list.

    Raises:
        CannotRead: if the list makes no sense.
    """
    dynamic = image.dynamic()
    first = 0 if dynamic is None else link_map(image, dynamic)
    if not first:
        return None
    return [path_of(image, loaded) for loaded in loaded_objects(image, first)][1:]


def path_of(image: Image, loaded: Loaded) -> str:
    """An object's path, as the dynamic linker knows it."""
    try:
        path = image.memory.string(loaded.path_at, MAX_PATH_BYTES)
    except CannotRead:
        path = b""
    return path.decode("utf-8", "replace") or "a library"


def link_map(image: Image, dynamic: Dynamic) -> int:
    """The head of the list of loaded objects; 0 where no list can be found.

    Raises:
        CannotRead: if there is a list and it is still empty.
    """
    debug = _debug_structure(image, dynamic)
    if not debug:
        return 0
    head = addresses(image.memory, image.word, debug + image.word.size, 1)[0]
    if not head:
        raise Starting("the dynamic linker has not loaded the program yet: it is starting")
    return head


def dynamic_at(memory: Memory, start: int) -> Optional[Dynamic]:
    """The dynamic section of the object whose ELF header lies at ``start``.

    Raises:
        CannotRead: if there is no such header.
    """
    header = elf.parse_header(memory.some(start, 64))
    count = min(header.program_count, elf.MAX_PROGRAM_HEADERS)
    content = memory.some(start + header.program_offset, count * header.word.program.size or 1)
    segments = elf.parse_segments(header.word, content)
    dynamic = elf.find_segment(segments, elf.PT_DYNAMIC)
    load = elf.find_segment(segments, elf.PT_LOAD)
    if dynamic is None or load is None:
        return None
    base = start - (load.address - load.offset)
    return Dynamic(memory, header.word, base, base + dynamic.address)


def addresses(memory: Memory, word: Word, at: int, count: int) -> Sequence[int]:
    """That many addresses, one after the other.

    Raises:
        CannotRead: if not all of them are mapped.
    """
    content = memory.exact(at, count * word.size)
    return [value for (value,) in word.address.iter_unpack(content)]


def _header(memory: Memory, word: Word, program_headers: int, executable: ReadFile) -> Header:
    # Linkers put the program headers right behind the ELF header.
    try:
        content = memory.exact(program_headers - word.header.size, word.header.size)
        return elf.parse_header(content)
    except CannotRead:
        return elf.parse_header(executable(0, 64))


def _debug_structure(image: Image, dynamic: Dynamic) -> int:
    """Where the dynamic linker keeps what debuggers ask; 0 where that cannot be told.

    The executable's DT_DEBUG says it, once the linker has run. Some executables have none,
    nor has a program that was started as an argument of the linker: then its symbols say it.
    """
    direct = dynamic.entries.get(elf.DT_DEBUG, 0)
    if direct:
        return direct
    linker = dynamic_at(image.memory, image.interpreter) if image.interpreter else None
    for candidate in filter(None, (dynamic, linker)):
        found = candidate.find((GLIBC_DEBUG, MUSL_DEBUG))
        if GLIBC_DEBUG in found:
            return found[GLIBC_DEBUG]
        if MUSL_DEBUG in found:
            return addresses(image.memory, image.word, found[MUSL_DEBUG], 1)[0]
    return 0

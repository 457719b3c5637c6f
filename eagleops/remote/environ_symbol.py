"""Where a running process keeps the C library's ``environ``.

It is found as the dynamic linker found it for the process itself: the executable first (where
it holds a copy of its own, by a copy relocation, the C library's is a dead one), then the
libraries in link order. The list of them and their symbols are read from the process's
memory, so it does not matter whether a file was deleted or replaced since, or in which mount
namespace it lies.
"""

from __future__ import annotations

import struct
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from eagleops.remote import elf, elf_sections
from eagleops.remote.elf import Dynamic, Header, Segment, Word
from eagleops.remote.elf_sections import ReadFile
from eagleops.remote.memory import CannotRead, Memory

# The C library's own name comes first: it is the one that getenv uses (glibc, musl).
NAMES = (b"__environ", b"environ", b"_environ")
GLIBC_DEBUG = b"_r_debug"
MUSL_DEBUG = b"_dl_debug_addr"  # a pointer to it

AT_PHDR, AT_PHENT, AT_PHNUM, AT_BASE, AT_ENTRY = 3, 4, 5, 7, 9

MAX_OBJECTS = 8192


class Place(NamedTuple):
    """Where ``environ`` lies."""

    address: int
    word: Word
    holder: str


class Image(NamedTuple):
    """The program that the kernel started, as its auxiliary vector describes it."""

    memory: Memory
    word: Word
    segments: List[Segment]
    base: int
    interpreter: int

    def dynamic(self) -> Optional[Dynamic]:
        """Its dynamic section; None for a program that has none."""
        segment = elf.find_segment(self.segments, elf.PT_DYNAMIC)
        if segment is None:
            return None
        return Dynamic(self.memory, self.word, self.base, self.base + segment.address)


def find_environ(
    memory: Memory, auxv: bytes, executable: ReadFile, maps: Callable[[], bytes]
) -> Place:
    """Where the process's C library keeps ``environ``.

    Raises:
        CannotRead: if that cannot be told.
    """
    image = _image(memory, auxv, executable)
    place = _exported(image, maps)
    if place is not None:
        return place
    if elf.find_segment(image.segments, elf.PT_INTERP) is not None:
        raise CannotRead("nothing in the process exports environ: it has no C library")
    found = elf_sections.find_symbols(executable, NAMES)
    for name in NAMES:
        if name in found:
            return Place(image.base + found[name], image.word, "the executable")
    raise CannotRead("the program is statically linked and has no environ: no C library")


def parse_auxv(content: bytes) -> Tuple[Word, Dict[int, int]]:
    """The auxiliary vector, and the class of the process that it was made for.

    Raises:
        CannotRead: if it describes no program.
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
    raise CannotRead("the kernel describes no program: the process is starting or ending")


def _image(memory: Memory, auxv: bytes, executable: ReadFile) -> Image:
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


def _header(memory: Memory, word: Word, program_headers: int, executable: ReadFile) -> Header:
    # Linkers put the program headers right behind the ELF header.
    try:
        content = memory.exact(program_headers - word.header.size, word.header.size)
        return elf.parse_header(content)
    except CannotRead:
        return elf.parse_header(executable(0, 64))


def _exported(image: Image, maps: Callable[[], bytes]) -> Optional[Place]:
    dynamic = image.dynamic()
    if dynamic is None:
        return None
    link_map = _link_map(image, dynamic)
    if link_map:
        return _first_in_link_order(image, link_map)
    return _first_in_maps(image, dynamic, maps())


def _first_in_link_order(image: Image, first: int) -> Optional[Place]:
    """By the dynamic linker's list of objects, which begins with the executable."""
    for name in NAMES:
        place = _first_with(image, first, name)
        if place is not None:
            return place
    return None


def _first_with(image: Image, first: int, name: bytes) -> Optional[Place]:
    word, at = image.word, first
    for order in range(MAX_OBJECTS):
        base, path, section, following = addresses(image.memory, word, at, 4)
        found = Dynamic(image.memory, word, base, section).find((name,)) if section else {}
        if found:
            holder = "the executable" if order == 0 else _text(image.memory, path)
            return Place(found[name], word, holder)
        if not following:
            return None
        at = following
    raise CannotRead("the list of loaded objects has no end")


def _link_map(image: Image, dynamic: Dynamic) -> int:
    """The head of the list of loaded objects; 0 where no list can be found.

    Raises:
        CannotRead: if there is a list and it is still empty.
    """
    debug = _debug_structure(image, dynamic)
    if not debug:
        return 0
    head = addresses(image.memory, image.word, debug + image.word.size, 1)[0]
    if not head:
        raise CannotRead("the dynamic linker has not loaded the program yet: it is starting")
    return head


def _debug_structure(image: Image, dynamic: Dynamic) -> int:
    """Where the dynamic linker keeps what debuggers ask; 0 where that cannot be told.

    The executable's DT_DEBUG says it, once the linker has run. Some executables have none,
    nor has a program that was started as an argument of the linker: then its symbols say it.
    """
    direct = dynamic.entries.get(elf.DT_DEBUG, 0)
    if direct:
        return direct
    linker = _dynamic_at(image.memory, image.interpreter) if image.interpreter else None
    for candidate in filter(None, (dynamic, linker)):
        found = candidate.find((GLIBC_DEBUG, MUSL_DEBUG))
        if GLIBC_DEBUG in found:
            return found[GLIBC_DEBUG]
        if MUSL_DEBUG in found:
            return addresses(image.memory, image.word, found[MUSL_DEBUG], 1)[0]
    return 0


def _dynamic_at(memory: Memory, start: int) -> Optional[Dynamic]:
    """The dynamic section of the object whose ELF header lies at ``start``."""
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


def _first_in_maps(image: Image, dynamic: Dynamic, maps: bytes) -> Optional[Place]:
    """Without a link map: the executable, or else the one library that has the variable."""
    own = dynamic.find(NAMES)
    for name in NAMES:
        if name in own:
            return Place(own[name], image.word, "the executable")
    places = []
    for start, path in _mapped_objects(maps):
        try:
            library = _dynamic_at(image.memory, start)
            found = library.find(NAMES) if library is not None else {}
        except CannotRead:
            continue
        if NAMES[0] in found:
            places.append(Place(found[NAMES[0]], image.word, path))
    if len(places) > 1:
        holders = ", ".join(place.holder for place in places)
        raise CannotRead("more than one library has environ, and no link order: " + holders)
    return places[0] if places else None


def _mapped_objects(maps: bytes) -> List[Tuple[int, str]]:
    """Start and path of each mapped file's first page."""
    objects = []
    for line in maps.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[2].strip(b"0") == b"" and fields[5].startswith(b"/"):  # noqa: PLR2004 - of proc(5)
            start = int(fields[0].partition(b"-")[0], 16)
            objects.append((start, fields[5].decode("utf-8", "replace")))
    return objects[:MAX_OBJECTS]


def addresses(memory: Memory, word: Word, at: int, count: int) -> Sequence[int]:
    """That many addresses, one after the other.

    Raises:
        CannotRead: if not all of them are mapped.
    """
    content = memory.exact(at, count * word.size)
    return [value for (value,) in word.address.iter_unpack(content)]


def _text(memory: Memory, at: int) -> str:
    try:
        return memory.string(at, 4096).decode("utf-8", "replace") or "a library"
    except CannotRead:
        return "a library"

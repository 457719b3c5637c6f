"""As much of ELF as it takes to find a symbol that a running process exports.

Only what the dynamic linker itself uses is read: program headers, the dynamic section, the
hash tables and the symbols they lead to. Section headers may be stripped off, files may be
deleted or replaced: all of it is read from the process's own memory. The one exception is
:mod:`eagleops.remote.elf_sections`, for statically linked programs.

Numbers in the image are claims, not facts: counts are bounded, loops are, and an address that
leads nowhere is a :class:`CannotRead`.
"""

from __future__ import annotations

import struct
import sys
from typing import Dict, List, NamedTuple, Optional, Sequence

from eagleops.remote.memory import CannotRead, Memory

MAGIC = b"\x7fELF"
LITTLE_ENDIAN = 1
ET_EXEC = 2

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_PHDR = 1, 2, 3, 6
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_DEBUG = 4, 5, 6, 10, 21
DT_GNU_HASH = 0x6FFFFEF5

# No real object comes near these.
MAX_PROGRAM_HEADERS = 1024
MAX_DYNAMIC_ENTRIES = 1024
MAX_CHAIN = 100_000

_UNDEFINED = 0
_BINDINGS = frozenset((1, 2, 10))  # global, weak, unique
_TYPES = frozenset((0, 1))  # none, object


class Word(NamedTuple):
    """How one ELF class lays out what is read here.

    Attributes:
        size: Of an address in bytes.
        header: Of the ELF header: type, machine, version, entry, program header offset, ...
        program: Of one program header.
        symbol: Of one symbol.
    """

    size: int
    address: struct.Struct
    header: struct.Struct
    program: struct.Struct
    symbol: struct.Struct


WORD_64 = Word(
    8,
    struct.Struct("<Q"),
    struct.Struct("<16sHHIQQQIHHHHHH"),
    struct.Struct("<IIQQQQQQ"),
    struct.Struct("<IBBHQQ"),
)
WORD_32 = Word(
    4,
    struct.Struct("<I"),
    struct.Struct("<16sHHIIIIIHHHHHH"),
    struct.Struct("<IIIIIIII"),
    struct.Struct("<IIIBBH"),
)


class Header(NamedTuple):
    """What an ELF header says; ``fixed``: it runs at the addresses that it names."""

    word: Word
    fixed: bool
    entry: int
    program_offset: int
    section_offset: int
    program_count: int
    section_size: int
    section_count: int


class Segment(NamedTuple):
    """One program header."""

    kind: int
    offset: int
    address: int
    file_size: int


def check_host() -> None:
    """Refuses a machine whose byte order is not read here.

    Raises:
        CannotRead: on a big-endian machine.
    """
    if sys.byteorder != "little":
        raise CannotRead("this machine is big-endian; only little-endian images are read")


def parse_header(content: bytes) -> Header:
    """The ELF header at the start of ``content``.

    Raises:
        CannotRead: if it is none, or of a big-endian image.
    """
    if content[:4] != MAGIC or len(content) < WORD_32.header.size:
        raise CannotRead("not an ELF image")
    if content[5] != LITTLE_ENDIAN:
        raise CannotRead("a big-endian ELF image; only little-endian ones are read")
    words = {1: WORD_32, 2: WORD_64}
    if content[4] not in words or len(content) < words[content[4]].header.size:
        raise CannotRead("not an ELF image of 32 or 64 bits")
    word = words[content[4]]
    fields = word.header.unpack_from(content)
    return Header(
        word=word,
        fixed=fields[1] == ET_EXEC,
        entry=fields[4],
        program_offset=fields[5],
        section_offset=fields[6],
        program_count=fields[10],
        section_size=fields[11],
        section_count=fields[12],
    )


def parse_segments(word: Word, content: bytes) -> List[Segment]:
    """Program headers, one after the other."""
    usable = len(content) - len(content) % word.program.size
    segments = []
    for fields in word.program.iter_unpack(content[:usable]):
        kind = fields[0]
        offset, address, file_size = (
            (fields[2], fields[3], fields[5])
            if word is WORD_64
            else (fields[1], fields[2], fields[4])
        )
        segments.append(Segment(kind, offset, address, file_size))
    return segments


def find_segment(segments: Sequence[Segment], kind: int) -> Optional[Segment]:
    """The first program header of that kind."""
    return next((segment for segment in segments if segment.kind == kind), None)


class Dynamic:
    """The dynamic section of one loaded object.

    Args:
        memory: Of the process.
        word: Its class.
        base: What the object's addresses are moved by.
        address: Where the section lies.
    """

    def __init__(self, memory: Memory, word: Word, base: int, address: int) -> None:
        self._memory = memory
        self._word = word
        self._base = base
        self.entries: Dict[int, int] = {}
        pair = word.size * 2
        for entry in range(MAX_DYNAMIC_ENTRIES):
            at = entry % 64 * pair
            if at == 0:
                content = memory.some(address + entry * pair, 64 * pair)
            if len(content) < at + pair:
                raise CannotRead("a dynamic section runs into no memory")
            (tag,) = word.address.unpack_from(content, at)
            if tag == 0:
                return
            (value,) = word.address.unpack_from(content, at + word.size)
            self.entries.setdefault(tag, value)
        raise CannotRead("a dynamic section has no end")

    def address_of(self, tag: int) -> Optional[int]:
        """The address that an entry holds; None without such an entry.

        glibc adds the base to the entries in memory, musl and read-only sections do not.
        """
        value = self.entries.get(tag, 0)
        if not value:
            return None
        return value + self._base if value < self._base else value

    def find(self, names: Sequence[bytes]) -> Dict[bytes, int]:
        """The addresses of those of ``names`` that the object defines and exports.

        Raises:
            CannotRead: if its tables make no sense.
        """
        symbols, strings = self.address_of(DT_SYMTAB), self.address_of(DT_STRTAB)
        if symbols is None or strings is None:
            return {}
        found = {}
        for name in names:
            for index in self._candidates(name):
                value = self._defined(symbols + index * self._word.symbol.size, strings, name)
                if value:
                    found[name] = value + self._base
                    break
        return found

    def _candidates(self, name: bytes) -> "list[int]":
        gnu, sysv = self.address_of(DT_GNU_HASH), self.address_of(DT_HASH)
        if gnu is not None:
            return gnu_candidates(self._memory, self._word, gnu, name)
        if sysv is not None:
            return sysv_candidates(self._memory, sysv, name)
        return []

    def _defined(self, at: int, strings: int, name: bytes) -> int:
        fields = self._word.symbol.unpack(self._memory.exact(at, self._word.symbol.size))
        if self._word is WORD_64:
            name_at, info, _, section, value = fields[:5]
        else:
            name_at, value, _, info, _, section = fields
        if section == _UNDEFINED or info >> 4 not in _BINDINGS or info & 15 not in _TYPES:
            return 0
        shown = self._memory.some(strings + name_at, len(name) + 1)
        return int(value) if shown == name + b"\0" else 0


def gnu_candidates(memory: Memory, word: Word, table: int, name: bytes) -> "list[int]":
    """Indices of the symbols whose hash is that of ``name``, by ``DT_GNU_HASH``."""
    buckets, first, blooms, _ = struct.unpack("<IIII", memory.exact(table, 16))
    if not buckets:
        return []
    wanted = 5381
    for byte in name:
        wanted = (wanted * 33 + byte) & 0xFFFFFFFF
    bucket_at = table + 16 + blooms * word.size
    (index,) = struct.unpack("<I", memory.exact(bucket_at + wanted % buckets * 4, 4))
    if index < first:
        return []
    chain_at = bucket_at + buckets * 4 + (index - first) * 4
    found = []
    for step in range(MAX_CHAIN):
        if step % 16 == 0:
            chunk = memory.some(chain_at + step * 4, 64)
        piece = chunk[step % 16 * 4 : step % 16 * 4 + 4]
        if len(piece) < 4:  # noqa: PLR2004 - a hash is four bytes
            break
        (entry,) = struct.unpack("<I", piece)
        if (entry ^ wanted) & ~1 == 0:
            found.append(index + step)
        if entry & 1:
            return found
    raise CannotRead("the symbol hash table at 0x{:x} has no end".format(table))


def sysv_candidates(memory: Memory, table: int, name: bytes) -> "list[int]":
    """Indices of the symbols in the bucket of ``name``, by ``DT_HASH``."""
    buckets, chains = struct.unpack("<II", memory.exact(table, 8))
    if not buckets:
        return []
    wanted = 0
    for byte in name:
        wanted = (wanted << 4) + byte
        wanted ^= (wanted & 0xF0000000) >> 24
        wanted &= 0x0FFFFFFF
    (index,) = struct.unpack("<I", memory.exact(table + 8 + wanted % buckets * 4, 4))
    found: List[int] = []
    while index:
        if index >= chains or len(found) >= MAX_CHAIN:
            raise CannotRead("the symbol hash table at 0x{:x} makes no sense".format(table))
        found.append(index)
        (index,) = struct.unpack("<I", memory.exact(table + 8 + (buckets + index) * 4, 4))
    return found

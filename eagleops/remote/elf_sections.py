"""The symbols of a statically linked program: its section headers are all there is to ask.

Such a program exports nothing, so its variables are found only while its symbol table is
there, in the file. ``strip`` takes it away, and then nobody can tell where they are.
"""

from __future__ import annotations

import re
import struct
from typing import Callable, Dict, List, NamedTuple, Sequence

from eagleops.remote.elf import WORD_64, Header, Word, parse_header
from eagleops.remote.memory import CannotRead

SHT_SYMTAB = 2
MAX_SECTIONS = 10_000
MAX_TABLE_BYTES = 64 * 1024 * 1024

# Gives the bytes of the file at an offset; fewer at its end.
ReadFile = Callable[[int, int], bytes]


class Section(NamedTuple):
    """One section header, as far as it matters."""

    kind: int
    offset: int
    size: int
    link: int


def find_symbols(read: ReadFile, names: Sequence[bytes]) -> Dict[bytes, int]:
    """Addresses of those of ``names`` that the file's symbol table holds, not moved by a base.

    Raises:
        CannotRead: if it is no ELF file, or has no symbol table (it was stripped).
    """
    header = parse_header(read(0, 64))
    sections = _sections(read, header)
    table = next((section for section in sections if section.kind == SHT_SYMTAB), None)
    if table is None or not table.link < len(sections):
        raise CannotRead("the program is statically linked and stripped of its symbols")
    strings = _table(read, sections[table.link])
    wanted = {
        match.start(): name
        for name in names
        for match in re.finditer(re.escape(name) + b"\0", strings)
    }
    return _addresses(header.word, _table(read, table), wanted) if wanted else {}


def _sections(read: ReadFile, header: Header) -> List[Section]:
    layout = struct.Struct("<IIQQQQIIQQ" if header.word is WORD_64 else "<IIIIIIIIII")
    if not header.section_offset or header.section_size != layout.size:
        return []
    count = min(header.section_count, MAX_SECTIONS)
    content = read(header.section_offset, count * layout.size)
    usable = len(content) - len(content) % layout.size
    return [
        Section(kind=fields[1], offset=fields[4], size=fields[5], link=fields[6])
        for fields in layout.iter_unpack(content[:usable])
    ]


def _table(read: ReadFile, section: Section) -> bytes:
    if section.size > MAX_TABLE_BYTES:
        raise CannotRead("the symbol table has {} bytes: too large to read".format(section.size))
    return read(section.offset, section.size)


def _addresses(word: Word, table: bytes, wanted: Dict[int, bytes]) -> Dict[bytes, int]:
    found: Dict[bytes, int] = {}
    usable = len(table) - len(table) % word.symbol.size
    for fields in word.symbol.iter_unpack(table[:usable]):
        name = wanted.get(fields[0])
        if name is None:
            continue
        section, value = (fields[3], fields[4]) if word is WORD_64 else (fields[5], fields[1])
        if section and value:
            found.setdefault(name, value)
    return found

"""Where a running process keeps the C library's ``environ``, or another variable of its.

It is found as the dynamic linker found it for the process itself: the executable first (where
it holds a copy of its own, by a copy relocation, the C library's is a dead one), then the
libraries in link order.
"""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from eagleops.remote import elf_sections
from eagleops.remote.elf import Dynamic, Word
from eagleops.remote.elf_sections import ReadFile
from eagleops.remote.memory import CannotRead, Memory
from eagleops.remote.program_image import (
    EXECUTABLE,
    MAX_OBJECTS,
    Image,
    dynamic_at,
    image_of,
    link_map,
    loaded_objects,
    path_of,
)

# The C library's own name comes first: it is the one that getenv uses (glibc, musl).
ENVIRON = (b"__environ", b"environ", b"_environ")
# Set by the C library when it starts, just behind environ.
PROGRAM_NAME = (b"__progname_full",)


class Place(NamedTuple):
    """Where a variable lies, and the object that holds it."""

    address: int
    word: Word
    holder: str


def find_variable(
    names: Sequence[bytes],
    memory: Memory,
    auxv: bytes,
    executable: ReadFile,
    maps: Callable[[], bytes],
) -> Place:
    """Where the process keeps the C library's variable of the first of these names.

    Raises:
        CannotRead: if that cannot be told.
    """
    image = image_of(memory, auxv, executable)
    place = _exported(image, names, maps)
    if place is not None:
        return place
    sought = names[0].decode("ascii")
    if image.dynamically_linked:
        raise CannotRead("nothing in the process exports {}: it has no C library".format(sought))
    found = elf_sections.find_symbols(executable, names)
    for name in names:
        if name in found:
            return Place(image.base + found[name], image.word, EXECUTABLE)
    raise CannotRead("the program is static and has no {}: no C library".format(sought))


def _exported(image: Image, names: Sequence[bytes], maps: Callable[[], bytes]) -> Optional[Place]:
    dynamic = image.dynamic()
    if dynamic is None:
        return None
    first = link_map(image, dynamic)
    if not first:
        return _first_in_maps(image, dynamic, names, maps())
    for name in names:
        place = _first_in_link_order(image, first, name)
        if place is not None:
            return place
    return None


def _first_in_link_order(image: Image, first: int, name: bytes) -> Optional[Place]:
    for order, loaded in enumerate(loaded_objects(image, first)):
        if not loaded.dynamic_at:
            continue
        section = Dynamic(image.memory, image.word, loaded.base, loaded.dynamic_at)
        found = section.find((name,))
        if found:
            holder = EXECUTABLE if order == 0 else path_of(image, loaded)
            return Place(found[name], image.word, holder)
    return None


def _first_in_maps(
    image: Image, dynamic: Dynamic, names: Sequence[bytes], maps: bytes
) -> Optional[Place]:
    """Without a link map: the executable, or else the one library that has the variable."""
    own = dynamic.find(names)
    for name in names:
        if name in own:
            return Place(own[name], image.word, EXECUTABLE)
    places = []
    for start, path in _mapped_objects(maps):
        try:
            library = dynamic_at(image.memory, start)
            found = library.find(names[:1]) if library is not None else {}
        except CannotRead:
            continue
        if found:
            places.append(Place(found[names[0]], image.word, path))
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

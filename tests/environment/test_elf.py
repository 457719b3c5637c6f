"""ELF images and process memory that lie: an answer or a reason, never a crash or a hang."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eagleops.remote import elf
from eagleops.remote.elf_sections import find_symbols
from eagleops.remote.environ_symbol import ENVIRON
from eagleops.remote.live_environ import Live, read_live
from eagleops.remote.memory import PAGE_BYTES, CannotRead, Memory, ProcessMemory
from eagleops.remote.process_environ import live_or_why
from eagleops.remote.program_image import parse_auxv
from environment.programs import c_worker, running, stripped
from parts.poll import until

# A thousand times what reading a real process takes, and of the processor's time.
MOST_READS = 60_000
MOST_BUSY_S = 5.0


@attrs.define(repr=False)
class Image:
    """What a real process showed to the reading: pages by address, and which bytes counted."""

    auxv: bytes
    executable: bytes
    maps: bytes
    pages: dict[int, bytes]
    touched: list[tuple[int, int]]
    reads: int = 0

    @classmethod
    def of(cls, pid: int) -> Image:
        """Records a successful reading of ``pid``."""
        proc = Path(f"/proc/{pid}")
        image = cls(
            (proc / "auxv").read_bytes(),
            (proc / "exe").read_bytes(),
            (proc / "maps").read_bytes(),
            {},
            [],
        )
        with ProcessMemory(pid) as memory:

            def recording(address: int, size: int) -> bytes:
                content = memory.some(address, size)
                image.touched.append((address, min(len(content), 256)))
                for number in range(address // PAGE_BYTES, (address + size - 1) // PAGE_BYTES + 1):
                    with contextlib.suppress(CannotRead):
                        image.pages[number] = memory.exact(number * PAGE_BYTES, PAGE_BYTES)
                return content

            image.read(recording)
        return image

    def read(self, pread: Callable[[int, int], bytes], auxv: bytes | None = None) -> Live:
        """Reads as of a process."""
        return read_live(
            Memory(pread), auxv or self.auxv, self.file(self.executable), lambda: self.maps
        )

    @staticmethod
    def file(content: bytes) -> Callable[[int, int], bytes]:
        """A file's bytes by offset and size."""
        return lambda at, size: content[at : at + size]

    def replay(self, changes: dict[int, int]) -> Callable[[int, int], bytes]:
        """The recorded memory with some bytes changed."""
        pages = dict(self.pages)
        for address, byte in changes.items():
            number, at = divmod(address, PAGE_BYTES)
            if number in pages:
                pages[number] = pages[number][:at] + bytes([byte]) + pages[number][at + 1 :]
        self.reads = 0

        def pread(address: int, size: int) -> bytes:
            self.reads += 1
            content = bytearray()
            while len(content) < size:
                number, at = divmod(address + len(content), PAGE_BYTES)
                if number not in pages:
                    break
                content += pages[number][at : at + size - len(content)]
            return bytes(content)

        return pread


@pytest.fixture(scope="module", params=["pie", "no-pie", "sysv-hash", "musl", "static"])
def image(request, build) -> Image:
    """A real process's memory."""
    with c_worker(build("worker.c", request.param), (), {"A": "1", "B": "2"}) as told:
        return Image.of(told.pid)


def test_the_recorded_memory_is_read_as_the_process_was(image: Image) -> None:
    """The fuzzing below starts from an image that is understood."""
    seen = image.read(image.replay({}))

    assert (seen.variables[b"A"], seen.variables[b"B"]) == (b"1", b"2")


def outcome(reading: Callable[[], object]) -> None:
    """Runs it: a result or a CannotRead, within bounds."""
    busy_s = time.process_time()
    with contextlib.suppress(CannotRead):
        reading()
    assert time.process_time() - busy_s < MOST_BUSY_S


FUZZ = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(data=st.data())
def test_memory_that_lies_ends_in_an_answer_or_a_reason(image: Image, data) -> None:
    """Any bytes of what is read may be anything: pointers, counts, chains, strings."""
    changes = {}
    for _ in range(data.draw(st.integers(1, 8))):
        address, size = data.draw(st.sampled_from(image.touched))
        changes[address + data.draw(st.integers(0, size - 1))] = data.draw(st.integers(0, 255))

    outcome(lambda: image.read(image.replay(changes)))

    assert image.reads < MOST_READS


@FUZZ
@given(st.binary(max_size=600))
def test_an_auxiliary_vector_of_any_bytes_is_no_crash(image: Image, auxv: bytes) -> None:
    """The kernel's word is checked like any other."""
    outcome(lambda: image.read(image.replay({}), auxv or b"\0"))


@FUZZ
@given(st.lists(st.tuples(st.sampled_from([3, 4, 5, 7, 9]), st.integers(0, 2**64 - 1))))
def test_an_auxiliary_vector_with_any_addresses_is_no_crash(image: Image, entries) -> None:
    """Nor do plausible tags with impossible addresses harm."""
    known = dict(struct.iter_unpack("<QQ", image.auxv))
    auxv = b"".join(struct.pack("<QQ", *entry) for entry in {**known, **dict(entries)}.items())

    outcome(lambda: image.read(image.replay({}), auxv))


@FUZZ
@given(data=st.data())
def test_a_file_that_lies_ends_in_an_answer_or_a_reason(build, data) -> None:
    """The symbol table of a static program may be anything, too."""
    content = bytearray(build("worker.c", "static").read_bytes())
    places = [*range(64), *range(len(content) - 2000, len(content))]
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.sampled_from(places))] = data.draw(st.integers(0, 255))

    outcome(lambda: find_symbols(Image.file(bytes(content)), ENVIRON))


@given(st.binary(max_size=200))
def test_any_bytes_are_no_elf_header_or_are_one(content: bytes) -> None:
    """A header is read, or refused with a reason."""
    outcome(lambda: elf.parse_header(content))
    outcome(lambda: elf.parse_header(elf.MAGIC + content))
    outcome(lambda: elf.parse_segments(elf.WORD_64, content))
    outcome(lambda: elf.parse_segments(elf.WORD_32, content))


def test_a_static_programs_symbols_lead_to_environ(build) -> None:
    """All of the C library's names for it are one variable."""
    found = find_symbols(Image.file(build("worker.c", "static").read_bytes()), ENVIRON)

    assert set(found) == set(ENVIRON)
    assert len(set(found.values())) == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((0, 0x7E), "not an ELF image"),
        ((4, 9), "not an ELF image of 32 or 64 bits"),
        ((5, 2), "a big-endian ELF image; only little-endian ones are read"),
    ],
)
def test_what_is_not_read_is_refused_clearly(build, change: tuple[int, int], why: str) -> None:
    """A foreign image is named, not misread."""
    content = bytearray(build("worker.c").read_bytes())
    content[change[0]] = change[1]

    with pytest.raises(CannotRead, match=f"^{why}$"):
        elf.parse_header(bytes(content))


def test_a_stripped_static_program_says_so(build) -> None:
    """The reason names what is missing."""
    content = stripped(build("worker.c", "static")).read_bytes()

    with pytest.raises(CannotRead, match="statically linked and stripped of its symbols"):
        find_symbols(Image.file(content), ENVIRON)


def test_a_big_endian_machine_is_refused(monkeypatch) -> None:
    """Rather than numbers read the wrong way round."""
    monkeypatch.setattr("sys.byteorder", "big")

    with pytest.raises(CannotRead, match="this machine is big-endian"):
        elf.check_host()


@pytest.mark.parametrize("auxv", [b"", bytes(16), bytes(15), struct.pack("<QQ", 4, 56)])
def test_no_program_is_told_from_the_auxiliary_vector(auxv: bytes) -> None:
    """A process between two programs has none."""
    with pytest.raises(CannotRead, match="the process is starting or ending"):
        parse_auxv(auxv)


@pytest.mark.parametrize("holder", ["the executable", "libc.so.6"])
def test_without_a_link_map_the_maps_serve(build, holder: str) -> None:
    """Where the list of objects cannot be found, the one object with environ is the one."""
    argv = [build("worker.c")] if holder == "the executable" else ["/bin/cat"]
    with running(argv, {"A": "1"}) as process:
        until(lambda: live_or_why(process.pid)[0] is not None)
        image = Image.of(process.pid)
        with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as file:

            def pread(address: int, size: int) -> bytes:
                file.seek(address)
                content = file.read(size)
                # DT_DEBUG and the linker's own symbol both gone.
                content = content.replace(b"_r_debug", b"_x_debug")
                return content.replace(struct.pack("<Q", 21), struct.pack("<Q", 0x60000000))

            seen = image.read(pread)

    assert (seen.variables[b"A"], Path(seen.holder).name) == (b"1", Path(holder).name)

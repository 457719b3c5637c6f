"""What a GPU machine can be badly set up in, read without changing it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from eagleops.remote.box_facts import acs, acs_control, box_facts, gpu_iommu, room


def config(*capabilities: tuple[int, int]) -> bytes:
    """A configuration space with these extended capabilities: id, and control at offset 6."""
    space = bytearray(4096)
    for n, (kind, control) in enumerate(capabilities):
        offset = 0x100 + 0x20 * n
        following = offset + 0x20 if n < len(capabilities) - 1 else 0
        struct.pack_into("<IHH", space, offset, kind | 1 << 16 | following << 20, 0, control)
    return bytes(space)


def device(pci: Path, name: str, kind: str, space: bytes = b"", **texts: str) -> None:
    """A device below /sys/bus/pci/devices."""
    folder = pci / name
    (folder / "iommu_group").mkdir(parents=True)
    (folder / "class").write_text(f"{kind}\n")
    (folder / "config").write_bytes(space)
    for file, text in texts.items():
        (folder / file.replace("__", "/")).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("space", "control"),
    [
        (config((0x0001, 0), (0x000D, 0x1D)), 0x1D),
        (config((0x000D, 0)), 0),
        (config((0x0001, 0)), None),
        (bytes(4096), None),
        (bytes(64), None),
    ],
)
def test_the_acs_control_register_is_found_along_the_capabilities(space, control) -> None:
    """Wherever it stands; None where a device has none, or its space is cut."""
    assert acs_control(space) == control


def test_capabilities_that_lead_in_a_circle_end() -> None:
    """A broken device hangs nobody."""
    space = bytearray(4096)
    struct.pack_into("<I", space, 0x100, 0x0001 | 0x100 << 20)

    assert acs_control(bytes(space)) is None


def test_bridges_that_redirect_are_named(tmp_path: Path) -> None:
    """Of the bridges alone; the GPU's own registers are another matter."""
    device(tmp_path, "0000:00:01.0", "0x060400", config((0x000D, 0x1D)))
    device(tmp_path, "0000:00:02.0", "0x060400", config((0x000D, 0)))
    device(tmp_path, "0000:01:00.0", "0x030200", config((0x000D, 0x1D)))

    assert acs(str(tmp_path)) == {"bridges": 2, "redirecting": ["0000:00:01.0"]}


def test_a_space_that_only_root_may_read_is_not_known(tmp_path: Path) -> None:
    """Others get the first 64 bytes of it."""
    device(tmp_path, "0000:00:01.0", "0x060400", bytes(64))

    assert acs(str(tmp_path)) is None


def test_the_iommu_s_kind_is_read_for_each_gpu(tmp_path: Path) -> None:
    """NVIDIA's display and 3D controllers; other devices are left out."""
    device(tmp_path, "a", "0x030200", vendor="0x10de", iommu_group__type="DMA-FQ")
    device(tmp_path, "b", "0x030000", vendor="0x10de", iommu_group__type="identity")
    device(tmp_path, "c", "0x030000", vendor="0x1a03", iommu_group__type="DMA")

    assert gpu_iommu(str(tmp_path)) == ["DMA-FQ", "identity"]


def test_room_is_that_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    """Whether the path itself is there is told beside it."""
    there, absent = room(str(tmp_path)), room(str(tmp_path / "no" / "such"))

    assert (there["there"], absent["there"]) == (True, False)
    assert absent["free_mib"] > 0


def test_everything_can_be_read_on_this_machine(tmp_path: Path) -> None:
    """Whatever it is: what cannot be read is None, and nothing raises."""
    facts = box_facts(str(tmp_path / "nvidia"), [str(tmp_path)])

    assert facts["control_devices"] == {"ctl": "absent", "-uvm": "absent"}
    assert [one["there"] for one in facts["paths"]] == [True]

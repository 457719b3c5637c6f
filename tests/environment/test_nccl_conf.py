"""NCCL's conf files: read as NCCL reads them, where the process sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.nccl_conf import ConfReader, parse, paths
from environment.programs import c_worker
from parts import needs


def test_a_file_is_read_as_nccl_reads_it() -> None:
    """No quoting, no trimming, any name, the first of a name; comments are skipped."""
    content = (
        b"# a comment\nNCCL_ALGO=Tree\n NCCL_PROTO = LL\nNCCL_ALGO=Ring\nnot a setting\n"
        b"NCCL_SOCKET_IFNAME==eth0\nHOME=/x\n=odd\nNCCL_DEBUG=INFO"
    )

    assert parse(content) == {
        b"NCCL_ALGO": b"Tree",
        b" NCCL_PROTO ": b" LL",
        b"NCCL_SOCKET_IFNAME": b"=eth0",
        b"HOME": b"/x",
        b"NCCL_DEBUG": b"INFO",
    }


def test_a_long_value_is_cut_where_nccl_cuts_it() -> None:
    """NCCL keeps 1023 bytes."""
    assert parse(b"A=" + b"x" * 2000) == {b"A": b"x" * 1023}


@given(st.binary(max_size=500))
def test_any_bytes_are_a_conf_file(content: bytes) -> None:
    """What no one wrote as a conf file is none, and no error."""
    parse(content)


@pytest.mark.parametrize(
    ("conf_file", "passwd_home", "home", "expected"),
    [
        ("/a/nccl", "/root", "/home/u", ("/a/nccl", "/etc/nccl.conf")),
        ("", "/root", "/root", ("/root/.nccl.conf", "/etc/nccl.conf")),
        (
            None,
            "/root/",
            "/home/u",
            ("/root/.nccl.conf", "/home/u/.nccl.conf", "/etc/nccl.conf"),
        ),
        (None, None, None, ("/etc/nccl.conf",)),
    ],
)
def test_the_files_in_the_order_of_their_strength(conf_file, passwd_home, home, expected) -> None:
    """NCCL_CONF_FILE takes the place of the home's file; /etc/nccl.conf comes last."""
    assert paths(conf_file, passwd_home, home) == expected


def test_the_files_are_those_that_the_process_sees(build, tmp_path: Path) -> None:
    """In another mount namespace another /etc may lie."""
    needs.root("a mount namespace")
    (tmp_path / "nccl.conf").write_text("NCCL_ALGO=Tree\n")
    place = tmp_path / "mounted"
    place.mkdir()
    script = 'mount -t tmpfs none "$1" && mv "$2" "$1/nccl.conf" && shift 2 && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", script, "-", place, tmp_path / "nccl.conf"]
    with c_worker(build("worker.c"), before=before) as told:
        found = ConfReader().of_process(told.pid, 0, f"{place}/nccl.conf", None)

    assert [(one.path, one.variables) for one in found] == [
        (f"{place}/nccl.conf", {b"NCCL_ALGO": b"Tree"})
    ]
    assert not (place / "nccl.conf").exists()


def test_a_file_that_cannot_be_read_is_told(build, tmp_path: Path) -> None:
    """A folder in its place is no file, and not nothing."""
    (tmp_path / "nccl.conf").mkdir()
    with c_worker(build("worker.c")) as told:
        found = ConfReader().of_process(told.pid, 0, f"{tmp_path}/nccl.conf", None)

    assert [one.problem for one in found if one.path.startswith(str(tmp_path))] == [
        "Is a directory"
    ]

"""The conf files of NCCL's that a machine is asked for: whatever stands in their place."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from eagleops.session import Session
from eagleops.transport.local import LocalTransport


def told(path: Path) -> list[str] | None:
    """What the machine says of a file that a profile names."""
    with contextlib.closing(Session.open(LocalTransport(), python=sys.executable)) as session:
        answer = session.call("doctor", conf_files=[str(path)], time_limit_s=60.0)
    (one,) = answer["named_conf"]
    assert one["path"] == str(path)
    return one["lines"]


def test_settings_are_told_without_comments_and_secrets(tmp_path: Path) -> None:
    """Bytes that are no text do no harm."""
    file = tmp_path / "nccl.conf"
    file.write_bytes(b"# of mine\n\nNCCL_ALGO=Ring\nMY_TOKEN=hf_never_shown\nNCCL_DEBUG=\xff\n")

    ring, token, odd = told(file)

    assert (ring, odd) == ("NCCL_ALGO=Ring", "NCCL_DEBUG=\ufffd")
    assert token.startswith("MY_TOKEN=")
    assert "never_shown" not in token


@pytest.mark.parametrize("is_written", [False, True])
def test_a_pipe_makes_nobody_wait(tmp_path: Path, is_written: bool) -> None:
    """Neither one that nobody writes to, nor one that somebody holds open and says nothing to."""
    pipe = tmp_path / "nccl.conf"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR) if is_written else None
    try:
        assert told(pipe) in (None, [])
    finally:
        if held is not None:
            os.close(held)


def test_a_folder_and_nothing_set_nothing(tmp_path: Path) -> None:
    """As a file that may not be read: nothing is known to be set."""
    assert told(tmp_path) is None
    assert told(tmp_path / "not there") is None

"""An editable install is told by its commit, and by what differs from it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.remote.checkout import Change, explain, parse_status
from eagleops.session import Session
from eagleops.transport.local import LocalTransport
from parts import needs

Git = Callable[..., str]


@pytest.fixture
def source(installed_once, tmp_path: Path) -> Path:
    """The package's source tree, before it is under version control."""
    return shutil.copytree(
        installed_once.folder.parent / "source",
        tmp_path / "source with blanks",
        ignore=shutil.ignore_patterns("build", "__pycache__"),
    )


@pytest.fixture
def git(source: Path) -> Git:
    """``git("add", ".")`` in the source tree, with no configuration of anybody's."""
    needs.program("git", "git")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(source.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.com",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.com",
    }

    def run(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=source,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    return run


@pytest.fixture
def committed(git: Git, source: Path) -> str:
    """The source tree's first commit."""
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "As it was")
    return git("rev-parse", "HEAD").strip()


def checkout_of(result: dict) -> dict:
    """What was found of the one editable package."""
    (package,) = result["compared"]
    return package["checkout"]


def test_a_clean_editable_install_is_its_commit(empty, pip, source, committed, look) -> None:
    """The source that pip recorded leads to a commit, and nothing differs from it."""
    pip(empty, "install", "-q", "--no-index", "-e", source)

    result = look(python=str(empty.python))

    (package,) = result["compared"]
    assert (package["name"], package["checked"], package["problem"]) == ("sglang", True, None)
    assert package["checkout"] == {
        "folder": str(source),
        "commit": committed,
        "described": committed[:7],
        "dirty": [],
        "dirty_count": 0,
        "problem": None,
    }


def test_dirty_files_are_named_with_their_content(empty, pip, source, committed, git, look) -> None:
    """Changed, deleted, added, renamed, and with a name that needs care: each by its path."""
    pip(empty, "install", "-q", "--no-index", "-e", source)
    (source / "sglang/srt/engine.py").write_text("patched = True\n")
    (source / "sglang/srt/scheduler.py").unlink()
    (source / 'sglang/new "file"\n.py').write_text("new = True\n")
    git("mv", "sglang/srt/configs/moe.json", "sglang/srt/configs/moved.json")

    checkout = checkout_of(look(python=str(empty.python)))

    assert {change["path"]: change["state"] for change in checkout["dirty"]} == {
        "sglang/srt/engine.py": "M",
        "sglang/srt/scheduler.py": "D",
        'sglang/new "file"\n.py': "??",
        "sglang/srt/configs/moved.json": "R",
    }
    assert (checkout["commit"], checkout["dirty_count"]) == (committed, 4)
    patched = next(c for c in checkout["dirty"] if c["path"].endswith("engine.py"))
    assert patched["sha256"] == hashlib.sha256(b"patched = True\n").hexdigest()


def test_looking_runs_no_program_of_the_repository(
    empty, pip, source, committed, git, look, tmp_path: Path
) -> None:
    """Hooks and the file system monitor that a repository names are not run."""
    marker = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch '{marker}'\n")
    program.chmod(0o755)
    hooks = source / ".git" / "hooks"
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        shutil.copy(program, hooks / hook)
    pip(empty, "install", "-q", "--no-index", "-e", source)
    git("config", "core.fsmonitor", str(program))
    git("update-index", "--refresh")
    assert marker.exists(), "the monitor is one that git would run"
    marker.unlink()
    # A status that finds the index stale would write it, and tell a hook.
    os.utime(source / "sglang/srt/engine.py", (1, 1))
    before = (source / ".git" / "index").read_bytes()

    checkout = checkout_of(look(python=str(empty.python)))

    assert (checkout["commit"], checkout["problem"]) == (committed, None)
    assert not marker.exists()
    assert (source / ".git" / "index").read_bytes() == before


def test_a_checkout_of_another_user_is_told_with_the_way_out(
    empty, pip, source, committed, look
) -> None:
    """The answer of a git that refuses to read it is the reason and the command, never "clean"."""
    needs.root("giving a folder to another user")
    pip(empty, "install", "-q", "--no-index", "-e", source)
    for folder in (source, source / ".git"):
        os.chown(folder, 65534, 65534)

    (package,) = look(python=str(empty.python))["compared"]

    assert (package["checked"], package["checkout"]["commit"]) == (False, None)
    assert package["problem"] == (
        f"git does not read {source}: it belongs to another user. On that machine, as the user "
        f"that asks: git config --global --add safe.directory {source}"
    )


def test_a_source_that_is_no_checkout_is_told(empty, pip, source, look) -> None:
    """An editable install of an unpacked archive has no commit to be compared with."""
    pip(empty, "install", "-q", "--no-index", "-e", source)

    (package,) = look(python=str(empty.python))["compared"]

    assert package["problem"] == f"{source} is no git checkout"


def test_a_machine_without_git_is_told(empty, pip, source, tmp_path: Path) -> None:
    """Without git there is no commit, and that is said."""
    pip(empty, "install", "-q", "--no-index", "-e", source)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "env").symlink_to("/usr/bin/env")
    with_tools = LocalTransport(env={"PATH": str(tools), "HOME": str(tmp_path)})
    session = Session.open(
        with_tools, python=sys.executable, options={"nvml": False, "path": str(tools)}
    )

    (package,) = session.call("installation", python=str(empty.python))["compared"]
    session.close()

    assert package["problem"] == "no git on PATH: neither commit nor changes are known"


def test_status_is_read_as_git_writes_it() -> None:
    """Fields end in NUL; of a rename the old name is a field of its own."""
    text = " M b.py\0R  new.py\0old.py\0?? a b.py\0D  d\0C  copy\0of\0"

    assert parse_status(text) == [
        Change("??", "a b.py"),
        Change("M", "b.py"),
        Change("C", "copy"),
        Change("D", "d"),
        Change("R", "new.py"),
    ]


@given(st.text())
def test_no_status_breaks_the_reading(text: str) -> None:
    """Whatever git writes, it is read."""
    assert all(change.path for change in parse_status(text))


def test_a_refusal_is_told_by_its_first_line() -> None:
    """What is not known to us is told in git's own words."""
    assert explain("fatal: bad object HEAD\nmore\n", "/x") == "git: bad object HEAD"
    assert explain("", "/x") == "git: no output"

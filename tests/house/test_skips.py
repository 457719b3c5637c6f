"""Where every part is required, nothing is skipped in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKIPS = {
    "by itself": 'def test_it(): pytest.skip("I had rather not")',
    "marked": '@pytest.mark.skip(reason="later")\ndef test_it(): ...',
    "marked if": '@pytest.mark.skipif(True, reason="on Tuesdays")\ndef test_it(): ...',
    "by what it stands on": (
        "@pytest.fixture\ndef part(): needs.program('no-such-program', 'no-such-package')\n"
        "def test_it(part): ..."
    ),
    "a whole module": 'pytest.importorskip("no_such_module")\ndef test_it(): ...',
    "a whole module, by a part": 'needs.cannot("no such part")\ndef test_it(): ...',
    "no examples": '@pytest.mark.parametrize("one", [])\ndef test_it(one): ...',
    "in another's words": (
        "import unittest\nclass TestIt(unittest.TestCase):\n"
        '    def test_it(self): self.skipTest("not here")'
    ),
}
ALLOWED = {
    "an old Python": 'def test_it(): needs.python("3.1")',
    "a kernel without": 'def test_it(): needs.cannot("no cgroup v1 freezer here")',
    "expected to fail": "@pytest.mark.xfail\ndef test_it(): assert False",
}


def judged(folder: Path, test: str, required: str) -> subprocess.CompletedProcess[str]:
    """A run of one small test with the suite's own plugin."""
    file = folder / "test_small.py"
    file.write_text(f"import pytest\nfrom parts import needs\n{test}\n")
    (folder / "pytest.ini").write_text("[pytest]\n")
    parts = str(Path(__file__).resolve().parents[1])
    options = ["-q", "-p", "parts.skips", "--import-mode=importlib"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, file],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": parts, "EAGLEOPS_REQUIRE_PARTS": required},
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("test", SKIPS.values(), ids=SKIPS)
def test_a_skip_fails_where_every_part_is_required(tmp_path: Path, test: str) -> None:
    """However it is skipped, the run fails and says for which reason it would have been."""
    run = judged(tmp_path, test, required="1")

    assert run.returncode in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    assert "EAGLEOPS_REQUIRE_PARTS=1, and this was skipped: " in run.stdout


@pytest.mark.parametrize("test", SKIPS.values(), ids=SKIPS)
def test_a_skip_is_a_skip_elsewhere(tmp_path: Path, test: str) -> None:
    """A machine that lacks a part runs the rest of the suite."""
    run = judged(tmp_path, test, required="")

    assert run.returncode in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
    assert "1 skipped" in run.stdout


@pytest.mark.parametrize("test", ALLOWED.values(), ids=ALLOWED)
def test_what_no_package_provides_may_be_missing(tmp_path: Path, test: str) -> None:
    """A kernel's features, say; and a test that is expected to fail is no skip."""
    assert judged(tmp_path, test, required="1").returncode == pytest.ExitCode.OK

"""``eagleops lint``, and the lint that every launch begins with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Nobody answers there: whoever connects before the lint is through, hangs or fails otherwise.
INVENTORY = """
defaults: {host: far, profile: bad}
hosts: {far: {address: root@192.0.2.1, connect_timeout_s: 1}}
profiles:
  good: {engine: sglang, model: /m, port: 8000, args: {host: 127.0.0.1}}
  bad:
    extends: good
    env:
      NCCL_NTHREADS: 1024
      NCCL_ALGO: Rign
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """An inventory with a profile that cannot be right, on a machine that is not there."""
    file = tmp_path / "hosts.yaml"
    file.write_text(INVENTORY, encoding="utf-8")
    return file


def eagleops(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Runs the tool."""
    command = [sys.executable, "-m", "eagleops", *words]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, check=False)


def test_an_error_stops_a_launch_before_anything_is_touched(inventory: Path) -> None:
    """Exit status 2, the first error with file, line and key, and the way past it."""
    done = eagleops("launch", "--inventory", str(inventory))

    assert done.returncode == 2
    assert f"{inventory}:9: profiles.bad.env.NCCL_NTHREADS" in done.stderr
    assert "[nccl-range] (1 more error)" in done.stderr
    assert "eagleops lint --profile bad; --no-lint launches anyway." in done.stderr


def test_no_lint_launches_it_as_it_is(inventory: Path) -> None:
    """Then it is the machine that is not there."""
    done = eagleops("launch", "--no-lint", "--no-record", "--inventory", str(inventory))

    assert done.returncode == 4


def test_lint_as_json_names_every_finding(inventory: Path) -> None:
    """Rule, severity, where, message and fix of each; errors make the exit status 2."""
    done = eagleops("lint", "--json", "--inventory", str(inventory))
    document = json.loads(done.stdout)

    assert done.returncode == 2
    assert document["ok"] is False
    assert document["profiles"] == ["good", "bad"]
    errors = [one for one in document["findings"] if one["severity"] == "error"]
    assert [one["rule"] for one in errors] == ["nccl-range", "nccl-word"]
    assert errors[1] == {
        "rule": "nccl-word",
        "severity": "error",
        "where": f"{inventory}:10: profiles.bad.env.NCCL_ALGO",
        "message": (
            "NCCL_ALGO: NCCL does not know 'Rign'; the server dies when its workers connect "
            "(up to 2.23 it was passed over in silence)"
        ),
        "fix": "Did you mean Ring?",
    }


def test_lint_of_a_sound_profile_succeeds(inventory: Path) -> None:
    """Notes do not change the exit status."""
    done = eagleops("lint", "--profile", "good", "--inventory", str(inventory))

    assert done.returncode == 0
    assert done.stdout.rstrip().splitlines()[-1].startswith("1 profile: ")


def test_import_command_reads_standard_input() -> None:
    """Argv, variables, host and findings; the YAML is the whole of a hosts.yaml."""
    pasted = "ssh root@192.0.2.10 'A=1 python3 -m sglang.launch_server --model-path /m' echo x\n"
    done = eagleops("import-command", "--json", "--file", "-", stdin=pasted)
    document = json.loads(done.stdout)

    assert done.returncode == 0
    assert document["host"] == "192.0.2.10"
    assert document["env"] == {"A": "1"}
    assert document["argv"][:3] == ["python3", "-m", "sglang.launch_server"]
    assert document["profile"]["model"] == "/m"
    assert document["findings"][0]["rule"] == "lost-and"


def test_import_command_writes_a_hosts_yaml_that_can_be_used(tmp_path: Path) -> None:
    """What it prints is read back as an inventory, comments and all."""
    pasted = "NCCL_ALGO=Ring python3 -m sglang.launch_server --model-path /m --port 8000\n"
    made = tmp_path / "hosts.yaml"
    made.write_text(eagleops("import-command", "--file", "-", stdin=pasted).stdout)

    done = eagleops("lint", "--json", "--inventory", str(made))

    assert json.loads(done.stdout)["profiles"] == ["m"]


def test_import_command_of_a_file_that_is_not_there_is_a_usage_error() -> None:
    """Exit status 2, and the file's name."""
    done = eagleops("import-command", "--file", "/nowhere/x.sh")

    assert done.returncode == 2
    assert "/nowhere/x.sh: it cannot be read: no such file or directory" in done.stderr


def test_the_findings_of_a_launch_are_recorded(tmp_path: Path) -> None:
    """The run in the ledger says what the linter said before it."""
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "defaults: {host: sim, profile: p}\n"
        f"ledger: {tmp_path}/ledger.db\n"
        f"hosts: {{sim: {{transport: sim, sim: {{directory: {tmp_path}/sim, gpus: 2}}}}}}\n"
        "profiles:\n"
        "  p:\n"
        "    engine: command\n"
        "    command: [/bin/sleep, '60']\n"
        "    env: {NCCL_MAX_NCHANNELS: 8}\n",
        encoding="utf-8",
    )
    launched = eagleops("launch", "--json", "--no-verify", "--inventory", str(file))
    try:
        document = json.loads(launched.stdout)
        shown = eagleops("show", "--run", "1", "--json", "--inventory", str(file))
    finally:
        eagleops("stop", "--inventory", str(file))

    assert [one["rule"] for one in document["lint"]] == ["nccl-deprecated"]
    assert "nccl-deprecated" in shown.stdout

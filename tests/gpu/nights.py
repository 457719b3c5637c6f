"""Nights on a machine with a real NVIDIA GPU, minutes apart: a script, run alone on one.

    python tests/gpu/nights.py [--nights 20] [--slower-from 13] [--busy 8]

The server is a Python program that decodes as an engine does: for each token it replays a CUDA
graph of matrix products, and it speaks OpenAI's API. From one night on its profile asks for 7 %
more of them; in one night somebody else holds the GPU. Every night is `eagleops nightly`: health,
launch, environment, measurement, verdict, reports. Prints a line a night, and at the end what
was found. Every process that is ended is one that this script started; it refuses to begin on a
GPU that somebody else holds. Changes no setting of a GPU. With ``OUT`` in the environment, the
last night's report and all documents are written there.

Needs PyTorch with CUDA, and eagleops' own dependencies with its [nightly] extra.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from main_job import free_port, run

LAYERS, SLOWER = 57, 61  # 7.0 % more
SERVER = Path(__file__).resolve().with_name("loop_server.py")
HOLDER = """
import sys, torch
held = torch.empty(8 << 30, dtype=torch.uint8, device="cuda")
held.fill_(1)
torch.cuda.synchronize()
print("holding", flush=True)
sys.stdin.read()
"""


def main() -> int:
    """Lives through the nights; 1 if they did not find what there was to be found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nights", type=int, default=20)
    parser.add_argument("--slower-from", type=int, default=13)
    parser.add_argument("--busy", type=int, default=8)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eagleops-gpu-") as name:
        folder = Path(name)
        (folder / "holder.py").write_text(HOLDER)
        port = free_port()
        write(folder, port, LAYERS)
        seen = json.loads(run(folder, "status", "--json").stdout)
        assert not any(gpu["holders"] for gpu in seen["gpus"]), "a GPU is in use: not begun"
        told = []
        for number in range(1, asked.nights + 1):
            write(folder, port, SLOWER if number >= asked.slower_from else LAYERS)
            told.append(night(folder, number, busy=number == asked.busy))
        return verdict(folder, told, asked)


def night(folder: Path, number: int, *, busy: bool) -> dict[str, Any]:
    """One night, and its line."""
    holder = hold(folder) if busy else None
    began_s = time.monotonic()
    try:
        done = run(folder, "nightly", "--json")
        assert done.stdout, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        assert holder is None or holder.poll() is None, "the other one's process was ended"
    finally:
        if holder is not None:
            holder.stdin.close()
            holder.wait(30)
    checks = {check["id"]: check for check in told["checks"]}
    speed = checks.get("speed:loop", {"state": "-", "value": None, "message": ""})
    faults = [f"{one['id']} {one['state']}" for one in told["checks"] if one["state"] != "pass"]
    print(
        f"{number:3} [{done.returncode}, {time.monotonic() - began_s:.1f} s] "
        f"{speed['value']} tok/s {speed['state']}: {speed['message']} | {', '.join(faults)}",
        flush=True,
    )
    return told


def verdict(folder: Path, told: list[dict[str, Any]], asked: argparse.Namespace) -> int:
    """What was found against what there was."""
    failed = [
        number
        for number, one in enumerate(told, 1)
        if any(check["id"] == "speed:loop" and check["state"] == "fail" for check in one["checks"])
    ]
    begun = {}
    for number, one in enumerate(told, 1):
        for fault in one["news"]["began"]:
            begun.setdefault(fault["check"], []).append(number)
    print(f"slower from night {asked.slower_from}; found in nights {failed}; begun {begun}")
    print(run(folder, "trend", "--profile", "loop").stdout)
    if out := os.environ.get("OUT"):
        Path(out, "nights.json").write_text(json.dumps(told, indent=1))
        shutil.copy(told[-1]["reports"]["html"], Path(out, "last-night.html"))
    right = failed and asked.slower_from + 2 <= failed[0] <= asked.slower_from + 5
    return 0 if right and min(failed) > asked.slower_from else 1


def hold(folder: Path) -> subprocess.Popen[str]:
    """Somebody else's process on the GPU."""
    holder = subprocess.Popen(
        [sys.executable, str(folder / "holder.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == "holding\n"
    return holder


def write(folder: Path, port: int, layers: int) -> None:
    """The inventory: this machine, and a profile that decodes through so many layers."""
    profile = {
        "engine": "command",
        "command": [sys.executable, str(SERVER), str(port)],
        "port": port,
        "env": {"LAYERS": str(layers)},
        "inherit": ["LD_LIBRARY_PATH", "CUDA_HOME"],
    }
    torch = {
        "run": [sys.executable, "-c", "import torch; print(torch.__version__)"],
        "stdout": r"^\d+\.\d+",
    }
    write_inventory(folder, profile, commands={"torch": torch})


def write_inventory(folder: Path, profile: dict[str, Any], **more: Any) -> None:
    """The inventory of one profile on this machine, and of nights with that much more to check."""
    suite = {
        "hosts": ["here"],
        "profiles": ["loop"],
        "measure": {"runs": 3, "tokens": 256, "warmups": 2},
        **more,
    }
    inventory = {
        "defaults": {"host": "here", "profile": "loop"},
        "hosts": {"here": {"transport": "local", "python": sys.executable, "idle_mib": 1024}},
        "profiles": {"loop": profile},
        "nightly": {"default": suite},
    }
    (folder / "hosts.yaml").write_text(json.dumps(inventory))


if __name__ == "__main__":
    sys.exit(main())

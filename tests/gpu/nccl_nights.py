"""Nights of a tensor-parallel server on real NVIDIA GPUs, and an nccl.conf that somebody edits.

    python tests/gpu/nccl_nights.py [--ranks 2] [--nights 14] [--slower-from 10] [--busy 5]
        [--before NCCL_PROTO=LL] [--after NCCL_PROTO=LL128]

As nights.py, with nccl_server.py: a spawned, titled worker a GPU, and a real NCCL between them. Its
profile names an nccl.conf; from one night on that file asks NCCL for something slower, as an edit
that nobody remembers does. The nights are to see the file change, and the speed, and to tell them
together.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from main_job import free_port, run
from nights import HOLDER, night, verdict, write_inventory


def main() -> int:
    """Lives through the nights; 1 if they did not find what there was to be found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nights", type=int, default=14)
    parser.add_argument("--slower-from", type=int, default=10)
    parser.add_argument("--busy", type=int, default=5)
    parser.add_argument("--before", default="NCCL_PROTO=LL")
    parser.add_argument("--after", default="NCCL_PROTO=LL128")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eagleops-gpu-") as name:
        folder = Path(name)
        (folder / "holder.py").write_text(HOLDER)
        write(folder, free_port(), asked.ranks)
        seen = json.loads(run(folder, "status", "--json").stdout)
        assert not any(gpu["holders"] for gpu in seen["gpus"]), "a GPU is in use: not begun"
        told = []
        for number in range(1, asked.nights + 1):
            slower = number >= asked.slower_from
            (folder / "nccl.conf").write_text((asked.after if slower else asked.before) + "\n")
            told.append(night(folder, number, busy=number == asked.busy))
            if number in {1, asked.slower_from}:
                show(told[-1])
        return verdict(folder, told, asked)


def show(told: dict[str, Any]) -> None:
    """What the checks found that this script is about."""
    for check in told["checks"]:
        if check["id"].partition(":")[0] in {"environment", "nccl-conf", "launch"}:
            print(f"    {check['id']} {check['state']}: {check['message']}")


def write(folder: Path, port: int, ranks: int) -> None:
    """The inventory: this machine, and a server on so many of its GPUs."""
    server = Path(__file__).resolve().with_name("nccl_server.py")
    profile = {
        "engine": "command",
        "command": [sys.executable, str(server), str(port), str(ranks)],
        "port": port,
        "env": {"NCCL_NVLS_ENABLE": "0", "NCCL_CONF_FILE": str(folder / "nccl.conf")},
        "inherit": ["LD_LIBRARY_PATH", "CUDA_HOME"],
    }
    write_inventory(folder, profile)


if __name__ == "__main__":
    sys.exit(main())

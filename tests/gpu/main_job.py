"""The main job by its commands on a machine with a real NVIDIA GPU: a script, run alone on one.

    python tests/gpu/main_job.py [--gib 20]

The server is a Python program that holds GPU memory through PyTorch and serves HTTP. A second
one is left behind on purpose, as a crashed launcher would, for ``reset-gpus`` to find. Every
process that is ended is one that this script started: it refuses to begin on a GPU that
somebody else holds. Changes no setting of a GPU. Prints each command and its output.

Needs PyTorch with CUDA, and eagleops' own dependencies but Fabric and Paramiko.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Of one command: a night that launches and measures is the longest.
LIMIT_S = 300

SERVER = """
import http.server, sys, torch
held = torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device="cuda")
held.fill_(1)
torch.cuda.synchronize()
print("holding", sys.argv[1], "GiB", flush=True)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"{}")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Answer).serve_forever()
"""


def main() -> int:
    """Runs the job; 1 if a step did not end as it should."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gib", type=int, default=20)
    gib = parser.parse_args().gib
    with tempfile.TemporaryDirectory(prefix="eagleops-gpu-") as name:
        return job(Path(name), gib)


def job(folder: Path, gib: int) -> int:
    """The job, in a folder of its own."""
    program, port = folder / "server.py", free_port()
    program.write_text(SERVER)
    profile = {
        "engine": "command",
        "command": [sys.executable, str(program), str(gib), str(port)],
        "port": port,
        "env": {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring"},
        "inherit": ["LD_LIBRARY_PATH", "CUDA_HOME"],
    }
    inventory = {
        "defaults": {"host": "here", "profile": "holder"},
        "hosts": {"here": {"transport": "local", "python": sys.executable}},
        "profiles": {"holder": profile},
    }
    (folder / "hosts.yaml").write_text(json.dumps(inventory))
    before = json.loads(run(folder, "status", "--json").stdout)
    assert not any(gpu["holders"] for gpu in before["gpus"]), "a GPU is in use: not begun"

    statuses = [shown(folder, "doctor")]
    argv = [*profile["command"][:3], str(free_port())]
    left = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        left.stdout.readline()
        steps = (["status"], ["reset-gpus", "--dry-run"], ["launch"])
        statuses += [shown(folder, *words) for words in steps]
        left.wait(timeout=10)
    finally:
        left.kill()
    statuses += [shown(folder, *words) for words in (["status"], ["verify-env"], ["stop"])]
    after = json.loads(run(folder, "status", "--json").stdout)
    used_mib = [gpu["used_mib"] for gpu in after["gpus"]]
    print(f"exit statuses {statuses}, memory at the end {used_mib} MiB")
    return 0 if not any(statuses) and max(used_mib) < 100 else 1


def shown(folder: Path, *words: str) -> int:
    """Runs a command, and prints it with what it printed; its exit status."""
    began_s = time.monotonic()
    done = run(folder, *words)
    print(f"\n$ eagleops {' '.join(words)}")
    print(done.stderr + done.stdout + f"[{done.returncode}, {time.monotonic() - began_s:.1f} s]")
    return done.returncode


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of eagleops in a folder, which keeps its state too."""
    state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_DATA_HOME": str(folder / "data")}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "eagleops", *words],
        cwd=folder,
        env={**os.environ, **state, "PYTHONPATH": path, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main())

"""What a machine with real NVIDIA GPUs tells of its health, and the verdicts: a script.

    python3 tests/gpu/health.py > health.json

It reads what operation ``health`` reads (``nvidia-smi -q -x`` and the kernel's log), twice, and
judges the second against the first as a night is judged against the last one. It changes
nothing, starts nothing on a GPU and signals nobody. It needs no package but the checkout for
the reading, and attrs for the verdicts, which are left out without it. With
``OUT`` in the environment, ``health.json`` and the driver's own document, ``nvidia-smi-q.xml``,
are written there too. The exit status is 1 if a GPU of the machine was not read whole.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]

if "eagleops" not in sys.modules:
    # The package's own __init__ is for the client and wants all its dependencies.
    package = types.ModuleType("eagleops")
    package.__path__ = [str(CHECKOUT / "eagleops")]
    sys.modules["eagleops"] = package

from eagleops.remote.context import Context  # noqa: E402
from eagleops.remote.gpus import Gpus  # noqa: E402
from eagleops.remote.health import health  # noqa: E402

# More than this in use, and somebody works there.
IDLE_MIB = 1024
# Of a data centre GPU on bare metal or passed through: what must have been told.
WANTED = ("uuid", "bus_id", "temperature_c", "power_w", "power_limit_w", "throttle_reasons")


def read(**arguments: Any) -> dict[str, Any]:
    """What the operation returns, with how long it took."""
    results: list[dict[str, Any]] = []

    def steps() -> Iterator[dict[str, Any]]:
        results.append((yield from health(Context({}), **arguments)))

    begun = time.perf_counter()
    list(steps())
    return {**results[0], "took_s": round(time.perf_counter() - begun, 3)}


def judged(told: dict[str, Any], before: dict[str, Any], *, idle: bool) -> Any:
    """The findings, or why there are none."""
    try:
        rules = importlib.import_module("eagleops.nights.rule").Rule
        verdicts = importlib.import_module("eagleops.workflows.nightly.gpu_health")
    except ImportError as error:
        return f"left out: {error}"
    return [f.to_dict() for f in verdicts.judge_health("here", told, before, rules.of, idle=idle)]


def text(path: str) -> str | None:
    """A small file of the kernel's."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        return f"{error.strerror}"


def wrong(told: dict[str, Any], listed: list[dict[str, Any]]) -> list[str]:
    """What was not read, or differs from what the other source tells."""
    found = [
        f"GPU {gpu['index']}: {key} not told"
        for gpu in told["gpus"]
        for key in WANTED
        if gpu[key] is None
    ]
    seen = {gpu["uuid"]: gpu["index"] for gpu in told["gpus"]}
    others = {gpu["uuid"]: gpu["index"] for gpu in listed}
    if seen != others:
        found.append(f"health tells {seen}, the other source {others}")
    return found


def main() -> int:
    """Reads, judges, prints."""
    with Gpus(Context({})) as gpus:
        reading, source = gpus.read(), gpus.source
    idle = all((gpu["used_mib"] or 0) < IDLE_MIB for gpu in reading.gpus)
    first = read()
    second = read(since_utc=first["time_utc"])
    problems = wrong(second, reading.gpus) or ([] if second["gpus"] else ["no GPU was read"])
    report = {
        "uid": os.getuid(),
        "kernel": os.uname().release,
        "dmesg_restrict": text("/proc/sys/kernel/dmesg_restrict"),
        "kmsg": Path("/dev/kmsg").exists(),
        "idle": idle,
        "other_source": source,
        "first": first,
        "second": second,
        "findings": judged(second, first, idle=idle),
        "since_boot": judged(first, {}, idle=idle),
        "wrong": problems,
    }
    document = json.dumps(report, indent=1)
    print(document)
    if os.environ.get("OUT"):
        folder = Path(os.environ["OUT"])
        (folder / "health.json").write_text(document, encoding="utf-8")
        with (folder / "nvidia-smi-q.xml").open("wb") as file:
            subprocess.run(["nvidia-smi", "-q", "-x"], stdout=file, check=False, timeout=60)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

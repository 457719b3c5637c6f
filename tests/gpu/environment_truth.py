"""The verdicts on a real NCCL, on the GPUs of this machine: one at least, better two.

    python3 tests/gpu/environment_truth.py [--out FOLDER]

Starts workers as an engine does (multiprocessing spawn, titles over their environment block),
lets a real NCCL read its variables, asks the ``environ`` operation what it sees, judges it,
and compares each verdict with what is known to be so. Prints a table; ``environment-truth.json``
in FOLDER (or ``$OUT``) holds all of it with NCCL's own lines. Exit status 1 for a false verdict.

Needs torch with NCCL, and attrs, which is pure Python. setproctitle is used where it is there,
or else what it does is done by hand. Nothing of the GPUs' settings is changed, and variables
that the machine itself sets (NCCL_NVLS_ENABLE=0) stay as they are.

With one GPU NCCL makes a communicator of one rank and reads fewer variables: then ``unknown``
is allowed wherever NCCL's log is silent, and no other verdict than the true one.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

BOOT_LIMIT_S = 180.0
TITLE = "sglang::scheduler_TP"
ASKED = {
    "NCCL_PROTO": "LL",
    "NCCL_ALGO": "Ring",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_MAX_NCHANNELS": "16",
    "NCCL_BUFFSIZE": "16777216",
    "NCCL_NTHREADS": "512",
}
LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV"}
TELLING = re.compile(r"NCCL_\w+ set by|Invalid|Unrecognized|NCCL version|Init (START|COMPLETE)")

# env: of the main process. early: what each worker sets before NCCL's init; late: after it.
# truth: what is so, by variable, once NCCL has made a communicator of two or more ranks.
# alone: the same with one rank, where NCCL reads less; what is not named there is as in truth.
EXPERIMENTS = [
    {
        "name": "as asked",
        "env": {**ASKED, **LOG},
        "expected": ASKED,
        "truth": dict.fromkeys(ASKED, "ok"),
    },
    {
        "name": "set in the worker, in time",
        "env": LOG,
        "early": ASKED,
        "expected": ASKED,
        "truth": dict.fromkeys(ASKED, "ok"),
    },
    {
        "name": "set wrong in the worker",
        "env": {**ASKED, **LOG},
        "early": {"NCCL_ALGO": "Tree"},
        "expected": ASKED,
        "truth": {**dict.fromkeys(ASKED, "ok"), "NCCL_ALGO": "wrong"},
    },
    {
        "name": "set after NCCL's init",
        "env": {"NCCL_MAX_NCHANNELS": "16", **LOG},
        "late": {"NCCL_PROTO": "LL", "NCCL_NTHREADS": "256", "NCCL_MAX_NCHANNELS": "8"},
        "expected": {"NCCL_PROTO": "LL", "NCCL_NTHREADS": "256", "NCCL_MAX_NCHANNELS": "8"},
        "truth": dict.fromkeys(["NCCL_PROTO", "NCCL_NTHREADS", "NCCL_MAX_NCHANNELS"], "wrong"),
        "alone": {"NCCL_PROTO": "ok"},  # a communicator of more ranks would read it
    },
    {
        "name": "changed after NCCL's init, which keeps what it read",
        "env": {"NCCL_NTHREADS": "256", "NCCL_PROTO": "LL", **LOG},
        "late": {"NCCL_NTHREADS": "128"},
        "expected": {"NCCL_NTHREADS": "256", "NCCL_PROTO": "LL"},
        "truth": {"NCCL_NTHREADS": "ok", "NCCL_PROTO": "ok"},
    },
    {
        "name": "a number that NCCL refuses",
        "env": {"NCCL_NTHREADS": "500", "NCCL_PROTO": "LL", **LOG},
        "expected": {"NCCL_NTHREADS": "500", "NCCL_PROTO": "LL"},
        "truth": {"NCCL_NTHREADS": "wrong", "NCCL_PROTO": "ok"},
    },
    {
        "name": "a word that NCCL refuses",
        "env": {"NCCL_ALGO": "Foo", "NCCL_PROTO": "LL", **LOG},
        "expected": {"NCCL_ALGO": "Foo", "NCCL_PROTO": "LL"},
        "truth": {"NCCL_ALGO": "wrong", "NCCL_PROTO": "ok"},
        "alone": {"NCCL_ALGO": "ok"},  # likewise, and refuse it: that is a note
    },
    {
        "name": "numbers in other spellings",
        "env": {"NCCL_MAX_NCHANNELS": "010", "NCCL_NTHREADS": "0x200", **LOG},
        "expected": {"NCCL_MAX_NCHANNELS": "8", "NCCL_NTHREADS": "512"},
        "truth": {"NCCL_MAX_NCHANNELS": "ok", "NCCL_NTHREADS": "ok"},
    },
    {
        "name": "from a conf file",
        "env": {"NCCL_PROTO": "LL", **LOG},
        "conf": "NCCL_ALGO=Tree\nNCCL_PROTO=Simple\n",
        "expected": {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"},
        "truth": {"NCCL_ALGO": "ok", "NCCL_PROTO": "ok"},
    },
    {
        "name": "never set",
        "env": LOG,
        "expected": {"NCCL_ALGO": "Ring", "NCCL_NTHREADS": "512"},
        "truth": {"NCCL_ALGO": "missing", "NCCL_NTHREADS": "missing"},
    },
    {
        "name": "as asked, without NCCL's log",
        "env": ASKED,
        "expected": ASKED,
        "truth": dict.fromkeys(ASKED, "ok"),
    },
    {
        "name": "set after NCCL's init, without its log",
        "env": {},
        "late": {"NCCL_PROTO": "LL"},
        "expected": {"NCCL_PROTO": "LL"},
        "truth": {"NCCL_PROTO": "unknown"},
    },
]


def retitle(title: str) -> str:
    """Writes a title over argv and the environment block, as engines' workers do."""
    try:
        from setproctitle import setproctitle
    except ImportError:
        overwrite(title.encode())
        return "by hand"
    setproctitle(title)
    return "setproctitle"


def overwrite(title: bytes) -> None:
    """What setproctitle does: the variables move away, then their old memory is filled."""
    libc = ctypes.CDLL(None)
    for name, value in os.environ.items():
        libc.setenv(os.fsencode(name), os.fsencode(value), 1)
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[48])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title, len(title))


def work(plan: dict, rank: int, ranks: int, port: int, reports) -> None:
    """A worker: title, variables, a communicator, variables, and then it waits."""
    import torch
    import torch.distributed as dist

    manner = retitle(f"{TITLE}{rank}")
    os.environ.update(plan.get("early", {}))
    torch.cuda.set_device(rank)
    problem = ""
    try:
        dist.init_process_group(
            "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks
        )
        tensor = torch.ones(1 << 20, device="cuda")
        dist.all_reduce(tensor)
        torch.cuda.synchronize()
        if float(tensor[0]) != ranks:
            problem = f"all_reduce gave {float(tensor[0])}"
    except Exception as error:  # noqa: BLE001 - a refusal is one of the experiments
        problem = f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    os.environ.update(plan.get("late", {}))
    reports.put({"pid": os.getpid(), "rank": rank, "title": manner, "problem": problem})
    while True:
        time.sleep(1)


def serve(plan: dict, ranks: int) -> None:
    """The main process: spawns the workers, says when all are there, and waits for its end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    workers = [
        context.Process(target=work, args=(plan, rank, ranks, port, reports), daemon=True)
        for rank in range(ranks)
    ]
    for worker in workers:
        worker.start()
    print(json.dumps([reports.get(timeout=BOOT_LIMIT_S) for _ in workers]), flush=True)
    sys.stdin.read()
    for worker in workers:
        worker.kill()


def observe(experiment: dict, ranks: int, folder: Path) -> dict:
    """Runs one experiment and judges it."""
    env = {**os.environ, **experiment["env"]}
    if "conf" in experiment:
        conf = folder / "nccl.conf"
        conf.write_text(experiment["conf"])
        env["NCCL_CONF_FILE"] = str(conf)
    if "NCCL_DEBUG" in experiment["env"]:
        env["NCCL_DEBUG_FILE"] = f"{folder}/nccl.%p.log"
    argv = [sys.executable, __file__, "--serve", json.dumps(experiment), "--ranks", str(ranks)]
    with subprocess.Popen(
        argv,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as main:
        try:
            line = main.stdout.readline()
            if not line:
                error = main.stderr.read().decode("utf-8", "replace")[-2000:]
                return {"problem": f"the workers did not come up: {error}", "rows": []}
            workers = json.loads(line)
            started = time.perf_counter()
            report = verified(main.pid, experiment["expected"])
            took_ms = (time.perf_counter() - started) * 1000
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(main.pid, signal.SIGKILL)
    return {
        "workers": workers,
        "took_ms": round(took_ms, 2),
        "conclusion": report.conclusion,
        "rows": rows(experiment, report, ranks),
        "report": report.to_dict(),
        "stories": [report.explain(name).text for name in experiment["expected"]],
        "log": {
            path.name: [text for text in path.read_text("utf-8", "replace").splitlines()
                        if TELLING.search(text)]
            for path in sorted(folder.glob("nccl.*.log"))
        },
    }  # fmt: skip


def verified(pid: int, expected: dict):
    """The report on the tree of ``pid``."""
    from eagleops.environment import Engine, judge
    from eagleops.remote.context import Context
    from eagleops.remote.environ import environ

    read = {}

    def reading():
        read.update((yield from environ(Context({}), pid=pid, names=list(expected))))

    for _event in reading():
        pass
    return judge(read, expected, engine=Engine("the engine", role=role_of))


@dataclasses.dataclass(frozen=True)
class Role:
    """What a process is."""

    role: str
    rank: str | None


def role_of(title: str, _argv: list[str]) -> Role | None:
    """A worker by its title; None for the main process and Python's helpers."""
    rank = title.removeprefix(TITLE)
    return Role("scheduler", f"TP{rank}") if rank.isdigit() and rank != title else None


def rows(experiment: dict, report, ranks: int) -> list[dict]:
    """Each verdict on a worker beside the truth."""
    found = []
    for process in report.counted:
        for name, one in process.variables.items():
            wanted = {experiment["truth"][name]}
            if ranks == 1 and name in experiment.get("alone", {}):
                wanted = {experiment["alone"][name]}
            # NCCL reads P2P_LEVEL where the machine's paths make it ask.
            if not one.witnesses.effective.values and (ranks == 1 or name == "NCCL_P2P_LEVEL"):
                wanted |= {"unknown"}
            found.append(
                {
                    "pid": process.pid,
                    "rank": process.rank,
                    "initial": process.initial,
                    "variable": name,
                    "verdict": one.verdict.kind,
                    "true": one.verdict.kind in wanted,
                    "wanted": sorted(wanted),
                    "why": one.verdict.why,
                    "proved": one.verdict.proved,
                }
            )
    return found


def main() -> int:
    """Runs every experiment; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--ranks", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(json.loads(options.serve), options.ranks)
        return 0

    import torch

    ranks = options.ranks or torch.cuda.device_count()
    version = ".".join(map(str, torch.cuda.nccl.version()))
    print(f"{ranks} x {torch.cuda.get_device_name(0)}, NCCL {version}, Python {sys.version[:6]}")
    document = {"ranks": ranks, "nccl": version, "experiments": []}
    for experiment in EXPERIMENTS:
        with tempfile.TemporaryDirectory(prefix="environment-truth-") as folder:
            seen = observe(experiment, ranks, Path(folder))
        document["experiments"].append({"name": experiment["name"], **seen})
        show(experiment["name"], seen)
    everything = [row for each in document["experiments"] for row in each["rows"]]
    failed = [each["name"] for each in document["experiments"] if not each["rows"]]
    document["verdicts"] = len(everything)
    document["false"] = sum(not row["true"] for row in everything)
    print(f"{len(everything)} verdicts, {document['false']} false; did not run: {failed or 'none'}")
    (Path(options.out) / "environment-truth.json").write_text(json.dumps(document, indent=1))
    return 1 if document["false"] or failed else 0


def show(name: str, seen: dict) -> None:
    """One experiment as lines of a table."""
    print(f"\n{name}: {seen.get('conclusion') or seen.get('problem')}")
    for row in seen["rows"]:
        mark = "  " if row["true"] else "! "
        proof = "proved" if row["proved"] else ""
        print(
            f"{mark}{row['rank']:<5}{row['variable']:<20}{row['verdict']:<9}{proof:<7}{row['why']}"
        )


if __name__ == "__main__":
    sys.exit(main())

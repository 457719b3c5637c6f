"""What our telemetry costs a decode-like loop on a real GPU: a script, run alone on one.

    python tests/gpu/telemetry_cost.py [--rounds 12] [--seconds 2.0] [--interval 0.1]

It needs PyTorch with CUDA and this checkout beside it, nothing else installed. A loop of small
matrix products (one token's worth each, as a CUDA graph where that works) is timed with and
without the ``telemetry`` operation sampling in another process, in turns that begin with one and
the other. Prints one JSON document; ends with status 1 if the difference is 0.5 % or more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_PCT = 0.5
LAYERS = 48
WIDTH = 4096

# The operation as a session runs it: a process of its own, told when to end by its stdin.
SAMPLER = """
import contextlib, json, sys, threading
sys.path.insert(0, sys.argv[1])
import types
package = types.ModuleType("eagleops")
package.__path__ = [sys.argv[1] + "/eagleops"]
sys.modules["eagleops"] = package
from eagleops.remote.context import Context
from eagleops.remote.failure import Cancelled
from eagleops.remote.telemetry import telemetry
context = Context({})
def until_told():
    sys.stdin.read()
    context.cancel()
threading.Thread(target=until_told, daemon=True).start()
with contextlib.suppress(Cancelled):
    for event in telemetry(context, interval_s=float(sys.argv[2])):
        print(json.dumps(event), flush=True)
"""


class Sampler:
    """The operation in a process of its own, and what it told."""

    def __init__(self, interval_s: float) -> None:
        self.samples = 0
        self.source = ""
        self.took_s: list[float] = []
        self.example: object = None
        self._process = subprocess.Popen(
            [sys.executable, "-c", SAMPLER, str(ROOT), str(interval_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._began = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._began.wait(30):
            raise SystemExit("telemetry did not begin within 30 s")

    def stop(self) -> None:
        """Calls it off."""
        self._process.stdin.close()
        self._process.wait(10)
        self._reader.join(5)

    def _read(self) -> None:
        for line in self._process.stdout:
            event = json.loads(line)
            if event["event"] == "began":
                self.source = event["source"]
                self._began.set()
            for sample in event.get("samples", ()):
                self.samples += 1
                self.took_s.append(sample["took_s"])
                self.example = sample["gpus"]


class Decoder:
    """A decode-like load: each step a chain of matrix-vector products in half precision."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        torch.manual_seed(1)
        make = {"device": "cuda", "dtype": torch.float16}
        self._weights = [torch.randn(WIDTH, WIDTH, **make) / WIDTH for _ in range(LAYERS)]
        self._state = torch.randn(1, WIDTH, **make)
        self.graph = False
        self._replay = self._step
        try:
            self._capture()
        except RuntimeError as error:
            print(f"no CUDA graph: {error}", file=sys.stderr)

    def steps_in(self, seconds: float) -> float:
        """Steps a second over so long; each waits for its end, as a decode step does."""
        torch = self._torch
        torch.cuda.synchronize()
        began_s = time.perf_counter()
        steps = 0
        while True:
            self._replay()
            torch.cuda.synchronize()
            steps += 1
            elapsed_s = time.perf_counter() - began_s
            if elapsed_s >= seconds:
                return steps / elapsed_s

    def _step(self) -> None:
        state = self._state
        for weight in self._weights:
            state = self._torch.relu(state @ weight)
        self._state.copy_(state / (state.abs().max() + 1e-3))

    def _capture(self) -> None:
        torch = self._torch
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self._replay, self.graph = graph.replay, True


def measured(rounds: int, seconds: float, interval_s: float) -> dict[str, object]:
    """The loop's speed with and without, and the sampler's own figures."""
    decoder = Decoder()
    decoder.steps_in(5.0)  # the clocks settle
    speeds: dict[str, list[float]] = {"with": [], "without": []}
    samplers = []
    for number in range(rounds):
        for kind in ("with", "without") if number % 2 else ("without", "with"):
            sampler = Sampler(interval_s) if kind == "with" else None
            speeds[kind].append(decoder.steps_in(seconds))
            if sampler is not None:
                sampler.stop()
                samplers.append(sampler)
    ratios = [w / o for w, o in zip(speeds["without"], speeds["with"], strict=True)]
    with_it, without = (statistics.median(speeds[kind]) for kind in ("with", "without"))
    took_s = [one for sampler in samplers for one in sampler.took_s]
    return {
        "cost_pct": 100 * (without / with_it - 1),
        "cost_pct_of_pairs": 100 * (statistics.median(ratios) - 1),
        "spread_pct_without": 100 * (max(speeds["without"]) / min(speeds["without"]) - 1),
        "steps_s_without": without,
        "steps_s_with": with_it,
        "cuda_graph": decoder.graph,
        "source": samplers[0].source,
        "samples": sum(sampler.samples for sampler in samplers),
        "sample_ms_median": 1000 * statistics.median(took_s) if took_s else None,
        "sample_ms_max": 1000 * max(took_s) if took_s else None,
        "example": samplers[-1].example,
        "rounds": rounds,
        "seconds": seconds,
        "interval_s": interval_s,
        "speeds": speeds,
    }


def main() -> int:
    """Measures, prints, judges."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--interval", type=float, default=0.1)
    args = parser.parse_args()
    found = measured(args.rounds, args.seconds, args.interval)
    text = json.dumps(found)
    print(text)
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "telemetry_cost.json").write_text(text, encoding="utf-8")
    return 0 if found["cost_pct"] < LIMIT_PCT else 1


if __name__ == "__main__":
    raise SystemExit(main())

"""The stand-in for ``python -m sglang.bench_serving``: it sends the requests, really, and counts.

It takes the flags of the real one that eagleops gives, prints a progress bar and a table, and
appends one line of JSON with the real one's names to ``--output-file``.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import sys
import threading
import time
from typing import Any, NamedTuple

_PERCENT = 100


class _Timed(NamedTuple):
    """One request's times in seconds, and its tokens."""

    whole_s: float
    first_s: float
    tokens: int


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench_serving.py")
    parser.add_argument("--backend", choices=["sglang", "sglang-oai", "vllm"], default="sglang")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--dataset-name", choices=["random", "sharegpt"], default="sharegpt")
    parser.add_argument("--random-input-len", type=int, default=1024)
    parser.add_argument("--random-output-len", type=int, default=1024)
    parser.add_argument("--random-range-ratio", type=float, default=0.0)
    parser.add_argument("--num-prompts", type=int, default=1000)
    parser.add_argument("--max-concurrency", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output-file")
    return parser.parse_args()


def _request(args: argparse.Namespace, number: int) -> _Timed:
    body = {
        "text": " ".join(f"word{number + place}" for place in range(args.random_input_len)),
        "sampling_params": {"max_new_tokens": args.random_output_len, "ignore_eos": True},
        "stream": True,
    }
    began_s = time.monotonic()
    connection = http.client.HTTPConnection(args.host, args.port, timeout=600)
    connection.request("POST", "/generate", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != http.client.OK:
        raise RuntimeError(f"HTTP {answer.status}")
    first_s, last = 0.0, b""
    for line in answer:
        if line.startswith(b"data: {"):
            first_s = first_s or time.monotonic() - began_s
            last = line
    connection.close()
    tokens = json.loads(last[len(b"data: ") :])["meta_info"]["completion_tokens"]
    return _Timed(time.monotonic() - began_s, first_s, tokens)


def _all(args: argparse.Namespace) -> list[_Timed]:
    timed: list[_Timed] = []
    failed: list[str] = []
    lock = threading.Lock()
    numbers = iter(range(args.num_prompts))

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                one = _request(args, number)
            except (OSError, ValueError, RuntimeError) as error:
                failed.append(str(error))
                return
            with lock:
                timed.append(one)
                done = len(timed)
                share = _PERCENT * done // args.num_prompts
                print(f"\r {share:3d}%| {done}/{args.num_prompts}", end="", file=sys.stderr)

    threads = [
        threading.Thread(target=work) for _ in range(args.max_concurrency or args.num_prompts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(file=sys.stderr)
    if failed:
        raise SystemExit(f"ValueError: {len(failed)} requests failed: {failed[0]}")
    return timed


def _figures(args: argparse.Namespace, timed: list[_Timed], duration_s: float) -> dict[str, Any]:
    tokens = sum(one.tokens for one in timed)
    per_token = [
        1000 * (one.whole_s - one.first_s) / (one.tokens - 1) for one in timed if one.tokens > 1
    ]
    figures: dict[str, Any] = {
        "tag": None,
        "backend": args.backend,
        "dataset_name": args.dataset_name,
        "request_rate": "trace",
        "max_concurrency": args.max_concurrency,
        "random_input_len": args.random_input_len,
        "random_output_len": args.random_output_len,
        "random_range_ratio": args.random_range_ratio,
        "duration": duration_s,
        "completed": len(timed),
        "total_input_tokens": args.num_prompts * args.random_input_len,
        "total_output_tokens": tokens,
        "request_throughput": len(timed) / duration_s,
        "output_throughput": tokens / duration_s,
        "concurrency": sum(one.whole_s for one in timed) / duration_s,
        "accept_length": None,
        "simulated": True,
    }
    for name, values in (
        ("e2e_latency", [1000 * one.whole_s for one in timed]),
        ("ttft", [1000 * one.first_s for one in timed]),
        ("tpot", per_token),
    ):
        figures[f"mean_{name}_ms"] = statistics.fmean(values or [0.0])
        figures[f"median_{name}_ms"] = statistics.median(values or [0.0])
    return figures


def main() -> None:
    """Entry point."""
    args = _parsed()
    print("SIMULATED: eagleops' stand-in for sglang.bench_serving", flush=True)
    began_s = time.monotonic()
    timed = _all(args)
    figures = _figures(args, timed, time.monotonic() - began_s)
    print("============ Serving Benchmark Result ============")
    for name, value in figures.items():
        if isinstance(value, float):
            print(f"{name + ':':<40} {value:<10.2f}")
    if args.output_file:
        with open(args.output_file, "a", encoding="utf-8") as file:
            file.write(json.dumps(figures) + "\n")

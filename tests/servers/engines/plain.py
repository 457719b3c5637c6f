"""A well-behaved engine: loads, spawns workers, serves. ``--never`` never listens."""

import multiprocessing
import time

import web


def work(mark):
    """One worker's life."""
    web.mark(mark, "worker")
    time.sleep(600)


if __name__ == "__main__":
    options = web.arguments(
        ("--never", {"action": "store_true"}), ("--bind-after-s", {"type": float, "default": 0.0})
    )
    print("Load weight begin.", flush=True)
    spawning = multiprocessing.get_context("spawn")
    for _ in range(options.workers):
        spawning.Process(target=work, args=(options.mark,), daemon=True).start()
    while options.never:
        time.sleep(600)
    time.sleep(options.bind_after_s)
    web.serve(options)

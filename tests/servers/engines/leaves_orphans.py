"""An engine whose main process dies and leaves its workers alive."""

import multiprocessing
import os
import time
from pathlib import Path

import web


def work(mark):
    """One worker's life."""
    web.mark(mark, "worker")
    time.sleep(600)


if __name__ == "__main__":
    options = web.arguments()
    spawning = multiprocessing.get_context("spawn")
    for _ in range(options.workers):
        spawning.Process(target=work, args=(options.mark,)).start()
    while options.mark and not Path(options.mark).exists():
        time.sleep(0.01)
    time.sleep(options.load_s)
    os._exit(7)

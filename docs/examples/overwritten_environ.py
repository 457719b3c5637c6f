import ctypes
import multiprocessing
import os
from pathlib import Path

from setproctitle import setproctitle

getenv = ctypes.CDLL(None).getenv  # what NCCL calls
getenv.restype = ctypes.c_char_p


def worker(pipe):
    setproctitle("sglang::scheduler_TP0")  # as every worker of SGLang and vLLM does
    pipe.send(getenv(b"NCCL_ALGO"))
    pipe.recv()


if __name__ == "__main__":
    os.environ["NCCL_ALGO"] = "Ring"
    here, there = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=worker, args=[there], daemon=True).start()
    print("getenv in the worker finds", here.recv())
    block = Path(f"/proc/{multiprocessing.active_children()[0].pid}/environ").read_bytes()
    print("/proc/PID/environ has NCCL_ALGO:", b"NCCL_ALGO" in block)
    print("of its bytes are zero:", f"{block.count(0) / len(block):.0%}")

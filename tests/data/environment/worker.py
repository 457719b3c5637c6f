"""A Python process, and children of it, whose environment is known.

Does the plan of its first argument, as JSON: ``before`` in this process, then ``count``
children by the start method ``start``, each of which does ``steps``. Each process tells in a
line of JSON what C's getenv finds of ``names``; then all live until stdin ends, or ``forever``.
"""

import ctypes
import json
import multiprocessing
import os
import sys
import threading

LIBC = ctypes.CDLL(None)
LIBC.getenv.restype = ctypes.c_char_p
LIBC.strtoll.restype = ctypes.c_longlong
LIBC.strtoll.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int]


def do(plan, steps):
    for step, *words in steps:
        if step == "environ":
            os.environ[words[0]] = words[1]
        elif step == "delete":
            del os.environ[words[0]]
        elif step == "putenv":
            os.putenv(*words)
        elif step == "unsetenv":
            LIBC.unsetenv(words[0].encode())
        elif step == "setenv":
            LIBC.setenv(words[0].encode(), words[1].encode(), 1)
        elif step == "clearenv":
            LIBC.clearenv()
        elif step == "title":
            import setproctitle

            setproctitle.setproctitle(words[0])
        elif step == "overwrite":
            library = ctypes.CDLL(plan["library"])
            # A long title is told by a number: argv, which holds the plan, must be shorter.
            title = words[1] * (words[2] if len(words) > 2 else 1)
            library.overwrite(ctypes.c_char(words[0].encode()), title.encode())
        elif step == "load":
            ctypes.CDLL(words[0])
        elif step == "nccl":
            MODEL.init(words[0])
        else:
            raise ValueError(step)


class Model:
    """NCCL as far as it reads variables: what it takes, when, and what its log says.

    After NCCL 2.28: numbers are read once and kept, algorithm and protocol for each
    communicator of two or more ranks; NTHREADS is read with one rank, too.
    """

    numbers = ("MAX_NCHANNELS", "MIN_NCHANNELS", "BUFFSIZE", "LL_BUFFSIZE", "LL128_BUFFSIZE")
    words = {"PROTO": ("ll", "ll128", "simple"), "ALGO": ("ring", "tree", "nvls")}

    def __init__(self):
        self.took = {}
        self.log = None

    def say(self, level, text):
        if LIBC.getenv(b"NCCL_DEBUG") != b"INFO":
            return
        if self.log is None:
            pattern = LIBC.getenv(b"NCCL_DEBUG_FILE").decode()
            self.log = open(pattern.replace("%p", str(os.getpid())), "w", buffering=1)
        lead = "\n[2026-11-30 06:39:56] " if level == "WARN" else ""
        place = "graph/tuning.cc:104 " if level == "WARN" else ""
        line = "{0}vm:{1}:{1} [0] {2}NCCL {3} {4}\n"
        self.log.write(line.format(lead, os.getpid(), place, level, text))

    def number(self, name):
        if name not in self.took:
            value = LIBC.getenv(b"NCCL_" + name.encode())
            number = str(LIBC.strtoll(value, None, 0)) if value else None
            self.took[name] = [number]
            if value:
                self.say("INFO", "NCCL_{} set by environment to {}.".format(name, number))
        return self.took[name][0]

    def word(self, name):
        value = LIBC.getenv(b"NCCL_" + name.encode())
        value = value and value.decode()
        self.took.setdefault(name, []).append(value)
        if value:
            self.say("INFO", "NCCL_{} set by environment to {}".format(name, value))
        if value and value.lower() not in self.words[name]:
            text = 'Unrecognized element token "{0}" when parsing "{0}"'
            self.say("WARN", text.format(value))
            self.took[name][-1] = "refused"

    def init(self, ranks):
        comm = "ncclCommInitRank comm 0x{:x} rank 0 nranks {} cudaDev 0 - Init ".format(
            id(self), ranks
        )
        self.say("INFO", "NCCL version 2.28.9+cuda13.0")
        self.say("INFO", comm + "START")
        threads = self.number("NTHREADS")
        if threads and threads != "refused" and int(threads) % 32:
            self.say("INFO", "Invalid NCCL_NTHREADS {} (must be a multiple of 32)".format(threads))
            self.took["NTHREADS"] = ["refused"]
        if ranks > 1:
            for name in self.numbers:
                self.number(name)
            for name in self.words:
                self.word(name)
            if any(self.took[name][-1] == "refused" for name in self.words):
                return
        self.say("INFO", comm + "COMPLETE")


MODEL = Model()


def tell(plan):
    found = {name: LIBC.getenv(name.encode()) for name in plan["names"]}
    found = {name: None if value is None else value.decode() for name, value in found.items()}
    took = {"NCCL_" + name: value for name, value in MODEL.took.items()}
    line = json.dumps({"pid": os.getpid(), "found": found, "took": took}) + "\n"
    os.write(1, line.encode())


def work(plan):
    do(plan, plan["steps"])
    tell(plan)
    threading.Event().wait()


def main():
    plan = json.loads(sys.argv[1])
    do(plan, plan.get("before", []))
    children = []
    if plan.get("start"):
        context = multiprocessing.get_context(plan["start"])
        children = [
            context.Process(target=work, args=(plan,), daemon=True)
            for _ in range(plan.get("count", 1))
        ]
        for child in children:
            child.start()
    else:
        do(plan, plan.get("steps", []))
    tell(plan)
    if plan.get("forever"):  # a launched server's stdin is at its end from the start
        threading.Event().wait()
    sys.stdin.buffer.read()
    for child in children:
        child.kill()


if __name__ == "__main__":
    main()

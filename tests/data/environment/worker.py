"""A Python process, and children of it, whose environment is known.

Does the plan of its first argument, as JSON: ``before`` in this process, then ``count``
children by the start method ``start``, each of which does ``steps``. Each process tells in a
line of JSON what C's getenv finds of ``names``; then all live until stdin ends.
"""

import ctypes
import json
import multiprocessing
import os
import sys
import threading

LIBC = ctypes.CDLL(None)
LIBC.getenv.restype = ctypes.c_char_p


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
            library.overwrite(ctypes.c_char(words[0].encode()), words[1].encode())
        else:
            raise ValueError(step)


def tell(plan):
    found = {name: LIBC.getenv(name.encode()) for name in plan["names"]}
    found = {name: value and value.decode() for name, value in found.items()}
    line = json.dumps({"pid": os.getpid(), "found": found}) + "\n"
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
    sys.stdin.buffer.read()
    for child in children:
        child.kill()


if __name__ == "__main__":
    main()

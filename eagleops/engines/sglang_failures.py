"""How SGLang dies, 0.4.6 to 0.5.23."""

from __future__ import annotations

import re

from eagleops.engines.failure_patterns import COMMON
from eagleops.engines.failures import Signs, pattern

_OWN = (
    pattern(
        "kv_cache_does_not_fit",
        r"Not enough memory\. Please try to increase --mem-fraction-static"
        r"(?:\.\s*Current value: mem_fraction_static=(?P<value>[\d.]+))?",
        "no GPU memory is left for the KV cache beside the weights",
        "Raise mem-fraction-static among the profile's args, or give the model more GPUs; first "
        "see that nobody else holds GPU memory: eagleops status.",
    ),
    pattern(
        "memory_unbalanced",
        r"Error: The memory capacity is unbalanced",
        "some of the GPUs have less free memory than the others: somebody holds it",
        "See who: eagleops status. Free it: eagleops reset-gpus.",
    ),
    pattern(
        "killed_while_loading",
        r"scheduler died during initialization \(exit code: -9\)",
        "a worker was killed while it started: most often by the kernel's OOM killer, for the "
        "machine's RAM was used up",
        "Ask the kernel: `dmesg -T | grep -i 'killed process'`, in a container on its host too.",
        general=True,
    ),
    pattern(
        "internal_port_in_use",
        r"(?P<port>\S+) is used by a process already\..*?pid=(?P<pid>\d+)",
        "{port}, which the engine needs for itself, is taken by PID {pid}",
        "Stop that process: it may be left from an earlier server (eagleops reset-gpus).",
        logged=True,
    ),
    pattern(
        "worker_crashed",
        r"(?P<detail>Subprocess \S+ \(pid=\d+\) crashed with exit code -?\d+)",
        "a worker crashed: {detail}",
        "Native code crashed, or somebody killed it: look for faulthandler's lines in its log, and "
        "for `dmesg | grep -i -e xid -e 'killed process'`.",
        general=True,
        logged=True,
    ),
    pattern(
        "hung",
        r"(?P<detail>(?:Scheduler|Detokenizer\w*|TpModelWorker\w*)?\s*watchdog timeout.{0,80})",
        "it hung, and its own watchdog ended it: {detail}",
        "NCCL is the usual place: see nccl.<pid>.log in the server's state folder; the log holds "
        "the stack of each thread.",
        general=True,
        logged=True,
    ),
    pattern(
        "warm_up_failed",
        r"Initialization failed\. warmup error",
        "the first request, which the engine sends itself, failed",
        "The traceback below that line in its log says why.",
        general=True,
        logged=True,
    ),
)

SIGNS = Signs(
    causes=(*_OWN, *COMMON),
    deaths=re.compile(
        r"(?:Scheduler|DataParallelController|DetokenizerManager|TokenizerManager) hit an exception"
        r"|Received sigquit from a child process|SIGQUIT received\."
        r"|died during initialization|crashed with exit code|Initialization failed\. warmup error"
        r"|watchdog timeout \("
    ),
    consequences=re.compile(
        r"died during initialization|Initialization failed\. Please see the error messages above"
        r"|^EOFError|^BrokenPipeError|^ConnectionResetError|^KeyboardInterrupt|^SystemExit"
    ),
)

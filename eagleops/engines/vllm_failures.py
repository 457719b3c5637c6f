"""How vLLM dies, 0.9 to 0.32."""

from __future__ import annotations

import re

from eagleops.engines.failure_patterns import COMMON
from eagleops.engines.failures import Signs, pattern

_OWN = (
    pattern(
        "gpu_in_use",
        r"Free memory on device\D*(?P<device>\d*)\s*\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on "
        r"startup is less than",
        "a GPU has {free} GiB free of {total}, less than the share that the profile asks for",
        "See who holds the rest: eagleops status. Free it (eagleops reset-gpus), or lower "
        "gpu-memory-utilization among the profile's args.",
    ),
    pattern(
        "kv_cache_does_not_fit",
        r"No available memory for the cache blocks",
        "no GPU memory is left for the KV cache beside the weights",
        "Raise gpu-memory-utilization among the profile's args, or give the model more GPUs.",
    ),
    pattern(
        "kv_cache_does_not_fit",
        r"max seq len \((?P<length>\d+)\), \(?(?P<needed>[\d.]+) GiB KV cache is needed, which is "
        r"larger than the available KV cache memory \((?P<free>[\d.]+) GiB\)",
        "one request of {length} tokens needs {needed} GiB of KV cache, and {free} GiB are left",
        "Raise gpu-memory-utilization or lower max-model-len among the profile's args.",
    ),
    pattern(
        "kv_cache_does_not_fit",
        r"model's max seq len \((?P<length>\d+)\) is larger than the maximum number of tokens that "
        r"can be stored in KV cache \((?P<most>\d+)\)",
        "one request of {length} tokens does not fit the KV cache, which holds {most}",
        "Raise gpu-memory-utilization or lower max-model-len among the profile's args.",
    ),
    pattern(
        "cuda_out_of_memory",
        r"Failed to load model - not enough GPU memory|CUDA out of memory occurred when warming up",
        "a GPU ran out of memory",
        "Lower gpu-memory-utilization or max-num-seqs among the profile's args, or give the model "
        "more GPUs.",
    ),
    pattern(
        "bad_configuration",
        r"validation errors? for (?P<what>\w+Config)",
        "the engine refused its configuration ({what})",
        "The lines below that one in its log name the field.",
        general=True,
        sharper=("bad_value",),
    ),
    pattern(
        "bad_value",
        r"^\s+Value error, (?P<detail>.{1,300})",
        "the engine refused its configuration: {detail}",
        "Correct it among the profile's args.",
        general=True,
    ),
    pattern(
        "worker_crashed",
        r"(?P<detail>Worker proc \S+ died unexpectedly.{0,60})",
        "a worker crashed: {detail}",
        "Native code crashed, or somebody killed it: see "
        "`dmesg | grep -i -e xid -e 'killed process'`.",
        general=True,
    ),
    pattern(
        "hung",
        r"(?P<detail>RPC call to \w+ timed out|No available shared memory broadcast block found)",
        "its workers stopped answering: {detail}",
        "NCCL is the usual place: see nccl.<pid>.log in the server's state folder.",
        general=True,
    ),
)

_KILLED = (
    "Somebody killed it, most often the kernel's OOM killer: ask it with "
    "`dmesg -T | grep -i 'killed process'`, for a container on its host."
)
_SILENCES = (
    pattern(
        "worker_vanished",
        r"WorkerProc initialization failed due to an exception",
        "a worker ended while it started, without a word of why",
        _KILLED,
    ),
    pattern(
        "engine_core_vanished",
        r"Engine core initialization failed\..*Failed core proc\(s\): \{(?P<cores>[^}]*)\}"
        r"|Engine core proc (?P<core>\S+) died unexpectedly"
        r"|EngineDeadError: EngineCore encountered an issue",
        "an engine core ended without a word of why {cores}{core}",
        _KILLED,
        logged=True,
    ),
)

SIGNS = Signs(
    causes=(*_OWN, *COMMON),
    silences=_SILENCES,
    deaths=re.compile(
        r"(?:EngineCore|WorkerProc|Worker) (?:failed to start|hit an exception)"
        r"|EngineCore encountered a fatal error|Engine core initialization failed"
        r"|Worker proc \S+ died unexpectedly|Engine core proc \S+ died unexpectedly"
    ),
    consequences=re.compile(
        r"Engine core initialization failed|Frontend process failed during engine core"
        r"|WorkerProc initialization failed|EngineDeadError|Engine process failed to start"
        r"|^EOFError|^BrokenPipeError|^ConnectionResetError|^KeyboardInterrupt|^SystemExit"
        r"|^asyncio\.exceptions\.CancelledError"
    ),
)

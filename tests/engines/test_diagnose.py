"""Why a server died: the root cause, not what followed from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleops.engines import engine
from eagleops.engines.failure_patterns import COMMON
from eagleops.engines.failures import LogLine
from eagleops.engines.sglang_failures import SIGNS as SGLANG_SIGNS
from eagleops.engines.vllm_failures import SIGNS as VLLM_SIGNS

TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/site/engine.py", line 1, in run',
    "    work()",
]


def sglang_log(error: str) -> list[str]:
    """What SGLang writes when a scheduler ends in ``error``."""
    return [
        "[2026-01-31 10:00:00 TP0] Load weight begin. avail mem=94.20 GB",
        "[2026-01-31 10:00:09 TP0] Scheduler hit an exception: " + TRACEBACK[0],
        *TRACEBACK[1:],
        error,
        "",
        (
            "[2026-01-31 10:00:09] Received sigquit from a child process. It usually means "
            "the child "
            "failed."
        ),
        "[2026-01-31 10:00:09] kill_process_tree called: parent_pid=7, include_parent=True, pid=7",
    ]


def vllm_log(error: str) -> list[str]:
    """What vLLM writes when an engine core ends in ``error``."""
    prefix = "(EngineCore pid=512) ERROR 01-31 10:00:00 [core.py:1510] "
    return [
        "(APIServer pid=500) INFO 01-31 09:59:59 [model.py:500] Resolved architecture",
        prefix + "EngineCore failed to start.",
        *(prefix + line for line in TRACEBACK),
        prefix + error,
        *(f"(APIServer pid=500) {line}" for line in TRACEBACK),
        (
            "(APIServer pid=500) RuntimeError: Engine core initialization failed. See root cause "
            "above. Failed core proc(s): {'EngineCore': 1}"
        ),
    ]


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 94.97 GiB of which 1.20 GiB is free. Process 4711 has 93.0 GiB memory in use."
)

# A line, the kind it is told by, and the words.
COMMON_CASES = {
    OOM: (
        "cuda_out_of_memory",
        (
            "a GPU ran out of memory: Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
            "94.97 GiB of which 1.20 GiB is free"
        ),
    ),
    "RuntimeError: CUDA error: out of memory": ("cuda_out_of_memory", "a GPU ran out of memory"),
    "MemoryError": (
        "host_out_of_memory",
        "the machine ran out of memory (RAM, not the GPUs')",
    ),
    "OSError: [Errno 28] No space left on device: '/dev/shm/x'": (
        "shared_memory_full",
        "/dev/shm is full",
    ),
    "OSError: [Errno 28] No space left on device: '/root/.cache/x'": (
        "disk_full",
        "a disk is full /root/.cache/x",
    ),
    "RuntimeError: CUDA driver version is insufficient for CUDA runtime version": (
        "driver_too_old",
        (
            "the NVIDIA driver is too old for this PyTorch: CUDA driver version is "
            "insufficient for "
            "CUDA runtime version"
        ),
    ),
    "RuntimeError: The NVIDIA driver on your system is too old (found version 12040). Please": (
        "driver_too_old",
        (
            "the NVIDIA driver is too old for this PyTorch: The NVIDIA driver on your "
            "system is too "
            "old (found version 12040)"
        ),
    ),
    "RuntimeError: Error 803: system has unsupported display driver / cuda driver combination": (
        "driver_mismatch",
        "the NVIDIA driver in the kernel and its libraries are of different versions",
    ),
    "RuntimeError: No CUDA GPUs are available": ("no_gpu", "no GPU is usable"),
    "torch.AcceleratorError: CUDA error: invalid device ordinal": (
        "too_few_gpus",
        "it wants more GPUs than it can see",
    ),
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": (
        "no_kernel_for_gpu",
        "a library was not built for this GPU",
    ),
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered": (
        "gpu_fault",
        "a GPU reported: an illegal memory access was encountered",
    ),
    "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)": (
        "nccl_error",
        "NCCL failed: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
    ),
    "RuntimeError: No algorithm/protocol available for function AllReduce with datatype ncclInt8": (
        "nccl_no_algorithm",
        (
            "NCCL_ALGO or NCCL_PROTO leave NCCL no way: No algorithm/protocol available for "
            "function "
            "AllReduce with datatype ncclInt8"
        ),
    ),
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2": (
        "rank_unreachable",
        (
            "the ranks did not find one another: DistStoreError: Timed out after 601 "
            "seconds waiting "
            "for clients. 1/2"
        ),
    ),
    "ModuleNotFoundError: No module named 'deep_gemm'": (
        "missing_module",
        "Python module deep_gemm is not installed (ModuleNotFoundError)",
    ),
    "ImportError: libcudart.so.13: cannot open shared object file: No such file or directory": (
        "missing_library",
        "the library libcudart.so.13 is not there",
    ),
    "ImportError: cannot import name 'a' from 'b' (/site/b.py)": (
        "bad_import",
        "an import failed: cannot import name 'a' from 'b' (/site/b.py)",
    ),
    "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist": (
        "no_compiler",
        "kernels cannot be compiled there: a compiler or its headers are missing",
    ),
    "OSError: /shared/kimi is not a local folder and is not a valid model identifier listed": (
        "no_such_model",
        (
            "there is no such model: /shared/kimi is not a local folder and is not a valid model "
            "identifier"
        ),
    ),
    "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or "
    "'namespace/repo_name': '/models/none'. Use": (
        "no_such_model",
        "there is no such model: /models/none",
    ),
    "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: x)": (
        "gated_model",
        "the model's repository wants a login",
    ),
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files": (
        "no_download",
        "the model is not on that machine and cannot be downloaded",
    ),
    "ValueError: Please pass the argument `trust_remote_code=True` to allow custom code": (
        "remote_code",
        "the model brings code of its own, and the engine was not told to trust it",
    ),
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooSmall": (
        "broken_weights",
        (
            "the model's weights cannot be read: SafetensorError: Error while deserializing "
            "header: "
            "HeaderTooSmall"
        ),
    ),
    "ValueError: Model architectures ['X'] are not supported for now.": (
        "model_not_supported",
        (
            "this version of the engine does not know the model: Model architectures ['X'] are not "
            "supported"
        ),
    ),
    "ValueError: Total number of attention heads (4) must be divisible by tensor parallel size "
    "(3).": (
        "does_not_divide",
        (
            "the model cannot be split over so many GPUs: Total number of attention heads "
            "(4) must be divisible by tensor parallel size (3)"
        ),
    ),
    "ValueError: User-specified context_length (9000) is greater than the derived context_length "
    "(4096). This may": (
        "context_too_long",
        "a context of 9000 tokens is asked for, and the model is made for 4096",
    ),
    "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address "
    "already in use": (
        "port_in_use",
        (
            "its port is taken: [Errno 98] error while attempting to bind on address ('0.0.0.0', "
            "8000): address already in use"
        ),
    ),
    "OSError: [Errno 24] Too many open files": ("too_many_files", "it may not open so many files"),
    "PermissionError: [Errno 13] Permission denied: '/data/x'": (
        "no_permission",
        "it may not open '/data/x'",
    ),
}

SGLANG_CASES = {
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: "
    "mem_fraction_static=0.5": (
        "kv_cache_does_not_fit",
        "no GPU memory is left for the KV cache beside the weights",
    ),
    "RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other "
    "processes. pre_model_load_memory=1.0": (
        "memory_unbalanced",
        "some of the GPUs have less free memory than the others: somebody holds it",
    ),
    "RuntimeError: Rank 3 scheduler died during initialization (exit code: -9). If exit code is": (
        "killed_while_loading",
        (
            "a worker was killed while it started: most often by the kernel's OOM killer, for the "
            "machine's RAM was used up"
        ),
    ),
    "ValueError: nccl_port=29500 is used by a process already. process.name()='python3' pid=4711": (
        "internal_port_in_use",
        "nccl_port=29500, which the engine needs for itself, is taken by PID 4711",
    ),
    "[2026-01-31 10:00:00] Subprocess scheduler_0 (pid=88) crashed with exit code -11.": (
        "worker_crashed",
        "a worker crashed: Subprocess scheduler_0 (pid=88) crashed with exit code -11",
    ),
    "[2026-01-31 10:00:00 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, x=True)": (
        "hung",
        (
            "it hung, and its own watchdog ended it: Scheduler watchdog timeout "
            "(self.watchdog_timeout=300, x=True)"
        ),
    ),
    "[2026-01-31 10:00:00] Initialization failed. warmup error: no answer": (
        "warm_up_failed",
        "the first request, which the engine sends itself, failed",
    ),
}
VLLM_CASES = {
    "ValueError: Free memory on device cuda:1 (3.10/94.97 GiB) on startup is less than desired GPU "
    "memory utilization (0.9, 85.5 GiB).": (
        "gpu_in_use",
        "a GPU has 3.10 GiB free of 94.97, less than the share that the profile asks for",
    ),
    "ValueError: No available memory for the cache blocks. Try increasing": (
        "kv_cache_does_not_fit",
        "no GPU memory is left for the KV cache beside the weights",
    ),
    "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB "
    "KV cache is needed, which is larger than the available KV cache memory (3.20 GiB). Based": (
        "kv_cache_does_not_fit",
        "one request of 131072 tokens needs 16.00 GiB of KV cache, and 3.20 GiB are left",
    ),
    "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that "
    "can be stored in KV cache (4096). Try": (
        "kv_cache_does_not_fit",
        "one request of 8192 tokens does not fit the KV cache, which holds 4096",
    ),
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests": (
        "cuda_out_of_memory",
        "a GPU ran out of memory",
    ),
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig": (
        "bad_configuration",
        "the engine refused its configuration (ModelConfig)",
    ),
    "ERROR 01-31 10:00:00 [x.py:1] Worker proc VllmWorker-1 died unexpectedly (exit code: -11),": (
        "worker_crashed",
        "a worker crashed: Worker proc VllmWorker-1 died unexpectedly (exit code: -11),",
    ),
    "TimeoutError: RPC call to sample_tokens timed out.": (
        "hung",
        "its workers stopped answering: RPC call to sample_tokens timed out",
    ),
}


@pytest.mark.parametrize("line", COMMON_CASES)
@pytest.mark.parametrize("name", ["sglang", "vllm", "command"])
def test_a_cause_that_engines_share_is_found(name, line) -> None:
    """In the middle of each engine's own way of dying, and its line is shown."""
    log = {"sglang": sglang_log, "vllm": vllm_log}.get(name, lambda error: [error])(line)

    cause = engine(name).diagnose(log, -9, None)

    assert cause is not None
    assert (cause.kind, cause.text) == COMMON_CASES[line]
    assert cause.line == line
    assert cause.way_out.endswith(".")


@pytest.mark.parametrize("line", SGLANG_CASES)
def test_sglang_s_own_causes_are_found(line) -> None:
    """As its source words them."""
    cause = engine("sglang").diagnose(sglang_log(line), -9, None)

    assert cause is not None
    assert (cause.kind, cause.text) == SGLANG_CASES[line]


@pytest.mark.parametrize("line", VLLM_CASES)
def test_vllm_s_own_causes_are_found(line) -> None:
    """As its source words them."""
    cause = engine("vllm").diagnose(vllm_log(line), 1, None)

    assert cause is not None
    assert (cause.kind, cause.text) == VLLM_CASES[line]


def test_every_pattern_of_the_tables_has_a_case() -> None:
    """A row that no line was seen to match may not match any."""
    elsewhere = {"no_such_engine", "unknown_flag", "bad_flag", "nccl_bad_value", "bad_value"}
    shown = {
        kind for cases in (COMMON_CASES, SGLANG_CASES, VLLM_CASES) for kind, _ in cases.values()
    }

    rows = {row.kind for row in (*COMMON, *SGLANG_SIGNS.causes, *VLLM_SIGNS.causes)}

    assert rows - shown == elsewhere


def test_a_real_early_death_is_traced_to_the_missing_module(log) -> None:
    """SGLang 0.5.17 on an H200: the exit status is -9, the cause an import deep in a child."""
    cause = engine("sglang").diagnose(log("sglang-died-of-a-missing-module.log"), -9, None)

    assert cause is not None
    assert cause.kind == "missing_module"
    assert cause.text == "Python module deep_gemm is not installed (ModuleNotFoundError)"
    assert cause.line == "ModuleNotFoundError: No module named 'deep_gemm'"
    assert cause.way_out == (
        "Install it for the interpreter that runs the engine, or choose a backend that does "
        "without it; `python:` in the profile or the host says which interpreter that is."
    )


REAL_DEATHS = {
    "context-too-long": (
        "context_too_long",
        "a context of 999999 tokens is asked for, and the model is made for 4096",
    ),
    "does-not-divide": (
        "does_not_divide",
        (
            "the model cannot be split over so many GPUs: Total number of attention heads (4) "
            "must be divisible by tensor parallel size (3)"
        ),
    ),
    "empty-model-folder": (
        "no_such_model",
        (
            "there is no such model: Invalid repository ID or local directory specified: "
            "'/models/empty'"
        ),
    ),
    "killed-core": (
        "engine_core_vanished",
        "an engine core ended without a word of why",
    ),
    "killed-worker": (
        "worker_vanished",
        "a worker ended while it started, without a word of why",
    ),
    "no-such-model": ("no_such_model", "there is no such model: /models/none"),
    "no-weights": (
        "broken_weights",
        "the model's weights cannot be read: Cannot find any model weights with `/models/tiny`",
    ),
    "not-installed": ("no_such_engine", "vllm is not installed for this interpreter"),
    "port-in-use": ("port_in_use", "its port is taken: [Errno 98] Address already in use"),
    "unknown-architecture": (
        "model_not_supported",
        (
            "this version of the engine does not know the model: Model architectures "
            "['NoSuchForCausalLM'] are not supported"
        ),
    ),
    "unknown-flag": (
        "unknown_flag",
        "this version of the engine does not know --no-such-flag",
    ),
    "unknown-speculation": (
        "bad_configuration",
        "the engine refused its configuration (SpeculativeConfig)",
    ),
}


@pytest.mark.parametrize("case", REAL_DEATHS)
def test_real_deaths_of_vllm_are_told_by_their_cause(log, case) -> None:
    """VLLM 0.32 (CPU build), each brought about on purpose, its log captured."""
    cause = engine("vllm").diagnose(log(f"vllm-{case}.log"), 1, None)

    assert cause is not None
    assert (cause.kind, cause.text) == REAL_DEATHS[case]


def test_a_refused_value_is_told_with_what_is_wrong_in_it() -> None:
    """The line below says more than the one that names the configuration."""
    cause = engine("vllm").diagnose(
        [
            *TRACEBACK,
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig",
            "  Value error, block size 7 is odd",
        ],
        1,
        None,
    )

    assert cause is not None
    assert cause.text == "the engine refused its configuration: block size 7 is odd"


def test_the_log_of_a_server_that_lives_shows_no_cause(log) -> None:
    """Warnings are no causes, and neither is what it prints when it is stopped."""
    assert engine("sglang").diagnose(log("sglang-lives.log"), 0, None) is None


def test_flags_that_the_engine_does_not_know_are_named() -> None:
    """Argparse's words."""
    adapter = engine("sglang")

    unknown = adapter.diagnose(
        ["usage: x", "launch_server.py: error: unrecognized arguments: --tp-sise 8"], 2, None
    )
    bad = adapter.diagnose(
        ["launch_server.py: error: argument --port: invalid int value: 'x'"], 2, None
    )

    assert unknown is not None
    assert bad is not None
    assert unknown.text == "this version of the engine does not know --tp-sise 8"
    assert bad.text == ("the engine refused a flag: error: argument --port: invalid int value: 'x'")


def test_an_engine_that_is_not_installed_is_named() -> None:
    """Python's words when it is asked to run a module that is not there."""
    cause = engine("sglang").diagnose(
        [
            (
                "/usr/bin/python3: Error while finding module specification for "
                "'sglang.launch_server' "
                "(ModuleNotFoundError: No module named 'sglang')"
            ),
            "/usr/bin/python3: No module named sglang",
        ],
        1,
        None,
    )

    assert cause is not None
    assert cause.text == "sglang is not installed for this interpreter"


def test_nccl_s_own_warning_says_more_than_the_exception_that_follows() -> None:
    """The word that it does not know is named, though its line stands before the death."""
    cause = engine("sglang").diagnose(
        [
            'box:7:7 [0] tuning.cc:98 NCCL WARN Unrecognized element token "Foo"',
            *sglang_log("RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN)"),
        ],
        -9,
        None,
    )

    assert cause is not None
    assert cause.text == "NCCL does not know Foo, a word of NCCL_ALGO or NCCL_PROTO"


def test_what_was_only_tried_on_the_way_is_not_the_cause() -> None:
    """A memory error that an autotuner caught comes before the death and explains nothing."""
    cause = engine("sglang").diagnose(
        [
            f"[2026-01-31 10:00:00 TP0] autotune: skipping a tactic: {OOM}",
            *sglang_log("ModuleNotFoundError: No module named 'deep_gemm'"),
        ],
        -9,
        None,
    )

    assert cause is not None
    assert cause.kind == "missing_module"


def test_a_warning_that_the_engine_goes_on_after_is_no_cause() -> None:
    """Both engines log as information what they elsewhere raise."""
    lines = [
        "[2026-01-31 10:00:00] The memory capacity is unbalanced. Some GPUs may be occupied",
        "Ignore import error when loading sglang.srt.models.x: No module named 'flash_attn'",
        "Free memory on device (90.0/94.97 GiB) on startup. Desired GPU memory utilization is 0.9",
    ]

    assert engine("sglang").diagnose(lines, 0, None) is None
    assert engine("vllm").diagnose(lines, 0, None) is None


def test_an_exception_that_no_pattern_knows_is_told_as_it_is() -> None:
    """The last one that follows from no other."""
    for name, log in (("sglang", sglang_log), ("vllm", vllm_log)):
        cause = engine(name).diagnose(log("site.NewError: the sky fell"), -9, None)
        assert cause is not None
        assert (cause.kind, cause.text) == (
            "exception",
            "an exception ended it: site.NewError: the sky fell",
        )


@pytest.mark.parametrize(
    ("exit_status", "signal", "kind"),
    [
        (None, "SIGKILL", "sigkill"),
        (-9, None, "sigkill"),
        (137, None, "sigkill"),
        (None, "SIGBUS", "sigbus"),
        (-11, None, "sigsegv"),
        (None, "SIGTERM", "sigterm"),
        (0, None, None),
        (1, None, None),
        (None, None, None),
        (None, "SIGUSR1", None),
    ],
)
def test_how_a_process_ended_is_told_where_its_log_says_nothing(exit_status, signal, kind) -> None:
    """A signal has its usual suspects; an exit status alone has none."""
    for name in ("sglang", "vllm", "command"):
        cause = engine(name).diagnose(["ready"], exit_status, signal)
        assert (cause and cause.kind) == kind


def test_the_oom_killer_is_suspected_by_name() -> None:
    """With the question that settles it."""
    cause = engine("command").diagnose([], None, "SIGKILL")

    assert cause is not None
    assert cause.text == (
        "its log names no cause for the SIGKILL: the kernel's OOM killer ends a process so, and "
        "someone else's kill -9 does"
    )
    assert cause.way_out == (
        "Ask the kernel: `dmesg -T | grep -i 'killed process'`, for a container on its host."
    )


def test_colours_prefixes_and_progress_bars_are_looked_through() -> None:
    """What a terminal would show is what is read."""
    assert LogLine.read("\x1b[1;31m[2026-01-31 10:00:00 TP0] x\x1b[0m\n") == LogLine("x", False)
    assert LogLine.read("  0%|   | 0/4\r100%|###| 4/4\r\n") == LogLine("100%|###| 4/4")
    assert LogLine.read("(Worker_TP0 pid=9) INFO 01-31 10:00:00 [a.py:1] y") == LogLine("y", False)
    assert LogLine.read("(Worker pid=9) ERROR 01-31 10:00:00 [a.py:1] z") == LogLine("z")
    assert LogLine.read("[2026-01-31 10:00:00] ERROR:    [Errno 98]") == LogLine(
        "ERROR:    [Errno 98]"
    )
    assert LogLine.read("  File indented") == LogLine("  File indented")


@given(st.lists(st.text(max_size=80), max_size=10))
def test_any_log_at_all_is_read(lines) -> None:
    """Whatever a server writes, the diagnosis ends in a cause or in none."""
    for name in ("sglang", "vllm", "command"):
        cause = engine(name).diagnose(lines, 1, None)
        assert cause is None or cause.text


def test_a_log_of_endless_lines_is_read_in_no_time() -> None:
    """A line without a blank, a megabyte long, does not stop the diagnosis."""
    lines = ["x" * 1_000_000] * 3 + ["a " * 500_000] + sglang_log("MemoryError")

    cause = engine("sglang").diagnose(lines, -9, None)

    assert cause is not None
    assert cause.kind == "host_out_of_memory"

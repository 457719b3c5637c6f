"""The variables that vLLM sets by itself, read in 0.32.0."""

from __future__ import annotations

from eagleops.engines.flags import count
from eagleops.engines.overrides import Override, Rule, flag, sets

_BATCH_INVARIANT = "model_executor/determinism/batch_invariant.py"
# What VLLM_BATCH_INVARIANT pins, so that a sum's order does not depend on the batch.
_PINNED = {
    "NCCL_LAUNCH_MODE": "GROUP",
    "NCCL_COLLNET_ENABLE": "0",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_P2P_NET_DISABLE": "1",
    "NCCL_MIN_NCHANNELS": "1",
    "NCCL_MAX_NCHANNELS": "1",
    "NCCL_PROTO": "Simple",
    # "ring,tree;allreduce:tree" in 0.32, "allreduce:tree" before.
    "NCCL_ALGO": None,
    "NCCL_NTHREADS": "1",
    "NCCL_SOCKET_NTHREADS": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}

RULES = (
    Rule(
        tuple(
            Override(name, value, True, "with VLLM_BATCH_INVARIANT=1", "", _BATCH_INVARIANT)
            for name, value in _PINNED.items()
        ),
        sets("VLLM_BATCH_INVARIANT"),
    ),
    Rule(
        (
            # https://github.com/vllm-project/vllm/pull/19105, then /24141
            Override("NCCL_CUMEM_ENABLE", "0", True, "", "up to 0.9.0", "env_override.py"),
            Override("NCCL_CUMEM_ENABLE", "0", False, "", "0.9.1 to 0.10.1", "env_override.py"),
            Override("PYTORCH_NVML_BASED_CUDA_CHECK", "1", True, "", "", "env_override.py"),
            Override("TORCHINDUCTOR_COMPILE_THREADS", "1", True, "", "", "env_override.py"),
            Override("TRITON_CACHE_AUTOTUNING", "1", False, "", "", "env_override.py"),
            Override("TILELANG_CLEANUP_TEMP_FILES", "1", False, "", "", "env_override.py"),
        )
    ),
    Rule(
        (
            Override(
                "OMP_NUM_THREADS",
                None,
                False,
                "with several workers",
                "",
                "v1/executor/multiproc_executor.py",
            ),
            Override(
                "VLLM_WORKER_MULTIPROC_METHOD",
                "spawn",
                True,
                "where fork would not do",
                "",
                "utils/system_utils.py",
            ),
        )
    ),
    Rule(
        (
            Override(
                "NCCL_MAX_CTAS",
                "8",
                False,
                "with EPLB over NCCL",
                "",
                "distributed/eplb/eplb_utils.py",
            ),
        ),
        lambda profile: (
            flag("enable-eplb")(profile) and count(profile, "data-parallel-size", "dp") > 1
        ),
    ),
    Rule(
        (
            Override(
                "NCCL_GRAPH_REGISTER",
                "0",
                False,
                "with --enable-sleep-mode",
                "0.32",
                "config/vllm.py",
            ),
        ),
        flag("enable-sleep-mode"),
    ),
)

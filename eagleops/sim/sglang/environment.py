"""The variables that SGLang sets by itself, in the main process, before it spawns."""

from __future__ import annotations

import os
import random
import time
from typing import Any

# Set again in each worker, by sglang's own import there. So a worker's initial environment
# survives setproctitle from the first of them on, and shows these while it hides the user's.
SET_AGAIN = (
    "SGLANG_USE_CUDA_IPC_TRANSPORT",
    "SGLANG_ENABLE_TORCH_COMPILE",
    "SGLANG_DISABLE_OUTLINES_DISK_CACHE",
    "SGLANG_ENABLE_DETERMINISTIC_INFERENCE",
    "SGLANG_OPT_FP8_WO_A_GEMM",
)


def set_own_variables(arguments: dict[str, Any]) -> None:
    """Changes this process's environment as SGLang 0.5.17 does."""
    deterministic = arguments["enable_deterministic_inference"]
    symmetric = arguments["enable_symm_mem"]
    os.environ["SGLANG_USE_CUDA_IPC_TRANSPORT"] = "1"
    os.environ["SGLANG_ENABLE_TORCH_COMPILE"] = str(int(arguments["enable_torch_compile"]))
    os.environ["SGLANG_DISABLE_OUTLINES_DISK_CACHE"] = str(
        int(arguments["disable_outlines_disk_cache"])
    )
    os.environ["SGLANG_ENABLE_DETERMINISTIC_INFERENCE"] = str(int(deterministic))
    os.environ["SGLANG_OPT_FP8_WO_A_GEMM"] = "False"
    if deterministic and arguments["tp_size"] > 1:
        os.environ["NCCL_ALGO"] = "allreduce:tree"
    if symmetric or "NCCL_CUMEM_ENABLE" not in os.environ:
        os.environ["NCCL_CUMEM_ENABLE"] = str(int(symmetric))
    nvls = arguments["enable_nccl_nvls"] or symmetric
    if nvls or "NCCL_NVLS_ENABLE" not in os.environ:
        os.environ["NCCL_NVLS_ENABLE"] = str(int(nvls))
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "8"
    os.environ["CUDA_MODULE_LOADING"] = "AUTO"
    number = random.SystemRandom().randrange(10**8)
    os.environ["SGLANG_RUN_ID"] = f"sglang-run-{time.time()}-{number}"

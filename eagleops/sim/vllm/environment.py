"""The variables that vLLM sets by itself."""

from __future__ import annotations

import os

# Set again in each process by vllm's own import there: from the first of them on, an initial
# environment survives setproctitle.
SET_AGAIN = ("PYTORCH_NVML_BASED_CUDA_CHECK", "TORCHINDUCTOR_COMPILE_THREADS")


def set_own_variables(ranks: int) -> None:
    """Changes the main process's environment as vLLM 0.32 does."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/tmp/torchinductor_simulated"  # noqa: S108 - a name
    os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)


def set_worker_variables() -> None:
    """Changes the engine core's environment before it starts workers."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")

"""How SGLang's log tells what went wrong: the exceptions of a scheduler that fails."""

from __future__ import annotations

from eagleops.sim.gpus import TOTAL_MIB
from eagleops.sim.nccl.communicator import VERSION as NCCL_VERSION
from eagleops.sim.nccl.variables import NcclError

_GIB = 1024.0

_DESCRIPTIONS = {
    "ncclInvalidUsage": ("invalid usage", "This usually reflects invalid usage of NCCL library."),
    "ncclUnhandledCudaError": ("unhandled cuda error", "Call to CUDA function failed."),
}


class Trouble(Exception):
    """A scheduler's failure.

    Attributes:
        error: Type of the real one's exception, with its module.
        frames: The traceback's innermost frames: (file below sglang, line, function, source).
    """

    def __init__(self, error: str, message: str, *frames: tuple[str, int, str, str]) -> None:
        super().__init__(message)
        self.error = error
        self.frames = frames

    def traceback(self) -> str:
        """The text that the log shows."""
        outermost = (
            ("srt/managers/scheduler.py", 4931, "run_scheduler_process", "scheduler = Scheduler("),
            ("srt/managers/scheduler.py", 498, "__init__", "self.init_model_worker()"),
        )
        lines = ["Traceback (most recent call last):"]
        for file, line, function, source in (*outermost, *self.frames):
            lines += [f'  File "/simulated/sglang/{file}", line {line}, in {function}']
            lines += [f"    {source}"]
        head, *rest = str(self).split("\n")
        return "\n".join([*lines, f"{self.error}: {head}", *rest, ""])


def missing_module() -> Trouble:
    """A module is missing, deep in the start: seen on a real 0.5.17."""
    return Trouble(
        "ModuleNotFoundError",
        "No module named 'deep_gemm'",
        (
            "srt/speculative/eagle_worker_v2.py",
            417,
            "_capture_cuda_graphs",
            "from sglang.srt.layers.attention.dsa_backend import (",
        ),
        ("srt/layers/attention/dsa_backend.py", 90, "<module>", "import deep_gemm"),
    )


def out_of_memory(gpu: int, free_mib: int, wanted_mib: int) -> Trouble:
    """CUDA has no memory left for the weights."""
    return Trouble(
        "torch.OutOfMemoryError",
        f"CUDA out of memory. Tried to allocate {wanted_mib / _GIB:.2f} GiB. GPU {gpu} has a total "
        f"capacity of {TOTAL_MIB / _GIB:.2f} GiB of which {free_mib / _GIB:.2f} GiB is free. "
        "Including non-PyTorch memory, this process has 0.58 GiB memory in use. Of the allocated "
        "memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
        "unallocated.",
        ("srt/model_executor/model_runner.py", 1016, "load_model", "self.model = get_model("),
    )


def no_room_for_cache() -> Trouble:
    """The weights fit, the KV cache does not."""
    return Trouble(
        "RuntimeError",
        "Not enough memory. Please try to increase --mem-fraction-static.",
        (
            "srt/model_executor/pool_configurator.py",
            96,
            "configure",
            "raise RuntimeError(",
        ),
    )


def unbalanced(least_mib: int, own_mib: int) -> Trouble:
    """One GPU of the group has much less free memory than this rank's."""
    least, own = least_mib / _GIB, own_mib / _GIB
    return Trouble(
        "RuntimeError",
        "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
        f"pre_model_load_memory={least}, local_gpu_memory={own}, "
        f"local_gpu_memory * 0.9={own * 0.9}",
        (
            "srt/model_executor/bootstrap.py",
            447,
            "init_torch_distributed",
            "raise RuntimeError(msg)",
        ),
    )


def no_such_device() -> Trouble:
    """More ranks than GPUs."""
    return Trouble(
        "torch.AcceleratorError",
        "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough "
        "GPUs?",
        (
            "srt/model_executor/bootstrap.py",
            402,
            "init_torch_distributed",
            "torch.get_device_module(",
        ),
    )


def nccl_failed(error: NcclError) -> Trouble:
    """A communicator could not be made."""
    short, sentence = _DESCRIPTIONS[error.result]
    last = f"\nLast error:\n{error.last_error}" if error.last_error else ""
    return Trouble(
        "torch.distributed.DistBackendError",
        "NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, "
        f"{short} (run with NCCL_DEBUG=INFO for details), NCCL version {NCCL_VERSION}\n"
        f"{error.result}: {sentence}{last}",
        (
            "srt/model_executor/bootstrap.py",
            421,
            "init_torch_distributed",
            "initialize_model_parallel(",
        ),
    )

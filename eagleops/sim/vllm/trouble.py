"""How vLLM's log tells what went wrong: the exceptions of a worker that fails."""

from __future__ import annotations

from eagleops.sim.gpus import RESERVED_MIB, TOTAL_MIB
from eagleops.sim.nccl.variables import NcclError

_GIB = 1024.0


class Trouble(Exception):
    """A worker's failure.

    Attributes:
        error: Type of the real one's exception.
        place: Where it was raised: file below vllm, line, function, source.
    """

    def __init__(self, error: str, message: str, place: tuple[str, int, str, str]) -> None:
        super().__init__(message)
        self.error = error
        self.place = place

    def traceback(self) -> str:
        """The text that the log shows."""
        file, line, function, source = self.place
        return (
            "Traceback (most recent call last):\n"
            f'  File "/simulated/vllm/{file}", line {line}, in {function}\n'
            f"    {source}\n"
            f"{self.error}: {self}"
        )


def gpu_in_use(device: int, free_mib: int, utilization: float) -> Trouble:
    """Somebody else holds memory that the engine was told to take."""
    total_gib = (TOTAL_MIB - RESERVED_MIB) / _GIB
    return Trouble(
        "ValueError",
        f"Free memory on device cuda:{device} ({free_mib / _GIB:.2f}/{total_gib:.2f} GiB) on "
        f"startup is less than desired GPU memory utilization ({utilization}, "
        f"{total_gib * utilization:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory "
        "used by other processes.",
        ("v1/worker/utils.py", 742, "request_memory", "raise ValueError("),
    )


def no_room_for_cache() -> Trouble:
    """The weights fit, the KV cache does not."""
    return Trouble(
        "ValueError",
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.",
        ("v1/core/kv_cache_utils.py", 1010, "_check_enough_kv_cache_memory", "raise ValueError("),
    )


def out_of_memory(device: int) -> Trouble:
    """CUDA has no memory left for the weights."""
    return Trouble(
        "torch.OutOfMemoryError",
        f"CUDA out of memory. Tried to allocate 2.00 GiB. GPU {device} has a total capacity of "
        f"{TOTAL_MIB / _GIB:.2f} GiB of which 1.12 GiB is free.",
        ("v1/worker/gpu_model_runner.py", 5100, "load_model", "self.model = get_model("),
    )


def missing_module() -> Trouble:
    """A module is missing, deep in the start."""
    return Trouble(
        "ModuleNotFoundError",
        "No module named 'deep_gemm'",
        ("utils/deep_gemm.py", 90, "<module>", "import deep_gemm"),
    )


def no_such_device() -> Trouble:
    """More ranks than GPUs."""
    return Trouble(
        "torch.AcceleratorError",
        "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough "
        "GPUs?",
        ("v1/worker/gpu_worker.py", 310, "init_device", "torch.accelerator.set_device_index("),
    )


def nccl_failed(error: NcclError) -> Trouble:
    """A communicator could not be made."""
    words = {"ncclInvalidUsage": "invalid usage", "ncclUnhandledCudaError": "unhandled cuda error"}
    return Trouble(
        "RuntimeError",
        f"NCCL error: {words[error.result]} (run with NCCL_DEBUG=WARN for details)",
        (
            "distributed/device_communicators/pynccl_wrapper.py",
            442,
            "NCCL_CHECK",
            'raise RuntimeError(f"NCCL error: {error_str}")',
        ),
    )

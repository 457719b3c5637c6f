"""The plain table of ``nvidia-smi``, ``-L`` and ``topo -m``."""

from __future__ import annotations

import time
from collections.abc import Sequence

from eagleops.sim import gpus as driver
from eagleops.sim.gpus import Gpu
from eagleops.sim.nvidia_smi.failures import lost

_RULE = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
_WIDE = "+" + "-" * 89 + "+"
_DOUBLE = "|" + "=" * 89 + "|"

_HEAD = f"""\
{_WIDE}
| NVIDIA-SMI {driver.DRIVER_VERSION} simulated   Driver Version: {driver.DRIVER_VERSION}     \
CUDA Version: {driver.CUDA_VERSION}     |
{_RULE}
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|"""

_PROCESSES_HEAD = f"""\
{_WIDE}
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
{_DOUBLE}"""

_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes \
(e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges \
within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _gpu_lines(gpu: Gpu) -> list[str]:
    memory = f"{gpu.used_mib}MiB / {driver.TOTAL_MIB:>6}MiB"
    power = f"{round(gpu.power_w):>4}W / {round(driver.POWER_LIMIT_W):>4}W"
    fan = f"{30 + gpu.temperature_c // 5}%"
    name = f"{gpu.number:>3}  {_cut(gpu.name, 27):<31}On"
    state = f"{fan:>3}  {gpu.temperature_c:>3}C    {gpu.pstate:<3} {power:>22}"
    util = f"{gpu.utilization_pct:>6}%"
    return [
        f"| {name}  |   {gpu.bus_id} Off |                    0 |",
        f"| {state} | {memory:>22} | {util}      Default |",
        f"|{'':41}|{'':24}|{'N/A':>21} |",
        _RULE,
    ]


def table(gpus: Sequence[Gpu]) -> str:
    """The table that ``nvidia-smi`` without arguments prints."""
    lines = [time.strftime("%a %b %e %H:%M:%S %Y") + "       ", _HEAD]
    rows = [
        f"|  {gpu.number:>3}   N/A  N/A {process.pid:>15}      C   {_cut(process.title, 37):<37}"
        f" {process.mib:>5}MiB |"
        for gpu in gpus
        if not gpu.lost
        for process in gpu.processes
    ]
    for gpu in gpus:
        lines += [lost(gpu)] if gpu.lost else _gpu_lines(gpu)
    rows = rows or [f"|  {'No running processes found':<87}|"]
    return "\n".join([*lines, "", _PROCESSES_HEAD, *rows, _WIDE])


def listing(gpus: Sequence[Gpu]) -> str:
    """``nvidia-smi -L``."""
    return "\n".join(
        lost(gpu) if gpu.lost else f"GPU {gpu.number}: {gpu.name} (UUID: {gpu.uuid})"
        for gpu in gpus
    )


def topology(gpus: Sequence[Gpu]) -> str:
    """``nvidia-smi topo -m``: PCIe alone, half of the GPUs at each socket."""
    half = (len(gpus) + 1) // 2
    names = [f"GPU{gpu.number}" for gpu in gpus]
    lines = [
        "\t\033[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID\033[0m"])
    ]
    for gpu in gpus:
        node = gpu.number // half
        links = [
            " X "
            if other.number == gpu.number
            else "NODE"
            if other.number // half == node
            else "SYS"
            for other in gpus
        ]
        affinity = [f"{node * 32}-{node * 32 + 31}", str(node), "", "N/A"]
        lines.append("\t".join([f"GPU{gpu.number}", *links, *affinity]))
    return "\n".join(lines) + "\n" + _LEGEND


def versions() -> str:
    """``nvidia-smi --version``."""
    return (
        f"NVIDIA-SMI version  : {driver.DRIVER_VERSION} (simulated)\n"
        f"NVML version        : {driver.DRIVER_VERSION.rpartition('.')[0]}\n"
        f"DRIVER version      : {driver.DRIVER_VERSION}\n"
        f"CUDA Version        : {driver.CUDA_VERSION}"
    )

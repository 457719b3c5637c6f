"""A communicator of one process a GPU, and the first all-reduce on it.

The lines and their order are those of NCCL 2.28.9 on real GPUs.
"""

from __future__ import annotations

from typing import NamedTuple

from eagleops.sim.nccl.log import Log
from eagleops.sim.nccl.variables import NcclError, fold_in_files, number, parse_choice, text

VERSION = "2.28.9"
CUDA = "13.0"

_ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
_PROTOCOLS = ("LL", "LL128", "Simple")
_FUNCTIONS = ("broadcast", "reduce", "allgather", "reducescatter", "allreduce")
# What this box's GPUs can do among one another, by PCIe alone.
_USABLE_ALGORITHMS = frozenset({"Tree", "Ring"})
_USABLE_PROTOCOLS = frozenset({"LL", "Simple"})
_LEVELS = ("LOC", "NVL", "PIX", "PXB", "PXN", "P2C", "PHB", "SYS")
_OLD_LEVELS = ("LOC", "PIX", "PXB", "PHB", "SYS")
_CHANNELS = 4
_NTHREADS_LEAST, _NTHREADS_MOST, _WARP = 64, 512, 32


class Rank(NamedTuple):
    """A process's place in a communicator.

    Attributes:
        device: Index of its GPU among those the process sees.
        bus_id: PCI address of it as nvidia-smi writes it.
        comm_id: A number that all ranks share.
    """

    rank: int
    ranks: int
    device: int
    bus_id: str
    comm_id: int


class Choice(NamedTuple):
    """What NCCL takes for all-reduce."""

    algorithms: frozenset[str]
    protocols: frozenset[str]
    channels: int
    transport: str


def first_all_reduce(rank: Rank) -> None:
    """Makes a communicator and does one all-reduce, as an engine does while it starts.

    Raises:
        NcclError: as the real one fails.
    """
    fold_in_files()
    log = Log(rank.device)
    try:
        _initialise(rank, log)
    except NcclError as error:
        log.complain("graph/tuning.cc:104", error.last_error)
        for line in ("graph/tuning.cc:427 -> 5", "init.cc:1356 -> 5", "init.cc:1582 -> 5"):
            log.tell("ALL", line)
        log.tell("INIT", "ENV/Plugin: Closing env plugin ncclEnvDefault")
        raise


def _integer(log: Log, name: str, default: int) -> int:
    value = text(name)
    if value is None:
        return default
    parsed = number(value)
    if parsed is None:
        log.tell("ALL", f"Invalid value {value} for {name}, using default {default}.")
        return default
    log.tell("ENV", f"{name} set by environment to {parsed}.")
    return parsed


def _initialise(rank: Rank, log: Log) -> None:
    log.tell("INIT", "ENV/Plugin: Could not find: libnccl-env.so")
    log.tell("INIT|ENV", f"cudaDriverVersion {CUDA.replace('.', '0')}0")
    if rank.rank == 0:
        log.version(f"NCCL version {VERSION}+cuda{CUDA} (simulated)")
    for line in (
        "Comm config Blocking set to 1",
        "NET/Plugin: Could not find: libnccl-net.so",
        "NET/IB : No device found.",
        "Failed to initialize NET plugin IB",
        "NET/Socket : Using [0]lo:127.0.0.1<0>",
        "Initialized NET plugin Socket",
        "Assigned NET plugin Socket to comm",
        "Using network Socket",
    ):
        log.tell("INIT|NET", line)
    comm = f"0x{0x11A0E000 + (rank.comm_id ^ rank.rank * 0x9E3779) % 0x1FFFFFF0:x}"
    identity = f"ncclCommInitRankConfig comm {comm} rank {rank.rank} nranks {rank.ranks}"
    bus = rank.bus_id.partition(":")[2].replace(":", "").replace(".", "").lstrip("0").lower()
    place = f"cudaDev {rank.device} nvmlDev {rank.device} busId {bus} commId 0x{rank.comm_id:x}"
    log.tell("INIT", f"{identity} {place} - Init START")
    log.tell("INIT|RAS", "RAS client listening socket at 127.0.0.1<28028>")
    choice = _choose(rank, log, comm)
    log.tell("INIT", "CC Off, workFifoBytes 1048576")
    log.tell("INIT", f"{identity} {place} - Init COMPLETE")
    timings = "kernels 0.40, alloc 0.01, bootstrap 0.03, allgathers 0.00, topo 0.02, graphs 0.01"
    log.tell(
        "INIT",
        f"Init timings - ncclCommInitRankConfig: rank {rank.rank} nranks {rank.ranks} total 0.47 "
        f"({timings}, connections 0.01, rest 0.00)",
    )
    _all_reduce(rank, log, choice)


def _choose(rank: Rank, log: Log, comm: str) -> Choice:
    cumem = _integer(log, "NCCL_CUMEM_ENABLE", 1)
    transport = _transport(log, cumem)
    _integer(log, "NCCL_NVLS_ENABLE", 2)
    log.tell(
        "INIT",
        f"comm {comm} rank {rank.rank} nRanks {rank.ranks} nNodes 1 localRanks {rank.ranks} "
        f"localRank {rank.rank} MNNVL 0",
    )
    channels = min(_CHANNELS, max(1, _integer(log, "NCCL_MAX_NCHANNELS", _CHANNELS)))
    channels = max(channels, _integer(log, "NCCL_MIN_NCHANNELS", 0))
    ring = " ".join(str(other) for other in range(rank.ranks))
    for channel in range(channels if rank.rank == 0 else 0):
        log.tell("INIT", f"Channel {channel:02d}/{channels:02d} : {ring}")
    _integer(log, "NCCL_BUFFSIZE", 4194304)
    log.tell("INIT", "P2P Chunksize set to 131072")
    log.tell("INIT|PROXY", f"[Proxy Service] Device {rank.device} CPU core 22", thread=167)
    log.tell("INIT|PROXY", f"[Proxy Service UDS] Device {rank.device} CPU core 24", thread=169)
    log.tell("INIT|TUNING", "TUNER/Plugin: Could not find: libnccl-tuner.so")
    _threads(log)
    protocols = _listed(log, "NCCL_PROTO", _PROTOCOLS, _USABLE_PROTOCOLS)
    algorithms = _listed(log, "NCCL_ALGO", _ALGORITHMS, _USABLE_ALGORITHMS)
    if rank.rank == 0 and (text("NCCL_PROTO") or text("NCCL_ALGO")):
        log.tell("ENV", _matrix(algorithms, protocols))
    log.tell("INIT", "threadThresholds 8/8/64 | 64/8/64 | 512 | 512")
    log.tell(
        "INIT",
        f"{channels} coll channels, {channels} collnet channels, 0 nvls channels, {channels} p2p "
        f"channels, {channels} p2p channels per peer",
    )
    return Choice(algorithms, protocols, channels, transport)


def _transport(log: Log, cumem: int) -> str:
    disable = text("NCCL_P2P_DISABLE")
    if disable is not None and number(disable) == 1:
        log.tell("ALL", "NCCL_P2P_DISABLE set by environment to 1")
        return "SHM/direct/direct"
    level = text("NCCL_P2P_LEVEL") or ""
    if level.isdecimal():  # legacy: numbers
        level = _OLD_LEVELS[min(int(level), len(_OLD_LEVELS) - 1)]
    if level in _LEVELS:  # any other word is ignored in silence, `sys` too
        log.tell("ALL", f"NCCL_P2P_LEVEL set by environment to {level}")
    # Between two roots of one socket NCCL asks for PHB, between sockets for SYS.
    if level == "SYS":
        return "P2P/CUMEM" if cumem else "P2P/IPC"
    return "SHM/direct/direct"


def _threads(log: Log) -> None:
    threads = _integer(log, "NCCL_NTHREADS", -1)
    complaint = None
    if threads > 0 and threads % _WARP:
        complaint = f"(must be a multiple of {_WARP})"
    elif threads > _NTHREADS_MOST:
        complaint = f"(maximum {_NTHREADS_MOST})."
    elif 0 < threads < _NTHREADS_LEAST:
        complaint = f"(minimum {_NTHREADS_LEAST})."
    if complaint:
        for _ in range(3):  # once for each protocol
            log.tell("GRAPH|ENV", f"Invalid NCCL_NTHREADS {threads} {complaint}")


def _listed(log: Log, name: str, known: tuple[str, ...], usable: frozenset[str]) -> frozenset[str]:
    value = text(name)
    if value is None:
        return usable
    log.tell("ENV", f"{name} set by environment to {value}")
    return frozenset(parse_choice(value, known, _FUNCTIONS)) & usable


def _matrix(algorithms: frozenset[str], protocols: frozenset[str]) -> str:
    head = "     Function |       LL     LL128    Simple   |" + "".join(
        f"{name:>14} " for name in _ALGORITHMS
    )
    lines = ["Enabled NCCL Func/Proto/Algo Matrix:", head.rstrip() + "  "]
    cells = "".join(f"{int(name in protocols):>9} " for name in _PROTOCOLS)
    marks = "".join(f"{int(name in algorithms):>14} " for name in _ALGORITHMS)
    functions = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
    lines += [f"{function:>13} |{cells}  |{marks} " for function in functions]
    return "\n".join(lines) + "\n"


def _all_reduce(rank: Rank, log: Log, choice: Choice) -> None:
    if not choice.algorithms or not choice.protocols:
        raise NcclError(
            "ncclInvalidUsage",
            "No algorithm/protocol available for function AllReduce with datatype ncclBfloat16. "
            f"NCCL_ALGO was set to {text('NCCL_ALGO')}.",
        )
    following = (rank.rank + 1) % rank.ranks
    for channel in range(choice.channels):
        log.tell(
            "INIT|P2P",
            f"Channel {channel:02d}/0 : {rank.rank}[{rank.rank}] -> {following}[{following}] via "
            f"{choice.transport}",
        )
    ring = "Ring" in choice.algorithms
    connected = "Connected all rings, use ring PXN 0 GDR 1" if ring else "Connected all trees"
    log.tell("INIT", connected)
    algorithm = "RING" if ring else "TREE"
    protocol = "LL" if "LL" in choice.protocols else "SIMPLE"
    span = f"{{0..{choice.channels - 1}}}"
    log.tell(
        "TUNING",
        f"AllReduce: 14336 Bytes -> Algo {algorithm} proto {protocol} channel{{Lo..Hi}}={span}",
    )

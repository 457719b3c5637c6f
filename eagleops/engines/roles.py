"""Roles: what a process of a server's tree is, read from its title or its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import attrs

_RANK = re.compile(r"([A-Z][A-Z_]*?)(\d+)")


@attrs.frozen
class Role:
    """What a process is.

    Attributes:
        role: ``server`` (the main process), ``scheduler``, ``worker``, ``engine_core``,
            ``detokenizer``, ``detokenizer_router``, ``tokenizer_worker``, ``api_server``,
            ``data_parallel_controller``, ``dp_coordinator``, ``ray`` or, of Python's own,
            ``untitled`` (a child without a title yet), ``resource_tracker``, ``forkserver``,
            ``compile_worker``, ``wrapper`` (a shell or numactl in front of it).
        rank: Its ranks as its title tells them, for example ``TP3`` or ``DP0_PP1_TP3``; None
            where there is none.
        computes: Whether such a process runs the model, and so makes NCCL communicators where
            there are several of them.
    """

    role: str
    rank: str | None = None
    computes: bool = False

    @property
    def ranks(self) -> Mapping[str, int]:
        """The rank in each dimension, for example ``{"DP": 0, "TP": 3}``."""
        return ranks_of(self.rank or "")


def ranks_of(rank: str) -> dict[str, int]:
    """``DP0_TP3`` as ``{"DP": 0, "TP": 3}``."""
    return {dimension.strip("_"): int(number) for dimension, number in _RANK.findall(rank)}


def ranks_text(ranks: Mapping[str, int]) -> str | None:
    """``{"DP": 0, "TP": 3}`` as ``DP0_TP3``; None for no rank at all."""
    return "_".join(f"{dimension}{number}" for dimension, number in ranks.items()) or None


def python_role(argv: Sequence[str]) -> Role | None:
    """The role of a process that Python's own machinery, or a wrapper, has started.

    Args:
        argv: Its arguments. A process that has set its title has one, the title.
    """
    program = " ".join(argv)
    for pattern, role in _PYTHON:
        if pattern.search(program):
            return Role(role)
    first = PurePosixPath(argv[0]).name if argv and argv[0] else ""
    return Role("wrapper") if first == "numactl" else None


_PYTHON = (
    (re.compile(r" -c from multiprocessing\.resource_tracker import main"), "resource_tracker"),
    (re.compile(r" -c from multiprocessing\.forkserver import main"), "forkserver"),
    (re.compile(r" -c from multiprocessing\.spawn import spawn_main"), "untitled"),
    (re.compile(r"/torch/_inductor/compile_worker/"), "compile_worker"),
    # SGLang puts a script in place of Python while it spawns on a chosen NUMA node.
    (re.compile(r"(^|/)(ba|da)?sh (-\w+ )*\S*/sglang_temp_file_\w+\.sh"), "wrapper"),
)

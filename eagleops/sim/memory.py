"""How much GPU memory a simulated engine takes, and whether it is there."""

from __future__ import annotations

from typing import NamedTuple

from eagleops.sim import faults
from eagleops.sim.gpus import RESERVED_MIB, TOTAL_MIB
from eagleops.sim.holders import sightings
from eagleops.sim.layout import Layout

CONTEXT_MIB = 594
# Beside weights and KV cache: CUDA graphs, activations.
GRAPHS_MIB = 1310
_WEIGHTS_SHARE = 0.82
_KV_MIB_PER_TOKEN = 0.0338


class Plan(NamedTuple):
    """Memory on each GPU, in MiB."""

    weights_mib: int
    kv_mib: int

    @classmethod
    def of(cls, fraction: float) -> Plan:
        """The plan for ``mem_fraction_static`` (vLLM: ``gpu_memory_utilization``)."""
        static = int((TOTAL_MIB - RESERVED_MIB) * fraction) - CONTEXT_MIB
        weights = int(static * _WEIGHTS_SHARE)
        return cls(weights, static - weights)

    @property
    def tokens(self) -> int:
        """Tokens that fit into the KV cache."""
        return int(self.kv_mib / _KV_MIB_PER_TOKEN)

    @property
    def loaded_mib(self) -> int:
        """Held once the weights are there."""
        return CONTEXT_MIB + self.weights_mib

    @property
    def cached_mib(self) -> int:
        """Held once the KV cache is there too."""
        return self.loaded_mib + self.kv_mib

    @property
    def whole_mib(self) -> int:
        """Held by an engine that is ready."""
        return self.cached_mib + GRAPHS_MIB


def free_mib(layout: Layout, server: int) -> list[int]:
    """What is free on each GPU for ``server``: all that no other holds."""
    broken = faults.read(layout)
    seen = sightings(layout, broken)
    free = []
    for gpu in range(layout.identity().gpus):
        held = sum(
            sighting.held_mib
            for sighting in seen
            if sighting.holder.gpu == gpu and sighting.holder.server != server
        )
        foreign = int(faults.of_gpu(broken, gpu).get("foreign_mib", 0))
        free.append(TOTAL_MIB - RESERVED_MIB - held - foreign)
    return free

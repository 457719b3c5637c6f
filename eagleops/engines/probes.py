"""Readiness, as the ``watch`` operation takes it: JSON that names paths and what they must say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# SGLang's own check generates a token and gives up after 20 s.
PROBE_TIMEOUT_S = 25


def readiness(
    *,
    port: int,
    probes: Sequence[Mapping[str, Any]],
    identity: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The JSON that :mod:`eagleops.remote.watch` reads.

    Args:
        port: Where the server listens.
        probes: Tried in order; the answer of one that is not ``missing_ok`` counts. Without
            any, a server that listens is ready.
        identity: Which field of which path must hold what; None where nothing can be asked.
    """
    return {
        "port": port,
        "probes": [dict(probe) for probe in probes],
        "identity": None if identity is None else dict(identity),
        "timeout_s": PROBE_TIMEOUT_S,
    }


def probe(path: str, *, missing_ok: bool = False) -> dict[str, Any]:
    """A path that answers 200 once the server serves.

    Args:
        path: For example ``/health``.
        missing_ok: Whether a 404 means that this version has no such path.
    """
    return {"path": path, "ok": [200], "missing_ok": [404] if missing_ok else []}

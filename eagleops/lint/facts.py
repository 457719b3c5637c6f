"""What is known beside a profile: of the installed engine, the machine and the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from eagleops.knowledge.flags import FlagTable


@attrs.frozen(kw_only=True)
class ConfFile:
    """A file that NCCL reads settings from.

    Attributes:
        path: As NCCL looks for it.
        settings: Name and value of each line.
    """

    path: str
    settings: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Facts:
    """What was found out; None for what nobody asked, or could not be told.

    Attributes:
        where: The machine as messages name it.
        engine_version: Of the installed engine.
        flags: Of the installed engine.
        gpu_count: GPUs of the machine.
        nvlink: Whether its GPUs have NVLink between them.
        nccl_version: Of the NCCL that is installed beside the engine.
        conf_files: In the order in which NCCL reads them: what an earlier one sets, holds.
        model: The model's config.json.
        draft: The draft model's.
        absent: Paths that the profile names and the machine does not have.
        target_env: Names of the target's own variables that a server could inherit.
    """

    where: str = ""
    engine_version: str | None = None
    flags: FlagTable | None = None
    gpu_count: int | None = None
    nvlink: bool | None = None
    nccl_version: str | None = None
    conf_files: tuple[ConfFile, ...] = ()
    model: Mapping[str, Any] | None = None
    draft: Mapping[str, Any] | None = None
    absent: frozenset[str] = frozenset()


UNASKED = Facts()

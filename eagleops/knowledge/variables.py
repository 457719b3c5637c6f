"""The variables that an engine's own code names, and the versions in which it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

import attrs


@attrs.frozen
class EngineVariables:
    """Names with the first and the last version that has each, as indices into ``versions``."""

    versions: tuple[str, ...]
    names: Mapping[str, tuple[int, int]]

    def gone_since(self, name: str) -> str:
        """The first version of the table that does not name it any more; empty if all do."""
        last = self.names[name][1]
        return self.versions[last + 1] if last + 1 < len(self.versions) else ""


@cache
def sglang_variables() -> EngineVariables:
    """SGLang's."""
    file = resources.files("eagleops.knowledge") / "sglang_variables.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    names = {name: (first, last) for name, (first, last) in document["names"].items()}
    return EngineVariables(tuple(document["versions"]), MappingProxyType(names))

"""Which variables leave the machine, and as what: secrets as salted digests."""

from __future__ import annotations

import hashlib
import hmac
import re
from secrets import token_hex
from typing import Any, Dict, Iterable, Mapping

from eagleops.remote import redact

# Of these names every variable is told; of the rest, those that were asked for.
TOLD = re.compile(r"(NCCL|SGLANG|VLLM|CUDA)_")


class Mask:
    """Which variables travel, and as what.

    A secret's value becomes a digest with a salt of this one call: equal values can be told
    to be equal, and that is all that can be told.

    Args:
        names: Of variables that are asked for.
        secrets: Names of those that are secrets whatever their names say.
    """

    def __init__(self, names: Iterable[str], secrets: Iterable[str] = ()) -> None:
        self._names = frozenset(names)
        self._secrets = frozenset(secrets)
        self.salt = token_hex(16)

    def concerns(self, prefix: str, variables: Mapping[bytes, bytes]) -> bool:
        """Whether a variable of that prefix is asked for, or stands in ``variables``."""
        raw = prefix.encode("ascii")
        return any(name.startswith(prefix) for name in self._names) or any(
            name.startswith(raw) for name in variables
        )

    def variables(self, variables: Mapping[bytes, bytes]) -> Dict[str, Any]:
        """Those that travel, as JSON."""
        decoded = ((text_of(name), value) for name, value in variables.items())
        return {
            name: self.value(name, text_of(value))
            for name, value in decoded
            if name in self._names or TOLD.match(name)
        }

    def value(self, name: str, value: str) -> Any:
        """``value``, or ``{"sha256": ...}`` for a secret."""
        # A password in a URL makes the whole value one.
        if name not in self._secrets and redact.value(name, value) == value:
            return value
        key, content = self.salt.encode("ascii"), value.encode("utf-8", "surrogateescape")
        return {"sha256": hmac.new(key, content, hashlib.sha256).hexdigest()}


def text_of(content: bytes) -> str:
    """Bytes of a process as text; undecodable ones as lone surrogates."""
    return content.decode("utf-8", "surrogateescape")

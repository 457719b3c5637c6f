"""A secret by reference: where its value is, never the value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

KINDS = ("env", "file", "cmd")
KEY = "secret"
_REFERENCE = re.compile(r"(?P<kind>env|file|cmd):(?P<place>\S.*)\Z", re.DOTALL)
HINT = (
    "Write `secret: env:NAME` (a variable where eagleops runs), `secret: file:PATH` or "
    "`secret: cmd:COMMAND`."
)


class SecretReference(str):
    """``env:HF_TOKEN``, ``file:~/.hf`` or ``cmd:pass show hf``: a text that stands for a value.

    It is a text, so that it goes wherever a value goes; a launch puts the value in its place at
    the last moment (:mod:`eagleops.workflows.secrets`), and nothing else ever sees that.
    """

    __slots__ = ()

    def __str__(self) -> str:
        # str() of a plain subclass would be a plain text, and be taken for the value itself.
        return self

    def __repr__(self) -> str:
        return f"SecretReference({super().__repr__()})"

    @property
    def kind(self) -> str:
        """``env``, ``file`` or ``cmd``."""
        return self.partition(":")[0]

    @property
    def place(self) -> str:
        """The variable, the path or the command."""
        return self.partition(":")[2]

    def to_dict(self) -> dict[str, str]:
        """As hosts.yaml has it."""
        return {KEY: super().__str__()}


def is_reference(value: Any) -> bool:
    """Whether ``value`` has the form of a reference: a mapping of ``secret`` alone."""
    return isinstance(value, Mapping) and set(value) == {KEY}


def reference(value: Mapping[str, Any]) -> SecretReference:
    """The reference that a mapping is.

    Raises:
        ValueError: if it names no place; the text says what to write.
    """
    text = value[KEY]
    if not isinstance(text, str) or _REFERENCE.match(text) is None:
        raise ValueError(HINT)
    return SecretReference(text)

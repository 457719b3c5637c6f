"""The texts that a bench asks a model to go on with: our own words, free for anyone."""

from __future__ import annotations

from importlib import resources

import attrs

from eagleops.errors import UsageError

NAMES = ("code", "long", "prose", "short")
DEFAULT = "prose"


@attrs.frozen
class Prompt:
    """A text.

    Attributes:
        name: One of :data:`NAMES`, or ``given`` for a text of the caller's.
    """

    name: str
    text: str

    def for_run(self, number: int) -> str:
        """The text with a first line of the run's own.

        Without it every run but the first would find the whole prompt in the engine's cache.
        """
        return f"({number})\n{self.text}"


def prompt(name: str) -> Prompt:
    """A shipped text.

    Raises:
        UsageError: if there is none of that name.
    """
    if name not in NAMES:
        raise UsageError(problem=f"no prompt is called {name}; there are {', '.join(NAMES)}")
    file = resources.files("eagleops.measuring").joinpath("texts").joinpath(f"{name}.txt")
    return Prompt(name, file.read_text("utf-8").strip())


def given(text: str) -> Prompt:
    """A text of the caller's."""
    return Prompt("given", text)

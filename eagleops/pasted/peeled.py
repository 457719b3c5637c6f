"""What a program that starts another one was told."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Peeled:
    """What a wrapper was told.

    Attributes:
        words: What it starts; a script alone where ``script`` is set.
        env: Variables that it adds.
        unset: Variables that it takes away.
        bare: Whether it starts from an empty environment.
        script: The text that it gives to a shell.
        container: Kind and name of a container that it enters.
        cwd: The folder that it goes to.
        lost: What a launch does not do again, as a sentence; empty for nothing.
        drops_env: Whether variables set before it do not reach what it starts.
    """

    words: tuple[str, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=dict)
    unset: tuple[str, ...] = ()
    bare: bool = False
    script: str | None = None
    container: tuple[str, str] | None = None
    cwd: str = ""
    lost: str = ""
    drops_env: bool = False
    user: str = ""

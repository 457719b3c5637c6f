"""What surrounds a command as a script goes on: variables, folder, machine."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from eagleops.pasted.target import Target
from eagleops.shell.slip import Slip


@attrs.frozen(kw_only=True)
class Started:
    """A program that the pasted text starts.

    Attributes:
        argv: The words that it gets.
        env: The variables that the text sets for it.
        cwd: Its folder; empty where the text does not say.
        python: The interpreter of a virtual environment that was activated; or nothing.
        log: Where its output went; empty for nowhere.
        background: Whether the shell goes on without waiting for it.
        inside: The loops, conditions and functions that it stands in.
    """

    line: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    target: Target
    cwd: str = ""
    python: str = ""
    log: str = ""
    background: bool = False
    nohup: bool = False
    inside: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class Surroundings:
    """The state of a shell, as far as the text tells it.

    Attributes:
        variables: Set in this shell, exported or not.
        exported: Names of those that programs get.
        unset: Names that are taken away from what a login gives.
        keeps: Whether a login shell's own environment is there; False after ``env -i``.
    """

    target: Target = attrs.field(factory=Target)
    variables: dict[str, str] = attrs.field(factory=dict)
    exported: set[str] = attrs.field(factory=set)
    unset: set[str] = attrs.field(factory=set)
    cwd: str = ""
    venv: str = ""
    documents: dict[str, str] = attrs.field(factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What a program gets."""
        return {name: self.variables[name] for name in self.variables if name in self.exported}

    @property
    def known(self) -> dict[str, str]:
        """What a word can be expanded with."""
        home = self.target.home
        given = {"HOME": home, "USER": "root", "LOGNAME": "root"} if home else {}
        return {**given, **self.variables}

    def inner(self, *, target: Target | None = None, env: bool = True) -> Surroundings:
        """The surroundings of a shell that is started from here.

        Args:
            target: Where, if that is another machine or a container.
            env: Whether exported variables reach it.
        """
        kept = self.environment if env else {}
        return Surroundings(
            target=target or self.target,
            variables=dict(kept),
            exported=set(kept),
            cwd=self.cwd if target is None else "",
            venv=self.venv if target is None else "",
        )


@attrs.define
class Report:
    """What a reading gathers.

    Attributes:
        text: All of what was pasted.
        left_out: Programs that were seen and have no part in a profile.
    """

    text: str
    started: list[Started] = attrs.field(factory=list)
    slips: list[Slip] = attrs.field(factory=list)
    left_out: list[str] = attrs.field(factory=list)

    def tell(
        self, kind: str, message: str, fix: str = "", severity: str = "error", line: int = 1
    ) -> None:
        """Adds a slip; the same one once."""
        slip = Slip(line, 1, kind, message, fix, severity)  # type: ignore[arg-type]
        if not any(one.kind == kind and one.message == message for one in self.slips):
            self.slips.append(slip)

"""Follows a command through the programs that start others, down to the one that stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import attrs

from eagleops.pasted.peeled import Peeled
from eagleops.pasted.peeling import peel
from eagleops.pasted.small_programs import KILLS, SMALL, TALK
from eagleops.pasted.surroundings import Report, Started, Surroundings
from eagleops.pasted.target import ssh_call
from eagleops.pasted.telling import tell_doubt, tell_redirections
from eagleops.shell import Doubt, SimpleCommand, expand

Walk = Callable[[str, Report, Surroundings, int], None]
# Programs whose child outlives the login.
_STAYING = {"nohup", "setsid", "tmux", "screen"}


@attrs.frozen
class Expanded:
    """A command as the shell runs it.

    Attributes:
        words: What its words come to.
        prefix: The variables that stand before it.
        doubts: What is not known of a word, each with that word.
    """

    command: SimpleCommand
    words: list[str]
    prefix: dict[str, str]
    doubts: list[tuple[str, Doubt]]


@attrs.define
class Follower:
    """Follows one command.

    Attributes:
        walk: Reads a script that stands in it.
    """

    report: Report
    around: Surroundings
    depth: int
    walk: Walk

    def follow(self, expanded: Expanded) -> None:
        """Follows a command through the programs that start it, down to the one that stays."""
        command, words, prefix = expanded.command, expanded.words, expanded.prefix
        inner = self.around.inner()
        inner.variables.update(prefix)
        inner.exported.update(prefix)
        nohup = False
        while words:
            name = words[0].rpartition("/")[2]
            nohup = nohup or name in _STAYING
            if name == "ssh":
                self.by_ssh(attrs.evolve(expanded, words=words))
                return
            if name in {"bash", "sh", "zsh", "dash"} and self.document(command, words, inner):
                return
            peeled = peel(words)
            if peeled is None:
                break
            if peeled.lost:
                self.report.tell("wrapper", peeled.lost, severity="note", line=command.line)
            if peeled.drops_env and prefix:
                self.report.tell(
                    "sudo-drops-env",
                    f"{', '.join(prefix)} before `{name}` is dropped by it: the server does not "
                    "get it",
                    f"Write `{name} env NAME=VALUE ...`. It is left out of the profile.",
                    line=command.line,
                )
            inner = self.within(inner, peeled, prefix)
            if peeled.script is not None:
                if peeled.script.strip():
                    self.walk(peeled.script + "\n", self.report, inner, self.depth + 1)
                    self.mark(command, nohup=nohup)
                return
            words = list(peeled.words)
            if words and words[0] in SMALL | KILLS:
                self.report.left_out.append(words[0])
                return
        if words:
            for raw, doubt in expanded.doubts:
                tell_doubt(self.report, command, raw, doubt, self.around)
            self.add(command, words, inner, nohup=nohup)

    def within(self, around: Surroundings, peeled: Peeled, prefix: dict[str, str]) -> Surroundings:
        """The surroundings behind a wrapper."""
        container = peeled.container
        target = attrs.evolve(around.target, container=container) if container else None
        inner = around.inner(target=target, env=not peeled.bare)
        if peeled.drops_env:
            for name in prefix:
                inner.variables.pop(name, None)
                inner.exported.discard(name)
        for name in peeled.unset:
            inner.variables.pop(name, None)
            inner.exported.discard(name)
        inner.variables.update(peeled.env)
        inner.exported.update(peeled.env)
        inner.cwd = peeled.cwd or inner.cwd
        return inner

    def document(self, command: SimpleCommand, words: list[str], inner: Surroundings) -> bool:
        """``bash -s <<EOF``, ``bash <<EOF``, or a script that was written before."""
        options = [word for word in words[1:] if word.startswith("-")]
        files = [word for word in words[1:] if not word.startswith("-")]
        if any(re.fullmatch(r"-[a-z]*c", option) for option in options):
            return False
        body = _body(command) if not files or "-s" in options else None
        if body is None and files:
            body = self.around.documents.get(files[0])
            if body is None:
                self.report.tell(
                    "script-not-pasted",
                    f"what {files[0]} starts was not pasted",
                    "Paste the script itself.",
                    line=command.line,
                )
                return True
        if body is not None:
            self.walk(body, self.report, inner, self.depth + 1)
            self.mark(command)
        return body is not None

    def by_ssh(self, expanded: Expanded) -> None:
        """Goes to the machine that ssh goes to, and reads on there."""
        command = expanded.command
        call = ssh_call(expanded.words)
        if call is None:
            self.report.tell("ssh", "ssh is told no host", line=command.line)
            return
        if expanded.prefix:
            self.report.tell(
                "env-before-ssh",
                f"{', '.join(expanded.prefix)} before ssh stays here: ssh takes no variables along",
                "Put it in front of the command over there. It is left out of the profile.",
                line=command.line,
            )
        for raw, doubt in expanded.doubts:
            tell_doubt(self.report, command, raw, doubt, self.around, here=True)
        text = _over_there(call.command, self.report, command)
        body = _body(command)
        if text.strip() in {"", "bash", "bash -s", "sh", "sh -s", "bash -l", "bash -ls"} and body:
            text = body
        if not text.strip():
            self.report.tell(
                "ssh", "ssh is told no command: it would open a shell", line=command.line
            )
            return
        inner = Surroundings(target=call.target)
        self.walk(text if text.endswith("\n") else text + "\n", self.report, inner, self.depth + 1)
        self.mark(command)

    def mark(self, command: SimpleCommand, *, nohup: bool = False) -> None:
        """Hands what stands around a shell on to what was started in it last."""
        if not self.report.started:
            return
        last = self.report.started[-1]
        log = last.log or _log(command)
        self.report.started[-1] = attrs.evolve(
            last,
            log=log,
            background=last.background or command.background,
            nohup=last.nohup or nohup,
            inside=(*command.inside, *last.inside),
        )

    def add(
        self, command: SimpleCommand, words: list[str], inner: Surroundings, *, nohup: bool
    ) -> None:
        """Adds a program that starts no other."""
        tell_redirections(self.report, command)
        self.report.started.append(
            Started(
                line=command.line,
                argv=tuple(words),
                env=inner.environment,
                target=inner.target,
                cwd=inner.cwd,
                python=f"{inner.venv}/bin/python" if inner.venv else "",
                log=_log(command),
                background=command.background,
                nohup=nohup,
                inside=command.inside,
            )
        )


def _body(command: SimpleCommand) -> str | None:
    for redirection in command.redirections:
        if redirection.operator in {"<<", "<<-"}:
            return redirection.body
        if redirection.operator == "<<<":
            return expand(redirection.target).text
    return None


def _log(command: SimpleCommand) -> str:
    for redirection in command.redirections:
        if redirection.operator in {">", ">>", "&>", "&>>"} and redirection.descriptor != "2":
            return redirection.target
    return ""


def _over_there(words: tuple[str, ...], report: Report, command: SimpleCommand) -> str:
    """The text that ssh hands to the shell over there."""
    if len(words) > 1 and re.search(r"\s", words[0]) and words[1] in TALK:
        how = (
            "runs it over there, after the command"
            if words[0].rstrip().endswith(("&", ";"))
            else "makes it part of the command: the server gets it as arguments"
        )
        report.tell(
            "lost-and",
            f"`{words[1]}` has lost its && : ssh takes it for more of the command, and the "
            f"shell {how}",
            f"Write && before `{words[1]}`. It has no part in the profile.",
            line=command.line,
        )
        return words[0]
    return " ".join(words)

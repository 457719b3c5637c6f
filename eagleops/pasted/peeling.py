"""Programs that start other programs: what stands in front of a server's own command."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from eagleops.pasted.containers import into, lxc_attach, pct
from eagleops.pasted.peeled import Peeled

# systemd-run's options that take a value in a word of its own, too.
_UNIT_VALUES = {
    "-E", "-H", "-M", "-p", "-u", "--description", "--gid", "--host", "--machine", "--nice",
    "--property", "--setenv", "--slice", "--uid", "--unit", "--working-directory",
}  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def peel(words: Sequence[str]) -> Peeled | None:
    """Takes the first wrapper off; None if there is none."""
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    reader = _WRAPPERS.get(name)
    return reader(list(words)) if reader else None


def _plain(words: list[str]) -> Peeled:
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest.pop(0)
    return Peeled(words=tuple(rest))


def _with_values(letters: str, lost: str = "") -> Callable[[list[str]], Peeled]:
    """A wrapper whose options of these letters take a value."""

    def read(words: list[str]) -> Peeled:
        rest = words[1:]
        options = []
        while rest and rest[0].startswith("-") and rest[0] != "--":
            option = rest.pop(0)
            options.append(option)
            if option[1:] in letters and rest:
                options.append(rest.pop(0))
        rest = rest[1:] if rest[:1] == ["--"] else rest
        told = f"`{' '.join([words[0], *options])}`: {lost}" if lost else ""
        return Peeled(words=tuple(rest), lost=told)

    return read


def _one_more(lost: str) -> Callable[[list[str]], Peeled]:
    """A wrapper with one argument of its own, such as ``timeout 60``."""

    def read(words: list[str]) -> Peeled:
        rest = words[1:]
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            if option in {"-c", "-k", "-s", "-p"} and rest and words[0].endswith("timeout"):
                rest.pop(0)
        own = rest.pop(0) if rest else ""
        return Peeled(words=tuple(rest), lost=f"`{words[0]} {own}`: {lost}")

    return read


def _numactl(words: list[str]) -> Peeled:
    rest = words[1:]
    options = []
    while rest and rest[0].startswith("-"):
        options.append(rest.pop(0))
    told = " ".join([words[0], *options])
    return Peeled(
        words=tuple(rest),
        lost=f"`{told}`: eagleops starts the engine itself; bind with the engine's own flag "
        "(SGLang: numa-node)",
    )


def _env(words: list[str]) -> Peeled:
    rest, bare = words[1:], False
    unset: list[str] = []
    added: dict[str, str] = {}
    cwd = ""
    while rest:
        word = rest[0]
        if word in {"-i", "-", "--ignore-environment"}:
            bare = True
        elif word in {"-u", "--unset"} and len(rest) > 1:
            unset.append(rest[1])
            rest.pop(0)
        elif word in {"-C", "--chdir"} and len(rest) > 1:
            cwd = rest[1]
            rest.pop(0)
        elif word == "--":
            rest.pop(0)
            break
        elif _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            added[name] = value
        else:
            break
        rest.pop(0)
    return Peeled(words=tuple(rest), env=added, unset=tuple(unset), bare=bare, cwd=cwd)


def _sudo(words: list[str]) -> Peeled:
    rest, keeps, user = words[1:], False, ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        keeps = keeps or option in {"-E", "--preserve-env"}
        if option in {"-u", "-g", "-p"} and rest:
            value = rest.pop(0)
            user = value if option == "-u" else user
    peeled = _env(["env", *rest])
    return attrs.evolve(peeled, drops_env=not keeps, user=user)


def _shell(words: list[str]) -> Peeled | None:
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if re.fullmatch(r"-[a-z]*c", option) and rest:
            return Peeled(script=rest[0])
        if option in {"-o", "-O", "--rcfile"} and rest:
            rest.pop(0)
    return None


def _su(words: list[str]) -> Peeled | None:
    for n, word in enumerate(words):
        if word in {"-c", "--command"} and n + 1 < len(words):
            return Peeled(script=words[n + 1], drops_env="-" in words or "-l" in words)
    return None


def _tmux(words: list[str]) -> Peeled | None:
    rest = words[1:]
    verb = next((word for word in rest if not word.startswith("-")), "")
    if verb in {"send-keys", "send"}:
        texts = [word for word in rest if word not in {verb, "Enter", "C-m", "-t"}]
        return Peeled(script=max(texts, key=len, default=""))
    if verb in {"new-session", "new", "new-window", "neww"}:
        rest = rest[rest.index(verb) + 1 :]
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            if option[-1:] in {"s", "n", "t", "c", "x", "y", "e", "F"} and rest:
                rest.pop(0)
        return Peeled(script=" ".join(rest)) if rest else None
    return None


def _screen(words: list[str]) -> Peeled | None:
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option[-1:] in {"S", "L", "h", "t"} and option != "-L" and rest:
            rest.pop(0)
        elif option == "-X":
            return Peeled(script=rest[-1].rstrip("\n")) if rest else None
    return Peeled(words=tuple(rest)) if rest else None


def _sshpass(words: list[str]) -> Peeled:
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"-p", "-f", "-d", "-P"} and rest:
            rest.pop(0)
    told = "`sshpass`: eagleops logs in by a key or the agent, and takes no password along"
    return Peeled(words=tuple(rest), lost=told)


def _systemd_run(words: list[str]) -> Peeled:
    rest, added, cwd, scope = words[1:], {}, "", False
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option == "--":
            break
        if option in _UNIT_VALUES and not equals and rest:
            value = rest.pop(0)
        scope = scope or option == "--scope"
        if option in {"-E", "--setenv"} and "=" in value:
            name, _, added[name] = value.partition("=")
        elif option == "--working-directory":
            cwd = value
    told = "`systemd-run`: eagleops starts the server itself, without the unit and its properties"
    # A unit begins with systemd's own environment, a scope with the caller's.
    return Peeled(words=tuple(rest), env=added, cwd=cwd, drops_env=not scope, lost=told)


def _conda(words: list[str]) -> Peeled | None:
    if words[1:2] != ["run"]:
        return None
    rest, environment = words[2:], ""
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"-n", "-p", "--name", "--prefix", "--cwd"} and rest:
            environment = rest.pop(0)
    told = f"`{words[0]} run` of {environment}: name its interpreter as `python:` in the profile"
    return Peeled(words=tuple(rest), lost=told)


def _run(words: list[str]) -> Peeled | None:
    """``uv run``, ``poetry run``, ``pipenv run``."""
    if words[1:2] != ["run"]:
        return None
    rest = words[2:]
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in {"--python", "-p", "--with", "--project", "--directory"} and rest:
            rest.pop(0)
    told = f"`{words[0]} run`: name the project's interpreter as `python:` in the profile"
    return Peeled(words=tuple(rest), lost=told)


def _eval(words: list[str]) -> Peeled:
    return Peeled(script=" ".join(words[1:]))


_WRAPPERS: Mapping[str, Callable[[list[str]], Peeled | None]] = {
    "env": _env,
    "nohup": _plain,
    "setsid": _plain,
    "exec": _plain,
    "command": _plain,
    "time": _plain,
    "unbuffer": _plain,
    "catchsegv": _plain,
    "nice": _with_values("n", "its priority is not kept"),
    "ionice": _with_values("cnp", "its priority is not kept"),
    "chrt": _one_more("its scheduling is not kept"),
    "stdbuf": _with_values("", ""),
    "timeout": _one_more("eagleops ends no server by itself"),
    "taskset": _one_more("the engine's processes are not pinned"),
    "numactl": _numactl,
    "sudo": _sudo,
    "doas": _sudo,
    "sshpass": _sshpass,
    "systemd-run": _systemd_run,
    "bash": _shell,
    "sh": _shell,
    "zsh": _shell,
    "dash": _shell,
    "su": _su,
    "pct": pct,
    "lxc-attach": lxc_attach,
    "docker": into("docker"),
    "podman": into("docker"),
    "incus": into("incus"),
    "lxc": into("incus"),
    "tmux": _tmux,
    "screen": _screen,
    "conda": _conda,
    "mamba": _conda,
    "micromamba": _conda,
    "uv": _run,
    "poetry": _run,
    "pipenv": _run,
    "eval": _eval,
}

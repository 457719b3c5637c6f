"""Programs that start another one in a container."""

from __future__ import annotations

from collections.abc import Callable

from eagleops.pasted.peeled import Peeled


def pct(words: list[str]) -> Peeled | None:
    """``pct exec VMID -- COMMAND``: no shell between."""
    if words[1:2] != ["exec"] or not words[2:]:
        return None
    rest = words[3:]
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if option in {"--keep-env", "-keep-env"} and rest:
            rest.pop(0)
    return Peeled(
        words=tuple(rest[1:] if rest[:1] == ["--"] else rest), container=("pct", words[2])
    )


def lxc_attach(words: list[str]) -> Peeled | None:
    """``lxc-attach -n NAME -- COMMAND``."""
    rest, name = words[1:], ""
    added: dict[str, str] = {}
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option = rest.pop(0)
        if option in {"-n", "--name"} and rest:
            name = rest.pop(0)
        elif option.startswith("--name="):
            name = option.partition("=")[2]
        elif option in {"-v", "--set-var"} and rest:
            key, _, value = rest.pop(0).partition("=")
            added[key] = value
    rest = rest[1:] if rest[:1] == ["--"] else rest
    return Peeled(words=tuple(rest), container=("lxc", name), env=added) if name else None


def into(kind: str) -> Callable[[list[str]], Peeled | None]:
    """``docker exec``, ``podman exec``, ``incus exec``, ``lxc exec``."""

    def read(words: list[str]) -> Peeled | None:
        if words[1:2] != ["exec"]:
            return None
        rest, added, cwd = words[2:], {}, ""
        name = ""
        while rest:
            word = rest.pop(0)
            if word == "--" and name:
                break
            flag, equals, value = word.partition("=")
            if flag in {"-e", "--env", "-w", "--workdir", "--cwd", "-u", "--user", "--env-file"}:
                value = value if equals else (rest.pop(0) if rest else "")
                if flag in {"-e", "--env"}:
                    key, _, content = value.partition("=")
                    added[key] = content
                elif flag in {"-w", "--workdir", "--cwd"}:
                    cwd = value
            elif word.startswith("-") and not name:
                continue
            elif not name:
                name = word
            else:
                rest.insert(0, word)
                break
        if not name:
            return None
        return Peeled(words=tuple(rest), container=(kind, name), env=added, cwd=cwd)

    return read

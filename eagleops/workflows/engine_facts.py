"""Asks a machine what the linter should know of it: the installed engine's flags, and the rest.

Nothing is changed over there. The engine's flags are what its own ``--help`` prints, which takes
it seconds of imports; so they are kept, by engine and version, beside the ledger.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eagleops.errors import OperationFailed
from eagleops.inventory import HostEntry
from eagleops.knowledge.flags import FlagTable, from_help
from eagleops.ledger.place import default_path
from eagleops.lint import ConfFile, Facts
from eagleops.machine import Machine
from eagleops.profile import Profile
from eagleops.workflows.progress import Progress, Step, unwatched

# An engine imports PyTorch and its kernels before it prints its help.
HELP_LIMIT_S = 180.0
LIMIT_S = 20.0
_HELP = {
    "sglang": ("-m", "sglang.launch_server", "--help"),
    "vllm": ("-m", "vllm.entrypoints.cli.main", "serve", "--help=all"),
}
# vLLM before 0.10 knows no --help=all, and prints all of it by --help.
_OLD_HELP = {"vllm": ("-m", "vllm.entrypoints.cli.main", "serve", "--help")}
_DRAFT = ("speculative-draft-model-path", "speculative-draft-model")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ask(
    machine: Machine,
    profiles: Sequence[Profile],
    *,
    ledger: Path | None = None,
    progress: Progress = unwatched,
) -> dict[str, Facts]:
    """What ``machine`` tells for each of ``profiles``, by name.

    Args:
        machine: Which; each of its facts is asked for once.
        profiles: Those that will be linted.
        ledger: The ledger's file, beside which flags are kept; None for the user's own.
        progress: Told of each step.

    Raises:
        Unreachable: if it cannot be reached.
    """
    progress(Step("look"))
    asker = _Asker(machine, (ledger or default_path()).parent / "engine-flags")
    return {profile.name: asker.facts(profile) for profile in profiles}


class _Asker:
    def __init__(self, machine: Machine, kept: Path) -> None:
        self.machine = machine
        self.kept = kept
        self.installed: dict[str, dict[str, str]] = {}
        self.tables: dict[tuple[str, str], FlagTable | None] = {}
        self.doctor = machine.call("doctor")
        self.gpus = len(machine.call("snapshot", servers=False)["gpus"])
        self.nvlink = _has_nvlink(self.run(["nvidia-smi", "topo", "-m"]))

    def facts(self, profile: Profile) -> Facts:
        python = profile.python or self.machine.entry.python
        versions = self.versions(python)
        flags = self.flags(profile.engine, python, versions.get(profile.engine))
        draft = next((profile.args[name] for name in _DRAFT if name in profile.args), None)
        return Facts(
            where=self.machine.name,
            engine_version=self.version(profile.engine, versions, flags),
            flags=flags,
            gpu_count=self.gpus or None,
            nvlink=self.nvlink,
            nccl_version=_nccl(versions),
            conf_files=tuple(self.conf_files(profile)),
            model=self.config(profile.model),
            draft=self.config(draft if isinstance(draft, str) else None),
            absent=self.absent(profile, draft if isinstance(draft, str) else None),
        )

    def run(self, argv: Sequence[str], limit_s: float = LIMIT_S) -> str | None:
        """What a program prints; None if it fails or is not there."""
        base = {"PATH": _PATH, "HOME": "/", "LANG": "C.UTF-8", "COLUMNS": "200"}
        simulated = dict(self.machine.launch_env)
        env = {**base, **simulated} if simulated else None
        try:
            done = self.machine.call("execute", argv=list(argv), env=env, time_limit_s=limit_s)
        except OperationFailed:
            return None
        if done["exit_status"] != 0:
            return None
        return base64.b64decode(done["stdout"]).decode("utf-8", "replace")

    def versions(self, python: str) -> dict[str, str]:
        """The distributions that an interpreter finds."""
        if python not in self.installed:
            told = self.machine.call("installation", python=python, packages=[], models=[])
            found = {one["name"].lower(): one["version"] for one in told["distributions"] or ()}
            self.installed[python] = found
        return self.installed[python]

    def version(
        self, engine: str, versions: Mapping[str, str], flags: FlagTable | None
    ) -> str | None:
        if engine in versions:
            return versions[engine]
        if flags is not None or engine not in _HELP:
            return None
        return ""

    def flags(self, engine: str, python: str, version: str | None) -> FlagTable | None:
        if engine not in _HELP:
            return None
        key = (engine, python)
        if key not in self.tables:
            self.tables[key] = self.kept_flags(engine, python, version)
        return self.tables[key]

    def kept_flags(self, engine: str, python: str, version: str | None) -> FlagTable | None:
        """From what is kept of that version, else from the engine itself."""
        digest = hashlib.sha256(f"{self.machine.name}\0{python}".encode()).hexdigest()[:12]
        file = self.kept / f"{engine}-{version}-{digest}.json"
        if version and file.exists():
            try:
                return from_help(engine, version, json.loads(file.read_text("utf-8"))["help"])
            except (OSError, ValueError, KeyError):
                pass  # asked anew below
        text = self.run([python, *_HELP[engine]], HELP_LIMIT_S)
        if text is None and engine in _OLD_HELP:
            text = self.run([python, *_OLD_HELP[engine]], HELP_LIMIT_S)
        if text is None:
            return None
        if version:
            _keep(file, {"engine": engine, "version": version, "help": text})
        return from_help(engine, version or "as installed", text)

    def conf_files(self, profile: Profile) -> Iterator[ConfFile]:
        """In NCCL's order: the one that a variable names or the user's, then the machine's."""
        read = {conf["path"]: conf["lines"] or [] for conf in self.doctor["nccl_conf"]}
        named = profile.env.get("NCCL_CONF_FILE")
        if named:
            text = self.run(["cat", "--", named]) or ""
            lines = [line for line in text.splitlines() if line and not line.startswith("#")]
            yield ConfFile(path=named, settings=_settings(lines))
        else:
            yield ConfFile(path="~/.nccl.conf", settings=_settings(read.get("~/.nccl.conf", [])))
        yield ConfFile(path="/etc/nccl.conf", settings=_settings(read.get("/etc/nccl.conf", [])))

    def config(self, path: str | None) -> Mapping[str, Any] | None:
        """The config.json of a model in a folder."""
        if not path or not path.startswith("/") or self.simulated:
            return None
        text = self.run(["cat", "--", f"{path.rstrip('/')}/config.json"])
        try:
            config = json.loads(text or "")
        except ValueError:
            return None
        return config if isinstance(config, dict) else None

    def absent(self, profile: Profile, draft: str | None) -> frozenset[str]:
        """Those of the profile's paths that are not there."""
        named = {profile.model, draft, profile.python}
        paths = sorted(path for path in named if path and path.startswith("/"))
        if not paths or self.simulated:
            return frozenset()
        return frozenset(path for path in paths if self.run(["ls", "-d", "--", path]) is None)

    @property
    def simulated(self) -> bool:
        """Whether no model is where the profile says: the embedded box needs none."""
        entry = self.machine.entry
        return isinstance(entry, HostEntry) and entry.transport == "sim"


def _keep(file: Path, document: Mapping[str, str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_text(json.dumps(document), encoding="utf-8")
        part.replace(file)
    except OSError:
        return  # asked again the next time


def _settings(lines: Sequence[str]) -> dict[str, str]:
    pairs = (line.partition("=") for line in lines)
    return {name: value for name, equals, value in pairs if equals}


def _nccl(versions: Mapping[str, str]) -> str | None:
    wheels = [name for name in versions if name.startswith("nvidia-nccl")]
    return versions[wheels[0]] if wheels else None


def _has_nvlink(topology: str | None) -> bool | None:
    """From ``nvidia-smi topo -m``: NV4 and the like stand where NVLink is."""
    if topology is None or "GPU0" not in topology:
        return None
    rows = [line for line in topology.splitlines() if re.match(r"(\x1b\S*)?GPU\d+\s", line)]
    return any(re.search(r"\bNV\d+\b", row) for row in rows)

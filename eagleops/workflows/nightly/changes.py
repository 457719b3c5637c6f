"""What is not as it was in the last night: driver, packages, machine, engine's files, nccl.conf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from eagleops.ledger import Header, Run
from eagleops.ledger.diff import Change, diff, in_words
from eagleops.phrases import some
from eagleops.remote import redact
from eagleops.workflows.nightly.visit import Visit
from eagleops.workflows.record import installation_parts

FIRST_NIGHT = "first night: nothing to compare with"
# Of a machine, as parts of a run; `packages` holds those of each interpreter by its name.
PARTS = ("machine", "gpus")
PACKAGES = "packages"
NCCL_CONF = "nccl_conf"

_DRIVER = frozenset({"driver", "CUDA of the driver"})
_SYSTEM = ("kernel", "system", "Proxmox", "host's ")
MOST_TOLD = 6


def look(visit: Visit) -> None:
    """Compares the host with what it was in the last night that looked.

    Raises:
        Unreachable: if the machine was lost.
    """
    if not visit.once("changes"):
        return
    visit.heading("what has changed")
    with visit.guarded("machine"):
        _installed(visit)
    with visit.guarded("nccl-conf"):
        _nccl_conf(visit)
    visit.log.done(visit.host, "changes")


def _installed(visit: Visit) -> None:
    packages: dict[str, Any] = {}
    parts: dict[str, Any] = {}
    for python, variables in _interpreters(visit).items():
        found = installation_parts(visit.machine, python=python, variables=variables, models=[])
        packages[python] = found[PACKAGES]
        parts = {part: found[part] for part in PARTS}
        visit.watch()
    since = {
        part: visit.log.facts_before(visit.host, part, partial(_use, part))
        for part in (*PARTS, PACKAGES)
    }
    visit.log.keep(visit.host, **parts, **{PACKAGES: packages})
    changes = _changes({part: since[part][0] for part in PARTS}, parts)
    before, began_utc = since[PACKAGES]
    for python, body in packages.items():
        was = (before or {}).get(python)
        found_now = _changes({PACKAGES: was}, {PACKAGES: body})
        told = f" ({python})" if len(packages) > 1 else ""
        changes += [_with(change, told) for change in found_now]
    known = since["machine"][1] or began_utc
    _tell(visit, "driver", (c for c in changes if c.what in _DRIVER), known)
    _tell(visit, "packages", (c for c in changes if _is_package(c)), known)
    _tell(visit, "machine", (c for c in changes if _is_machine(c)), known)
    _engine_files(visit, packages.values(), [c for c in changes if c.section == "patches"])


def _interpreters(visit: Visit) -> dict[str, dict[str, str]]:
    """Each interpreter that a profile's server runs in, with the environment that it gets."""
    found: dict[str, dict[str, str]] = {}
    base = dict(visit.machine.launch_env)
    for _, profile in visit.profiles:
        plain = {k: v for k, v in profile.env.items() if not redact.is_secret(k, v)}
        found.setdefault(profile.python or visit.machine.entry.python, {**base, **plain})
    return found or {visit.machine.entry.python: base}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """As the ledger's ``diff`` tells them; none where nothing was known before."""
    known = {part: body for part, body in before.items() if body is not None}
    header = Header(host="", server="", profile="", engine="")
    new = {part: now[part] for part in known}
    return list(diff(Run.begin(header, known), Run.begin(header, new)).changes)


def _use(part: str, told: Any) -> None:
    """Reads what an older night kept as it will be; raises whatever comes of another shape."""
    for body in told.values() if part == PACKAGES else (told,):
        _changes({part: body}, {part: body})


def _use_nccl_conf(told: Any) -> None:
    for lines in told.values():
        ", ".join(lines or ())


def _with(change: Change, told: str) -> Change:
    return Change(change.section, change.what + told, change.before, change.after, change.gpus)


def _is_machine(change: Change) -> bool:
    if change.section == "versions":
        return change.what.startswith(_SYSTEM)
    return change.section in {"machine", "clocks"}


def _is_package(change: Change) -> bool:
    return change.section == "versions" and not (_is_machine(change) or change.what in _DRIVER)


def _tell(visit: Visit, kind: str, changes: Iterable[Change], since_utc: str) -> None:
    found = list(changes)
    if not since_utc:
        visit.passed(kind, FIRST_NIGHT)
    elif found:
        facts = {"changes": [change.to_dict() for change in found], "since_utc": since_utc}
        visit.faulty(kind, in_words(found, MOST_TOLD), value=len(found), facts=facts)
    else:
        visit.passed(kind, f"as in the night of {since_utc[:10]}", value=0)


def _engine_files(visit: Visit, bodies: Iterable[Mapping[str, Any]], new: list[Change]) -> None:
    compared = [one for body in bodies for one in body.get("compared") or ()]
    odd = [f"{one['name']}: {path}" for one in compared for path in _odd(one)]
    unknown = [f"{one['name']}: {one['problem']}" for one in compared if not one["checked"]]
    limit = visit.rule("engine-files").limit or 0
    fresh = f" New since the last night: {in_words(new, MOST_TOLD)}." if new else ""
    if len(odd) > limit:
        told = some(odd, MOST_TOLD)
        message = f"not as the wheel or the commit has them: {told}.{fresh}"
        facts = {"files": odd, "changes": [change.to_dict() for change in new]}
        visit.faulty("engine-files", message, value=len(odd), facts=facts)
    elif not compared:
        visit.skipped("engine-files", "no engine is installed for the interpreter")
    elif unknown and len(unknown) == len(compared):
        visit.skipped("engine-files", f"not compared: {'; '.join(unknown)}")
    else:
        names = ", ".join(str(one["name"]) for one in compared)
        visit.passed("engine-files", f"{names}: as installed", value=len(odd))


def _odd(compared: Mapping[str, Any]) -> list[str]:
    checkout = compared.get("checkout") or {}
    changed = [*(compared.get("modified") or ()), *(checkout.get("dirty") or ())]
    found = [f"{change['path']} ({change['state']})" for change in changed]
    if compared.get("shadowed_by"):
        found.append(f"shadowed by {compared['shadowed_by']}")
    return found


def _nccl_conf(visit: Visit) -> None:
    told = visit.doctor_facts()
    now = {conf["path"]: conf["lines"] for conf in (*told[NCCL_CONF], *told["named_conf"])}
    before, since_utc = visit.log.facts_before(visit.host, NCCL_CONF, _use_nccl_conf)
    visit.log.keep(visit.host, **{NCCL_CONF: now})
    if before is None:
        visit.passed("nccl-conf", FIRST_NIGHT)
        return
    # A file that only one of the nights looked at was named by another profile.
    paths = [path for path in before if path in now and before[path] != now[path]]
    if not paths:
        visit.passed("nccl-conf", f"as in the night of {since_utc[:10]}")
        return
    changed = [f"{path}: {_setting(before[path])} → {_setting(now[path])}" for path in paths]
    facts = {"before": dict(before), "now": now, "since_utc": since_utc}
    visit.faulty("nccl-conf", f"{'; '.join(changed)}. NCCL reads it.", facts=facts)


def _setting(lines: Sequence[str] | None) -> str:
    """What a file sets."""
    return "not there" if lines is None else ", ".join(lines) or "empty"

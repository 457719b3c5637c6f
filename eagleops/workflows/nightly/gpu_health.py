"""The nightly verdicts on the GPUs' health: what operation ``health`` told, against the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from eagleops.errors import EagleError
from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule
from eagleops.workflows.nightly import gpu_counters, gpu_rest
from eagleops.workflows.nightly.gpu_look import MISSED_DAYS, Gpus, days_between, untold
from eagleops.workflows.nightly.gpu_xids import same_device, xids

if TYPE_CHECKING:
    from eagleops.machine import Machine

Told = Mapping[str, Any]
Verdict = Callable[[str, Gpus, Rule], Finding]

OF_GPUS: Mapping[str, Verdict] = {
    "ecc": gpu_counters.ecc,
    "ecc-corrected": gpu_counters.ecc_corrected,
    "rows": gpu_counters.rows,
    "pcie": gpu_counters.pcie,
    "idle-throttling": gpu_rest.idle_throttling,
    "temperature": gpu_rest.temperature,
    "fan": gpu_rest.fan,
    "power": gpu_rest.power,
}
KINDS = ("xid", *OF_GPUS)
LIMIT_S = 120.0
# What a server that has just ended leaves behind, and how long it may: a GPU in a rack falls from
# 85 to 50 °C in a minute or two, its clocks and its power within seconds.
SETTLING = ("idle-throttling", "temperature", "fan", "power")
REST_LIMIT_S, REST_PAUSE_S = 180.0, 5.0


def read_health(machine: Machine, before: Told | None = None) -> dict[str, Any]:
    """What ``machine`` tells of its GPUs' health, and of Xid errors since the last night.

    A container may have no kernel log, or its host's: its host is asked where it has none, and
    of either only what is about the container's own GPUs is kept.

    Args:
        machine: Which.
        before: What this function returned in the last night; None for none.

    Returns:
        As operation ``health``; JSON, and what the next night is to be given as ``before``.

    Raises:
        Unreachable: if the machine itself cannot be reached.
        OperationFailed: if it cannot be asked.
    """
    since_utc = _last_read_utc(before or {})
    told = machine.call("health", since_utc=since_utc, time_limit_s=LIMIT_S)
    told |= {"since_utc": since_utc, "known": known_gpus(told, before or {})}
    if machine.outer is None:
        return told
    if told["kernel_log"]["problem"] is not None:
        told |= _log_of(machine.outer, since_utc, told["kernel_log"])
    return only_own(told, before)


def read_rested(
    machine: Machine,
    before: Told | None,
    rules: Callable[[str], Rule],
    pause: Callable[[float], None],
) -> dict[str, Any]:
    """The same, of GPUs whose server has just been stopped: once they are at rest.

    For a while they are as warm, and draw as much, as what ran on them left them. They are looked
    at again until they are within the limits of GPUs at rest, for :data:`REST_LIMIT_S` at most.

    Args:
        machine: Which.
        before: As :func:`read_health`.
        rules: The suite's rule of a kind.
        pause: Waits so many seconds.

    Raises:
        Unreachable: if the machine itself cannot be reached.
        OperationFailed: if it cannot be asked.
    """
    waited_s = 0.0
    while True:
        told = read_health(machine, before)
        found = judge_health(machine.name, told, before, rules, idle=True)
        if waited_s >= REST_LIMIT_S or not any(f.bad for f in found if f.id in SETTLING):
            return told
        pause(REST_PAUSE_S)
        waited_s += REST_PAUSE_S


def only_own(told: Told, before: Told | None) -> dict[str, Any]:
    """A container's look without the Xid errors of GPUs that it does not have.

    A GPU that it has lost is known from the nights before.
    """
    earlier = before or {}
    known = (*told["gpus"], *(earlier.get("gpus") or ()), *(earlier.get("known") or ()))
    own = [gpu["bus_id"] for gpu in known]
    kept = [x for x in told["xids"] if any(same_device(bus_id, x["bus_id"]) for bus_id in own)]
    log = told["kernel_log"]
    if not own and log["source"] != "none":
        log = {**log, "source": "none", "problem": "which GPUs are this container's is not known"}
    return {**told, "xids": kept, "kernel_log": log}


def judge_health(
    host: str,
    told: Told,
    before: Told | None,
    rules: Callable[[str], Rule],
    *,
    idle: bool,
) -> Iterator[Finding]:
    """A finding for each kind in :data:`KINDS` that the rules leave on; pure.

    Args:
        host: As in hosts.yaml.
        told: Of :func:`read_health`.
        before: The same of the last night; None for none.
        rules: The suite's rule of a kind.
        idle: Whether nothing works on the GPUs; otherwise what only holds of idle GPUs is
            skipped.
    """
    gpus = Gpus.of(told, before, idle=idle)
    rule = rules("xid")
    if rule.on:
        yield xids(host, told, gpus, rule)
    for kind, verdict in OF_GPUS.items():
        rule = rules(kind)
        if rule.on and gpus.now:
            yield verdict(host, gpus, rule)
        elif rule.on:
            why = (gpus.problem or "no GPU").partition(". ")[0]
            message = f"no GPU could be read: {why}"
            yield untold(host, rule, message, told_before=bool(gpus.before))


def use(told: Told) -> None:
    """Reads what an older night kept as it will be; raises whatever comes of another shape."""
    _last_read_utc(told)
    known_gpus(told, told)
    tuple(judge_health("", told, told, Rule.of, idle=True))


def known_gpus(told: Told, before: Told) -> list[dict[str, Any]]:
    """The GPUs that are there, and those that were not long ago, each with when it was seen."""
    now_utc = told["time_utc"]
    seen = {gpu["uuid"]: {**_name_of(gpu), "seen_utc": now_utc} for gpu in told["gpus"]}
    last_night = [{**_name_of(g), "seen_utc": before["time_utc"]} for g in before.get("gpus") or ()]
    for gpu in before.get("known") or last_night:
        if days_between(gpu["seen_utc"], now_utc) <= MISSED_DAYS:
            seen.setdefault(gpu["uuid"], gpu)
    return [gpu for uuid, gpu in seen.items() if uuid]


def _name_of(gpu: Told) -> dict[str, Any]:
    return {name: gpu[name] for name in ("index", "uuid", "bus_id")}


def _last_read_utc(before: Told) -> str | None:
    """From when on nobody has seen the kernel's log: nights that could not read it do not count."""
    unread = before.get("kernel_log", {}).get("source") == "none"
    told: str | None = before.get("since_utc") if unread else before.get("time_utc")
    return told


def _log_of(outer: Machine, since_utc: str | None, own: Told) -> dict[str, Any]:
    """What the host's kernel log tells; the container's own where the host cannot be asked."""
    try:
        told = outer.call("health", since_utc=since_utc, gpus=False, time_limit_s=LIMIT_S)
    except EagleError as error:
        problem = f"{own['problem']}; its host {outer.name} cannot be asked: {error.problem}"
        return {"kernel_log": {**own, "problem": problem}}
    log = told["kernel_log"]
    if log["source"] == "none":
        problem = f"{own['problem']}; on its host {outer.name}: {log['problem']}"
        return {"kernel_log": {**own, "problem": problem}}
    return {
        "xids": told["xids"],
        "kernel_log": {**log, "source": f"{log['source']} of {outer.name}"},
    }

"""Verdicts on GPUs at rest: heat, fans, power. While something works they say nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule
from eagleops.workflows.nightly.gpu_look import GpuLook, Gpus

# `hw_slowdown` alone may be a change of the clocks that was just under way: NVML's
# documentation of nvmlClocksEventReasonHwSlowdown.
HEAT = {
    "sw_thermal_slowdown": "heat",
    "hw_thermal_slowdown": "heat, by the hardware",
    "hw_power_brake_slowdown": "the power brake",
}
# Fans that stand still at rest begin to turn at 50 to 60 °C.
FAN_STARTS_C = 65
# Limits are set in whole watts, and told with two digits.
SAME_W = 1.0

AT_WORK = "at work"


def idle_throttling(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """Slowdowns by heat or the power brake."""
    look = GpuLook("not slowed down")
    for gpu in _resting(gpus, look):
        reasons = gpu["throttle_reasons"]
        if reasons is None:
            look.silent(gpu, "no reasons told")
            continue
        why = [HEAT[reason] for reason in reasons if reason in HEAT]
        look.told(gpu, len(why))
        if why:
            look.bad(gpu, f"is slowed down at rest by {' and '.join(why)}")
    way_out = "Check its fans, the airflow, and the power supply's cables."
    return look.finding(host, gpus, rule, way_out)


def temperature(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """How warm it is."""
    limit = rule.limit or 0
    look = GpuLook("{} °C at rest")
    for gpu in _resting(gpus, look):
        warmth_c = gpu["temperature_c"]
        if warmth_c is None:
            look.silent(gpu, "no temperature told")
            continue
        look.told(gpu, warmth_c)
        if warmth_c > limit:
            look.bad(gpu, f"is at {warmth_c:g} °C at rest, above {limit:g}")
    return look.finding(host, gpus, rule, "Check its fans, the filters and the room.")


def fan(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """Whether its fans turn, and are told to turn no faster than a GPU at rest needs.

    The figure is what a fan is told to do; whether it obeys shows in the temperature.
    """
    limit = rule.limit or 0
    look = GpuLook("fans at {} %")
    resting = {gpu["uuid"] for gpu in gpus.resting}
    for gpu in gpus.now:
        told_pct, warmth_c = gpu["fan_pct"], gpu["temperature_c"]
        if gpu["fan_problem"]:
            look.bad(gpu, f"has a fan that cannot be read ({gpu['fan_problem']})")
        elif told_pct is None:
            look.silent(gpu, "no fan of its own")
        else:
            look.told(gpu, told_pct)
            if told_pct == 0 and warmth_c is not None and warmth_c >= FAN_STARTS_C:
                look.bad(gpu, f"is at {warmth_c:g} °C, and its fan stands still")
            elif told_pct > limit and gpu["uuid"] in resting:
                look.bad(gpu, f"runs its fan at {told_pct:g} % at rest, above {limit:g}")
    return look.finding(host, gpus, rule, "Look whether its fans turn and are clean.")


def power(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """What it draws at rest, and its power limit against its maker's default."""
    limit = rule.limit or 0
    look = GpuLook("{} W at rest, no limit lowered")
    resting = {gpu["uuid"] for gpu in gpus.resting}
    for gpu in gpus.now:
        drawn_w, set_w, default_w = (
            gpu[name] for name in ("power_w", "power_limit_w", "default_power_limit_w")
        )
        if set_w is not None and default_w is not None and set_w < default_w - SAME_W:
            look.bad(gpu, f"is limited to {set_w:g} W of {default_w:g} (nvidia-smi -pl)")
        if gpu["uuid"] not in resting:
            look.silent(gpu, AT_WORK)
        elif drawn_w is None:
            look.silent(gpu, "no power told")
        else:
            look.told(gpu, drawn_w)
            if drawn_w > limit:
                look.bad(gpu, f"draws {drawn_w:g} W at rest, above {limit:g}")
    way_out = (
        "A draw at rest that stays is a program that nobody sees, or clocks that are locked "
        "(nvidia-smi -rgc); a limit that is meant so: `power: off`."
    )
    return look.finding(host, gpus, rule, way_out)


def _resting(gpus: Gpus, look: GpuLook) -> tuple[Mapping[str, Any], ...]:
    resting = gpus.resting
    for gpu in gpus.now:
        if gpu not in resting:
            look.silent(gpu, AT_WORK)
    return resting

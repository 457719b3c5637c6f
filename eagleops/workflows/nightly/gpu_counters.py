"""Verdicts on the GPUs' counters and links: ECC errors, memory rows, PCIe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.nights.finding import Finding
from eagleops.nights.rule import Rule
from eagleops.remote.driver_faults import OFF_THE_BUS
from eagleops.workflows.nightly.gpu_look import GpuLook, Gpus

Facts = Mapping[str, Any]

# DCGM's own limit: dcgm_gpu_hardware_limits.h, DCGM_LIMIT_MAX_PCIREPLAY_RATE.
REPLAYS_A_MINUTE = 8.0
# There too: DCGM_LIMIT_MAX_RETIRED_PAGES.
RETIRED_PAGES = 60
# Below it a GPU's link need not be at its full generation.
LOAD_PCT = 50

_NARROW = (
    "Reseat the card, check the riser and the slot's lanes in the BIOS. A slot that is no wider: "
    "`pcie: off`."
)
_GONE = (
    "Look whether lspci shows it on the host, and for Xid 79 in its kernel log. One that was taken "
    "out is missed for two weeks."
)
_RESET = "Drain the GPU and reset it: nvidia-smi -r on the host, or a reboot."


def ecc(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """Uncorrected errors since the driver was loaded, and what the driver asks for after them."""
    look = GpuLook("no uncorrected ECC error since the driver was loaded")
    for gpu in gpus.now:
        count = gpu["ecc"]["volatile"]["uncorrected"]
        if gpu["ecc"]["threshold_exceeded"]:
            look.bad(gpu, "has had more errors of its SRAM than its maker allows: replace it")
        if gpu.get("recovery_action") not in {None, "None"}:
            look.bad(gpu, f"asks for a recovery: {gpu['recovery_action']}")
        if count is None:
            look.silent(gpu, _without_ecc(gpu))
            continue
        look.told(gpu, count)
        if count > (rule.limit or 0):
            look.bad(gpu, f"has had {count:,} uncorrected ECC errors since the driver was loaded")
    return look.finding(host, gpus, rule, _RESET)


def ecc_corrected(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """Corrected errors since the last night.

    A count that the driver keeps begins at nought when it is loaded: a lower one than the last
    night's is new. The other, kept in the GPU, lasts; the larger growth of the two is the
    closer one to the truth, for neither counts what was not.
    """
    limit = rule.limit or 0
    since = "the last night" if gpus.before else "the driver was loaded"
    look = GpuLook("{} corrected ECC errors since " + since)
    for gpu in gpus.now:
        now = _corrected(gpu)
        if not now:
            look.silent(gpu, _without_ecc(gpu))
            continue
        before = _corrected(gpus.before_of(gpu))
        growths = [
            count - before[scope] if count >= before[scope] else count
            for scope, count in now.items()
            if scope in before
        ]
        since_loaded = now.get("volatile")
        if growths:
            look.told(gpu, max(growths))
            if max(growths) > limit:
                look.bad(gpu, f"corrected {max(growths):,} ECC errors since the last night")
        elif since_loaded is not None and since_loaded <= limit:
            look.told(gpu, since_loaded)
        else:
            look.silent(gpu, "no last night to compare with")
    return look.finding(
        host,
        gpus,
        rule,
        "Programs are not harmed. A GPU that goes on so has a failing cell or bus: watch `rows`.",
    )


def rows(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """Remapping that is pending or failed, and pages that are retired or are to be."""
    look = GpuLook("no memory row is to be remapped, none could not be")
    for gpu in gpus.now:
        wrong = list(_wrong_rows(gpu))
        known = [gpu["remapped_rows"]["pending"], gpu["remapped_rows"]["failure"]]
        known += [gpu["retired_pages"]["pending"], gpu["ecc"]["repair_pending"]]
        if wrong or any(state is not None for state in known):
            look.told(gpu, len(wrong))
        else:
            look.silent(gpu, "not told")
        if len(wrong) > (rule.limit or 0):
            look.bad(gpu, " and ".join(wrong))
    return look.finding(host, gpus, rule, _RESET)


def pcie(host: str, gpus: Gpus, rule: Rule) -> Finding:
    """The link's width; under load its generation; replays; GPUs that were there and are not."""
    look = GpuLook("{} lanes, as wide as can be")
    for gpu in gpus.now:
        link = gpu["pcie"]
        width, widest = link["width"], link["max_width"]
        if width is None or widest is None:
            look.silent(gpu, "not told")
        else:
            look.told(gpu, width)
            if width < widest:
                look.bad(gpu, f"has {width} of {widest} PCIe lanes")
        if _slow(gpu):
            look.bad(gpu, f"works over PCIe generation {link['gen']} of {link['max_gen']}")
        rate = _replays_a_minute(gpu, gpus)
        if rate > REPLAYS_A_MINUTE:
            look.bad(gpu, f"repeated {rate:.0f} PCIe packets a minute since the last night")
    way_out = _NARROW if look.bad_words else ""
    if OFF_THE_BUS in (gpus.problem or ""):
        # Which one, why and what helps is `doctor`'s to tell, once.
        look.bad_words.append("a GPU has fallen off the bus: see doctor:gpus")
    elif gpus.gone:
        way_out = f"{way_out} {_GONE}".strip()
        for gpu in gpus.gone:
            seen = f" since {gpu['seen_utc'][:10]}" if gpu.get("seen_utc") else ""
            look.bad(gpu, f"at {gpu['bus_id']} was not seen{seen}")
    return attrs.evolve(look.finding(host, gpus, rule, way_out), value=None)


def _without_ecc(gpu: Facts) -> str:
    return "ECC is off" if gpu["ecc"]["mode"] == "Disabled" else "ECC counts are not told"


def _corrected(gpu: Facts | None) -> dict[str, int]:
    if gpu is None:
        return {}
    counts = {scope: gpu["ecc"][scope]["corrected"] for scope in ("volatile", "aggregate")}
    return {scope: count for scope, count in counts.items() if count is not None}


def _wrong_rows(gpu: Facts) -> Iterator[str]:
    remapped, retired, memory = gpu["remapped_rows"], gpu["retired_pages"], gpu["ecc"]
    if remapped["pending"]:
        yield "has memory rows that wait to be remapped"
    if remapped["failure"]:
        yield "has a memory row that could not be remapped: replace the GPU"
    if retired["pending"]:
        yield "has memory pages that wait to be retired"
    if (retired["single_bit"] or 0) + (retired["double_bit"] or 0) >= RETIRED_PAGES:
        yield f"has retired {RETIRED_PAGES} memory pages or more: replace the GPU"
    if memory["repair_pending"]:
        yield "waits for a repair of its memory"
    if memory["unrepairable"]:
        yield "has memory that cannot be repaired: replace the GPU"


def _slow(gpu: Facts) -> bool:
    """Whether it works, over a lower generation than its link can."""
    gen, highest = gpu["pcie"]["gen"], gpu["pcie"]["max_gen"]
    at_work = (gpu["utilization_pct"] or 0) >= LOAD_PCT
    return at_work and None not in {gen, highest} and gen < highest


def _replays_a_minute(gpu: Facts, gpus: Gpus) -> float:
    """Replays since the last night, a minute; 0 where that is not known."""
    before = gpus.before_of(gpu)
    now, then = gpu["pcie"]["replays"], None if before is None else before["pcie"]["replays"]
    if now is None or then is None:
        return 0.0
    grown: int = now - then if now >= then else now
    return grown / max(1.0, gpus.minutes_since)

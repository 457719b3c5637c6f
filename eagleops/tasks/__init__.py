"""Floor 5: how people type. ``invoke <task>`` and ``eagleops <task>`` are one collection."""

from invoke.collection import Collection

from eagleops.tasks import (
    bench,
    comparing,
    demo,
    gpus,
    inventory,
    ledger,
    nightly,
    profiles,
    servers,
    trend,
)

namespace = Collection(
    inventory.hosts,
    inventory.doctor,
    gpus.status,
    gpus.reset_gpus,
    profiles.lint,
    profiles.import_command,
    profiles.show_profile,
    servers.launch,
    servers.verify_env,
    servers.logs,
    servers.stop,
    bench.bench,
    comparing.compare,
    comparing.sweep,
    comparing.break_even,
    ledger.runs,
    ledger.show,
    ledger.diff,
    ledger.reproduce,
    trend.trend,
    nightly.nightly,
    demo.demo,
)

__all__ = ["namespace"]

"""The command that shows the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.command import Call, command

if TYPE_CHECKING:
    from eagleops.workflows.demo import DemoReport

PROFILES = ("baseline", "eagle3-2step")


@command()
def demo(call: Call) -> DemoReport:
    """The whole main job on the embedded box: reset, launch, verify, status, stop, twice."""
    from eagleops.inventory import shipped
    from eagleops.library import load
    from eagleops.workflows.demo import demo as run_demo

    with load(shipped()) as library, call.progress() as progress:
        profiles = tuple(map(library.profile, PROFILES))
        return run_demo(library.host("sim").machine, profiles, progress=progress)

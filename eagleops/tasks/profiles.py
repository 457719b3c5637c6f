"""Commands on profiles: nothing is launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eagleops.tasks.command import Call, command

if TYPE_CHECKING:
    from eagleops.workflows.importing import ImportReport
    from eagleops.workflows.lint import LintReport
    from eagleops.workflows.show_profile import ProfileReport


@command(
    help={
        "profile": "a profile of hosts.yaml (all of them without)",
        "host": "ask this machine too: the installed engine's flags, GPUs, conf files, models",
    }
)
def lint(call: Call, profile: str | None = None, host: str | None = None) -> LintReport:
    """Check profiles: NCCL's values, flags by version, speculation, sizes, ports, secrets."""
    from eagleops.workflows.lint import lint_profiles

    library = call.library()
    names = [profile] if profile else library.inventory.profile_names()
    profiles = [library.profile(name) for name in names]
    if host is None:
        return lint_profiles(profiles)
    from eagleops.workflows.engine_facts import ask

    machine = library.host(host).machine
    with call.progress() as progress:
        facts = ask(machine, profiles, ledger=library.inventory.ledger, progress=progress)
    return lint_profiles(profiles, facts=facts, host=machine.name)


@command(
    help={
        "file": "a file with a shell command as it was typed (-: standard input)",
        "name": "the profile's name (made of the model's without)",
    }
)
def import_command(call: Call, file: str, name: str | None = None) -> ImportReport:
    """Make a profile of a pasted shell command, and say what is wrong in it; nothing is run."""
    del call
    from eagleops.workflows.importing import import_file

    return import_file(file, name=name)


@command(
    help={
        "profile": "a profile of hosts.yaml (its default profile without)",
        "resolved": "with what it inherits, where each value stands, and what would be started",
    }
)
def show_profile(call: Call, profile: str | None = None, resolved: bool = False) -> ProfileReport:
    """Show a profile, each value with the file and line that it comes from."""
    from eagleops.workflows.show_profile import show_profile as shown

    return shown(call.library().inventory, profile, resolved=resolved)

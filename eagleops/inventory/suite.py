"""The nouns of hosts.yaml's ``nightly:`` section, as frozen objects."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

from eagleops.inventory import suite_values as values
from eagleops.inventory.schedule import schedule
from eagleops.inventory.suite_values import checked
from eagleops.measuring import prompts
from eagleops.nights.finding import kind_and_subject
from eagleops.nights.rule import Rule, Severity
from eagleops.profile import SecretReference
from eagleops.profile.values import frozen_mapping, shown_argv

Busy = Literal["skip", "wait", "force"]
Shape = Literal["json", "slack"]
DIGEST_DIGITS = 6
# The kind of a check whose severity stands with what is checked.
COMMAND = "command"


@attrs.frozen(kw_only=True)
class CheckEntry:
    """What a suite says of one kind of check; None leaves it to the catalogue."""

    severity: Severity | None = None
    limit: float | None = None


@attrs.frozen(kw_only=True)
class ProfileCheck:
    """A profile that a suite launches, verifies and measures.

    Attributes:
        pin: The reference run that its speed must keep up with: a number or a uuid's beginning.
    """

    profile: str
    pin: str | None = attrs.field(default=None, validator=checked(values.pin))


@attrs.frozen(kw_only=True)
class CommandCheck:
    """A command of the user's own, run on each host, and what is expected of it.

    Attributes:
        run: Its argv; no shell reads it.
        exit_status: Expected.
        stdout: A regular expression that its output must hold somewhere; None for any.
        number: A regular expression whose first group is a figure to be kept and judged by
            ``lowest`` and ``highest``; None for none.
        timeout_s: Its limit in seconds; it is ended then, and has failed.
        needs_idle_gpus: Whether it is left out while somebody uses the GPUs; one that needs
            none is run in any case.
    """

    run: tuple[str, ...] = attrs.field(validator=checked(values.argv), repr=shown_argv)
    exit_status: int = 0
    stdout: str | None = attrs.field(default=None, validator=checked(values.pattern))
    number: str | None = attrs.field(default=None, validator=checked(values.figure_pattern))
    lowest: float | None = attrs.field(default=None, validator=checked(values.finite))
    highest: float | None = attrs.field(default=None, validator=checked(values.finite))
    unit: str = ""
    timeout_s: float = attrs.field(default=60.0, validator=checked(values.above_zero))
    needs_idle_gpus: bool = True
    severity: Severity | None = None

    def __attrs_post_init__(self) -> None:
        values.band(self.number, self.lowest, self.highest, self.unit)


@attrs.frozen(kw_only=True)
class MeasureEntry:
    """How a profile is measured: as ``bench``'s flags of the same names."""

    runs: int = attrs.field(default=5, validator=checked(values.not_below(1)))
    tokens: int = attrs.field(
        default=256, validator=checked(values.not_below(values.FEWEST_TOKENS))
    )
    warmups: int = attrs.field(default=1, validator=checked(values.not_below(0)))
    prompt: str = attrs.field(default=prompts.DEFAULT, validator=checked(values.prompt_name))


@attrs.frozen(kw_only=True)
class WebhookEntry:
    """Where a message goes when something changed.

    Attributes:
        url: http or https; by reference where it is itself a secret, as Slack's is.
        shape: ``json`` is eagleops' own document, ``slack`` an incoming webhook's message.
        headers: Sent with it; values may be references.
    """

    url: str | SecretReference = attrs.field(validator=checked(values.url), repr=values.shown_url)
    shape: Shape = "json"
    headers: Mapping[str, str | SecretReference] = attrs.field(
        factory=dict,
        converter=frozen_mapping,
        validator=checked(values.headers),
        repr=values.shown_headers,
    )

    @property
    def name(self) -> str:
        """Its shape, and the reference or the host of its URL: all of it that may be shown."""
        url = self.url
        if isinstance(url, SecretReference) and url.kind != "cmd":
            return f"{self.shape} {url}"
        # A command may itself hold a password.
        where = "cmd" if isinstance(url, SecretReference) else values.host_of(url)
        return f"{self.shape} {where}"

    @property
    def digest(self) -> str:
        """Digits that tell it from another of its name."""
        all_of_it = json.dumps([self.url, sorted(self.headers.items())])
        return hashlib.sha256(all_of_it.encode()).hexdigest()[:DIGEST_DIGITS]


@attrs.frozen(kw_only=True)
class SuiteEntry:
    """One suite of nightly checks.

    Attributes:
        hosts: Hosts, containers and groups; empty for the default host.
        profiles: In the order in which they are launched.
        commands: By name.
        checks: By kind (:mod:`eagleops.nights.catalogue`), or by a whole name, ``speed:baseline``.
        busy: What happens where somebody uses the GPUs: ``skip`` what needs them, ``wait``
            until they are free, or ``force`` the reset.
        wait_limit_s: How long ``wait`` waits, in seconds.
        limit_s: The whole night's limit in seconds; what is left then is skipped.
        ready_limit_s: One launch's.
        restore: Stop a server that eagleops launched, and start it again afterwards.
        resume_within_s: A night that was cut off is taken up for so long.
        history_nights: How many nights the reports show.
        keep_nights: Nights and reports older than so many are removed; the ledger keeps all.
        reports: The folder of the reports; None for one beside the ledger.
        prometheus: A file for node_exporter's textfile collector; None for none.
        notify: Webhooks.
        schedule: When, as systemd.time(7) has it; a time zone may stand at its end. 04:30 is
            there once in every night of every time zone: clocks are changed before.
    """

    name: str
    origin: str = ""
    hosts: tuple[str, ...] = ()
    profiles: tuple[ProfileCheck, ...] = ()
    commands: Mapping[str, CommandCheck] = attrs.field(factory=dict, converter=frozen_mapping)
    checks: Mapping[str, CheckEntry] = attrs.field(
        factory=dict, converter=frozen_mapping, validator=checked(values.limits)
    )
    measure: MeasureEntry = attrs.field(factory=MeasureEntry)
    busy: Busy = "skip"
    wait_limit_s: float = attrs.field(default=3600.0, validator=checked(values.above_zero))
    limit_s: float = attrs.field(default=14400.0, validator=checked(values.above_zero))
    ready_limit_s: float = attrs.field(default=3600.0, validator=checked(values.above_zero))
    restore: bool = False
    resume_within_s: float = attrs.field(default=43200.0, validator=checked(values.not_below(0)))
    history_nights: int = attrs.field(default=60, validator=checked(values.not_below(1)))
    keep_nights: int = attrs.field(default=400, validator=checked(values.not_below(1)))
    reports: Path | None = None
    prometheus: Path | None = attrs.field(default=None, validator=checked(values.prometheus_file))
    notify: tuple[WebhookEntry, ...] = ()
    schedule: str = attrs.field(default="*-*-* 04:30:00", validator=checked(schedule))

    @property
    def webhooks(self) -> Mapping[str, WebhookEntry]:
        """Each webhook by a name that tells no secret, and stays wherever in the list it stands.

        It is what became of a message that is kept under it: ``slack env:SLACK_URL``,
        ``json alerts.example.com``. Where two would share it, some digits of its digest follow;
        the very same one twice is one.
        """
        distinct = {(hook.name, hook.digest): hook for hook in self.notify}.values()
        shared = Counter(hook.name for hook in distinct)
        return {
            f"{hook.name} {hook.digest}" if shared[hook.name] > 1 else hook.name: hook
            for hook in distinct
        }

    def rule(self, check: str) -> Rule:
        """What this suite asks of a check.

        Args:
            check: Its kind, or its whole name: what ``speed:eagle3-2step`` says comes over what
                ``speed`` says, key by key; and what a command says of itself over both.

        Raises:
            KeyError: if there is no such kind.
        """
        kind, subject = kind_and_subject(check)
        command = self.commands.get(subject) if kind == COMMAND else None
        own = CheckEntry(severity=None if command is None else command.severity)
        said = (own, self.checks.get(check, CheckEntry()), self.checks.get(kind, CheckEntry()))
        return Rule.of(
            kind,
            severity=next((one.severity for one in said if one.severity is not None), None),
            limit=next((one.limit for one in said if one.limit is not None), None),
        )

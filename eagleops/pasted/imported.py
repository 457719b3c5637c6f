"""A pasted command, as a profile with what was wrong in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from eagleops.errors import InventoryError, UsageError
from eagleops.inventory import parse
from eagleops.lint import Finding, lint
from eagleops.lint.finding import in_order
from eagleops.pasted.making import Made, made
from eagleops.pasted.server_command import recognised
from eagleops.pasted.surroundings import Report, Started, Surroundings
from eagleops.pasted.target import Target
from eagleops.pasted.walk import walk
from eagleops.profile import Profile, SecretReference
from eagleops.remote import redact
from eagleops.server import require_name
from eagleops.shell import Slip, Unreadable, cleaned
from eagleops.written import comment, handed_on, scalar

_FIELDS = ("engine", "model", "port", "python", "cwd", "command")


@attrs.frozen(kw_only=True)
class Imported:
    """What became of a pasted command.

    Attributes:
        argv: What it started, secrets replaced.
        env: The variables that it set for that, secrets replaced.
        target: Where it ran.
        findings: What is wrong in it, and in the profile.
    """

    profile: Profile
    argv: tuple[str, ...]
    env: Mapping[str, str]
    target: Target
    findings: tuple[Finding, ...]

    @property
    def yaml(self) -> str:
        """The profile and its machine as the text of a hosts.yaml."""
        target, profile = self.target, self.profile
        return "\n".join([*_defaults(target, profile), *target.yaml(), *_profile(profile)]) + "\n"


def import_command(text: str, *, file: str = "-", name: str | None = None) -> Imported:
    """Makes a profile of a pasted shell command; runs nothing of it.

    Args:
        text: As people write it: with ssh, quotes, variables, nohup, redirections.
        file: Where it came from, for messages.
        name: The profile's; without it one made of the model's name.

    Raises:
        UsageError: if it cannot be read, or starts no server; if the name can be none.
    """
    if name is not None:
        require_name(name)  # a launch of the profile is called so
    whole, typography = cleaned(text)
    report = Report(whole)
    report.slips += typography
    try:
        walk(whole, report, Surroundings())
    except Unreadable as wrong:
        raise _refusal(file, wrong.slip) from None
    started = _server(report, file)
    _tell_shape(started, report)
    result = made(started, report, name)
    imported = Imported(
        profile=result.profile,
        argv=tuple(redact.argv(result.argv)),
        env=redact.environment(result.env),
        target=started.target,
        findings=in_order([*_findings(report, file), *_linted(result)]),
    )
    try:
        parse(imported.yaml)
    except InventoryError as unfit:
        raise UsageError(
            problem=f"no profile can hold it: {redact.text(unfit.problem)} [unfit]",
            where=file,
            way_out="Correct the command first.",
        ) from None
    return imported


def _refusal(file: str, slip: Slip) -> UsageError:
    return UsageError(
        problem=f"{redact.text(slip.message)} [{slip.kind}]",
        where=f"{file}:{slip.line}:{slip.column}",
        way_out=slip.fix,
    )


def _server(report: Report, file: str) -> Started:
    """The one server among what was started."""
    engines = [one for one in report.started if recognised(one.argv) is not None]
    others = [one for one in report.started if one not in engines]
    chosen = engines or others
    if not chosen:
        raise _none(report, file)
    if len(engines) > 1:
        report.tell(
            "several-servers",
            f"{len(engines)} servers are started: this is the first of them",
            "Import the others one by one.",
        )
    if not engines:
        chosen = sorted(others, key=lambda one: (one.background, one.nohup), reverse=True)
    for one in report.started:
        if one is not chosen[0] and one not in engines:
            message = f"`{' '.join(redact.argv(one.argv[:3]))}` is not taken over"
            report.tell("left-out", message, severity="note", line=one.line)
    return chosen[0]


def _none(report: Report, file: str) -> UsageError:
    kinds = {slip.kind: slip for slip in report.slips}
    if "kills" in kinds:
        return UsageError(
            problem="it starts no server, it ends processes [no-server]",
            where=file,
            way_out="For that there is `eagleops reset-gpus`, which spares what is not stale.",
        )
    for kind in ("script-not-pasted", "assignment-blank", "ssh", "syntax", "sourced"):
        if kind in kinds:
            return _refusal(file, kinds[kind])
    return UsageError(
        problem="it starts no server [no-server]",
        where=file,
        way_out="Paste the command that starts SGLang, vLLM or another server.",
    )


def _tell_shape(started: Started, report: Report) -> None:
    """Tells what a launch does otherwise than the command did."""
    if started.nohup and not started.log:
        report.tell(
            "nohup-no-log",
            "nohup without a redirection: over SSH the output keeps the connection open, and is "
            "lost with it",
            "eagleops writes the server's log into its state folder.",
            "warning",
            started.line,
        )
    elif started.background and not started.log and started.target.address:
        report.tell(
            "background-no-log",
            "& without a redirection: ssh waits until the server ends, for it holds the output",
            "eagleops writes the server's log into its state folder.",
            "warning",
            started.line,
        )
    for block in dict.fromkeys(started.inside):
        report.tell(
            "block",
            f"the server stands in {block}, which is not taken over: eagleops starts it once",
            severity="warning",
            line=started.line,
        )
    if started.log:
        message = (
            f"its output went to {started.log}; eagleops keeps it in the server's state folder"
        )
        report.tell("log", message, "eagleops logs shows it.", "note", started.line)
    tilde = "~" in report.text or "$HOME" in report.text
    if tilde and started.target.home:
        message = f"~ is taken for {started.target.home}, the home of root"
        report.tell("home-of-root", message, severity="note", line=started.line)


def _findings(report: Report, file: str) -> Iterator[Finding]:
    told: set[str] = set()
    for slip in report.slips:
        alike = [one for one in report.slips if one.kind == slip.kind == "stray-backslash"]
        if slip.kind in told and alike:
            continue  # they come one a line; one finding names them all
        told.add(slip.kind)
        also = ", ".join(f"{one.line}:{one.column}" for one in alike[1:])
        count = f" ({len(alike)} of them; the others: {also})" if also else ""
        yield Finding(
            slip.kind,
            slip.severity,
            f"{file}:{slip.line}:{slip.column}",
            redact.text(slip.message) + count,
            redact.text(slip.fix),
        )


def _linted(result: Made) -> Iterator[Finding]:
    for finding in lint(result.profile):
        if finding.rule != "secret-literal":
            yield finding


def _defaults(target: Target, profile: Profile) -> Iterator[str]:
    """What makes a file of one machine and one profile ready for `eagleops launch`."""
    yield "defaults:"
    yield f"  host: {scalar(target.name or target.host_name)}"
    yield f"  profile: {scalar(profile.name)}"


def _profile(profile: Profile) -> Iterator[str]:
    yield "profiles:"
    yield f"  {scalar(profile.name)}:"
    for field in _FIELDS:
        value = getattr(profile, field)
        if value not in (None, (), ""):
            yield f"    {field}: {scalar(_literal(value))}"
    for field in ("env", "args"):
        values = getattr(profile, field)
        if values:
            yield f"    {field}:"
            yield from (f"      {scalar(key)}: {_value(value)}" for key, value in values.items())


def _value(value: object) -> str:
    if isinstance(value, SecretReference):
        return scalar(value.to_dict())
    value = _literal(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(handed_on, value)) + "]"
    return handed_on(value)


def _literal(value: Any) -> Any:
    """``value`` written so that no text in it is taken for a named value of the profile."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, tuple):
        return tuple(_literal(item) for item in value)
    if isinstance(value, Mapping):
        return {name: _literal(item) for name, item in value.items()}
    return value


def commented(findings: tuple[Finding, ...]) -> str:
    """Findings as comments, to stand in front of the YAML."""
    lines = []
    for one in findings:
        lines.append(comment(f"{one.severity}: {one.where}: {one.message} [{one.rule}]"))
        if one.fix:
            lines.append(comment(f"    {one.fix}"))
    return "\n".join(lines) + ("\n" if lines else "")

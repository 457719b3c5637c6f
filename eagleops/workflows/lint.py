"""Lint: profiles checked without touching a machine; with one, also against what it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from eagleops.errors import ProfileError
from eagleops.lint import UNASKED, Facts, Finding, counted, lint, worst
from eagleops.lint.finding import in_order
from eagleops.profile import Profile
from eagleops.view import Column, Table, Text, Tone, View

TONES = {"error": Tone.BAD, "warning": Tone.WARNING, "note": Tone.DIM}


@attrs.frozen
class LintReport:
    """What the rules found.

    Attributes:
        host: The machine that was asked; None for none.
        profiles: The names of those that were looked at.
        findings: Each once, what is worst first.
    """

    host: str | None
    profiles: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing of it is an error."""
        return worst(self.findings) != "error"

    @property
    def exit_status(self) -> int:
        """As the command's: 2 for errors, for a launch would end there too."""
        return 0 if self.ok else 2

    def to_dict(self) -> dict[str, Any]:
        """The report as the ``lint --json`` document's body."""
        return {
            "ok": self.ok,
            "host": self.host,
            "profiles": list(self.profiles),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def view(self) -> View:
        """A row a finding."""
        what = "1 profile" if len(self.profiles) == 1 else f"{len(self.profiles)} profiles"
        bad = worst(self.findings)
        tone = Tone.GOOD if bad in {None, "note"} else TONES[bad or "note"]
        asked = f", asked {self.host}" if self.host else ""
        conclusion = Text(f"{what}{asked}: {counted(self.findings)}", tone)
        return View((table_of(self.findings),) if self.findings else (), conclusion)

    def _repr_html_(self) -> str:
        return self.view().to_html()


def table_of(findings: Iterable[Finding]) -> Table:
    """Findings as a table."""
    rows = tuple(
        (
            Text(one.severity, TONES[one.severity]),
            Text(one.rule),
            one.where,
            f"{one.message}. {one.fix}".rstrip() if one.fix else f"{one.message}.",
        )
        for one in findings
    )
    columns = (
        Column(""),
        Column("rule", wrap=False),
        Column("where"),
        Column("what, and the way out"),
    )
    return Table(columns, rows)


def lint_profiles(
    profiles: Iterable[Profile],
    *,
    facts: Mapping[str, Facts] | None = None,
    host: str | None = None,
) -> LintReport:
    """Checks profiles.

    Args:
        profiles: With what they inherit.
        facts: What the machine told for each, by its name.
        host: The machine that was asked.
    """
    looked_at = tuple(profiles)
    known = facts or {}
    found = [one for p in looked_at for one in lint(p, known.get(p.name, UNASKED))]
    return LintReport(host, tuple(profile.name for profile in looked_at), in_order(found))


def checked(profile: Profile) -> tuple[Finding, ...]:
    """What the rules find in a profile that is about to be launched.

    Raises:
        ProfileError: if something of it is an error.
    """
    findings = lint(profile)
    errors = [one for one in findings if one.severity == "error"]
    if not errors:
        return findings
    first, *others = errors
    rest = f" ({len(others)} more error{'s' * (len(others) > 1)})" if others else ""
    show_all = f"All of them: eagleops lint --profile {profile.name}; --no-lint launches anyway."
    raise ProfileError(
        problem=f"{first.message} [{first.rule}]{rest}",
        where=first.where,
        way_out=f"{first.fix} {show_all}".lstrip(),
        profile=profile.name,
    )

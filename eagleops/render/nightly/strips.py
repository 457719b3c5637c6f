"""A check over its nights: a strip whose height tells the state, and the same in words."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import attrs

from eagleops.nights.finding import State
from eagleops.nights.night import Night
from eagleops.phrases import counted

# Where a bar begins and how high it is, of ten: the worse, the higher.
_BARS = {"pass": (7, 3), "skip": (9, 1), "warn": (4, 6), "fail": (0, 10)}
_WORST: tuple[State, ...] = ("fail", "warn", "pass", "skip")
# A fault of one night stays a mark that can be seen: as a share of the strip's width.
_NARROWEST = 1 / 120
_MOST_SPELLS = 3
# In a sentence, after "12 nights".
_SEEN = {"fail": "failed", "warn": "warned", "skip": "skipped", "pass": "passed"}


@attrs.frozen
class Spell:
    """Nights one after the other in which a check found the same.

    Attributes:
        state: None where it was not made.
        first: The place of the first night, from 0; ``nights`` is how many.
        began, ended: Dates of the first and the last of them.
    """

    state: State | None
    first: int
    nights: int
    began: str
    ended: str

    def __str__(self) -> str:
        dates = self.began if self.nights == 1 else f"{self.began} to {self.ended}"
        said = "not looked at" if self.state is None else self.state
        return f"{said}, {dates}, {counted(self.nights, 'night')}"


@attrs.frozen
class Strip:
    """One check on one host over the nights.

    Attributes:
        name: The check's, or the host's where it is about all of its checks.
        spells: The oldest first.
        svg: Markup, safe to be put into a page.
        words: What it shows.
    """

    name: str
    spells: tuple[Spell, ...]
    svg: str
    words: str

    @property
    def faulty(self) -> bool:
        """Whether it warned or failed in any night."""
        return any(spell.state in {"warn", "fail"} for spell in self.spells)

    @property
    def skipped(self) -> int:
        """In how many nights it could not be made."""
        return _skipped(self.spells)


def strip(name: str, states: Sequence[State | None], dates: Sequence[str]) -> Strip:
    """The strip of a check.

    Args:
        name: The check's.
        states: What it found, night by night, the oldest first.
        dates: Of the nights.
    """
    spells = tuple(_spells(states, dates))
    words = _words(spells)
    return Strip(name, spells, _svg(spells, len(states), words), words)


def strips(nights: Sequence[Night], host: str) -> tuple[Strip, ...]:
    """A strip for each check of a host that the last of the nights, or one before it, made."""
    found = [_states(night, host) for night in nights]
    names = dict.fromkeys(name for states in (found[-1], *found) for name in states)
    dates = [night.began_utc[:10] for night in nights]
    return tuple(strip(name, [states.get(name) for states in found], dates) for name in names)


def overall(nights: Sequence[Night], host: str) -> Strip:
    """The worst that was found on a host, night by night."""
    worst = [_worst(_states(night, host).values()) for night in nights]
    return strip(host, worst, [night.began_utc[:10] for night in nights])


def span_of(nights: Sequence[Night]) -> tuple[str, str]:
    """The dates of the first and the last night."""
    return nights[0].began_utc[:10], nights[-1].began_utc[:10]


def _states(night: Night, host: str) -> dict[str, State]:
    return {found.id: found.state for found in night.findings if found.host == host}


def _worst(states: Iterable[State]) -> State | None:
    seen = set(states)
    return next((state for state in _WORST if state in seen), None)


def _spells(states: Sequence[State | None], dates: Sequence[str]) -> Iterator[Spell]:
    place = 0
    for state, group in groupby(states):
        nights = len(list(group))
        yield Spell(state, place, nights, dates[place], dates[place + nights - 1])
        place += nights


def _words(spells: Sequence[Spell]) -> str:
    """The last faults, the latest first: what a person asks of a history."""
    faults = [spell for spell in spells if spell.state in {"warn", "fail"}]
    told = [_spell_words(spell, spells[-1]) for spell in reversed(faults[-_MOST_SPELLS:])]
    if len(faults) > _MOST_SPELLS:
        told.append(f"{counted(len(faults) - _MOST_SPELLS, 'time')} before")
    if skipped := _skipped(spells):
        told.append(f"skipped in {counted(skipped, 'night')}")
    return "; ".join(told) or "passed whenever it was looked at"


def _skipped(spells: Iterable[Spell]) -> int:
    """In how many nights a check could not be made."""
    return sum(spell.nights for spell in spells if spell.state == "skip")


def _spell_words(spell: Spell, last: Spell) -> str:
    said = _SEEN[str(spell.state)]
    if spell is last:
        since = "tonight" if spell.nights == 1 else f"since {spell.began}"
        return f"{said} {since}" + (f" ({spell.nights} nights)" if spell.nights > 1 else "")
    if spell.nights == 1:
        return f"{said} on {spell.began}"
    return f"{said} {spell.began} to {spell.ended}"


def _svg(spells: Sequence[Spell], nights: int, words: str) -> str:
    bars = "".join(_bar(spell, nights) for spell in spells if spell.state is not None)
    return (
        f'<svg class="strip" viewBox="0 0 {nights} 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{html.escape(words)}">{bars}</svg>'
    )


def _bar(spell: Spell, nights: int) -> str:
    top, height = _BARS[str(spell.state)]
    left, width = float(spell.first), float(spell.nights)
    if spell.state in {"warn", "fail"} and (narrowest := nights * _NARROWEST) > width:
        left = min(max(0.0, left - (narrowest - width) / 2), nights - narrowest)
        width = narrowest
    title = html.escape(str(spell))
    return (
        f'<rect class="{spell.state}" x="{left:g}" y="{top}" width="{width:g}" '
        f'height="{height}"><title>{title}</title></rect>'
    )

"""What is wrong in a file: each problem with its place, all of them in one error."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import attrs

from eagleops.errors import InventoryError

_NEAR = "Did you mean "
_ALL = "There are"


@attrs.frozen(order=True)
class Problem:
    """One thing that is wrong in hosts.yaml.

    Attributes:
        line: 1-based; 0 where it concerns the whole file.
        key: Dotted path of the key; empty where there is none.
        problem: What is wrong, with what was expected and what was got.
        way_out: What to write instead; may be empty.
    """

    line: int
    key: str
    problem: str
    way_out: str = ""


class Wrong(Exception):
    """Problems on their way up, to be gathered into one InventoryError."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(*problems)
        self.problems = problems


def inventory_error(file: str, problems: Iterable[Problem]) -> InventoryError:
    """One error that tells the first problem whole and the others in a line each.

    A name that is nearly right is told in that line too: it is the whole way out.
    """
    first, *others = sorted(set(problems))
    return InventoryError(
        problem=first.problem,
        where=_where(file, first),
        way_out=first.way_out,
        file=file,
        line=first.line or None,
        key=first.key,
        more=tuple(f"{_where(file, other)}: {_in_a_line(other)}" for other in others),
    )


def nearest(name: str, known: Iterable[str], lead: str = "It is one of") -> str:
    """``Did you mean X?`` where a known name is near, else all of them."""
    names = list(known)
    # Half a word alike is near enough to help, and too far to be taken for it.
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"{_NEAR}{near[0]}?"
    if len(names) == 1 and lead == _ALL:
        return f"There is only {names[0]}."
    return f"{lead} {', '.join(names)}." if names else ""


def _in_a_line(problem: Problem) -> str:
    if problem.way_out.startswith(_NEAR):
        return f"{problem.problem}. {problem.way_out}"
    return problem.problem


def _where(file: str, problem: Problem) -> str:
    place = f"{file}:{problem.line}" if problem.line else file
    return f"{place}: {problem.key}" if problem.key else place

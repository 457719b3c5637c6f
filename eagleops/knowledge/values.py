"""What is wrong with a value of one of NCCL's variables; pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import attrs

from eagleops.knowledge.nccl import Cost, Variable, words_of
from eagleops.knowledge.numbers import is_number, nccl_number


@attrs.frozen
class Fault:
    """One thing that is wrong with a value.

    Attributes:
        kind: ``number``, ``range``, ``power-of-two``, ``word``, ``level`` or ``empty``.
        text: What is wrong, as a sentence about the value.
        cost: What becomes of it.
        fix: What to write instead; may be empty.
    """

    kind: str
    text: str
    cost: Cost
    fix: str = ""


def faults(variable: Variable, value: str) -> Iterator[Fault]:
    """All that is wrong with ``value``; nothing where it may stand."""
    if value == "":
        yield Fault(
            "empty", "an empty value counts as none", "ignored", "Take it out, or give it one."
        )
        return
    judge = {
        "switch": _number,
        "integer": _number,
        "word": _word,
        "words": _words,
        "choices": _choices,
        "level": _level,
    }.get(variable.kind)
    if judge is not None:
        yield from judge(variable, value)


def _number(variable: Variable, value: str) -> Iterator[Fault]:
    if not is_number(value):
        seen = nccl_number(value)
        taken = "its default" if seen is None else str(seen)
        yield Fault(
            "number",
            f"NCCL reads {value!r} as {taken}: it takes the digits and passes over the rest",
            "changed",
            _spelled_out(value) or "Write a whole number.",
        )
        return
    number = nccl_number(value)
    if number is None:
        yield Fault("number", f"{value} is too large: NCCL takes its default", "changed")
        return
    if value.lstrip("-+").startswith("0") and number > 0 and not value.lower().startswith("0x"):
        yield Fault(
            "number", f"NCCL reads {value} as octal: {number}", "changed", f"Write {number}."
        )
    allowed = variable.allowed or (("0", "1") if variable.kind == "switch" else ())
    if allowed and str(number) not in allowed:
        yield Fault("range", f"it takes {_listed(allowed)}, not {number}", variable.wrong)
    yield from _range(variable, number)


def _range(variable: Variable, number: int) -> Iterator[Fault]:
    least, most, step = variable.least, variable.most, variable.multiple_of
    bounds = _bounds(variable)
    # NCCL_NTHREADS: nothing, or less, asks for the default.
    default_asked = step is not None and number <= 0
    outside = (least is not None and number < least) or (most is not None and number > most)
    if not default_asked and (outside or (step and number % step)):
        yield Fault("range", f"NCCL takes {bounds}, not {number}", variable.wrong)
    elif variable.power_of_two and number > 0 and number & (number - 1):
        down = 1 << (number.bit_length() - 1)
        yield Fault(
            "power-of-two",
            f"{number} is no power of two, as NCCL's guide advises",
            variable.wrong,
            f"Write {down} or {down * 2}.",
        )
    elif variable.least_advised and number < variable.least_advised:
        yield Fault(
            "power-of-two",
            f"{number} {variable.unit} is taken, and is too small to be of use".replace("  ", " "),
            variable.wrong,
            f"Its default is {variable.default}." if variable.default else "",
        )


def _bounds(variable: Variable) -> str:
    what = f"multiples of {variable.multiple_of}" if variable.multiple_of else "numbers"
    if variable.most is None:
        return f"{what} from {variable.least} up"
    return f"{what} from {variable.least} to {variable.most}"


def _word(variable: Variable, value: str) -> Iterator[Fault]:
    if not variable.knows(value):
        yield _unknown(variable, value)


def _words(variable: Variable, value: str) -> Iterator[Fault]:
    for word in value.strip("^").split(","):
        if not variable.knows(word):
            yield _unknown(variable, word)


def _choices(variable: Variable, value: str) -> Iterator[Fault]:
    for n, part in enumerate(value.split(";")):
        function, colon, words = part.rpartition(":")
        if colon and function.lower() not in variable.functions:
            yield Fault(
                "word",
                f"{function!r} is none of its functions: {', '.join(variable.functions)}",
                variable.wrong,
            )
        if not colon and n > 0:
            yield Fault(
                "word",
                f"{part!r} names no function: only the first list may do without one",
                variable.wrong,
                "Write FUNCTION:LIST, for example allreduce:tree.",
            )
        for word in words.removeprefix("^").split(","):
            if word.startswith("^"):
                yield Fault(
                    "word",
                    f"{word!r}: ^ stands before a whole list and excludes all of it",
                    variable.wrong,
                    f"Write ^{words.replace('^', '')}.",
                )
            elif not variable.knows(word):
                yield _unknown(variable, word)


def _level(variable: Variable, value: str) -> Iterator[Fault]:
    if is_number(value):
        number = nccl_number(value) or 0
        word = variable.levels[min(max(number, 0), len(variable.levels) - 1)]
        yield Fault(
            "level",
            f"the number {value} stands for {word}: the guide keeps numbers for old scripts alone",
            "taken",
            f"Write {word}.",
        )
    elif not variable.knows(value):
        if value.upper() in variable.allowed:
            yield Fault(
                "level",
                f"NCCL tells its words apart by case: {value!r} is passed over without a word",
                variable.wrong,
                f"Write {value.upper()}.",
            )
        else:
            yield _unknown(variable, value)


def _unknown(variable: Variable, word: str) -> Fault:
    known = {name.lower(): name for name in variable.allowed}
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    told = f"{word!r}" if word else "nothing between two commas"
    hint = f"Did you mean {known[near[0]]}?" if near else f"It knows {_listed(variable.allowed)}."
    kind = "level" if variable.kind == "level" else "word"
    return Fault(kind, f"NCCL does not know {told}", variable.wrong, hint)


def _spelled_out(value: str) -> str:
    """``4M`` as the number that its writer meant."""
    digits, unit = value[:-1], value[-1:].upper()
    power = {"K": 10, "M": 20, "G": 30}.get(unit)
    if power is None or not digits.isdigit():
        return ""
    return f"Write {int(digits) << power}."


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + f" and {words[-1]}" if len(words) > 1 else words[0]


def unknown_words(variable: Variable, value: str) -> list[str]:
    """The words of a list that NCCL does not know."""
    return [word for word in words_of(value) if not variable.knows(word)]

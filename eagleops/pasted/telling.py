"""Says what a pasted command does that its writer did not mean."""

from __future__ import annotations

from eagleops.pasted.surroundings import Report, Surroundings
from eagleops.shell import Doubt, SimpleCommand


def tell_doubt(
    report: Report,
    command: SimpleCommand,
    raw: str,
    doubt: Doubt,
    around: Surroundings,
    *,
    here: bool = False,
) -> None:
    """Tells what the reader cannot know of a word.

    Args:
        report: Where to.
        command: In which the word stands.
        raw: The word, or the name of the variable that it is the value of.
        doubt: What is not known.
        around: What is.
        here: Whether the word stands in quotes that the shell at hand reads, before ssh.
    """
    short = doubt.text if len(doubt.text) <= 60 else f"{doubt.text[:60]}..."  # noqa: PLR2004
    place = ", by the shell at hand, not over there" if here else ""
    if doubt.kind == "home":
        message = f"{short} is a home that is not known" + place
        report.tell("home", message, "Write the whole path.", "error", command.line)
    elif doubt.kind == "substitution":
        message = f"{short} is a command's output, which only running it would tell" + place
        report.tell("substitution", message, "Write what it printed.", "error", command.line)
    elif doubt.kind in {"unset", "special"}:
        message = f"{short} is set nowhere in what was pasted{place}"
        report.tell("unset-variable", message, "Write its value.", "error", command.line)
    elif doubt.kind == "default":
        message = f"{short}: the default is taken, for nothing pasted sets the variable"
        report.tell("default-value", message, "", "note", command.line)
    elif doubt.kind == "braces":
        message = (
            f"a shell makes several words of {short}: outside quotes, braces with a comma are "
            "spread"
        )
        report.tell(
            "braces",
            message,
            "Put it in single quotes. It is taken as one word.",
            "error",
            command.line,
        )
    elif doubt.kind == "glob":
        message = f"a shell replaces {short} by the files that match it, if any do"
        report.tell(
            "glob",
            message,
            "Put it in single quotes. It is taken as it is.",
            "warning",
            command.line,
        )
    del raw, around


def tell_redirections(report: Report, command: SimpleCommand) -> None:
    """Tells of output that goes elsewhere than it seems."""
    joins = [
        n
        for n, one in enumerate(command.redirections)
        if one.operator == ">&" and one.descriptor == "2" and one.target == "1"
    ]
    files = [
        n
        for n, one in enumerate(command.redirections)
        if one.operator in {">", ">>"} and one.descriptor in {"", "1"}
    ]
    if joins and files and joins[0] < files[0]:
        report.tell(
            "redirect-order",
            "2>&1 stands before the file: errors go where output went until then, not there",
            "Write > FILE 2>&1. eagleops keeps both in the server's log.",
            "warning",
            command.line,
        )

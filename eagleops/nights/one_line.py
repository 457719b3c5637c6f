"""What machines and programs say, on one line that every reader can show."""

from __future__ import annotations

import re

# ECMA-48's control sequences (colours, above all) and operating system commands (links, titles).
TERMINAL_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def one_line(text: str, most: int) -> str:
    """A text on one line, without characters that no reader can show, cut at ``most``."""
    whole = TERMINAL_CODE.sub("", text).encode("utf-8", "replace").decode("utf-8")
    line = " ".join("".join(c if c.isprintable() else " " for c in whole).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"

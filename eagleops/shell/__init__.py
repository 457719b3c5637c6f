"""Reading shell commands, never by running them."""

from eagleops.shell.script import Redirection, Script, SimpleCommand, read
from eagleops.shell.slip import Slip, Unreadable
from eagleops.shell.typography import cleaned
from eagleops.shell.words import Doubt, Expansion, expand

__all__ = [
    "Doubt",
    "Expansion",
    "Redirection",
    "Script",
    "SimpleCommand",
    "Slip",
    "Unreadable",
    "cleaned",
    "expand",
    "read",
]

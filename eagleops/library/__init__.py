"""The library's face: what ``import eagleops`` gives a notebook or a script."""

from eagleops.library.host import Host
from eagleops.library.inventory import Library, load
from eagleops.library.server import Server

__all__ = ["Host", "Library", "Server", "load"]

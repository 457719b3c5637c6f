"""The inventory: hosts.yaml as frozen objects, and errors that name file, line and key."""

from eagleops.inventory.entries import ContainerEntry, Defaults, HostEntry, SimSettings
from eagleops.inventory.inventory import Inventory
from eagleops.inventory.loading import find, load, parse, shipped
from eagleops.inventory.suite import SuiteEntry

__all__ = [
    "ContainerEntry",
    "Defaults",
    "HostEntry",
    "Inventory",
    "SimSettings",
    "SuiteEntry",
    "find",
    "load",
    "parse",
    "shipped",
]

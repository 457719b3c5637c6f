"""A pasted command becomes a profile; nothing of it is run."""

from eagleops.pasted.imported import Imported, commented, import_command
from eagleops.pasted.target import Target

__all__ = ["Imported", "Target", "commented", "import_command"]

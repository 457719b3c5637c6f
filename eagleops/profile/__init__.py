"""Profiles: a server to launch, as data.

A profile in hosts.yaml says what differs from the profiles that it extends. Resolution puts
the chain together: mappings (``args``, ``env``, ``sim``) name by name, everything else whole;
what comes later wins, and null removes. It is pure: nothing here reads a file or a machine.
"""

from eagleops.profile.entry import ProfileEntry
from eagleops.profile.profile import Profile
from eagleops.profile.resolution import lineage, resolve
from eagleops.profile.secret import SecretReference
from eagleops.profile.template import filled
from eagleops.profile.values import ArgValue

__all__ = ["ArgValue", "Profile", "ProfileEntry", "SecretReference", "filled", "lineage", "resolve"]

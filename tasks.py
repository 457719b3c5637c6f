"""The tasks of a checkout: ``invoke --list``. They are the package's own."""

from eagleops.tasks import namespace

__all__ = ["namespace"]

"""The report of a comparison: one HTML file that needs nothing beside itself."""

from eagleops.render.page.file import ready
from eagleops.render.report.writing import gallery, page, write

__all__ = ["gallery", "page", "ready", "write"]

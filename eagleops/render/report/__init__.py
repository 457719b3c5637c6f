"""The report of a comparison: one HTML file that needs nothing beside itself."""

from eagleops.render.report.writing import gallery, page, ready, write

__all__ = ["gallery", "page", "ready", "write"]

"""The report of a comparison: one HTML file that needs nothing beside itself."""

from eagleops.render.report.writing import page, ready, write

__all__ = ["page", "ready", "write"]

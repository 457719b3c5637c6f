"""Sphinx's settings: MyST pages, furo, and every warning an error (``make docs``)."""

from __future__ import annotations

from eagleops import __version__

project = "eagleops"
author = "the eagleops authors"
project_copyright = "the eagleops authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "separated"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

nitpicky = True
# Nothing is fetched while the docs build, so names of other projects have no page to lead to.
# A name of ours must have one.
nitpick_ignore_regex = [("py:.*", r"(?!eagleops)[\w.\[\], ]*")]

html_theme = "furo"
html_title = "eagleops"
html_copy_source = False
html_theme_options = {"sidebar_hide_name": False, "navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"

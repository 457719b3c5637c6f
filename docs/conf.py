"""Sphinx's settings: MyST pages, furo, and every warning an error (``make docs``)."""

from __future__ import annotations

from docutils import nodes

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
# Nothing is fetched while the docs build, so names of other projects have no page to lead to, and
# what is nobody's to use has none either. A name of ours that a text refers to must have one; see
# _leave_annotations for the names in signatures.
nitpick_ignore_regex = [
    ("py:.*", r"(?!eagleops).*"),
    ("py:.*", r"eagleops\.(remote|interpreter|environment\.(values|witnesses|verdict))\..*"),
    ("py:mod", r"eagleops\..*"),
]

html_theme = "furo"
html_title = "eagleops"
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "a11y-high-contrast-dark"


def _keep_colons(_app, what, _name, _obj, _options, lines) -> None:
    """Napoleon reads "A: b" at the head of a property's docstring as a type and its text."""
    if what in ("property", "attribute") and lines:
        lines.insert(0, "")


def _leave_annotations(_app, _env, node, shown):
    """A type in a signature without a page of its own stays a plain name; a role must resolve."""
    if node.get("refdomain") == "py" and not isinstance(shown, nodes.literal):
        return shown
    return None


def setup(app) -> None:
    """Have docstrings read as they are written, and signatures name what has no page."""
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)
    app.connect("missing-reference", _leave_annotations)

"""Configuration of Sphinx for the documentation's site; docs/site/make_site.py calls it."""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from docutils.nodes import Element, TextElement
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from website.hurl_lexer import HurlLexer
from website.navigation import Navigation

_HERE = Path(__file__).parent
_COPY = re.compile("copybutton|clipboard")

project = "weir"
copyright = ""  # noqa: A001  Sphinx's name
html_show_copyright = False
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
templates_path = [str(_HERE / "templates")]
# `--flag` is not a dash, and quotes in JSON are straight.
smartquotes = False
default_role = "py:obj"

myst_heading_anchors = 4
myst_links_external_new_tab = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

html_theme = "furo"
html_title = "weir"
html_static_path = [str(_HERE / "static")]
html_search_scorer = str(_HERE / "scorer.js")
html_css_files = ["weir.css"]
html_js_files = [("weir.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_theme_options = {"navigation_with_keys": True}
# Colours of code with enough contrast on the theme's own background.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# What is copied: commands without their prompt and output.
# A loop has `> ` before its other lines; so has a request that `weir run` prints, which is output.
copybutton_prompt_text = r"^\$ |^> (?=  |done\b)|^>>> "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_exclude = ".linenos, .gp, .go"


def _public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: TextElement) -> Element | None:
    """Resolve types of signatures that have the name of a private module, such as ``weir._run.Run``."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not target.startswith("weir._"):
        return None
    public = f"weir.{target.rpartition('.')[2]}"
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, contnode)


@cache
def _tree(env: BuildEnvironment) -> Navigation:
    return Navigation(env)


def _navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Element | None) -> None:
    """Put the quick table of contents in the place of Sphinx's own."""
    html = _tree(app.env).html(page, lambda name: str(app.builder.get_relative_uri(page, name)))
    context["toctree"] = lambda **_: html
    if 'class="highlight' not in context.get("body", ""):
        # Nothing to copy.
        scripts = [file for file in context["script_files"] if not _COPY.search(str(getattr(file, "filename", file)))]
        context["script_files"] = scripts


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what the pages need."""
    app.add_lexer("hurl", HurlLexer)
    app.connect("missing-reference", _public_name)
    # Before the theme's own, which reads it.
    app.connect("html-page-context", _navigation, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

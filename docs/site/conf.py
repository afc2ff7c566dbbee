"""The documentation site: the repository's own texts and notebooks, and pages of the public names.

`make docs` builds it into build/docs. Its source folder is the repository, so that links between texts hold there and on
a code host alike; this folder holds what only the site has.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import latex2mathml.converter
from docutils import nodes

import qdsim

project = "qdsim"
author = "the qdsim authors"
version = release = qdsim.__version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/reference/*.md",
    "notebooks/*.ipynb",
    "benchmarks/*.md",
    "benchmarks/solver/problems/*.md",
    "benchmarks/results/*.md",
    "STYLE.md",
    "CHANGELOG.md",
]

# Notebooks are run when they or the package's version have changed; the cache lies beside the site.
nb_execution_mode = "cache"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4

# Tables that benchmarks write begin below their pages' titles; short names of fields are no links.
suppress_warnings = ["myst.header", "ref.python"]
default_role = "code"

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
autodoc_class_signature = "separated"
napoleon_use_ivar = True
python_use_unqualified_type_names = True

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"qdsim {version}"
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

_CODE = re.compile(r"(``.*?``|`.*?`)")


def _escape(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: asterisks and bars in them are meant as they stand."""
    for i, line in enumerate(lines):
        parts = _CODE.split(line)
        parts[::2] = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
        lines[i] = "".join(parts)


def _visit_math(writer: Any, node: nodes.Element) -> None:
    """Formulas as MathML, which browsers draw themselves: pages need no network."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    writer.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def _write_plan(app: Any, error: Exception | None) -> None:
    """The plan that plays on the front page."""
    if error is None and app.builder.format == "html":
        system = qdsim.systems.load("planar_hand")
        plan = qdsim.planning.rrt(system.tasks["half_turn"], rng=1).plan()
        qdsim.viewer.save_html(plan, Path(app.outdir) / "_static/half_turn.html", system.model)


def setup(app: Any) -> None:
    """Docstrings are escaped before napoleon makes markup of their sections."""
    app.connect("autodoc-process-docstring", _escape, priority=100)
    app.connect("build-finished", _write_plan)
    both = (_visit_math, None)
    app.add_html_math_renderer("mathml", inline_renderers=both, block_renderers=both)

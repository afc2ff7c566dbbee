"""The documentation site: the repository's own texts and notebooks, and pages of the public names.

`make docs` builds it into build/docs. Its source folder is the repository, so that links between texts hold there and on
a code host alike; this folder holds what only the site has.
"""

from __future__ import annotations

import inspect
import pkgutil
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
    "docs/reference/generated/**",
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
# Pictures of a width stand in the texts as <img>, which code hosts show, too.
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "html_image"]
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
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "scorer.js")

_UNIT = re.compile(r"^(\s+\w+: )([A-Za-z]\.)(?=\s|$)")
"""A unit at the beginning of what is said of an argument, which would be an item of a list."""

_CODE = re.compile(r"(``.*?``|`.*?`)")


def _escape(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: asterisks and bars in them are meant as they stand."""
    for i, line in enumerate(lines):
        parts = _CODE.split(line)
        parts[::2] = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
        lines[i] = _UNIT.sub(r"\1\\\2", "".join(parts))


def _visit_math(writer: Any, node: nodes.Element) -> None:
    """Formulas as MathML, which browsers draw themselves: pages need no network."""
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    writer.body.append(latex2mathml.converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def _write_plan(app: Any, error: Exception | None) -> None:
    """The plan that plays on the front page."""
    if error is None and app.builder.format == "html":
        system = qdsim.systems.load("planar_hand")
        plan = qdsim.planning.rrt(system.tasks["half_turn"], rng=0).plan()
        qdsim.viewer.save_html(plan, Path(app.outdir) / "_static/half_turn.html", system.model)


# Of each module the names that another one's pages have.
_MODULES = {
    "qdsim": [],
    "qdsim.planning": [],
    "qdsim.planning.pictures": [],
    "qdsim.planning.samplers": qdsim.planning.__all__,
    "qdsim.sensors": qdsim.__all__,
    "qdsim.smoothing": [],
    "qdsim.pressure": [],
    "qdsim.parallel": [],
    "qdsim.systems": [],
    "qdsim.formats": [],
    "qdsim.viewer": [],
}


def _write_names(app: Any) -> None:
    """A page for every public name; those that say what they said stay as they are."""
    folder = Path(app.srcdir) / "docs/reference/generated"
    wanted = {}
    for module, elsewhere in _MODULES.items():
        public = pkgutil.resolve_name(module)
        for name in public.__all__:
            kind = _kind_of(getattr(public, name))
            if kind is not None and name not in elsewhere:
                text = f"# {name}\n\n```{{eval-rst}}\n.. auto{kind}:: {module}.{name}\n```\n"
                wanted[folder / module / f"{name}.md"] = text
    for old in set(folder.rglob("*.md")) - set(wanted):
        old.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _kind_of(thing: object) -> str | None:
    """What autodoc calls it; None of modules and of values, which have no text of their own."""
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if callable(thing) else None


def setup(app: Any) -> None:
    """Docstrings are escaped before napoleon makes markup of their sections."""
    app.connect("builder-inited", _write_names)
    app.connect("autodoc-process-docstring", _escape, priority=100)
    app.connect("build-finished", _write_plan)
    both = (_visit_math, None)
    app.add_html_math_renderer("mathml", inline_renderers=both, block_renderers=both)

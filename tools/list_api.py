"""Write docs/api.md: every public name with the first sentence of its docstring.

Usage: python tools/list_api.py, with the package installed. `help(name)` has the rest: shapes, units, errors, sources.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path

MODULES = {
    "qdsim": "Models, steps, derivatives, batches, solvers",
    "qdsim.trace": "What the solver tried in a step",
    "qdsim.sensors": "Sensors of forces",
    "qdsim.smoothing": "Smoothed local models",
    "qdsim.pressure": "Pressure fields",
    "qdsim.planning": "Planning",
    "qdsim.parallel": "Work on any executor",
    "qdsim.planning.drawing.pictures": "Pictures of plans (needs Matplotlib)",
    "qdsim.systems": "Published systems",
    "qdsim.description": "Scenes in code",
    "qdsim.formats": "Files",
    "qdsim.mujoco": "Derivatives of MuJoCo's own step",
    "qdsim.jax": "Steps inside jax (extra `jax`)",
    "qdsim.envs": "Environments (extra `envs`)",
    "qdsim.data": "Demonstrations (extra `envs`)",
}
HEAD = """# Public names

One line each; `help(name)` has shapes, units, errors and where a method comes from. Written by `tools/list_api.py`.
"""


def sentence(thing: object) -> str:
    """The first sentence of a docstring, as one line that a table can hold."""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    end = re.search(r"[.;:](?=\s+[A-Z`])|\.$", text)
    return (text[: end.start()] if end else text).replace("|", "\\|")


def is_ours(thing: object) -> bool:
    """Whether its docstring is this package's: aliases of types have another's."""
    return callable(thing) and str(getattr(thing, "__module__", "")).startswith("qdsim")


def kind(thing: object) -> str:
    """What it is: a function, a class or a value."""
    if inspect.isclass(thing):
        return "error" if issubclass(thing, Exception) else "class"
    return "function" if callable(thing) else "value"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    listed: set[int] = set()
    for module, title in MODULES.items():
        scope = pkgutil.resolve_name(module)
        things = {name: getattr(scope, name) for name in sorted(scope.__all__, key=str.lower)}
        rows = [
            f"| `{name}` | {kind(thing)} | {sentence(thing) if is_ours(thing) else 'see `help(' + module + ')`'} |"
            for name, thing in things.items()
            if not inspect.ismodule(thing) and id(thing) not in listed
        ]
        listed |= {id(thing) for thing in things.values() if callable(thing)}
        if rows:
            parts.append(
                f"## {title}: `{module}`\n\n| name | | |\n| --- | --- | --- |\n"
                + "\n".join(rows)
                + "\n"
            )
    return "\n".join(parts)


if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "api.md").write_text(page(), encoding="utf-8")

"""Print what pyproject.toml asks for, a requirement a line: the one place that lists them.

Usage: python tools/requirements.py [build] [run] [extra ...]: the build requirements, the run-time
dependencies, the named extras. For `pip install -r`, where the package itself is not to be built yet.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python 3.10; every virtual environment has pip
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]

PROJECT = tomllib.loads(
    (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
)


def requirements(name: str) -> list[str]:
    """Return the requirements of `build`, `run` or an extra, with qdsim's own extras written out."""
    project = PROJECT["project"]
    if name == "build":
        return list(PROJECT["build-system"]["requires"])
    if name == "run":
        return list(project["dependencies"])
    result: list[str] = []
    for requirement in project["optional-dependencies"][name]:
        own = re.fullmatch(rf"{project['name']}\[([\w, -]+)\]", requirement)
        if own:
            for extra in own.group(1).split(","):
                result += requirements(extra.strip())
        else:
            result.append(requirement)
    return result


if __name__ == "__main__":
    print("\n".join(dict.fromkeys(r for name in sys.argv[1:] for r in requirements(name))))

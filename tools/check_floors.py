"""Check that no C include and no Python import goes up a floor (docs/architecture.md).

Usage: python tools/check_floors.py [root]. Prints one line per violation; exit status 1 if any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Each folder of csrc and the folders it may include from, beside itself and the public header.
C_FLOORS: dict[str, set[str]] = {
    "base": set(),
    "numerics": {"base"},
    "geometry": {"base"},
    "mechanics": {"base", "geometry"},
    "dynamics": {"base", "numerics", "geometry", "mechanics"},
    "runtime": {"base", "numerics", "geometry", "mechanics", "dynamics"},
    "binding": set(),  # the public header only
}

# System headers that belong to some floors only.
C_HEADER_HOMES: dict[str, set[str]] = {
    r"(Python|structmember|numpy/.*)\.h": {"binding"},
    r"(lapacke|cblas)\.h": {"numerics"},
    r"pthread\.h": {"runtime"},
}

# Modules of qdsim, bottom to top. A module imports from lower floors and its own package; modules on
# one line do not import each other. What is not listed is a violation: give it a floor.
PYTHON_FLOORS: list[set[str]] = [
    {"_core", "arguments", "whole_files"},
    {"description"},
    {"formats"},
    {"model", "batch_in", "batch_out"},
    {"loading"},
    {"step", "batch", "cone", "differential", "ocp"},
    {"smoothing"},
    {"planning"},
    {"systems"},
    {"demo"},
    {"__main__"},
]

# Faces for people use the package as people do: nothing inside imports them.
PYTHON_FACES = {"__main__"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_c(csrc: Path) -> Iterator[str]:
    """Yield the includes that go up a floor, below the folder `csrc`."""
    for path in sorted([*csrc.rglob("*.c"), *csrc.rglob("*.h")]):
        floor = path.relative_to(csrc).parts[0]
        if floor == "include":
            continue
        where = path.relative_to(csrc.parent).as_posix()
        if floor not in C_FLOORS:
            yield f"{where}: folder {floor!r} has no floor in tools/check_floors.py"
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            if not found:
                continue
            quote, name = found.groups()
            reason = _system_reason(floor, name) if quote == "<" else _own_reason(csrc, floor, name)
            if reason:
                yield f"{where}:{number}: {name}: {reason}"


def _system_reason(floor: str, name: str) -> str | None:
    for pattern, homes in C_HEADER_HOMES.items():
        if re.fullmatch(pattern, name) and floor not in homes:
            return f"only {', '.join(sorted(homes))} may include it"
    return None


def _own_reason(csrc: Path, floor: str, name: str) -> str | None:
    if name == "qdsim.h":
        return None
    if not (csrc / name).is_file():
        return "not a file of csrc; name headers as floor/file.h"
    target = Path(name).parts[0]
    if target == floor or target in C_FLOORS[floor]:
        return None
    allowed = ", ".join([f for f in C_FLOORS if f in C_FLOORS[floor]] + ["qdsim.h"])
    return f"{floor} may include from {allowed} and itself only"


def check_python(package: Path) -> Iterator[str]:
    """Yield the imports that go up a floor, below the folder of the package `package`."""
    level = {module: index for index, floor in enumerate(PYTHON_FLOORS) for module in floor}
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyi")]):
        parts = path.relative_to(package).with_suffix("").parts
        module = parts[0]
        if module == "__init__":
            continue
        where = path.relative_to(package.parent).as_posix()
        if module not in level:
            yield f"{where}: module {module!r} has no floor in tools/check_floors.py"
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        for number, target in _imports(tree, package, (package.name, *parts)):
            if target == module:
                continue
            if target == "":
                if module in PYTHON_FACES:
                    continue
                yield f"{where}:{number}: imports {package.name} itself; name the module"
            elif target not in level:
                yield f"{where}:{number}: {package.name}.{target} has no floor"
            elif level[target] >= level[module]:
                yield f"{where}:{number}: {module} (floor {level[module]}) imports {target} " + (
                    f"(floor {level[target]})"
                )


def _imports(tree: ast.Module, package: Path, parts: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and module below the package ("" for the package itself) of every import of our own."""
    # The package of the file: relative imports count their dots from there.
    here = parts[:-1]
    for node in ast.walk(tree):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            full = base + tuple(node.module.split(".") if node.module else ())
            names = [full + (alias.name,) for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] != package.name:
                continue
            target = name[1] if len(name) > 1 else ""
            known = (
                target == "_core"
                or (package / f"{target}.py").exists()
                or (package / target).is_dir()
            )
            yield node.lineno, target if known else ""


def main(root: Path) -> int:
    """Check the tree at `root`; print what is wrong and return the exit status."""
    problems = [*check_c(root / "csrc"), *check_python(root / "python" / "qdsim")]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))

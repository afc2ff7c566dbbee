"""Check that nothing goes up a floor (docs/architecture.md): no C include, no Python import; nor in a ring.

Rings: headers that include each other, C files whose functions call each other, Python modules that import each
other. Usage: python tools/check_floors.py [root]. Prints one line per violation; exit status 1 if any.
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
    "mujoco": {"base", "numerics", "geometry"},
    "binding": set(),  # the public header only
    "dispatch": set(),  # a module of its own
}

# The public headers; floors that know numbers alone see that of the solvers.
SOLVERS_HEADER = "qdsim/solvers.h"
PUBLIC_HEADERS = {"qdsim.h", "qdsim/models.h", "qdsim/steps.h", "qdsim/batches.h"}
NUMBERS = {"base", "numerics"}

# System headers that belong to some floors only.
C_HEADER_HOMES: dict[str, set[str]] = {
    r"(Python|structmember|numpy/.*)\.h": {"binding", "dispatch"},
    r"(lapacke|cblas)\.h": {"numerics"},
    r"pthread\.h": {"runtime"},
    r"xla/.*\.h": {"binding"},
}

# Modules of qdsim, bottom to top. A module imports from lower floors and its own package; modules on
# one line do not import each other. What is not listed is a violation: give it a floor. Imports in functions and
# for types count like all others.
PYTHON_FLOORS: list[set[str]] = [
    {"_cpu_level"},
    {"array_type", "core_choice", "trace"},
    {"_core", "arguments", "progress", "registration", "showing", "whole_files"},
    {"parallel"},
    {"description"},
    {"pressure"},
    {"formats"},
    {"commands"},
    {"parameters"},
    {"model_checks", "tangents"},
    {"model"},
    {"overlaps"},
    {"loading"},
    {
        "contact_surfaces",
        "step",
        "complementarity",
        "cone",
        "differential",
        "ocp",
    },
    {"batches"},
    {"dynamics", "mujoco", "velocities"},
    {"sensors", "simulation"},
    {"layer_rollouts", "layer_manifold"},
    {"layer_arguments"},
    {"jax", "torch"},
    {"smoothing"},
    {"planning"},
    {"systems"},
    {"envs", "identification"},
    {"data"},
    {"demo", "viewer"},
    {"cli"},
    {"__main__"},
]

# The same within packages that have rooms.
ROOMS: dict[str, list[set[str]]] = {
    "batches": [
        {"inputs", "outputs"},
        {"given", "marks", "queries"},
        {"feedback", "steps"},
        {"pulling", "rollouts"},
        {"products"},
        {"dynamics"},
    ],
    "planning": [
        {"task"},
        {"grasps", "motion"},
        {"plans"},
        {"search"},
        {"tracking"},
        {"execution"},
        {"roadmap"},
        {"drawing"},
    ],
}

# Faces for people use the package as people do: nothing inside imports them.
PYTHON_FACES = {"__main__", "cli"}

# A function from the start of its line: "static" or nothing, and its name.
DEFINITION = re.compile(
    r"^(?:(static) )?(?!static\b|typedef\b|extern\b)(?=\w)[\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.M
)
COMMENT_OR_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def check_c(csrc: Path) -> Iterator[str]:
    """Yield the includes that go up a floor, and the rings, below the folder `csrc`."""
    yield from _c_rings(csrc)
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


def _c_rings(csrc: Path) -> Iterator[str]:
    code = {
        path.relative_to(csrc).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted([*csrc.rglob("*.c"), *csrc.rglob("*.h")])
    }
    includes = {
        name: {found.group(2) for line in text.splitlines() if (found := INCLUDE.match(line))}
        for name, text in code.items()
    }
    for knot in _knots(includes):
        yield f"csrc: these include each other: {', '.join(knot)}"
    bare = {name: COMMENT_OR_TEXT.sub(" ", text) for name, text in code.items() if name[-1] == "c"}
    defined = {name: DEFINITION.findall(text) for name, text in bare.items()}
    home = {f: name for name, found in defined.items() for static, f in found if not static}
    calls = {
        name: {
            home[word]
            for word in set(re.findall(r"\b(\w+)\s*\(", text)) - {f for _, f in defined[name]}
            if word in home
        }
        for name, text in bare.items()
    }
    for knot in _knots(calls):
        yield f"csrc: these call each other: {', '.join(knot)}"


def _system_reason(floor: str, name: str) -> str | None:
    for pattern, homes in C_HEADER_HOMES.items():
        if re.fullmatch(pattern, name) and floor not in homes:
            return f"only {', '.join(sorted(homes))} may include it"
    return None


def _own_reason(csrc: Path, floor: str, name: str) -> str | None:
    if name == SOLVERS_HEADER or (name in PUBLIC_HEADERS and floor not in NUMBERS):
        return None
    if not (csrc / name).is_file():
        return "not a file of csrc; name headers as floor/file.h"
    target = Path(name).parts[0]
    if target == floor or target in C_FLOORS[floor]:
        return None
    allowed = ", ".join(
        [f for f in C_FLOORS if f in C_FLOORS[floor]]
        + [SOLVERS_HEADER if floor in NUMBERS else "qdsim.h"]
    )
    return f"{floor} may include from {allowed} and itself only"


def check_python(package: Path) -> Iterator[str]:
    """Yield the imports that go up a floor, and the knots, below the folder of the package `package`."""
    files = sorted([*package.rglob("*.py"), *package.rglob("*.pyi")])
    floors = {package.name: PYTHON_FLOORS} | {f"{package.name}.{k}": v for k, v in ROOMS.items()}
    edges: dict[str, set[str]] = {}
    for path in files:
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts == (package.name, "__init__"):
            continue
        where = path.relative_to(package.parent).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        imports = [(n, _module(name, package)) for n, name in _imports(tree, parts)]
        edges[".".join(parts).removesuffix(".__init__")] = {".".join(m) for _, m in imports}
        for room, levels in floors.items():
            depth = room.count(".") + 1
            if ".".join(parts[:depth]) != room or parts[depth] == "__init__":
                continue
            for number, reason in _room_reasons(levels, depth, parts, imports):
                yield f"{where}:{number}: {reason}" if number else f"{where}: {reason}"
    for knot in _knots(edges):
        yield f"{package.name}: these import each other: {', '.join(knot)}"


def _room_reasons(
    levels: list[set[str]],
    depth: int,
    parts: tuple[str, ...],
    imports: list[tuple[int, tuple[str, ...]]],
) -> Iterator[tuple[int, str]]:
    """Line (0: none) and reason of what a file imports against the floors of the room that it is in."""
    level = {name: index for index, floor in enumerate(levels) for name in floor}
    room, own = ".".join(parts[:depth]), parts[depth]
    if own not in level:
        yield 0, f"module {own!r} has no floor in tools/check_floors.py"
        return
    for number, target in imports:
        if target[:depth] != parts[:depth]:
            continue
        there = target[depth] if len(target) > depth else ""
        if there == own or (there == "" and own in PYTHON_FACES):
            continue
        if there == "":
            yield number, f"imports {room} itself; name the module"
        elif there not in level:
            yield number, f"{room}.{there} has no floor"
        elif level[there] >= level[own]:
            yield number, f"{own} (floor {level[own]}) imports {there} (floor {level[there]})"


def _imports(tree: ast.Module, parts: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Line and full name of every import of our own in a file; `parts` is its place."""
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
        yield from ((node.lineno, name) for name in names if name[0] == parts[0])


def _module(name: tuple[str, ...], package: Path) -> tuple[str, ...]:
    """The module that an import of ``name`` reads: without what is defined in it."""
    found = name[:1]
    for part in name[1:]:
        place = package.parent.joinpath(*found, part)
        known = place.is_dir() or any(place.with_suffix(s).exists() for s in (".py", ".pyi"))
        if not known and (*found, part) != (package.name, "_core"):
            break
        found += (part,)
    return found


def _knots(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of names each of which reaches all others of its group."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        todo = [start]
        while todo:
            new = edges.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return found

    reach = {name: reached(name) for name in edges}
    knots = {
        tuple(sorted({name} | {other for other in reach[name] if name in reach.get(other, ())}))
        for name in edges
        if name in reach[name]
    }
    return [list(knot) for knot in sorted(knots)]


def main(root: Path) -> int:
    """Check the tree at `root`; print what is wrong and return the exit status."""
    problems = [*check_c(root / "csrc"), *check_python(root / "python" / "qdsim")]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))

"""The floor checker finds what it is for, and the tree obeys it."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_floors", ROOT / "tools" / "check_floors.py")
check_floors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_floors)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.long
def test_the_tree_has_no_violation(capsys):
    assert check_floors.main(ROOT) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "include", "allowed"),
    [
        ("numerics/a.c", '"base/vec.h"', True),
        ("numerics/a.c", '"qdsim/solvers.h"', True),
        ("numerics/a.c", '"qdsim.h"', False),
        ("geometry/a.c", '"qdsim/steps.h"', True),
        ("numerics/a.c", '"geometry/g.h"', False),
        ("geometry/a.c", '"numerics/n.h"', False),
        ("mechanics/a.c", '"numerics/n.h"', False),
        ("mechanics/a.h", '"geometry/g.h"', True),
        ("dynamics/a.c", '"numerics/n.h"', True),
        ("dynamics/a.c", '"binding/b.h"', False),
        ("base/a.c", '"geometry/g.h"', False),
        ("binding/a.c", '"binding/b.h"', True),
        ("binding/a.c", '"base/vec.h"', False),
        ("binding/a.c", "<Python.h>", True),
        ("runtime/a.c", "<Python.h>", False),
        ("runtime/a.c", "<pthread.h>", True),
        ("dynamics/a.c", "<pthread.h>", False),
        ("dynamics/a.c", "<math.h>", True),
        ("numerics/a.c", '"vec.h"', False),
        ("attic/a.c", '"qdsim.h"', False),
    ],
)
def test_includes(tmp_path, path, include, allowed):
    csrc = tmp_path / "csrc"
    for header in ["base/vec.h", "numerics/n.h", "geometry/g.h", "binding/b.h", "include/qdsim.h"]:
        write(csrc / header, "")
    write(csrc / path, f"/* a comment */\n#include {include}\n")
    assert (list(check_floors.check_c(csrc)) == []) == allowed


@pytest.mark.parametrize(
    ("path", "statement", "allowed"),
    [
        ("model.py", "from qdsim import _core", True),
        ("model.py", "from qdsim.description import Body", True),
        ("model.py", "from .description import Body", True),
        ("model.py", "from . import step", False),
        ("model.py", "from .step import Options", False),
        ("model.py", "import qdsim.step", False),
        ("model.py", "import qdsim", False),
        ("model.py", "from qdsim import Model", False),
        ("__main__.py", "from qdsim.cli.main import main", True),
        ("cli/main.py", "from qdsim import __version__", True),
        ("demo.py", "from qdsim.cli.main import main", False),
        ("model.py", "def f():\n    from .planning import rrt", False),
        ("step.py", "from .cone import solve", False),
        ("planning/search/tree.py", "from ..task import Task", True),
        ("planning/search/tree.py", "from ...step import Options", True),
        ("planning/search/tree.py", "from ...systems import load", False),
        ("planning/__init__.py", "from .task import Task", True),
        ("planning/__init__.py", "from ..demo import run", False),
        ("planning/search/deep/leaf.py", "from ....model import Model", True),
        ("planning/search/deep/leaf.py", "from ...task import Task", True),
        ("model.py", "import numpy as np", True),
        ("surprise.py", "import numpy as np", False),
        ("planning/plans/plan.py", "from ..task.space import Array", True),
        ("planning/plans/plan.py", "from qdsim.planning.motion import motion", True),
        ("planning/plans/plan.py", "from qdsim.planning.search.tree import Tree", False),
        ("planning/plans/plan.py", "def f():\n    from ..search import tree", False),
        (
            "planning/plans/plan.py",
            "if TYPE_CHECKING:\n    from qdsim.planning.search.tree import Tree",
            False,
        ),
        ("planning/motion/motion.py", "from qdsim.planning.grasps.closing import close", False),
        ("planning/drawing/pictures.py", "from qdsim.planning.execution.plant import P", True),
        ("planning/plans/plan.py", "from qdsim.planning import Task", False),
        ("planning/plans/plan.py", "from qdsim import planning", False),
        ("planning/attic/leaf.py", "import numpy as np", False),
        ("planning/__init__.py", "from .drawing import pictures", True),
    ],
)
def test_imports(tmp_path, path, statement, allowed):
    package = tmp_path / "qdsim"
    for module in ["description", "model", "step", "cone", "demo"]:
        write(package / f"{module}.py", "")
    for module in [
        "task/task",
        "search/tree",
        "motion/motion",
        "grasps/closing",
        "execution/plant",
        "drawing/pictures",
    ]:
        write(package / "planning" / f"{module}.py", "")
    for module in ["planning/__init__.py", "systems/__init__.py", "__init__.py"]:
        write(package / module, "from .model import Model" if module == "__init__.py" else "")
    write(package / path, statement + "\n")
    assert (list(check_floors.check_python(package)) == []) == allowed


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("closed", [True, False])
def test_c_files_that_call_each_other_are_named(tmp_path, count, closed):
    csrc = tmp_path / "csrc"
    names = [f"dynamics/part{k}.c" for k in range(count)]
    for k, name in enumerate(names):
        last = k == count - 1
        called = "0" if last and not closed else f"f{(k + 1) % count}(x)"
        # what comments and texts name is no call, nor is a function of the file's own
        write(
            csrc / name,
            f"/* f0(x) */\nstatic int own(int x) {{ return x; }}\n"
            f'int f{k}(int x) {{\n  puts("f0(x)");\n  return own(x) + {called};\n}}\n',
        )
    said = [f"csrc: these call each other: {', '.join(names)}"] if closed else []
    assert list(check_floors.check_c(csrc)) == said


@pytest.mark.parametrize("count", [2, 3])
def test_headers_that_include_each_other_are_named(tmp_path, count):
    csrc = tmp_path / "csrc"
    names = [f"base/part{k}.h" for k in range(count)]
    for k, name in enumerate(names):
        write(csrc / name, f'#include "{names[(k + 1) % count]}"\n')
    said = [f"csrc: these include each other: {', '.join(names)}"]
    assert list(check_floors.check_c(csrc)) == said


@pytest.mark.parametrize(
    ("imports", "knots"),
    [
        ({"a": "b", "b": "c", "c": ""}, []),
        ({"a": "b", "b": "a", "c": "a"}, [["a", "b"]]),
        ({"a": "b", "b": "c", "c": "a", "d": "e", "e": "d"}, [["a", "b", "c"], ["d", "e"]]),
    ],
)
@pytest.mark.parametrize(
    "statement",
    [
        "from qdsim.formats.{} import x",
        "from . import {}",
        "def f():\n    from .{} import x",
        "if TYPE_CHECKING:\n    import qdsim.formats.{}",
    ],
)
def test_modules_that_import_each_other_are_named(tmp_path, imports, knots, statement):
    package = tmp_path / "qdsim"
    for module, target in imports.items():
        write(package / "formats" / f"{module}.py", statement.format(target) if target else "")
    said = [
        "qdsim: these import each other: " + ", ".join(f"qdsim.formats.{m}" for m in knot)
        for knot in knots
    ]
    assert list(check_floors.check_python(package)) == said

"""The floor checker finds what it is for, and the tree obeys it."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
spec = importlib.util.spec_from_file_location("check_floors", ROOT / "tools" / "check_floors.py")
check_floors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_floors)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_tree_has_no_violation(capsys):
    assert check_floors.main(ROOT) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "include", "allowed"),
    [
        ("numerics/a.c", '"base/vec.h"', True),
        ("numerics/a.c", '"qdsim.h"', True),
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
        ("__main__.py", "from qdsim import __version__, demo", True),
        ("model.py", "def f():\n    from .planning import rrt", False),
        ("step.py", "from .cone import solve", False),
        ("planning/tree.py", "from .task import Task", True),
        ("planning/tree.py", "from ..step import Options", True),
        ("planning/tree.py", "from ..systems import load", False),
        ("planning/__init__.py", "from .task import Task", True),
        ("planning/__init__.py", "from ..demo import run", False),
        ("planning/deep/leaf.py", "from ...model import Model", True),
        ("planning/deep/leaf.py", "from ..task import Task", True),
        ("model.py", "import numpy as np", True),
        ("surprise.py", "import numpy as np", False),
    ],
)
def test_imports(tmp_path, path, statement, allowed):
    package = tmp_path / "qdsim"
    for module in ["description", "model", "step", "cone", "demo"]:
        write(package / f"{module}.py", "")
    for module in ["planning/task.py", "systems/__init__.py", "__init__.py"]:
        write(package / module, "from .model import Model" if module == "__init__.py" else "")
    write(package / path, statement + "\n")
    assert (list(check_floors.check_python(package)) == []) == allowed

"""What holds for the installed package as a whole: light import, metadata, files, extras."""

import importlib.metadata
import importlib.resources
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import qdsim

HEAVY = ["mujoco", "matplotlib", "tqdm", "imageio", "scipy", "PIL", "clarabel", "ompl"]


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900
    )


def test_import_loads_nothing_heavy():
    run = run_python(
        f"import sys, qdsim; print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


@pytest.mark.long
def test_import_of_systems_and_planning_loads_nothing_heavy():
    run = run_python(
        "import sys, qdsim.systems, qdsim.planning; "
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


def test_version_is_the_metadata_one():
    assert qdsim.__version__ == importlib.metadata.version("qdsim")


def test_mujoco_with_the_wrong_solver_is_excluded():
    """Of its versions only 4.0.0 has a Newton solver that is wrong for sparse models."""
    (needed,) = (
        requirement
        for requirement in map(Requirement, importlib.metadata.requires("qdsim") or [])
        if requirement.name == "mujoco" and requirement.marker is None
    )
    versions = ["3.4.0", "3.5.0", "3.17.0", "4.0.0", "4.0.1", "4.1.0"]
    assert list(needed.specifier.filter(versions)) == ["3.5.0", "3.17.0", "4.0.1", "4.1.0"]


def test_version_is_the_same_in_every_file():
    root = Path(__file__).resolve().parents[2]
    for name, pattern in [
        ("meson.build", r"^  version: '([^']+)'"),
        ("CITATION.cff", r"^version: (\S+)"),
        ("CHANGELOG.md", r"^## (\S+)"),
    ]:
        found = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert found, name
        assert found.group(1) == qdsim.__version__, name


def test_types_and_data_are_installed():
    folder = importlib.resources.files("qdsim")
    assert folder.joinpath("py.typed").is_file()
    assert folder.joinpath("_core.pyi").is_file()
    models = [f.name for f in folder.joinpath("systems").iterdir() if f.name.endswith(".xml")]
    assert len(models) >= 2


def test_everything_in_all_exists():
    for name in qdsim.__all__:
        assert getattr(qdsim, name) is not None


@pytest.mark.long
@pytest.mark.parametrize("missing", ["matplotlib", "imageio"])
def test_missing_extra_is_one_line_that_names_it(missing, tmp_path):
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            # None in sys.modules makes every import of that name fail, as if it were not installed.
            f"import sys; sys.modules[{missing!r}] = None; "
            "import runpy; sys.argv = ['qdsim', 'demo', '--output', sys.argv[1]]; "
            "runpy.run_module('qdsim', run_name='__main__')",
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    lines = run.stderr.strip().splitlines()
    assert len(lines) == 1, run.stderr
    assert "qdsim[demo]" in lines[0]
    assert missing in lines[0]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_blas_is_our_own_copy():
    run = run_python(
        "import qdsim._core\n"
        "names = {line.split(maxsplit=5)[-1].strip() for line in open('/proc/self/maps')}\n"
        "print(*(name for name in names if 'qdsim_openblas' in name), sep='\\n')"
    )
    assert run.returncode == 0, run.stderr
    paths = [Path(line) for line in run.stdout.splitlines() if line]
    if paths:  # the system's LAPACKE was not chosen at build time
        # Beside the extension, not in a build folder that a later clean would remove.
        core = Path(importlib.import_module("qdsim._core").__file__)
        assert [p.parent for p in paths] == [core.parent / "_lib"]


@pytest.mark.long
@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="reads /proc/cpuinfo"
)
def test_the_copy_of_the_core_for_this_machine_is_taken(tmp_path):
    # As on Windows, where the build makes the extension twice.
    package = Path(qdsim.__file__).parent
    core = Path(qdsim._core.__file__)
    for entry in package.iterdir():
        (tmp_path / "qdsim").mkdir(exist_ok=True)
        (tmp_path / "qdsim" / entry.name).symlink_to(entry)
    copy = tmp_path / "qdsim" / core.name.replace("_core", "_core_v3")
    shutil.copy(core, copy)
    source = Path(__file__).parents[2] / "csrc" / "dispatch" / "cpu_level.c"
    level = tmp_path / "qdsim" / core.name.replace("_core", "_cpu_level")
    include = sysconfig.get_paths()["include"]
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", source, "-o", level], check=True)
    say = (
        "import qdsim, pickle; print(qdsim._core.__file__, qdsim._cpu_level.LEVEL);"
        "m = qdsim.systems.load('planar_pushing').model; pickle.loads(pickle.dumps(m));"
        "qdsim.step(m, m.default_q, m.command_from(m.default_q))"
    )
    run = subprocess.run(
        [sys.executable, "-c", say],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    file, found = run.stdout.split()
    has_avx2 = "avx2" in Path("/proc/cpuinfo").read_text()
    assert int(found) == (3 if has_avx2 else 1)
    assert Path(file).name == (copy if has_avx2 else core).name

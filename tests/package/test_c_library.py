"""The C library by itself: it is installed, a C program is built on it and agrees with Python."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import qdsim

ROOT = Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc")

SCENE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="finger" pos="-.095 0 .05">
      <inertial pos="0 0 0" mass=".1" diaginertia="1e-4 1e-4 1e-4"/>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom name="tip" type="sphere" size=".03"/>
    </body>
    <body name="ball" pos="0 0 .05">
      <freejoint/>
      <inertial pos="0 0 0" mass=".2" diaginertia="2e-4 2e-4 2e-4"/>
      <geom name="ball" type="sphere" size=".05"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="floor" geom2="ball" condim="3" friction=".8 .8 0 0 0"/>
    <pair geom1="tip" geom2="ball" condim="1"/>
  </contact>
  <actuator><position joint="slide" kp="500"/></actuator>
</mujoco>"""


def run(*command: object, **environment: str) -> str:
    # meson and ninja lie beside this interpreter, which need not be on PATH.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "PATH": path, **environment},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


pytestmark = pytest.mark.long  # the library is built


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Where the library was installed; built without optimisation, which takes a fifth of the time."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("library")
    options = ["-Dpython=false", "-Dtests=false", "-Dlibrary=true", "-Dcopies=none"]
    meson = (sys.executable, "-m", "mesonbuild.mesonmain")
    run(*meson, "setup", folder / "build", ROOT, *options, "-Dbuildtype=debug",
        "-Dlibdir=lib", f"-Dprefix={folder / 'prefix'}")  # fmt: skip
    run(*meson, "install", "-C", folder / "build", "--quiet")
    return folder / "prefix"


def pkg_config(prefix: Path, key: str) -> list[str]:
    """The flags that pkg-config would print, for machines without it."""
    text = (prefix / "lib" / "pkgconfig" / "qdsim.pc").read_text()
    values = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    flags = dict(re.findall(r"^([\w.]+): (.*)$", text, re.MULTILINE))[key]
    while "${" in flags:
        flags = re.sub(r"\$\{(\w+)\}", lambda name: values[name[1]], flags)
    return flags.split()


def python_rows() -> np.ndarray:
    """What the example prints, from Python: command, finger, ball, force, derivative."""
    model = qdsim.load(SCENE)
    q, rows = model.default_q, []
    for i in range(1, 11):
        u = np.array([0.01 * i])
        linear = qdsim.linearize(model, q, u)
        q = linear.step.q_next
        rows.append([u[0], q[0], q[1], 500 * (u[0] - q[0]), linear.B[1, 0]])
    return np.array(rows)


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_example_agrees_with_python(prefix, tmp_path, kind):
    libs = pkg_config(prefix, "Libs")
    if kind == "static":
        libs = ["-l:libqdsim.a" if flag == "-lqdsim" else flag for flag in libs]
        libs += pkg_config(prefix, "Libs.private")
    source = ROOT / "examples" / "c" / "push.c"
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", *pkg_config(prefix, "Cflags")]
    run(COMPILER, *flags, source, *libs, "-lm", "-o", tmp_path / "push")
    printed = run(tmp_path / "push", LD_LIBRARY_PATH=str(prefix / "lib")).splitlines()
    assert printed[-1] == "solved"
    rows = np.array([[float(word) for word in line.split()] for line in printed[1:-1]])
    np.testing.assert_allclose(rows, python_rows(), rtol=0, atol=6e-4)


def test_a_loop_with_derivatives_arrives(prefix, tmp_path):
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", *pkg_config(prefix, "Cflags")]
    source, libs = ROOT / "examples" / "c" / "steer.c", pkg_config(prefix, "Libs")
    run(COMPILER, *flags, source, *libs, "-lm", "-o", tmp_path / "steer")
    said = run(tmp_path / "steer", LD_LIBRARY_PATH=str(prefix / "lib"))
    assert said == "the ball is at 0.0800 m, wanted 0.0800 m: solved\n"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_cmake_finds_both_libraries(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(push C)\nfind_package(qdsim 0.1 REQUIRED)\n"
        f"set(source {ROOT / 'examples' / 'c' / 'push.c'})\n"
        "add_executable(shared ${source})\ntarget_link_libraries(shared PRIVATE qdsim::qdsim m)\n"
        "add_executable(static ${source})\ntarget_link_libraries(static PRIVATE qdsim::static)\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "b")
    printed = {run(tmp_path / "b" / name) for name in ("shared", "static")}
    assert len(printed) == 1 and printed.pop().endswith("solved\n")


def test_library_shows_what_the_header_declares(prefix):
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("no nm")
    listed = run(nm, "-D", "--defined-only", prefix / "lib" / "libqdsim.so").split()
    seen = {name for name in listed if name.startswith("qd_")}
    headers = "".join(p.read_text() for p in (prefix / "include" / "qdsim").glob("*.h"))
    code = re.sub(r"/\*.*?\*/", "", headers, flags=re.DOTALL)
    declared = set(re.findall(r"^[\w ]+[ *](qd_\w+)\(", code, re.MULTILINE))
    assert len(declared) > 80
    assert seen == declared

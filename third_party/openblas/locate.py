"""Print the include folder and the shared library of the scipy-openblas32 wheel, a line each.

The wheel is not imported, which would load its library: for a cross build it is that of another machine,
unpacked into a folder of PYTHONPATH.
"""

import importlib.util
from pathlib import Path

wheel = importlib.util.find_spec("scipy_openblas32")
if wheel is None or not wheel.submodule_search_locations:
    raise SystemExit("scipy-openblas32 is not installed; build with -Dlapacke=system")
folder = Path(wheel.submodule_search_locations[0])
endings = (".so*", ".dylib", ".dll")
libraries = [path for end in endings for path in sorted(folder.glob(f"lib/libscipy_openblas{end}"))]
if not libraries:
    raise SystemExit(f"no shared library in {folder / 'lib'}; build with -Dlapacke=system")
print((folder / "include").as_posix())
print(libraries[0].as_posix())

"""List the files below a folder that match patterns, relative to it, for the build.

Usage: python tools/list_files.py folder pattern ... The build asks when it is configured: after adding
a file, `meson setup --reconfigure` the build folder; pip and the make targets do so every time.
"""

import sys
from pathlib import Path

folder = Path(sys.argv[1])
for pattern in sys.argv[2:]:
    for path in sorted(folder.glob(pattern)):
        print(path.relative_to(folder).as_posix())

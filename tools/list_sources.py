"""List the C sources of folders below csrc, relative to csrc, for the build."""

import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent / "csrc"
for floor in sys.argv[1:]:
    for path in sorted((root / floor).rglob("*.c")):
        print(path.relative_to(root).as_posix())

"""Give every notebook a badge that opens it in Colab, below its title.

Usage: python tools/add_badges.py OWNER/NAME [branch], with the public repository on GitHub. A second call changes the
address.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGE = "https://colab.research.google.com/assets/colab-badge.svg"
PLACE = "https://colab.research.google.com/github"


def add(path: Path, repository: str, branch: str) -> None:
    """Writes the badge below the first heading."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    first = notebook["cells"][0]
    address = f"{PLACE}/{repository}/blob/{branch}/notebooks/{path.name}"
    title, *rest = [line for line in first["source"] if IMAGE not in line]
    while rest and rest[0] == "\n":
        del rest[0]
    badge = f"[![Open in Colab]({IMAGE})]({address})\n"
    first["source"] = [title, "\n", badge, "\n", *rest]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    if len(sys.argv) not in (2, 3) or not re.fullmatch(r"[\w.-]+/[\w.-]+", sys.argv[1]):
        raise SystemExit(__doc__)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        add(path, sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "main")


if __name__ == "__main__":
    main()

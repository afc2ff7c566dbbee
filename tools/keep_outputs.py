"""Keep small outputs of the notebooks in their files, from the run that `make docs` has cached.

Usage: python tools/keep_outputs.py [cache], by default build/.jupyter_cache.

A code host then shows them with their text and pictures. Of what is printed the first lines are kept, of pictures small
copies, of films one frame; pages that play are left to those who run the notebook.
"""

from __future__ import annotations

import base64
import io
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from shrink import shrunk

ROOT = Path(__file__).resolve().parent.parent
WIDTH, LARGEST = 600, 10_000
"""Pixels and bytes of a picture."""
LINES = 30


def small_picture(data: dict[str, Any]) -> dict[str, Any] | None:
    """A small copy of a picture, or of the middle of a film; None of anything else."""
    kind = next((k for k in ("image/png", "image/gif", "image/jpeg") if k in data), None)
    if kind is None:
        return None
    with Image.open(io.BytesIO(base64.b64decode("".join(data[kind])))) as picture:
        picture.seek(getattr(picture, "n_frames", 1) // 2)
        width = WIDTH
        while len(png := shrunk(picture, width, LARGEST)) > LARGEST:
            width = width * 4 // 5
    return {"image/png": base64.b64encode(png).decode("ascii")}


def small_output(output: dict[str, Any]) -> dict[str, Any] | None:
    """An output as it is kept; None: not at all."""
    if output["output_type"] == "stream":
        lines = "".join(output["text"]).splitlines(keepends=True)
        more = ["...\n"] if len(lines) > LINES else []
        kept = [*lines[:LINES], *more]
        return {"name": output["name"], "output_type": "stream", "text": kept}
    data = output.get("data", {})
    picture = small_picture(data)
    if picture is not None:
        return {"data": picture, "metadata": {}, "output_type": "display_data"}
    if "text/html" in data or "text/plain" not in data:
        return None
    plain = {"text/plain": "".join(data["text/plain"]).splitlines(keepends=True)[:LINES]}
    return {"data": plain, "metadata": {}, "output_type": "display_data"}


def keep(path: Path, ran: dict[str, Any]) -> int:
    """Puts the outputs of a run into a notebook; its size in bytes."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    done = [cell for cell in ran["cells"] if cell["cell_type"] == "code"]
    for cell, other in zip(cells, done, strict=True):
        if "".join(cell["source"]) != "".join(other["source"]):
            raise SystemExit(f"{path.name} has changed since it ran: make docs")
        outputs = (small_output(output) for output in other["outputs"])
        cell["outputs"] = [output for output in outputs if output is not None]
        cell["execution_count"] = None
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path.stat().st_size


def main() -> None:
    cache = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / ".jupyter_cache"
    with sqlite3.connect(cache / "global.db") as runs:
        rows = runs.execute("select hashkey, uri from nbcache order by created").fetchall()
    found = {Path(uri).name: cache / "executed" / key / "base.ipynb" for key, uri in rows}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        if path.name in found:
            ran = json.loads(found[path.name].read_text(encoding="utf-8"))
            print(f"{path.name}: {keep(path, ran)} bytes", flush=True)
        else:
            print(f"{path.name}: has not run", flush=True)


if __name__ == "__main__":
    main()

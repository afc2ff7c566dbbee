"""Pictures as small files: fewer pixels, and as many colours as the size allows; those of small things are kept.

Usage: python tools/shrink.py WIDTH FILE ...
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image

COLOURS = (256, 128, 64, 32, 16)
LARGEST = 150_000  # bytes


def shrunk(picture: Image.Image, width: int, largest: int = LARGEST) -> bytes:
    """A PNG of at most so many pixels across, with as many colours as stay below ``largest`` bytes."""
    small = picture.convert("RGB")
    if small.width > width:
        size = (width, round(width * small.height / small.width))
        small = small.resize(size, Image.Resampling.LANCZOS)
    for colours in COLOURS:
        few = small.quantize(colours, Image.Quantize.MAXCOVERAGE, 2, dither=Image.Dither.NONE)
        file = io.BytesIO()
        few.save(file, "PNG", optimize=True)
        if file.tell() < largest:
            break
    return file.getvalue()


def shrink(path: Path, width: int) -> int:
    """Bring a picture to a width in pixels, if it is wider, and below LARGEST; its size in bytes."""
    with Image.open(path) as picture:
        path.write_bytes(shrunk(picture, width))
    return path.stat().st_size


if __name__ == "__main__":
    for name in sys.argv[2:]:
        shrink(Path(name), int(sys.argv[1]))

"""Draw the key frames at the head of the README: the plan of ``python -m qdsim demo``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from qdsim.demo import run
from shrink import shrink

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH = 1400  # pixels


def main() -> None:
    with TemporaryDirectory() as folder:
        run(Path(folder), movie=False)
        picture = (Path(folder) / "key_frames.png").read_bytes()
    path = IMAGES / "key_frames.png"
    path.write_bytes(picture)
    print(f"{path.name}: {shrink(path, WIDTH)} bytes")


if __name__ == "__main__":
    main()

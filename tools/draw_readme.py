"""Draw the pictures at the head of the README: the plan of ``python -m qdsim demo``, and the Allegro hand in motion."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageSequence

from draw_plans import first_plan
from qdsim import systems
from qdsim.demo import run
from qdsim.planning import pictures
from shrink import shrink

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
WIDTH = 1400  # pixels
MOVING = "allegro_sphere"
MOVING_WIDTH = 320  # pixels
MOVING_FRAMES = 45
COLOURS = 32
MOST = 500_000  # bytes
SEEN = 4
"""Frames that the colours are chosen from."""
PER_SECOND = 10


def draw_key_frames() -> str:
    """The picture of the demo's plan."""
    with TemporaryDirectory() as folder:
        run(Path(folder), movie=False)
        picture = (Path(folder) / "key_frames.png").read_bytes()
    path = IMAGES / "key_frames.png"
    path.write_bytes(picture)
    return f"{path.name}: {shrink(path, WIDTH)} bytes"


def palette_of(frames: list[Image.Image]) -> Image.Image:
    """Colours of several frames; k-means keeps those of small things, which a median cut gives away."""
    width, height = frames[0].size
    sheet = Image.new("RGB", (width, height * len(frames)))
    for i, frame in enumerate(frames):
        sheet.paste(frame, (0, i * height))
    return sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3)


def draw_moving() -> str:
    """The movie of one plan, with as few frames, pixels and colours as show it."""
    system = systems.load(MOVING)
    _, plan = first_plan(next(iter(system.tasks.values())))
    with TemporaryDirectory() as folder:
        movie = Path(folder) / "movie.gif"
        every = -(-(plan.step_count + 14 * len(plan.regrasps)) // MOVING_FRAMES)
        pictures.write_movie(plan, plan.replay(system.model), system.model, [movie], every=every)
        with Image.open(movie) as images:
            frames = [image.convert("RGB") for image in ImageSequence.Iterator(images)]
    height = round(MOVING_WIDTH * frames[0].height / frames[0].width)
    small = [frame.resize((MOVING_WIDTH, height), Image.Resampling.LANCZOS) for frame in frames]
    palette = palette_of(small[:: len(small) // SEEN])
    few = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    path = IMAGES / "moving.gif"
    few[0].save(
        path,
        save_all=True,
        append_images=[*few[1:], *[few[-1]] * PER_SECOND],
        duration=1000 // PER_SECOND,
        loop=0,
        optimize=True,
    )
    size = path.stat().st_size
    if size > MOST:
        raise SystemExit(f"{path.name}: a film of {size} bytes")
    return f"{path.name}: {size} bytes"


def main() -> None:
    print(draw_key_frames())
    print(draw_moving())


if __name__ == "__main__":
    main()

"""Plan a half turn of a disc by a planar hand, replay it, draw it."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

from qdsim import systems
from qdsim.model import Model
from qdsim.planning import Plan, connect_segments, rrt

__all__ = ["run"]


def run(output: Path, *, seed: int = 0, system: str = "planar_hand", movie: bool = True) -> bool:
    """Plan, replay, check, draw.

    Args:
        output: folder for the plan, pictures and movie; created if missing.
        seed: of the planner.
        system: one of ``qdsim.systems.TASK_NAMES``; its first task is planned.
        movie: whether to write the movie, which takes longest.

    Returns:
        Whether the plan is good.
    """
    from qdsim.planning import pictures

    pictures.check_installed(movie)
    begin = time.perf_counter()
    loaded = systems.load(system)
    model, task = loaded.model, next(iter(loaded.tasks.values()))
    loading = time.perf_counter() - begin
    print(f"{task.name.capitalize()}: {model!r}, loaded in {loading:.2f} s")

    tree = rrt(task, rng=seed, progress=True)
    if not tree.reached:
        print(f"Seed {seed} has not reached the goal in {tree.count} nodes; try another.")
        return False
    plan, motions = _connected(tree.plan(), model)
    output.mkdir(parents=True, exist_ok=True)
    plan.save(output / "plan.npz")

    replay = plan.replay(model)
    verdict = plan.check(model)
    print(
        f"  seed               {seed}\n"
        f"  nodes              {tree.count} ({tree.regrasp_count} by contact sampling)\n"
        f"  planning           {tree.seconds:.2f} s, {tree.steps} steps\n"
        f"  plan               {plan.step_count} steps in {len(plan.segments)} segments, "
        f"{len(plan.regrasps)} regrasps\n"
        f"  distance to goal   {verdict.position_error:.4f} m "
        f"(at most {plan.position_tolerance:g}), "
        f"{verdict.rotation_error:.4f} rad (at most {plan.rotation_tolerance:g})\n"
        f"  replay error       {verdict.replay_error:g}"
        f"{' (the same bits)' if replay.identical else ''}\n"
        f"  regrasps           at most {verdict.regrasp_penetration:.1e} m of penetration "
        f"at either end\n"
        f"  motions            {motions}\n"
        f"  verdict            {'good' if verdict else '; '.join(verdict.faults)}"
    )

    files = ["plan.npz"]
    try:
        pictures.draw_key_frames(plan, replay, model, output / "key_frames.png")
        files.append("key_frames.png")
        pictures.draw_tree(tree, output / "tree.png")
        files.append("tree.png")
        if movie:
            movies = ["movie.gif"]
            if importlib.util.find_spec("imageio_ffmpeg") is not None:
                movies.append("movie.mp4")
            paths = [output / name for name in movies]
            pictures.write_movie(plan, replay, model, paths, progress=sys.stderr.isatty())
            files += movies
    except KeyboardInterrupt as stopped:
        kept = f"; written: {', '.join(files)} in {output}"
        raise KeyboardInterrupt(f"{stopped}{kept}".lstrip("; ")) from None
    print(f"  written            {', '.join(files)} in {output}")
    return verdict.good


def _connected(plan: Plan, model: Model) -> tuple[Plan, str]:
    """The plan with motions between its grasps where that can be, and what to say about them."""
    begin = time.perf_counter()
    try:
        connected, reasons = connect_segments(plan, model)
    except ImportError:
        return plan, "none, for want of OMPL: pip install 'qdsim[planning]'"
    for reason in reasons:
        if reason is not None:
            return plan, f"left out: {reason}"
    seconds = time.perf_counter() - begin
    return connected, f"free of collisions between all grasps, found in {seconds:.2f} s"

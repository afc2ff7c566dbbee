"""Sequences of frames for the viewer: of plans, rollouts, executions and paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning import ExecutedMotion, Motion, Plan, Tree
from qdsim.planning.drawing.words import left_text
from qdsim.step import Step

__all__ = ["Film", "Frame", "film_of_execution", "film_of_path", "film_of_plan", "film_of_tree"]


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame of a film.

    Attributes:
        q: The configuration, ``(nq,)``.
        seconds: Its duration, s.
        step: The step that begins there, or None.
        caption: A caption.
        left: The distance to the goal, in words.
        smoothed: Whether the step is smoothed.
    """

    q: Array
    seconds: float
    step: Step | None = None
    caption: str = ""
    left: str = ""
    smoothed: bool = False


@dataclass(frozen=True, eq=False)
class Film:
    """Frames in order, marks (frame and name of an event), and a title."""

    frames: Sequence[Frame]
    marks: Sequence[tuple[int, str]] = field(default_factory=tuple)
    goal: Array | None = None
    object: str | None = None
    title: str = ""
    caption: str = ""

    @property
    def configurations(self) -> Array:
        """The configurations of all frames, ``(frames, nq)``."""
        return np.array([frame.q for frame in self.frames])

    @property
    def steps(self) -> list[Step]:
        """The steps of all frames that have one."""
        return [frame.step for frame in self.frames if frame.step is not None]


def film_of_plan(plan: Plan, model: Model, rate: float) -> Film:
    """Return one frame per step with its contacts, and motions between grasps at ``rate`` frames per second.

    Raises:
        ValueError: The plan does not belong to this model.
        SolverError: A step cannot be solved.
    """
    replay = plan.replay(model)
    frames: list[Frame] = []
    marks: list[tuple[int, str]] = []
    motions = plan.motions or (None,) * len(plan.regrasps)
    smoothed = plan.options.kappa is not None
    done = 0
    for k, (segment, steps) in enumerate(zip(plan.segments, replay.steps)):
        if k:
            marks.append((len(frames), f"regrasp {k}"))
            frames += _regrasp(motions[k - 1], plan.regrasps[k - 1], k, rate)
        marks.append((len(frames), f"segment {k + 1}"))
        for q, step in zip(segment.configurations[:-1], steps):
            done += 1
            said = f"step {done} of {plan.step_count}"
            frames.append(Frame(q, 1.0 / rate, step, said, smoothed=smoothed))
        frames.append(Frame(segment.end, 1.0 / rate, None, f"end of segment {k + 1}"))
    goals = plan.goals(model)
    frames = [replace(frame, left=left_text(goals, frame.q)) for frame in frames]
    count = len(plan.regrasps)
    caption = (
        f"{plan.step_count} steps of {plan.options.h:g} s, "
        f"{count} {'change' if count == 1 else 'changes'} of grasp. "
        f"At the start {frames[0].left}; at the end {frames[-1].left}."
    )
    title = plan.task[:1].upper() + plan.task[1:]
    return Film(frames, marks, goals.nearest(plan.end), plan.object, title, caption)


def _regrasp(
    motion: Motion | None, ends: tuple[Array, Array], number: int, rate: float
) -> list[Frame]:
    said = f"regrasp {number}"
    if motion is None:
        return [Frame(q, 0.25, None, said) for q in ends]  # half a second in all
    count = max(round(motion.duration * rate), 2)
    times = np.linspace(0.0, motion.duration, count)
    return [Frame(q, 1.0 / rate, None, said) for q in motion.at(times)]


def film_of_tree(tree: Tree) -> Film:
    """Return one frame per node of a planner's tree."""
    task = tree.task
    on_path = set(tree.path(tree.goal_node)) if tree.goal_node is not None else set()
    frames = [
        Frame(
            q,
            0.1,
            None,
            f"node {k} of {tree.count - 1}" + (", on the way to the goal" if k in on_path else ""),
            left_text(task.goals, q),
        )
        for k, q in enumerate(tree.q[: tree.count])
    ]
    title = task.name[:1].upper() + task.name[1:]
    caption = f"A tree of {tree.count} nodes. A click on a node shows its configuration."
    return Film(frames, (), task.aim, task.object, title, caption)


def film_of_path(configurations: Array, rate: float) -> Film:
    """Return a film of configurations ``(n, nq)``, at ``rate`` frames per second."""
    return Film([Frame(q, 1.0 / rate) for q in configurations])


def film_of_execution(motion: ExecutedMotion, rate: float) -> Film:
    """Return a film of an execution in its own time, with at most ``rate`` frames per second."""
    times = np.arange(motion.t[0], motion.t[-1] + 1.0 / rate, 1.0 / rate)
    frames = [
        Frame(q, 1.0 / rate, None, f"{motion.doing(t)}, {t:.1f} s")
        for t, q in zip(times, motion.at(times))
    ]
    begins = np.searchsorted(times, [t for t, _ in motion.marks]).tolist()
    marks = list(zip(begins, (text for _, text in motion.marks)))
    return Film(frames, marks, motion.goal, motion.object)

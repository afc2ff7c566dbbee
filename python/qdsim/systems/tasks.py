"""Planning tasks of the published systems: starts, goals, boxes of subgoals, contact samplers.

Numbers are those of the scripts released with Pang, Suh, Yang and Tedrake 2023 (CQDC) if given
there; others are marked. Rotations of a box of subgoals are rotation vectors (the scripts draw
roll, pitch and yaw, which agree to second order in the two small ones).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from qdsim.array_type import Array
from qdsim.model import Model
from qdsim.planning.grasps.samplers import (
    BoxFaceSampler,
    BoxSideSampler,
    ClosingSampler,
    PlanarHandSampler,
)
from qdsim.planning.task.rrt_options import RRTOptions
from qdsim.planning.task.task import Task
from qdsim.step import Options

__all__ = ["TASKS"]

Tasks = dict[str, Task]
PI = math.pi


def _start(model: Model, key: str = "start") -> Array:
    return np.array(model.keyframes[key].q)


def _rotation_vector(roll: float, pitch: float, yaw: float) -> Array:
    """Return the rotation vector of ``Rz(yaw) Ry(pitch) Rx(roll)``."""
    (a, b, c), (x, y, z) = (f(0.5 * np.array([roll, pitch, yaw])) for f in (np.cos, np.sin))
    w = a * b * c + x * y * z
    v = np.array([x * b * c - a * y * z, a * y * c + x * b * z, a * b * z - x * y * c])
    length = float(np.linalg.norm(v))
    return v * (2.0 * math.atan2(length, w) / length) if length > 0.0 else v


def _displaced(model: Model, q: Array, body: str, shift: npt.ArrayLike) -> Array:
    """Return ``q`` with an object displaced by a tangent vector of its joints."""
    v = np.zeros(model.nv)
    v[model.slice_v(body)] = shift
    return model.integrate(q, v)


# -------------------------------------------------------------------- planar pushing and hand


def _planar_pushing(model: Model, options: Options) -> Tasks:
    start = _start(model)
    task = Task(
        name="push the box back",
        model=model,
        options=options,
        start=start,
        goal=start + np.array([0.0, -1.0, 0.0, 0.0, 0.0]),
        object="box",
        # The box is y and z from -2 to 2 m and any angle; bounds are relative to the start.
        lower=np.array([-2.0, -2.0, -PI]) - start[:3],
        upper=np.array([2.0, 2.0, PI]) - start[:3],
        sampler=BoxSideSampler(),
        length=0.5,
    )
    return {"move_back": task}


def _planar_hand(model: Model, options: Options) -> Tasks:
    start = _start(model)
    task = Task(
        name="half turn of the disc",
        model=model,
        options=options,
        start=start,
        goal=start + np.array([0.0, 0.0, PI, 0.0, 0.0, 0.0, 0.0]),
        object="disc",
        # The box is y from -0.3 to 0.3 m, z from 0.3 to 0.5 m, and the angle from 0 to pi with a
        # margin; bounds are relative to the start.
        lower=np.array([-0.3, 0.3, -0.01]) - start[:3],
        upper=np.array([0.3, 0.5, PI + 0.01]) - start[:3],
        sampler=PlanarHandSampler(),
        length=0.25,
    )
    return {"half_turn": task}


# -------------------------------------------------------------------- the Allegro hand


def _hand_sampler(
    model: Model,
    body: str,
    place: Callable[[Model, Array, np.random.Generator], Array | None] | None,
    *,
    steps: int,
    flexion: float,
    reach: float = 1.0,
) -> ClosingSampler:
    """Make a sampler with the published random directions of the hand: two torsions, all flexions,
    the outer flexions.

    A weight is the travel of a joint per simulated step of the published closing motion, which
    lasts ``steps``. The thumb opens to the limit of its joint; the published pi/2 exceeds this
    limit.
    """
    motions = np.zeros((4, model.nu))

    def put(row: int, joints: tuple[int, ...], value: float = 1.0) -> None:
        for joint in joints:
            motions[row, model.slice_u(f"joint_{joint}")] = value

    put(0, (0, 4, 8, 13))
    put(1, (0,), -1.0)
    put(1, (8,))
    put(2, (1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 14, 15))
    put(3, (3, 7, 11, 15))
    opened = np.zeros(model.nu)
    opened[model.slice_u("joint_13")] = PI / 2
    for slide in range(model.nu - 16):
        opened[slide] = np.nan  # set by ``place``
    return ClosingSampler(
        object=body,
        basis=motions * steps,
        mean=np.array([0.0, 0.0, flexion, 0.01]),
        spread=np.array([0.03, 0.03, 0.03 if model.nu == 16 else 0.02, 0.03]),
        opened=opened,
        reach=reach,
        wrist=place,
    )


def _allegro_sphere(model: Model, options: Options) -> Tasks:
    start = _start(model)
    # The box is x from -0.086 to -0.075 m, y from -0.005 to 0.005 m, z from 0.068 to 0.075 m, roll
    # and pitch from -0.1 to 0.1 rad, and yaw from 0 to that of the goal with a margin. Bounds are
    # relative to (-0.081, 0.001, 0.071).
    lower = np.array([-0.005, -0.006, -0.003, -0.1, -0.1, -0.1])
    upper = np.array([0.006, 0.004, 0.004, 0.1, 0.1, 0.1])
    sampler = _hand_sampler(model, "ball", None, steps=24, flexion=0.05)

    def turn(name: str, axis: int, angle: float) -> Task:
        rotation = np.zeros(6)
        rotation[3 + axis] = angle
        return Task(
            name=name,
            model=model,
            options=options.replace(joint_limits=True),
            start=start,
            goal=_displaced(model, start, "ball", rotation),
            object="ball",
            lower=lower + np.minimum(rotation, 0.0),
            upper=upper + np.maximum(rotation, 0.0),
            sampler=sampler,
            position_tolerance=0.01,
            rotation_tolerance=0.1,
            length=0.06,
            start_tolerance=3e-4,  # penetration at the published start: 0.2 mm in a fingertip, 0.1 mm in the palm
            planner=RRTOptions(step=0.4, gamma=1e-6),
        )

    quarter = turn("quarter turn of the ball", 2, PI / 2)
    return {
        "half_turn": turn("half turn of the ball", 2, PI),
        "quarter_turn": quarter,
        "quarter_turn_back": turn("quarter turn of the ball, the other way", 2, -PI / 2),
        "roll": turn("quarter turn of the ball about the fingers' axis", 1, PI / 2),
        "either_way": quarter.replace(
            name="turn of the ball, either way", lower=np.append(lower[:5], -PI / 2 - 0.1)
        ),
    }


def _slides(model: Model, q: Array, values: npt.ArrayLike) -> None:
    q[model.actuated_q[:3]] = values


def _above_pen(model: Model, q: Array, rng: np.random.Generator) -> Array | None:
    x, y, z = q[model.slice_q("pen")][:3]
    u = rng.random(2) - 0.5
    _slides(model, q, [-y - 0.01 * u[0], -x - 0.07 - 0.02 * u[1], z - 0.05])
    return None


def _allegro_pen(model: Model, options: Options) -> Tasks:
    # At the published start the pen is inside a finger. As in the older script, the first grasp of
    # the hand is drawn from the sampler.
    sampler = _hand_sampler(model, "pen", _above_pen, steps=20, flexion=0.06)
    first = sampler(model, _start(model), np.random.default_rng(0))
    assert first is not None
    goal = np.concatenate(([0.15, 0.15, 0.15 - 0.05], _rotation_vector(0.3, 0.2, 1.0)))
    task = Task(
        name="place the pen",
        model=model,
        options=options.replace(joint_limits=True),
        start=first,
        goal=_displaced(model, first, "pen", goal),
        object="pen",
        lower=np.array([0.0, 0.0, -0.05, 0.0, 0.0, 0.0]),
        upper=np.array([0.2, 0.2, 0.15, 0.5, 0.5, 1.2]),
        sampler=sampler,
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        length=0.1,
        planner=RRTOptions(step=0.2, gamma=1e-4),
    )
    return {"place": task}


def _over_plate(model: Model, q: Array, rng: np.random.Generator) -> Array | None:
    pos, rot = model.body_pose(q, "plate")
    height = pos[2] + 0.06 + 0.1 * math.sin(math.atan2(rot[2, 1], rot[2, 2]))
    _slides(model, q, [pos[0] + 0.05 * (rng.random() - 0.5), pos[1], height])
    return None


def _allegro_plate(model: Model, options: Options) -> Tasks:
    start = _start(model)
    goal = np.array([0.0, 0.05, 0.23, PI / 2, 0.0, 0.0])
    task = Task(
        name="pick the plate up",
        model=model,
        options=options.replace(joint_limits=True),
        start=start,
        goal=_displaced(model, start, "plate", goal),
        object="plate",
        # The box is x from -0.1 to 0.1 m, y from -0.5 to -0.3 m, z from 0 to 0.3 m, roll from 0 to
        # pi/2 with a margin, pitch and yaw from -0.2 to 0.2 rad. Bounds are relative to (0, -0.35,
        # 0.07).
        lower=np.array([-0.1, -0.15, -0.07, -0.1, -0.2, -0.2]),
        upper=np.array([0.1, 0.05, 0.23, PI / 2 + 0.1, 0.2, 0.2]),
        sampler=_hand_sampler(model, "plate", _over_plate, steps=20, flexion=0.04),
        position_tolerance=0.02,
        rotation_tolerance=0.1,
        length=0.1,
        planner=RRTOptions(step=0.4, gamma=1e-6),
    )
    return {"pick_up": task}


def _over_book(model: Model, q: Array, rng: np.random.Generator) -> Array | None:
    """Place the hand at random over the book, where the fingers and the thumb can close around it."""
    pos, rot = model.body_pose(q, "book")
    u = rng.random(3)
    roll = math.atan2(rot[2, 1], rot[2, 2])
    height = 0.05 + 0.02 * u[2] + 0.1 * math.sin(roll)
    _slides(model, q, pos + np.array([0.06 * (u[0] - 0.5), -0.1 + 0.15 * u[1], height]))
    return None


def _allegro_book(model: Model, options: Options) -> Tasks:
    start = model.clamp_to_limits(_start(model))
    goal = np.array([0.0, -0.15, 0.0, 0.0, 0.0, 0.0])
    task = Task(
        name="drag the book",
        model=model,
        options=options.replace(joint_limits=True),
        start=start,
        goal=_displaced(model, start, "book", goal),
        object="book",
        lower=np.array([-0.1, -0.2, -0.01, -0.1, -0.1, -0.2]),
        upper=np.array([0.1, 0.05, 0.05, 0.1, 0.1, 0.2]),
        # The fingers close until they touch. With the plate's settings they stop after 0.8 rad on
        # average, most of them without contact.
        sampler=_hand_sampler(model, "book", _over_book, steps=20, flexion=0.04, reach=3.0),
        position_tolerance=0.01,
        rotation_tolerance=0.1,
        length=0.1,
        planner=RRTOptions(step=0.2, gamma=1e-4),
    )
    return {"drag": task}


def _at_knob(model: Model, q: Array, rng: np.random.Generator) -> Array | None:
    pos, _ = model.body_pose(q, "knob")
    u = rng.random(2)
    _slides(model, q, pos + np.array([-0.075, -0.06 + 0.04 * u[0], -0.06 + 0.01 * u[1]]))
    return None


def _allegro_door(model: Model, options: Options) -> Tasks:
    start = _start(model)
    task = Task(
        name="open the door",
        model=model,
        options=options.replace(joint_limits=True),
        start=start,
        goal=np.concatenate(([-5 * PI / 12, PI / 2], start[2:])),
        object="knob",
        lower=np.array([-5 * PI / 12, PI / 4]),
        upper=np.array([0.0, PI / 2]),
        sampler=_hand_sampler(model, "knob", _at_knob, steps=25, flexion=0.04),
        rotation_tolerance=0.1,
        length=0.1,
        planner=RRTOptions(step=0.2, gamma=1e-6),
    )
    return {"open": task}


# -------------------------------------------------------------------- arms


def _arms_open(model: Model, q: Array, rng: np.random.Generator) -> Array:
    """Place both planar arms outwards with random elbows and wrists, and return rates that close
    them from the shoulders.

    The published sampler draws joints 2 and 3 and sweeps joint 1, one arm at a time.
    """
    rate = np.zeros(6)
    for first, sign in ((0, -1.0), (3, 1.0)):  # left, right
        elbow, wrist = rng.uniform(-PI / 2, PI / 2), rng.uniform(0.0, PI / 2)
        q[model.actuated_q[first : first + 3]] = sign * np.array([-PI / 2, elbow, wrist])
        rate[first : first + 3] = sign * np.array([1.0, -0.5 * rng.random(), 0.0])
    return rate


def _iiwa_planar(model: Model, options: Options) -> Tasks:
    start = _start(model)
    task = Task(
        name="half turn of the bucket",
        model=model,
        options=options.replace(joint_limits=True),
        start=start,
        goal=np.concatenate(([0.5, 0.0, -PI], start[3:])),
        object="bucket",
        # The box is x from 0.25 to 0.75 m, y from -0.3 to 0.3 m, and yaw from -pi to 0 with a
        # margin.
        lower=np.array([-0.4, -0.3, -PI - 0.1]),
        upper=np.array([0.1, 0.3, 0.1]),
        sampler=ClosingSampler(
            object="bucket",
            basis=np.zeros((1, model.nu)),
            mean=np.zeros(1),
            spread=np.zeros(1),
            reach=PI,
            wrist=_arms_open,
        ),
        position_tolerance=0.02,
        rotation_tolerance=0.1,
        length=0.14,
        planner=RRTOptions(step=0.2, gamma=1e-3),
    )
    return {"half_turn": task}


def _arms_beside(model: Model, q: Array, rng: np.random.Generator) -> Array:
    """Place each arm beside the object, wide open or folded, and return the rates at which the arms close."""
    rate = np.zeros(14)
    spread = np.array([0.0, 0.05, 0.001, 0.1, 0.001, 0.1, 0.0])
    for first, side in ((0, 1.0), (7, -1.0)):  # left, right
        mirror = np.array([side, 1.0, -side, 1.0, side, 1.0, side])
        wide = rng.random() < 0.5
        posture = np.array([0.7 if wide else 0.3, 1.8, PI / 2, -0.5 if wide else -2.5, 0, 0, 0])
        mean = np.array([-0.3, 0.0, 0.0, -0.1, 0.0, 0.1, 0.0])
        drawn = (mean + spread * rng.standard_normal(7)) * (1.0 if wide else -1.0)
        own = slice(first, first + 7)
        q[model.actuated_q[own]] = mirror * posture
        rate[own] = mirror * drawn
    return rate


def _bimanual(
    body: str, length: float, height: float, angle: float
) -> Callable[[Model, Options], Tasks]:
    def make(model: Model, options: Options) -> Tasks:
        start = _start(model)
        rotation = np.array([0.0, 0.0, 0.0, 0.0, 0.0, angle])
        task = Task(
            name=f"turn the {body}",
            model=model,
            options=options.replace(joint_limits=True),
            start=start,
            goal=_displaced(model, start, body, rotation),
            object=body,
            lower=np.array([-0.2, -0.2, -0.01, -0.1, -0.1, -0.1]),
            upper=np.array([0.2, 0.2, height, 0.1, 0.1, angle + 0.1]),
            sampler=ClosingSampler(
                object=body,
                basis=np.zeros((1, model.nu)),
                mean=np.zeros(1),
                spread=np.zeros(1),
                reach=4.0,
                wrist=_arms_beside,
                extra=2,
            ),
            position_tolerance=0.03,
            rotation_tolerance=0.1,
            length=length,
            # The arms must set the object down before they grasp it elsewhere, which needs many
            # nodes: 1100 to 4000 for 12 of 20 seeds.
            planner=RRTOptions(step=0.3, gamma=1e-3, max_nodes=8000),
        )
        return {"turn": task}

    return make


def _iiwa_box_push(model: Model, options: Options) -> Tasks:
    start = _start(model)
    sampler = BoxFaceSampler(
        object="box",
        half=(0.138, 0.099, 0.088),
        height=0.038,
        body="arm_link_7",
        tip=(0.0, 0.0, 0.02),
        radius=0.031,
        top=True,
        posture=start[model.actuated_q],
    )
    task = Task(
        name="turn the box by pushing and dragging",
        model=model,
        options=options.replace(joint_limits=True),
        start=start,
        goal=np.concatenate(([0.75, 0.0, PI / 4], start[3:])),
        object="box",
        lower=np.array([-0.1, -0.1, -0.1]),
        upper=np.array([0.1, 0.1, PI + 0.1]),
        sampler=sampler,
        position_tolerance=0.02,
        rotation_tolerance=0.05,
        length=0.15,
        planner=RRTOptions(step=0.3, gamma=1e-3),
    )
    # The published sampler does not push the top, so a box that was pushed out of reach stays
    # there.
    sides = task.replace(
        name="turn the box by pushing its sides", sampler=dataclasses.replace(sampler, top=False)
    )
    return {"push_and_turn": task, "push_sides": sides}


TASKS: Mapping[str, Callable[[Model, Options], Tasks]] = {
    "planar_hand": _planar_hand,
    "planar_pushing": _planar_pushing,
    "allegro_sphere": _allegro_sphere,
    "allegro_pen": _allegro_pen,
    "allegro_plate": _allegro_plate,
    "allegro_book": _allegro_book,
    "allegro_door": _allegro_door,
    "iiwa_planar": _iiwa_planar,
    "iiwa_bimanual_box": _bimanual("box", 0.35, 0.3, PI / 2),
    "iiwa_bimanual_cylinder": _bimanual("cylinder", 0.14, 0.3, PI),
    "iiwa_box_push": _iiwa_box_push,
}
"""Functions that make the tasks of each system, the published task first."""

"""Random tasks for arms in the plane: push a block among posts to another pose."""

import math

import numpy as np

import qdsim
from qdsim import planning

LINKS = {"arm": (3, 0.2, 0.35, 0.02), "snake": (7, 0.1, 0.13, 0.018)}
"""Links; the shortest and the longest; their radius, m."""
BLOCKS = {
    "tee": '<geom type="box" size="{a} {b} .03" pos="0 {b} 0" mass=".3"/>'
    '<geom type="box" size="{b} {a} .03" pos="0 -{a} 0" mass=".3"/>',
    "ell": '<geom type="box" size="{a} {b} .03" pos="0 {b} 0" mass=".3"/>'
    '<geom type="box" size="{b} {a} .03" pos="{c} -{a} 0" mass=".3"/>',
    "bar": '<geom type="box" size="{a} {b} .03" mass=".3"/>',
}
PLANAR = """<joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<joint name="turn" axis="0 0 1"/>"""


def pushing_task(robot, seed, *, posts=8, loose=False, **settings):
    """A random block between random posts, to be pushed up to half of the arm's length and turned by any angle.

    Draws that overlap are drawn anew. ``loose``: the block lies on a floor, under gravity.
    """
    rng = np.random.default_rng(seed)
    while True:
        task = _draw(robot, rng, posts, loose, settings)
        if task is not None:
            return task


def _draw(robot, rng, posts, loose, settings):
    count, shortest, longest, radius = LINKS[robot]
    lengths = rng.uniform(shortest, longest, count)
    reach = lengths.sum()
    kind = rng.choice(list(BLOCKS), p=[0.6, 0.2, 0.2])
    a, b = rng.uniform(0.06, 0.11), rng.uniform(0.015, 0.025)
    block = BLOCKS[kind].format(a=a, b=b, c=a - b)
    start, goal = (
        [*_place(rng, 0.4, 0.75, reach, 1.2), rng.uniform(-np.pi, np.pi)] for _ in range(2)
    )
    places = [
        (*_place(rng, 0.3, 0.95, reach, 1.5), rng.uniform(0.012, 0.025)) for _ in range(posts)
    ]
    model = qdsim.load(_scene(lengths, radius, block, places, loose))
    q = np.array(model.default_q)
    q[model.actuated_q] = rng.uniform(-1.0, 1.0, count) * (1.5 if count < 5 else 0.8)
    turn = (goal[2] - start[2] + np.pi) % (2.0 * np.pi) - np.pi
    goal[2] = start[2] + turn
    shift = np.array([goal[0] - start[0], goal[1] - start[1], turn])
    if not 0.05 < math.hypot(*shift[:2]) < 0.5 * reach:
        return None
    posed, there = _posed(model, q, start, loose), _posed(model, q, goal, loose)
    if not _is_free(model, posed, 0.004) or not _is_free(model, there, 0.004, "block"):
        return None
    box = np.abs(shift) + [0.1, 0.1, 0.5]
    if loose:
        box = np.array([box[0], box[1], 1e-3, 1e-2, 1e-2, box[2]])
    return planning.Task(
        name=f"{robot} and {kind}",
        model=model,
        options=qdsim.Options(h=0.1, margin=0.05),
        start=posed,
        goal=there,
        object="block",
        lower=-box,
        upper=box,
        sampler=planning.SurfaceSampler("block"),
        **({"position_tolerance": 0.005, "rotation_tolerance": 0.05} | settings),
    )


def _place(rng, least, most, reach, angle):
    r, t = rng.uniform(least, most) * reach, rng.uniform(-angle, angle)
    return r * math.cos(t), r * math.sin(t)


def _scene(lengths, radius, block, posts, loose):
    links, at = "", "0 0 .03"
    for i, length in enumerate(lengths):
        links += f"""<body name="link{i}" pos="{at}"><joint name="j{i}" axis="0 0 1" range="-2.6 2.6"/>
        <geom type="capsule" fromto="0 0 0 {length} 0 0" size="{radius}" mass=".5"/>"""
        at = f"{length} 0 0"
    springs = "".join(f'<position joint="j{i}" kp="100"/>' for i in range(len(lengths)))
    fixed = "".join(
        f'<geom type="cylinder" size="{r} .03" pos="{x} {y} .03"/>' for x, y, r in posts
    )
    floor = '<geom type="plane" size="2 2 .1"/>' if loose else ""
    joints = '<freejoint name="free"/>' if loose else PLANAR
    return f"""<mujoco><compiler angle="radian"/><option gravity="0 0 {-9.81 if loose else 0}"/>
    <worldbody>{floor}{fixed}<body name="block" pos="0 0 .03">{joints}{block}</body>
    {links}{"</body>" * len(lengths)}</worldbody><actuator>{springs}</actuator></mujoco>"""


def _posed(model, q, pose, loose):
    x, y, turn = pose
    q = np.array(q)
    if loose:
        q[model.slice_q("free")] = x, y, 0.03, math.cos(turn / 2), 0, 0, math.sin(turn / 2)
    else:
        for name, value in zip(("x", "y", "turn"), pose):
            q[model.slice_q(name)] = value
    return q


def _is_free(model, q, gap, only=None):
    """Whether links, block and posts keep ``gap``; with ``only``, whether posts keep it from that body."""
    names = np.array(model.body_names)
    for contact in model.collide(q, gap):
        pair = {names[contact["body_a"]], names[contact["body_b"]]}
        on_floor = pair == {"world", "block"} and abs(contact["frame"][0][2]) > 0.9
        asked = only is None or pair == {"world", only}
        if asked and not on_floor and (contact["dist"] < 0 or "block" in pair or "world" in pair):
            return False
    return True

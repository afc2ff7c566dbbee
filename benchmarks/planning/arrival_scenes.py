"""Scenes of arms and fingers for which nothing was tuned, as MJCF texts: an arm with the kinematics of a Panda and a
ball for a hand beside a box and a wall, or a case with a lid; two of them beside a box; three fingers around a cube;
two fingers of a gripper and a bar; a ball on slides that pushes a crate."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["GOALS", "drawn_goal", "scenes"]

GOALS = {
    "arm_wall": ("box", ("0.6 0.1 -", ".59 -.06 - 40deg", ".55 .05 .06 0.7071 0 0.7071 0")),
    "arm_lid": ("lid", ("0.9", "1.4")),
    "two_arms": ("tray", (".5 0 .2", ".5 0 - 35deg", ".58 .06 -")),
    "three_fingers": ("cube", ("0 0 - 50deg", ".015 -.01 - -35deg", "0 0 .06")),
    "gripper_bar": ("bar", ("0 0 - 70deg", ".08 .05 - -40deg", ".05 0 .08 30deg")),
    "pusher_crate": ("crate", (".25 .05 -", ".2 -.1 - 50deg", ".05 .12 - -90deg")),
}
"""The object of each, and goals as ``qdsim plan --goal`` takes them."""
DRAWN = {
    "arm_wall": ((0.5, 0.66), (-0.1, 0.1), 60, (0.0501, 0.0502), "0.7071 0 0.7071 0"),
    "arm_lid": ((0.3, 1.6),),
    "two_arms": ((0.42, 0.58), (-0.07, 0.07), 40, (0.13, 0.22), ""),
    "three_fingers": ((-0.02, 0.02), (-0.02, 0.02), 60, (0.045, 0.062), ""),
    "gripper_bar": ((-0.15, 0.15), (-0.15, 0.15), 90, (0.05, 0.12), ""),
    "pusher_crate": ((0.0, 0.28), (-0.18, 0.18), 110, (), ""),
}
"""Ranges of goals: of the lid's angle; or of x and y in m, of the yaw in degrees, and of z for every third goal, which
is in the air, or tipped onto a side."""

LINKS = (
    ("0 0 .333", "0 0 0", 2.897, 900, 87, 2.74),
    ("0 0 0", "-1.5708 0 0", 1.763, 900, 87, 2.74),
    ("0 -.316 0", "1.5708 0 0", 2.897, 600, 87, 2.38),
    (".0825 0 0", "1.5708 0 0", 3.07, 600, 87, 2.38),
    ("-.0825 .384 0", "-1.5708 0 0", 2.897, 250, 12, 2.74),
    ("0 0 0", "1.5708 0 0", 3.75, 150, 12, 1.55),
    (".088 0 0", "1.5708 0 0", 2.897, 50, 12, 0.54),
)
"""Place, turn, limit, stiffness and strength of each joint, mass of its link."""
SHELLS = {2: "0 0 -.12 0 0 -.06", 4: "0 .06 -.22 0 .02 -.05"}
"""Capsules of two links."""
BALL = """<geom type="capsule" size=".015" fromto="0 0 .1 0 0 {stick}"/><body name="{p}tip" pos="0 0 {end}">
<geom type="sphere" size="{size}" mass=".1" friction="1"/></body>"""


def arm(p: str, place: str, tool: str) -> tuple[str, str]:
    """Bodies and actuators."""
    bodies, springs = f'<body name="{p}base" {place}>', ""
    for i, (pos, euler, most, kp, force, mass) in enumerate(LINKS):
        least = {3: -3.07, 5: -0.0175}.get(i, -most)
        most = -0.07 if i == 3 else most
        bodies += f"""<body pos="{pos}" euler="{euler}"><inertial pos="0 0 0" mass="{mass}" diaginertia=".02 .02 .02"/>
<joint name="{p}j{i}" axis="0 0 1" range="{least} {most}"/>"""
        if i in SHELLS:
            shape = f'type="capsule" size=".05" fromto="{SHELLS[i]}"'
            bodies += f'<geom {shape} contype="2" conaffinity="1"/>'
        springs += f"""<position joint="{p}j{i}" name="{p}j{i}" kp="{kp}" ctrlrange="{least} {most}"
 forcerange="-{force} {force}"/>"""
    return bodies + tool.replace("{p}", p) + "</body>" * 8, springs


def spring(name: str, kp: float, force: float) -> str:
    return f'<position joint="{name}" name="{name}" kp="{kp}" forcerange="-{force} {force}"/>'


def scene(name: str, bodies: str, springs: str, robot: str, rest: str) -> str:
    return f"""<mujoco model="{name}"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<default><geom friction=".8 .005 .0001"/></default>
<worldbody><geom type="plane" size="3 3 .1"/>{bodies}</worldbody><actuator>{springs}</actuator>
<keyframe><key name="home" qpos="{robot} {rest}" ctrl="{robot}"/></keyframe></mujoco>"""


def box(name: str, pos: str, size: str, mass: float, friction: float = 0.8) -> str:
    return f"""<body name="{name}" pos="{pos}"><freejoint/>
<geom type="box" size="{size}" mass="{mass}" friction="{friction}"/></body>"""


def fingers() -> tuple[str, str]:
    """Three of three joints each, 11 cm from the middle."""
    bodies = springs = ""
    for k in range(3):
        w = 2.0 * math.pi * k / 3.0
        x, y = 0.11 * math.cos(w), 0.11 * math.sin(w)
        bodies += f"""<body pos="{x} {y} .2" euler="0 0 {w}"><joint name="f{k}s" axis="1 0 0" range="-.9 .9"/>
<geom type="capsule" size=".008" fromto="0 0 0 .03 0 0" mass=".05" contype="0" conaffinity="0"/>
<body pos=".03 0 0"><joint name="f{k}u" axis="0 1 0" range="-1.2 1.4"/>
<geom type="capsule" size=".008" fromto="0 0 0 0 0 -.1" mass=".05"/>
<body name="f{k}" pos="0 0 -.1"><joint name="f{k}l" axis="0 1 0" range="-.4 2.4"/>
<geom type="capsule" size=".008" fromto="0 0 0 0 0 -.075" mass=".03"/>
<geom type="sphere" size=".012" pos="0 0 -.085" mass=".02" friction="1"/></body></body></body>"""
        springs += "".join(spring(f"f{k}{j}", 3, 1) for j in "sul")
    return bodies, springs


def gripper() -> tuple[str, str]:
    """A hand on three slides that turns about the vertical, with two fingers on slides."""
    sides = "".join(
        f"""<body name="{name}" pos="0 {y} 0"><joint name="{name}" type="slide" axis="0 1 0" range="{low} {high}"/>
<geom type="capsule" size=".008" fromto="0 0 0 0 0 -.1" mass=".05"/>
<geom type="sphere" size=".012" pos="0 0 -.11" mass=".02" friction="1"/></body>"""
        for name, y, low, high in (("left", 0.05, -0.045, 0.04), ("right", -0.05, -0.04, 0.045))
    )
    bodies = f"""<body name="hand" pos="0 0 .25"><joint name="hx" type="slide" axis="1 0 0" range="-.3 .3"/>
<joint name="hy" type="slide" axis="0 1 0" range="-.3 .3"/><joint name="hz" type="slide" axis="0 0 1" range="-.25 .2"/>
<joint name="hyaw" axis="0 0 1" range="-3 3"/>
<geom type="box" size=".02 .08 .015" mass=".3" contype="0" conaffinity="0"/>{sides}</body>"""
    springs = "".join(spring(n, 800, 60) for n in ("hx", "hy", "hz")) + spring("hyaw", 30, 6)
    return bodies, springs + spring("left", 400, 20) + spring("right", 400, 20)


def pusher() -> tuple[str, str]:
    slides = "".join(
        f'<joint name="{n}" type="slide" axis="{axis}" range="{limits}"/>'
        for n, axis, limits in (
            ("px", "1 0 0", "-.5 .5"),
            ("py", "0 1 0", "-.5 .5"),
            ("pz", "0 0 1", "-.02 .3"),
        )
    )
    bodies = f"""<body name="pusher" pos="0 0 .05">{slides}
<geom type="sphere" size=".03" mass=".3" friction=".6"/></body>"""
    return bodies, "".join(spring(n, 300, 60) for n in ("px", "py", "pz"))


def scenes() -> dict[str, str]:
    """By name."""
    one, springs = arm("", 'pos="0 0 0"', BALL.format(p="{p}", stick=0.2, end=0.22, size=0.025))
    pad = BALL.format(p="{p}", stick=0.18, end=0.2, size=0.035)
    left, l_springs = arm("l_", 'pos="0 .45 0" euler="0 0 -.6"', pad)
    right, r_springs = arm("r_", 'pos="0 -.45 0" euler="0 0 .6"', pad)
    wall = '<geom type="box" size=".05 .4 .15" pos=".75 0 .15"/>'
    lid = """<geom type="box" size=".1 .12 .1" pos=".55 0 .1"/><body name="lid" pos=".67 0 .215">
<joint name="lid" axis="0 1 0" range="0 2.2" damping=".3" frictionloss=".1"/>
<geom type="box" size=".12 .11 .012" pos="-.14 0 0" mass=".5"/></body>"""
    home, free = "0 -.3 0 -2.4 0 2.1 .78", "1 0 0 0"
    reach, sides = "0 -.5 0 -2.3 0 1.9 .78", "{} .5 0 -1.9 0 2.4 .78"
    both, curled = f"{sides.format(0.6)} {sides.format(-0.6)}", "0 -.35 1.1 " * 3
    found = {
        "arm_wall": (one + wall + box("box", ".6 0 .0801", ".05 .1 .08", 0.8, 0.5), springs)
        + (home, f".6 0 .0801 {free}"),
        "arm_lid": (one + lid, springs, reach, "0"),
        "two_arms": (left + right + box("tray", ".5 0 .1001", ".1 .2 .1", 1.5),)
        + (l_springs + r_springs, both, f".5 0 .1001 {free}"),
    }
    for name, (bodies, own), rest, start, thing in (
        ("three_fingers", fingers(), f"0 0 .0301 {free}", curled)
        + (box("cube", "0 0 .0301", ".03 .03 .03", 0.08),),
        ("gripper_bar", gripper(), f"0 0 .0201 {free}", "0 0 -.1 0 0 0")
        + (box("bar", "0 0 .0201", ".09 .02 .02", 0.15),),
        ("pusher_crate", pusher(), f".15 0 .0501 {free}", "0 0 0")
        + (box("crate", ".15 0 .0501", ".08 .05 .05", 1.2, 0.35),),
    ):
        found[name] = (bodies + thing, own, start, rest)
    return {name: scene(name, *parts) for name, parts in found.items()}


def drawn_goal(name: str, number: int, attempt: int = 0) -> str:
    """Draw a goal from the ranges of a scene, in the words of ``qdsim plan --goal``; each attempt draws another one."""
    rng, (x, *others) = np.random.default_rng([number, attempt]), DRAWN[name]
    if not others:
        return f"{rng.uniform(*x):.3f}"
    y, turn, z, tipped = others
    place = f"{rng.uniform(*x):.3f} {rng.uniform(*y):.3f}"
    yaw = f"{rng.uniform(-turn, turn):.0f}deg"
    if not z or number % 3 != 2:
        return f"{place} - {yaw}"
    return f"{place} {rng.uniform(*z):.3f} {tipped or yaw}"

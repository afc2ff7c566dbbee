"""Robots that grasp an object on a table, and what becomes of it when the table is taken away."""

import itertools
from importlib.resources import files

import mujoco
import numpy as np
from mass_matrix import mass_matrix

import qdsim
from qdsim import planning
from qdsim.planning.grasps.grip import Grip, GripOptions

SHAPES = ("box", "cylinder", "sphere", "mesh")
H = 0.1
SLIPS = 0.02
"""m; an object that moves further without its table is dropped."""

GRIPPER = """
<body name="carriage" pos="0 0 .22">
  <joint name="gx" type="slide" axis="1 0 0" range="-.3 .3"/>
  <joint name="gy" type="slide" axis="0 1 0" range="-.3 .3"/>
  <joint name="gz" type="slide" axis="0 0 1" range="-.2 .2"/>
  <joint name="wrist" type="hinge" axis="0 0 1" range="-1.6 1.6"/>
  <geom type="box" size=".02 .07 .01" mass=".5"/>
  <body name="left" pos="0 .07 -.06"><joint name="l" type="slide" axis="0 -1 0" range="0 .065"/>
    <geom type="{finger}" size="{size}" mass=".1"/></body>
  <body name="right" pos="0 -.07 -.06"><joint name="r" type="slide" axis="0 1 0" range="0 .065"/>
    <geom type="{finger}" size="{size}" mass=".1"/></body>
</body>"""
FINGER = """
<body name="{n}1" pos="{x} 0 .24"><joint name="{n}1" axis="0 1 0" range="-2.5 2.5"/>
  <geom type="capsule" fromto="0 0 0 0 0 -.14" size=".012" mass=".2"/>
  <body name="{n}2" pos="0 0 -.14"><joint name="{n}2" axis="0 1 0" range="-2.2 2.2"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.1" size=".012" mass=".2"/></body></body>"""
SLIDES = """<joint name="hx" type="slide" axis="1 0 0" range="-.2 .2"/>
<joint name="hy" type="slide" axis="0 1 0" range="-.2 .2"/>
<joint name="hz" type="slide" axis="0 0 1" range="-.2 .2"/>
<joint name="yaw" axis="0 0 1" range="-1.6 1.6"/>"""


def _object(shape, rng, planar):
    """Geometry of the object and the height of its centre, m; what is planar lies across the plane xz."""
    a, b, c = rng.uniform(0.02, 0.035, 3)
    if shape == "box":
        return f'type="box" size="{a} {b} {c}"', c
    if shape == "sphere":
        return f'type="sphere" size="{a}"', a
    if shape == "cylinder":
        if planar:
            return f'type="cylinder" size="{a} {b}" euler="1.5707963 0 0"', a
        return f'type="cylinder" size="{a} {c}"', c
    return 'type="mesh" mesh="wedge"', c


def _wedge(rng):
    a, b, c = rng.uniform(0.02, 0.035, 3)
    narrow = rng.uniform(0.7, 1.0)
    corners = itertools.product((-a, a), (-b, b), (-c, c))
    points = [(x * (narrow if z > 0 else 1.0), y, z) for x, y, z in corners]
    return " ".join(f"{value}" for point in points for value in point)


def _world(robot, shape, rng, table):
    """MJCF of the scene without robots that are attached."""
    wedge = _wedge(rng)
    geom, height = _object(shape, rng, robot == "fingers")
    if shape == "mesh":
        height = float(wedge.split()[-1])
    x, y, yaw = rng.uniform([-0.03, -0.03, -1.0], [0.03, 0.03, 1.0])
    mass = rng.uniform(0.05, 0.2)
    if robot == "fingers":
        joints = """<joint name="ox" type="slide" axis="1 0 0"/><joint name="oz" type="slide" axis="0 0 1"/>
        <joint name="turn" axis="0 1 0"/>"""
        place = f'pos="{x} 0 {height}"'
    else:
        joints = "<freejoint/>"
        place = f'pos="{x} {y} {height}" euler="0 0 {yaw}"'
    own, springs = "", ""
    if robot == "gripper":
        box = rng.random() < 0.5
        finger, size = ("box", ".012 .008 .03") if box else ("capsule", ".01 .03")
        own = GRIPPER.format(finger=finger, size=size)
        springs = "".join(
            f'<position joint="{j}" kp="{k}"/>'
            for j, k in {"gx": 800, "gy": 800, "gz": 800, "wrist": 40, "l": 400, "r": 400}.items()
        )
    if robot == "fingers":
        own = FINGER.format(n="a", x=-0.1) + FINGER.format(n="b", x=0.1)
        springs = "".join(f'<position joint="{j}" kp="10"/>' for j in ("a1", "a2", "b1", "b2"))
    floor = '<geom name="table" type="plane" size="1 1 .1"/>' if table else ""
    hand = ""
    if robot == "allegro":
        folder = files("qdsim.systems")
        hand = f"""<body name="mount" pos="0 0 .22">{SLIDES}<inertial pos="0 0 0" mass=".1" diaginertia="1e-3 1e-3 1e-3"/>
        <body name="hand" pos="-.04 0 .03" euler="0 3.14159265 3.14159265">
        <include file="{folder / "allegro_hand.xml"}"/></body></body>"""
        springs = "".join(f'<position joint="joint_{j}" kp="4"/>' for j in range(16))
        springs += "".join(f'<position joint="{j}" kp="800"/>' for j in ("hx", "hy", "hz"))
        springs += '<position joint="yaw" kp="40"/>'
    return f"""<mujoco><compiler angle="radian" eulerseq="XYZ"/><option gravity="0 0 -9.81"/>
    <default><geom friction=".8"/></default>
    <asset><mesh name="wedge" vertex="{wedge}"/></asset>
    <worldbody>{floor}
    <body name="object" {place}>{joints}<geom {geom} mass="{mass}"/></body>
    {own}{hand}</worldbody><actuator>{springs}</actuator></mujoco>"""


def scene(robot, seed, table=True):
    """A ``mujoco.MjSpec``: "gripper", "arm", "allegro" or "fingers" over an object of shape ``seed % 4``."""
    rng = np.random.default_rng([seed, 7])
    spec = mujoco.MjSpec.from_string(_world(robot, SHAPES[seed % 4], rng, table))
    if robot == "arm":
        path = files("qdsim.systems") / "iiwa7_gripper.xml"
        frame = spec.worldbody.add_frame(pos=[-0.55, 0.0, 0.0])
        spec.attach(mujoco.MjSpec.from_file(str(path)), prefix="arm_", frame=frame)
    return spec


OPEN = {
    "arm": [0.0, 0.55, 0.0, -1.8, 0.0, 0.8, 0.0, -0.055, 0.055],
    "fingers": [0.6, -0.3, -0.6, 0.3],
    "allegro": [0.0, 0.3, 0.3, 0.3] * 3 + [0.8, 0.4, 0.3, 0.3] + [0.0, 0.0, 0.1, 0.0],
}


def start(model, robot):
    """The robot open, over the object."""
    q = np.array(model.default_q)
    if robot in OPEN:
        q[model.actuated_q] = OPEN[robot]
    return q


def squeeze(model, q):
    """The command that presses with one weight of the object at least and balances what it can of the weight."""
    options = GripOptions(press=1.0, most=6.0, near=2e-3, period=1e-6)
    space = planning.ObjectSpace(model, "object")
    grip = Grip(model, "object", 0.04, options)
    return grip.command(q, np.zeros(space.size), lean=False).u


def grasp(robot, seed, **settings):
    """A sample of ``SurfaceSampler`` ``(nq,)``, or None."""
    model = qdsim.load(scene(robot, seed))
    sampler = planning.SurfaceSampler("object", **({"contacts": 2} | settings))
    return sampler(model, start(model, robot), np.random.default_rng(seed))


def lift(robot, seed, q):
    """Press in a grasp, then take the table away.

    Returns:
        How far the object moves in one second of exact steps, and in one second of MuJoCo, m.
    """
    model, bare = (qdsim.load(scene(robot, seed, table)) for table in (True, False))
    u = squeeze(model, q)
    options = qdsim.Options(h=H, margin=0.05)
    try:
        begin = q
        for _ in range(5):
            begin = qdsim.step(model, begin, u, options).q_next
        after = begin
        for _ in range(10):
            after = qdsim.step(bare, after, u, options).q_next
        moved = _distance(bare, after, begin)
    except qdsim.SolverError:
        moved = np.inf
    return moved, _in_mujoco(robot, seed, q, u)


def _distance(model, q1, q0):
    ends = [model.body_pose(q, "object")[0] for q in (q1, q0)]
    return float(np.linalg.norm(ends[0] - ends[1]))


def _in_mujoco(robot, seed, q, u):
    """The same with MuJoCo's second-order dynamics: half a second on the table, one without, m."""
    state, moved = q, 0.0
    for table, seconds in ((True, 0.5), (False, 1.0)):
        spec = scene(robot, seed, table)
        spec.option.timestep = 5e-4
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = 100.0
        for geom in spec.geoms:
            geom.solref = 2e-3, 1.0
        for body in spec.bodies:
            body.gravcomp = 0.0 if body.name == "object" else 1.0
        twin = spec.compile()
        data = mujoco.MjData(twin)
        data.qpos[:] = state
        data.ctrl[:] = u
        _damp(twin, data)
        body = twin.body("object").id
        begin = np.array(data.xpos[body])
        for _ in range(int(seconds / 5e-4)):
            mujoco.mj_step(twin, data)
        state = np.array(data.qpos)
        moved = float(np.linalg.norm(data.xpos[body] - begin))
    return moved


def _damp(twin, data):
    """Critical damping of every actuated joint by its own inertia."""
    mujoco.mj_forward(twin, data)
    full = mass_matrix(twin, data)
    for i in range(twin.nu):
        dof = twin.jnt_dofadr[twin.actuator_trnid[i, 0]]
        twin.dof_damping[dof] = 2.0 * np.sqrt(twin.actuator_gainprm[i, 0] * full[dof, dof])

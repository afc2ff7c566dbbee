"""What a grasp loses a second: objects that friction holds creep in MuJoCo; beside the quasi-dynamic step.

Two plates of 0.5 kg on springs press a ball or a cube of 1 kg (its weight is a quarter of what friction could carry,
with "light squeeze" six tenths), or a box of 0.8 kg stands on an incline of 0.3 rad. Friction 1, solref and solimp as
MuJoCo has them; means over two seconds, after 0.3 s in which contacts settle. MuJoCo takes steps of 1 ms, implicitfast,
and "noslip" ten iterations. "qdsim" is `Options(contacts="mujoco", h=0.05)` with the file's cone and impratio, epsilon
0.01 and, in brackets, 1, the default; "qdsim, rigid" the same with rigid contacts, from where MuJoCo's have settled.

    python benchmarks/step/bench_creep.py
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import mujoco
import numpy as np

import qdsim

SECONDS, REST, H = 2.0, 0.3, 0.05
PLATES = """<mujoco><option cone="{cone}" impratio="{impratio}" timestep="0.001" integrator="implicitfast"/>
<default><geom friction="1" condim="4"/></default><worldbody>
<body name="left" pos="-0.04 0 0.5"><joint name="left" type="slide" axis="1 0 0"/>
  <geom type="box" size="0.01 0.3 0.3" mass="0.5"/></body>
<body name="right" pos="0.04 0 0.5"><joint name="right" type="slide" axis="1 0 0"/>
  <geom type="box" size="0.01 0.3 0.3" mass="0.5"/></body>
<body name="held" pos="0 0 0.5"><freejoint/><geom type="{shape}" mass="1"/></body></worldbody>
<actuator><position joint="left" kp="5000" kv="200"/><position joint="right" kp="5000" kv="200"/></actuator></mujoco>"""
INCLINE = """<mujoco><option cone="{cone}" impratio="{impratio}" timestep="0.001" integrator="implicitfast"
 gravity="2.899 0 -9.372"/><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.05"><freejoint/>
 <geom type="box" size="0.05 0.05 0.05" mass="0.8"/></body></worldbody></mujoco>"""
BALL, CUBE = 'sphere" size="0.03', 'box" size="0.03 0.03 0.03'
CASES: dict[str, tuple[str, str, Sequence[float], int]] = {
    "ball between plates": (PLATES, BALL, (0.00392, -0.00392), 4),
    "cube between plates": (PLATES, CUBE, (0.00392, -0.00392), 4),
    "ball, light squeeze": (PLATES, BALL, (0.00163, -0.00163), 4),
    "box on an incline": (INCLINE, "", (), 0),
}


def simulated(source: str, u: Sequence[float], axis: int, noslip: int) -> tuple[np.ndarray, float]:
    """Where it rests, and mm/s that it loses from there."""
    model = mujoco.MjModel.from_xml_string(source)
    model.opt.noslip_iterations = noslip
    data = mujoco.MjData(model)
    data.ctrl[:] = u
    mujoco.mj_step(model, data, round(REST / model.opt.timestep))
    start = data.qpos.copy()
    mujoco.mj_step(model, data, round(SECONDS / model.opt.timestep))
    return start, 1e3 * abs(data.qpos[axis] - start[axis]) / SECONDS


def stepped(
    source: str, start: np.ndarray, u: Sequence[float], axis: int, **options: object
) -> float:
    """The same by quasi-dynamic steps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = qdsim.load(source)
        settings, q = qdsim.Options(h=H, **options), start  # type: ignore[arg-type]
        for _ in range(round(SECONDS / H)):
            q = qdsim.step(model, q, u, settings).q_next
    return 1e3 * abs(q[axis] - start[axis]) / SECONDS


def main() -> None:
    print((__doc__ or "").split("\n\n    python")[0].split("\n\n", 1)[1] + "\n")
    print("| mm/s | cone | impratio | MuJoCo | qdsim | MuJoCo, noslip | qdsim, rigid |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, (scene, shape, u, axis) in CASES.items():
        for cone, impratio in (
            ("pyramidal", 1),
            ("pyramidal", 10),
            ("elliptic", 1),
            ("elliptic", 10),
        ):
            source = scene.format(cone=cone, impratio=impratio, shape=shape)
            start, creep = simulated(source, u, axis, 0)
            _, held = simulated(source, u, axis, 10)
            ours, slow = (
                stepped(source, start, u, axis, contacts="mujoco", epsilon=epsilon)
                for epsilon in (0.01, 1.0)
            )
            rigid = stepped(source, start, u, axis)
            print(
                f"| {name} | {cone} | {impratio} | {creep:.3g} | {ours:.3g} ({slow:.3g}) | {held:.2g} | {rigid:.2g} |"
            )


if __name__ == "__main__":
    main()

"""Motions of the systems with pressure fields, compared with Drake's hydroelastic contact (`pip install drake`).

Both simulators have the same h and equally fine tetrahedra. qdsim has Coulomb friction on every polygon, Drake
regularised friction, and Drake's discs have fewer sides. Trajectories therefore agree to the motion of one step, not
to rounding.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

from qdsim.array_type import Array
from qdsim.systems import DynamicSystem, load_dynamic

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "worlds"))
from drake_world import DrakeScene

CASES: dict[str, tuple[float, float]] = {
    "ball_drop": (1e-4, 0.22),
    "sliding_box": (1e-3, 0.4),
    "tipping_box": (1e-3, 0.45),
    "spinning_disc": (1e-3, 0.16),
    "soft_pinch": (2e-3, 1.2),
    "four_boxes": (2e-3, 0.6),
}
"""Time steps and durations, s."""


WHERE_NOT = """
Reasons for the differences: in Drake the force of a polygon acts at its centroid. A box that is pushed with half of the
force that tips it therefore leans by 0.0011 to 0.0014 rad, where linear pressure gives 0.00073 rad (also the result of
qdsim, `tests/fields/test_soft_systems.py`), and it tips earlier. From then on the difference grows without bound. In
Drake the pile of four boxes moves to the side by 7 mm, and by 3 mm with a quarter of the time step; in qdsim its axis
stays in place to 1e-14 m.
"""


def in_drake(system: DynamicSystem, h: float, times: Array) -> Array:
    """Simulate in Drake; return configurations ``(n, nq)``."""
    model = system.model
    scene = DrakeScene(model, np.zeros(model.nv), h, compensated=False)
    plant, context = scene.plant, scene.plant_context
    places, speeds = np.empty(model.nq), np.empty(model.nv)
    places[scene.columns], speeds[scene.rows] = system.q, system.v
    plant.SetPositions(context, places)
    plant.SetVelocities(context, speeds)
    scene.simulator.Initialize()
    found = []
    for k, t in enumerate(times):
        found.append(np.array(plant.GetPositions(context))[scene.columns])
        if system.tau is not None:
            v = np.array(plant.GetVelocities(context))[scene.rows]
            forces = np.empty(model.nv)
            forces[scene.rows] = system.tau(float(t), found[-1], v)
            scene.forces.FixValue(context, forces)
        scene.simulator.AdvanceTo((k + 1) * h)
    return np.array(found)


def off(model: object, a: Array, b: Array) -> tuple[float, float]:
    """Return the largest difference of lengths, m, and of angles, rad, over a motion."""
    lengths, angles = [], []
    for name, kind in zip(
        model.joint_names, (j.type for body in model.description.bodies for j in body.joints)
    ):  # type: ignore[attr-defined]
        at = model.slice_q(name)  # type: ignore[attr-defined]
        one, other = a[:, at], b[:, at]
        if kind == "free":
            lengths.append(np.linalg.norm(one[:, :3] - other[:, :3], axis=1).max())
            lengths_of = np.linalg.norm(one[:, 3:], axis=1) * np.linalg.norm(other[:, 3:], axis=1)
            dots = np.abs(np.sum(one[:, 3:] * other[:, 3:], axis=1)) / lengths_of
            angles.append(2 * np.arccos(np.minimum(dots, 1.0)).max())
        else:
            (lengths if kind == "slide" else angles).append(np.abs(one - other).max())
    return max(lengths, default=0.0), max(angles, default=0.0)


def main() -> None:
    if importlib.util.find_spec("pydrake") is None:
        print("Needs Drake: `pip install drake`.")
        return
    print("| system | h, ms | s | farthest apart, mm | rad | way, mm | rad | s of CPU | Drake's |")
    print("|" + " --- |" * 9)
    for name, (h, duration) in CASES.items():
        system = load_dynamic(name)
        begin = time.process_time()
        motion = system.simulate(duration, system.options.replace(h=h))
        middle = time.process_time()
        theirs = in_drake(system, h, motion.t)
        end = time.process_time()
        apart = off(system.model, motion.q, theirs)
        way = off(system.model, motion.q, np.broadcast_to(motion.q[0], motion.q.shape))
        cells = [f"{1e3 * h:g}", f"{duration:g}", f"{1e3 * apart[0]:.3f}", f"{apart[1]:.4f}"]
        cells += [f"{1e3 * way[0]:.1f}", f"{way[1]:.3f}"]
        cells += [f"{middle - begin:.1f}", f"{end - middle:.1f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(WHERE_NOT)


if __name__ == "__main__":
    main()

"""Numbers that are known of pressure fields, in closed form or from Drake 1.51.1, beside what this package gives."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/fields"))

import test_pressure_references as references
from field_bodies import pose, random_pose, slow_tangent

import qdsim
from qdsim.pressure import HalfSpace, PressureField, RigidSurface, pressure_patch
from qdsim.systems import load_dynamic

BOX = (0.03, 0.02, 0.01)
FORCES = {1e-4: 239.0013333, 1e-3: 2301.333333, 5e-3: 9666.666667, 1e-2: 15333.33333}
SHARES = {0.05: 0.53204, 0.1: 0.53068, 0.2: 0.52780, 0.3: 0.52466, 0.5: 0.51756}


def row(what: str, asked: str, got: str, test: str) -> None:
    print(f"| {what} | {asked} | {got} | `{test}` |", flush=True)


def beside_drake() -> None:
    found = np.array([references.deviations(record) for record in references.RECORDS])
    wrench, area, sums = found.max(axis=0)[:3]
    test = "test_patches_are_those_of_drake"
    row(
        f"1: Drake's tetrahedra, {len(found)} poses: force and moment",
        "1e-10",
        f"{wrench:.1e}",
        test,
    )
    row("area", "1e-10", f"{area:.1e}", test)
    row("sums of A, A p, A g, A p g", "1e-8", f"{sums:.1e}", test)


def tangents() -> None:
    rng, worst = np.random.default_rng(4), 0.0
    unit = np.outer(references.LENGTHS, references.LENGTHS)
    for first, second in (("small cube", "stone"), ("star", "small cube"), ("rigid stone", "cube")):
        met = 0
        while met < 2:
            here, there = random_pose(rng, 0.025), random_pose(rng, 0.02)
            bodies = references.BODIES[first], references.SOFT[second]
            found = pressure_patch(*bodies, here, there)
            if found.count >= 5:
                met += 1
                exact = slow_tangent(*bodies, here, there) / unit
                off = np.abs(found.tangent / unit - exact).max() / np.abs(exact).max()
                worst = max(worst, off)
    row(
        "2: tangent beside a complex step",
        "1e-10",
        f"{worst:.1e}",
        "test_tangent_beside_a_complex_step",
    )
    row(
        "tangent and -dU by differences",
        "1e-7",
        "1e-7 in nine of ten poses of any pair, 1e-4 and 1e-5 where faces come and go within the step",
        "test_tangent_and_force_beside_differences",
    )


def boxes() -> None:
    field = PressureField.box(BOX, 1e7)
    for depth, asked in FORCES.items():
        got = pressure_patch(field, HalfSpace(), pose((0, 0, BOX[2] - depth))).force[2]
        row(
            f"3: soft box, {1e3 * depth:g} mm deep",
            f"{asked:.7g} N",
            f"{abs(got):.10g} N",
            "test_soft_box_on_a_rigid_plane",
        )
    got = pressure_patch(field, HalfSpace(), pose((0, 0, BOX[2] - 0.012))).force[2]
    row(
        "12 mm, past the medial axis",
        "13482.67 N",
        f"{abs(got):.10g} N",
        "test_past_the_medial_axis_the_force_falls_and_does_not_jump",
    )
    sides = [across(beyond) for beyond in (-1e-6, 1e-6)]
    row(
        "4: rigid face at 0.01 -+ 1e-6 m of a soft box",
        "399.96 N",
        f"{sides[0]:.6f}, {sides[1]:.6f} N",
        "test_rigid_face_across_the_middle_of_a_soft_box",
    )


def across(beyond: float) -> float:
    """Push a rigid face of 0.02 x 0.02 m to the middle of a soft box of half thickness 0.01 m and 1e6 Pa."""
    square = 0.01 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
    face = RigidSurface(square, [[0, 2, 1], [0, 3, 2]])  # looks down
    box = PressureField.box([0.03, 0.03, 0.01], 1e6)
    return float(-pressure_patch(face, box, pose((0, 0, -beyond))).force[2])


def torsion() -> None:
    for depth, asked in SHARES.items():
        force, place = references.loads(depth, 0.05)
        a = np.sqrt(depth * (2 - depth))
        got = force @ np.hypot(*place.T) / (force.sum() * a)
        row(
            f"5: torsion of a ball, M / (mu F a) at d/R = {depth}",
            f"{asked}",
            f"{got:.4f} (hint R/20)",
            "test_torsion_of_a_ball_on_a_plane",
        )
    force, place = references.loads(0.1, 0.06)
    most, inside, sums = (force.sum(), force @ np.hypot(*place.T)), 0.0, 0.0
    for way in np.geomspace(1e-3, 10.0, 120):
        slip = np.stack([-place[:, 1], place[:, 0] + way], axis=1)
        slip /= np.linalg.norm(slip, axis=1, keepdims=True)
        f = force @ slip[:, 1] / most[0]
        m = force @ (place[:, 0] * slip[:, 1] - place[:, 1] * slip[:, 0]) / most[1]
        inside, sums = max(inside, 1 - np.hypot(f, m)), max(sums, f + m)
    row(
        "limit surface inside of the ellipse",
        "5.6 %",
        f"{100 * inside:.2f} %",
        "test_limit_surface_of_a_ball_on_a_plane",
    )
    row("largest abs(f) + abs(m)", "1.337", f"{sums:.3f}", "the same")
    row(
        "pinched: torque at which it turns, over mu sum f abs(r)",
        "1 to 1e-3",
        f"{capacity():.5f}",
        "test_torsion_comes_out_of_the_surface",
    )


def on_floor(
    kind: str, size: object, height: float, soft: qdsim.Softness, mu: float
) -> qdsim.Model:
    scene = qdsim.SceneBuilder(gravity=(0, 0, 0))
    scene.geom("world", "plane", name="floor", friction=mu)
    scene.body("body", pos=(0, 0, height), mass=1.0)
    scene.joint("body", "free")
    scene.geom("body", kind, size, name="body", soft=soft, friction=mu)
    return qdsim.build(scene.build())


def capacity() -> float:
    mu, weight, options = 0.5, 20.0, qdsim.Options(h=0.01, epsilon=1e-3)
    model = on_floor("sphere", 0.02, 0.018, qdsim.Softness(1e6, hint=0.003), mu)
    q = model.default_q
    for _ in range(3):
        q = qdsim.step(model, q, [], options, tau=[0, 0, -weight, 0, 0, 0]).q_next
    (surface,) = qdsim.pressure_surface(model, q)
    force = surface.polygons["area"] * surface.polygons["pressure"]
    arm = np.hypot(*(surface.polygons["centre"] - surface.centre)[:, :2].T)
    expected, low, high = mu * (force @ arm), 0.9, 1.1
    for _ in range(16):
        share = 0.5 * (low + high)
        tau = [0, 0, -weight, 0, 0, share * expected]
        turned = abs(qdsim.step(model, q, [], options, tau=tau).delta[5]) > 1e-4
        low, high = (low, share) if turned else (share, high)
    return low


def steps() -> None:
    for weight in (500.0, 1000.0):
        model = on_floor("box", BOX, 0.009, qdsim.Softness(1e6), 0.5)
        q, errors, lean = model.default_q, [], 0.0
        (a, b), depth = (0.06, 0.04), np.roots
        cubic = np.array([4 / 3, -(a + b), a * b, -weight * BOX[2] / 1e6])
        closed = min(r.real for r in depth(cubic) if abs(r.imag) < 1e-9 and r.real > 0)
        programs = []
        for _ in range(2):
            step = qdsim.step(
                model, q, [], qdsim.Options(h=0.01, epsilon=1e-9), tau=[0, 0, -weight, 0, 0, 0]
            )
            q = step.q_next
            programs.append(step.info.soft_programs)
            errors.append((BOX[2] - q[2]) / closed - 1)
            lean = max(lean, float(np.abs(q[4:6]).max()))
        got = ", ".join(f"{e:.0e}" for e in errors) + f" ({programs[0]}, {programs[1]} programs)"
        asked = "-9.3e-2, -9.0e-4, -1e-7, .." if weight == 500 else "-.20, -1e-2, -3e-5, .."
        row(
            f"6: depth under {weight:g} N, error after each step",
            f"{asked} (one program a step)",
            got,
            "test_soft_box_rests_at_its_closed_depth",
        )
        row("its tilt", "1e-12", f"{lean:.0e}", "the same")
    row(
        "depth of a sliding box over W/k, disc, slip of 1e-5 to 1e-2 m",
        "1 to 1 %",
        "1 to 1e-6",
        "test_sliding_neither_lifts_nor_loses_friction",
    )
    row("depth W/k - mu abs(c_t) of the elastic cone", "1 %", "not offered: it glides off", "-")
    row(
        "creep under half of mu W, last step",
        "0",
        "< 1e-12 m",
        "test_what_friction_holds_does_not_creep",
    )


def motions() -> None:
    system = load_dynamic("spinning_disc", speed=20.0, friction=0.5)
    motion = system.simulate(0.1)
    rate = (motion.v[0, 5] - motion.v[-1, 5]) / motion.t[-1]
    row(
        "7: spinning disc, deceleration",
        "130.8 rad/s^2 (Drake 128.3)",
        f"{rate:.2f}",
        "test_a_spinning_disc_slows_by_its_surface_alone",
    )
    motion = load_dynamic("sliding_box", speed=1.0, friction=0.3).simulate()
    row(
        "box at 1 m/s, mu 0.3, way",
        "0.1699 m (Drake 0.1704, 0.1677)",
        f"{motion.q[-1, 0] - motion.q[0, 0]:.4f} m (half a step's way less)",
        "test_a_sliding_box_stops_where_friction_says",
    )
    for dissipation, asked in ((0.0, "0.952, exact 1"), (1.0, "0.464"), (10.0, "0.059")):
        v = load_dynamic("ball_drop", dissipation=dissipation).simulate().v[:, 2]
        got = v[v.argmin() :].max() / -v.min()
        row(
            f"dropped ball, dissipation {dissipation:g} s/m: rebound",
            f"{asked} (Drake)",
            f"{got:.3f}",
            "test_a_dropped_ball_comes_back_as_in_drake",
        )


def main() -> None:
    print("| number | asked | got | held by |\n| --- | --- | --- | --- |")
    for part in (beside_drake, tangents, boxes, torsion, steps, motions):
        part()


if __name__ == "__main__":
    main()

"""Laws of friction: the time of a step for a growing number of contacts, under convex friction and Coulomb's law.

Two fingers squeeze a row of balls on the ground and then push down. With one ball this is the gripper of Pang and
Tedrake 2021, whose figures compare a quadratic program (convex pyramid), a cone program (convex cone), a linear
complementarity problem (Coulomb, pyramid) and a nonlinear one (Coulomb, cone). Mixed-integer programs have the
conditions of the linear complementarity problem, with a binary variable for each pair (HiGHS, in SciPy). Lemke's
method solves this problem as a whole, without qdsim's step. Steps are quasi-static with h = 10 ms. CPU times of one
thread while the fingers slip: the median over ten steps of the smallest of three measurements.

*forces*: the largest difference of a finger's force from that of the nonlinear problem with cones, N.

    python benchmarks/step/bench_laws.py [--figure docs/images/law_growth.png]
"""

from __future__ import annotations

import argparse
import os
import sys
import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import qdsim

RADIUS, PITCH, GRAVITY, MU = 0.1, 0.2, 10.0, 0.5
FRICTION = (MU, MU, 0.0, 0.0, 0.0)
BALLS = (1, 2, 4, 8, 16, 32, 64)
MOST = {"mixed-integer program": 16, "Lemke's method": 8}
"""Largest number of balls: with more, mixed-integer programs take seconds, and Lemke's method fails numerically."""
STEPS = range(14, 24)
"""Steps of the motion in which the fingers slip down along the outer balls."""
LAWS = {
    "quadratic program (convex, pyramid)": {"friction": "pyramid"},
    "cone program (convex, cone)": {"friction": "cone"},
    "complementarity, linear (Coulomb, pyramid)": {"friction": "pyramid", "law": "coulomb"},
    "complementarity, nonlinear (Coulomb, cone)": {"friction": "cone", "law": "coulomb"},
}


WEAK = 1e-4  # N/mm: errs in forces by this times the motion of a step, a mm
BIG = 1e3  # N and mm: bounds of what a binary switches off


def row_of(balls: int) -> qdsim.Model:
    """Make the hand and a row of balls that slide without rotation, as in the paper."""
    scene = qdsim.SceneBuilder(gravity=(0, 0, -GRAVITY), name="row")
    touch = {"contype": 0, "conaffinity": 0}
    scene.geom("world", "plane", name="ground", **touch)
    ends = PITCH * (balls - 1) / 2
    for k in range(balls):
        scene.body(f"ball{k}", pos=(PITCH * k - ends, 0, RADIUS), mass=1.0, inertia=(0.004,) * 3)
        scene.joint(f"ball{k}", "slide", axis=(1, 0, 0))
        scene.joint(f"ball{k}", "slide", axis=(0, 0, 1))
        scene.geom(f"ball{k}", "sphere", RADIUS, name=f"ball{k}", **touch)
        scene.pair("ground", f"ball{k}", friction=FRICTION)
        if k:
            scene.pair(f"ball{k - 1}", f"ball{k}", friction=FRICTION)
    scene.body("hand", mass=1.0, inertia=(0.1,) * 3)
    scene.joint("hand", "slide", axis=(0, 0, 1))
    for name, side in (("left", -1), ("right", 1)):
        at = side * (ends + RADIUS + 0.016)
        scene.body(name, parent="hand", pos=(at, 0, RADIUS), mass=1.0, inertia=(0.2,) * 3)
        scene.joint(name, "slide", axis=(1, 0, 0))
        scene.geom(name, "box", (0.01, 0.1, 0.1), name=name, **touch)
        scene.pair(name, f"ball{0 if side < 0 else balls - 1}", friction=FRICTION)
        scene.actuator(name, 1000.0)
    scene.actuator("hand", 1000.0)
    return qdsim.build(scene.build())


def start_of(model: qdsim.Model) -> np.ndarray:
    return np.array(model.default_q)


def commands(model: qdsim.Model) -> np.ndarray:
    """Return the commands (35, nu): the fingers close by 16 mm over 0.08 s, then the hand pushes down."""
    found = []
    for k in range(1, 36):
        close, down = min(0.002 * k, 0.016), -0.002 * max(k - 10, 0)
        each = {"left": close + 0.01, "right": -close - 0.01, "hand": down}
        found.append([each[name] for name in model.actuator_names])
    return np.maximum(found, -0.03)


class Conditions:
    """The linear complementarity problem of a quasi-static step: balance of all forces by the displacement x, and per
    contact a normal force N, two rays b of friction and a bound s of sliding,

        K x + k = J_n' N + J_t' (b1 - b2),   0 <= N  _|_ phi + J_n x >= 0,
        0 <= b1 _|_ s + J_t x >= 0,  0 <= b2 _|_ s - J_t x >= 0,   0 <= s _|_ mu N - b1 - b2 >= 0.
    """

    def __init__(self, model: qdsim.Model, q: np.ndarray, u: np.ndarray) -> None:
        contacts = model.collide(q, np.inf)
        self.model, self.q, self.contacts = model, q, contacts
        nv, nc = model.nv, len(contacts)
        self.nv, self.nc = nv, nc
        stiffness, force = np.zeros(nv), -model.gravity_force(q)
        stiffness[model.actuated_v] = model.parameters.actuator_stiffness
        # the hand's own weight is carried, as in the step
        force[model.actuated_v] = stiffness[model.actuated_v] * (q[model.actuated_q] - u)
        self.K, self.k = np.diag(stiffness / 1e3), force  # N and mm, which are of one size
        self.C = np.zeros((nv, 4 * nc))  # of (N, b1, b2, s) per contact
        self.D, self.B = np.zeros((4 * nc, nv)), np.zeros((4 * nc, 4 * nc))
        self.b = np.zeros(4 * nc)
        for i, contact in enumerate(contacts):
            normal, along = self._rows(contact)
            at = 4 * i
            self.C[:, at : at + 3] = -np.array([normal, along, -along]).T
            self.D[at : at + 3] = normal, along, -along
            self.B[at + 1 : at + 3, at + 3] = 1.0
            self.B[at + 3, at : at + 3] = MU, -1.0, -1.0
            self.b[at] = 1e3 * contact["dist"]

    def _rows(self, contact: np.void) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of normal motion, and of motion along the tangent in the plane, by displacements."""
        pos, rot = self.model.body_poses(self.q)
        J = np.zeros((3, self.nv))
        for sign, body in ((-1, int(contact["body_a"])), (1, int(contact["body_b"]))):
            local = rot[body].T @ (contact["pos"] - pos[body])
            J += sign * self.model.point_jacobian(self.q, body, local)[:3]
        J = contact["frame"] @ J
        return J[0], J[1:][np.argmax(np.abs(J[1:]).sum(axis=1))]

    def lemke(self) -> tuple[np.ndarray, np.ndarray]:
        """Solve by Lemke's method for displacement and forces (nc); a weak spring holds what nothing else does."""
        weak = np.linalg.inv(self.K + WEAK * np.eye(self.nv))
        found = qdsim.solve_lcp(self.B - self.D @ weak @ self.C, self.b - self.D @ weak @ self.k)
        return -weak @ (self.C @ found.z + self.k), found.z[::4]

    def mixed_integer(self) -> tuple[np.ndarray, np.ndarray]:
        """Solve the same problem, with a binary variable for each complementary pair."""
        nv, n = self.nv, 4 * self.nc
        inside, zeros = np.eye(n), np.zeros((n, nv))
        slack = np.hstack([self.D, self.B, 0 * inside])
        done = quiet_milp(
            np.zeros(nv + 2 * n),
            integrality=np.r_[np.zeros(nv + n), np.ones(n)],
            bounds=Bounds(
                np.r_[np.full(nv, -BIG), np.zeros(2 * n)],
                np.r_[np.full(nv + n, BIG), np.ones(n)],
            ),
            constraints=[
                LinearConstraint(np.hstack([self.K, self.C, zeros.T]), -self.k, -self.k),
                LinearConstraint(slack, -self.b, np.inf),
                LinearConstraint(np.hstack([zeros, inside, -BIG * inside]), -np.inf, 0.0),
                LinearConstraint(
                    slack + np.hstack([zeros, 0 * inside, BIG * inside]), -np.inf, BIG - self.b
                ),
            ],
        )
        if not done.success:
            raise RuntimeError(done.message)
        return done.x[:nv], done.x[nv : nv + n : 4]


def quiet_milp(*args, **kw):
    """Solve without the line that HiGHS writes directly to the standard output, where the tables are printed."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(nowhere, 1)
    try:
        return milp(*args, **kw)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def fingers(model: qdsim.Model, contacts: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the normal forces of the left and right finger, N."""
    found = np.zeros(2)
    for contact, force in zip(contacts, normal):
        ends = {model.geom_names[contact["geom_a"]], model.geom_names[contact["geom_b"]]}
        for i, name in enumerate(("left", "right")):
            found[i] += force * (name in ends)
    return found


def least(call, rounds: int = 3) -> tuple[float, object]:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        answer = call()
        times.append(time.process_time() - start)
    return min(times), answer


def costs(balls: int) -> dict[str, tuple[float, float]]:
    """Return ms per step, and the largest difference of the fingers' forces from those of the last law, by method."""
    model = row_of(balls)
    base = qdsim.Options(h=0.01, margin=np.inf, epsilon=1e-9, rays=2)
    truth = base.replace(friction="cone", law="coulomb")
    times: dict[str, list[float]] = {}
    off: dict[str, float] = {}
    q, course = start_of(model), commands(model)

    def note(name: str, call, forces, wanted) -> None:
        each, answer = least(call, 1 if name == "mixed-integer program" else 3)
        times.setdefault(name, []).append(each)
        off[name] = max(off.get(name, 0.0), np.abs(forces(answer) - wanted).max())

    def of_step(step) -> np.ndarray:
        return fingers(model, step.contacts, step.contacts["force"][:, 0])

    for k, u in enumerate(course):
        step = qdsim.step(model, q, u, truth)
        if k in STEPS:
            wanted = of_step(step)
            for name, law in LAWS.items():
                o = base.replace(**law)
                note(name, lambda o=o, q=q, u=u: qdsim.step(model, q, u, o), of_step, wanted)
            problem = Conditions(model, q, u)
            for name, solve in (
                ("Lemke's method", problem.lemke),
                ("mixed-integer program", problem.mixed_integer),
            ):
                if balls <= MOST[name]:
                    of = lambda x, p=problem: fingers(model, p.contacts, x[1])  # noqa: E731
                    note(name, solve, of, wanted)
        q = step.q_next
    return {name: (1e3 * float(np.median(times[name])), off[name]) for name in times}


def draw(path: str, found: dict[str, list[tuple[int, float]]]) -> None:
    """Draw the time against the number of contacts, by method."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), dpi=100, layout="constrained")
    ax = figure.add_subplot()
    for k, (name, points) in enumerate(found.items()):
        ax.loglog(*zip(*points), ".--" if k % 2 else ".-", label=name)
    ax.set(xlabel="contacts", ylabel="CPU ms a step")
    ax.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--figure")
    args = parser.parse_args()
    curves: dict[str, list[tuple[int, float]]] = {}
    print("| balls | contacts | method | ms a step | forces (N) |")
    print("| ---: | ---: | --- | ---: | ---: |")
    for balls in BALLS:
        contacts = 2 * balls + 1
        for name, (each, off) in costs(balls).items():
            curves.setdefault(name, []).append((contacts, each))
            print(f"| {balls} | {contacts} | {name} | {each:.3f} | {off:.1e} |", flush=True)
    print("\nExponents of the time in the number of contacts, from the second size on:", end=" ")
    slopes = []
    for name, points in curves.items():
        n, ms = np.log(np.array(points[1:]).T)
        slopes.append(f"{name} {np.polyfit(n, ms, 1)[0]:.1f}" if len(n) > 1 else name)
    print("; ".join(slopes) + ".")
    if args.figure:
        draw(args.figure, curves)


if __name__ == "__main__":
    main()

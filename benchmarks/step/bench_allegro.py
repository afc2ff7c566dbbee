"""The Allegro hand around a ball, and ten boxes in stacks: a step and its derivatives beside MuJoCo's.

Power grasp. From the published start the fingers are opened, then closed around the ball by commands that
stay ahead of the joints by a constant angle, 80 steps of 0.1 s; the last command is held. Two situations:

- in motion: eight commands around the held one (standard deviation 0.03 rad), as a planner or a controller
  in the hand would try them; the time of a contender is its mean over the eight;
- at rest: the held command itself. Then every contact sticks or hardly slides, the hardest program for an
  active set.

Warm: with the step before as a start, that of a command a tenth nearer to the held one; at rest the step itself.

MuJoCo simulates the same file with the same pairs at the same detection distance (0.01 m), its own default
solver and friction pyramids (its elliptic cones are slower), 2 ms, position servos of the same stiffness and
joint damping of a tenth of it, which its Euler integrator takes implicitly; both the contacts that each
detects and those that carry load are printed. In this MuJoCo `margin` makes contacts push at a distance
and `gap` only widens detection, the gaps of two geometries adding up: here margin 0, gap 0.005 m each.
A quasi-dynamic step is 50 times as long as MuJoCo's.

Block stacking. Steps along the published motion (every tenth of 200), exact; nothing to compare with but the
published 3.56 ms for the program alone (Pang and Tedrake 2021).

Contenders take turns inside every round, one thread; medians and minima over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import resources

import mujoco
import mujoco.rollout
import numpy as np
import numpy.typing as npt
from timing import beside_mujoco, micros, race

import qdsim
from qdsim import _core, systems

Array = npt.NDArray[np.float64]
ROUNDS = 11
MARGIN = 0.01
AHEAD = (0.065, 0.053, 0.022)  # rad: the three flexing joints of a finger
THUMB_AHEAD = (0.06, -0.017, 0.045, 0.032)
FLEX = [1, 2, 3, 5, 6, 7, 9, 10, 11]
LOOP = 50


def close_hand(
    model: qdsim.Model, options: qdsim.Options, bend: float = 0.3
) -> tuple[Array, Array]:
    """Return a configuration in a power grasp and the command that holds it.

    bend: of the fingers' joints before they close, rad.
    """
    q = np.array(model.keyframes["start"].q)
    q[FLEX], q[12], q[13:16], q[16:19] = bend, 0.9, 0.3, (-0.08, 0.01, 0.0715)
    u = model.command_from(q)
    for step in range(80):
        if step < 60:
            u = model.command_from(q)
            for joint, ahead in enumerate(AHEAD, start=1):
                u[joint:12:4] += ahead
            u[12:16] += THUMB_AHEAD
        q = np.array(qdsim.step(model, q, u, options).q_next)
    return q, u


def mujoco_twin(margin: float, name: str = "allegro_sphere") -> mujoco.MjModel:
    folder = resources.files("qdsim.systems")
    with resources.as_file(folder.joinpath(f"{name}.xml")) as path:
        spec = mujoco.MjSpec.from_file(str(path))
    for geom in spec.geoms:
        geom.margin, geom.gap = 0.0, 0.5 * margin
    stiffness = {actuator.target: actuator.gainprm[0] for actuator in spec.actuators}
    for actuator in spec.actuators:
        actuator.set_to_position(kp=actuator.gainprm[0])
    for joint in spec.joints:
        if joint.name in stiffness:
            joint.damping = 0.1 * stiffness[joint.name] * np.array([1.0, 0.0, 0.0])
    spec.option.timestep = 0.002
    return spec.compile()


def settle(twin: mujoco.MjModel, q: Array, u: Array) -> tuple[mujoco.MjData, Array]:
    """Let MuJoCo's contacts take the load, and return its state."""
    data = mujoco.MjData(twin)
    data.qpos[:], data.ctrl[:] = q, u
    mujoco.mj_step(twin, data, nstep=50)
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.zeros(mujoco.mj_stateSize(twin, kind))
    mujoco.mj_getState(twin, data, state, kind)
    return data, state


def mean_seconds(calls: list[Callable[[], object]], repeat: int) -> float:
    start = time.perf_counter()
    for call in calls:
        for _ in range(repeat):
            call()
    return (time.perf_counter() - start) / (repeat * len(calls))


def grasp_contenders(
    model: qdsim.Model, q: Array, hold: Array, commands: list[Array]
) -> tuple[dict[str, Callable[[], float]], str]:
    exact = qdsim.Options(margin=MARGIN)
    smooth = exact.replace(kappa=100.0)
    pyramid = exact.replace(friction="pyramid")
    twin = mujoco_twin(MARGIN)
    datas, states = zip(*(settle(twin, q, u) for u in commands), strict=True)
    A, B = np.zeros((2 * twin.nv, 2 * twin.nv)), np.zeros((2 * twin.nv, twin.nu))
    seen = qdsim.step(model, q, commands[0], exact)
    loaded = int((seen.contacts["force"][:, 0] > 1e-6).sum())
    note = (
        f"qdsim: {len(seen.contacts)} contacts, {loaded} carry load. MuJoCo: "
        f"{statistics.median(d.ncon for d in datas):.0f} contacts, "
        f"{statistics.median((d.contact.efc_address >= 0).sum() for d in datas):.0f} with forces."
    )

    def rollout() -> float:
        start = time.perf_counter()
        for data, state, u in zip(datas, states, commands, strict=True):
            control = np.tile(u, (1, LOOP, 1))
            mujoco.rollout.rollout(twin, [data], initial_state=state[None], control=control)
        return (time.perf_counter() - start) / (LOOP * len(commands))

    def transition() -> float:
        def one(data: mujoco.MjData) -> Callable[[], None]:
            return lambda: mujoco.mjd_transitionFD(twin, data, 1e-6, True, A, B, None, None)

        return mean_seconds([one(data) for data in datas], 2)

    def core(options: qdsim.Options, derivatives: bool, warm: bool = False) -> Callable[[], float]:
        starts = [
            qdsim.step(model, q, hold + 0.9 * (u - hold), options) if warm else None
            for u in commands
        ]

        def run() -> float:
            return statistics.fmean(
                _core._step_benchmark(model, q, u, options, LOOP, derivatives, start)
                for u, start in zip(commands, starts, strict=True)
            )

        return run

    def python(call: Callable[..., object]) -> Callable[[], float]:
        def one(u: Array) -> Callable[[], object]:
            return lambda: call(model, q, u, exact)

        return lambda: mean_seconds([one(u) for u in commands], LOOP)

    contenders = {
        "`mj_step`": rollout,
        "`mjd_transitionFD`, centred": transition,
        "`qd_step`, exact cone": core(exact, False),
        "`qd_step`, exact pyramid": core(pyramid, False),
        "`qd_step`, cone, kappa = 100": core(smooth, False),
        "`qd_linearize`, exact cone": core(exact, True),
        "`qd_linearize`, cone, kappa = 100": core(smooth, True),
        "`qd_step`, exact cone, warm": core(exact, False, warm=True),
        "`qd_step`, cone, kappa = 100, warm": core(smooth, False, warm=True),
        "`qd_linearize`, exact cone, warm": core(exact, True, warm=True),
        "`qd_linearize`, cone, kappa = 100, warm": core(smooth, True, warm=True),
        "`qdsim.step`, exact cone": python(qdsim.step),
        "`qdsim.linearize`, exact cone": python(qdsim.linearize),
    }
    return contenders, note


def grasp_tables(rounds: int) -> list[str]:
    model = systems.load("allegro_sphere").model
    q, hold = close_hand(model, qdsim.Options(margin=MARGIN))
    rng = np.random.default_rng(0)
    moved = [hold + 0.03 * rng.standard_normal(model.nu) for _ in range(8)]
    tables = []
    for title, commands in (("in motion", moved), ("at rest", [hold])):
        calls, note = grasp_contenders(model, q, hold, commands)
        times = race(calls, rounds)
        title = f"Allegro and ball, power grasp {title}, margin {MARGIN} m"
        tables.append("\n".join([title, "", note, "", *beside_mujoco(times)]))
    return tables


def stacking_table(rounds: int) -> str:
    system = systems.load("block_stacking")
    model, q = system.model, np.array(system.start.q)
    if system.commands is None:
        raise ValueError("block_stacking: expected a published motion")
    knots, counts = [], []
    for index, u in enumerate(system.commands):
        step = qdsim.step(model, q, u, system.options)
        if index % 10 == 0:
            knots.append((q, u))
            counts.append(len(step.contacts))
        q = np.array(step.q_next)

    def core(derivatives: bool) -> Callable[[], float]:
        def run() -> float:
            return statistics.median(
                _core._step_benchmark(model, q, u, system.options, 3, derivatives) for q, u in knots
            )

        return run

    times = race({"`qd_step`, exact": core(False), "`qd_linearize`, exact": core(True)}, rounds)
    lines = [
        f"Block stacking, {model.nv} degrees of freedom, {statistics.median(counts):.0f} contacts, "
        f"median of {len(knots)} states along the motion",
        "",
        *micros(times, digits=0),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    print("\n\n".join([*grasp_tables(arguments.rounds), stacking_table(arguments.rounds)]))


if __name__ == "__main__":
    main()

"""One quasi-dynamic step and its derivatives beside MuJoCo's, on the same planar-hand scene.

Contenders take turns inside every round, so that a machine that drifts drifts for all of them; the
table gives medians and minima over rounds and the ratio of the medians. One thread.

- `qd_step`, `qd_linearize`: the C calls, looped in C (exact step, then log-barrier with kappa = 100).
- `qdsim.step`, `qdsim.linearize`: the same through Python, arguments checked, results built.
- `mj_step`: a loop in C (`mujoco.rollout`, one thread) over steps of 2 ms in the same grasp.
- `mjd_transitionFD`: centred differences of `mj_step`, one call from Python (its overhead is nothing
  beside the call).

MuJoCo sees the same candidate pairs at the same detection distance. In this MuJoCo `margin` makes contacts push
at a distance and `gap` only widens detection, the gaps of two geometries adding up: here margin 0 and half
the distance each, so that contacts at a distance exert no force, as in the exact quasi-dynamic step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib import resources

import mujoco
import mujoco.rollout
import numpy as np
from timing import beside_mujoco, race

import qdsim
from qdsim import _core, systems

ROUNDS = 15
GRASP = np.array([0.0, 0.35, 0.0, -0.880505, -0.605922, 0.880505, 0.605922])
SQUEEZE = np.array([-0.05, -0.05, 0.05, 0.05])


def mujoco_twin(margin: float) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_string(
        resources.files("qdsim.systems").joinpath("planar_hand.xml").read_text(encoding="utf-8")
    )
    for geom in spec.geoms:
        geom.margin, geom.gap = 0.0, 0.5 * margin
    for actuator in spec.actuators:
        actuator.set_to_position(kp=actuator.gainprm[0], kv=0.1 * actuator.gainprm[0])
    spec.option.timestep = 0.002
    return spec.compile()


def seconds_per_call(call: Callable[[], object], repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return (time.perf_counter() - start) / repeat


def contenders(margin: float) -> dict[str, Callable[[], float]]:
    model = systems.load("planar_hand").model
    u = model.command_from(GRASP) + SQUEEZE
    exact = qdsim.Options(margin=margin)
    smooth = exact.replace(kappa=100.0)
    twin = mujoco_twin(margin)
    data = mujoco.MjData(twin)
    data.qpos[:], data.ctrl[:] = GRASP, u
    mujoco.mj_step(twin, data, nstep=50)  # into the grasp, away from the transient
    state = np.zeros(mujoco.mj_stateSize(twin, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(twin, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.tile(u, (1, 500, 1))
    A, B = np.zeros((2 * twin.nv, 2 * twin.nv)), np.zeros((2 * twin.nv, twin.nu))

    def rollout() -> float:
        start = time.perf_counter()
        mujoco.rollout.rollout(twin, [data], initial_state=state[None], control=control)
        return (time.perf_counter() - start) / control.shape[1]

    def transition() -> None:
        mujoco.mjd_transitionFD(twin, data, 1e-6, True, A, B, None, None)

    return {
        "`mj_step`": rollout,
        "`mjd_transitionFD`, centred": lambda: seconds_per_call(transition, 20),
        "`qd_step`, exact": lambda: _core._step_benchmark(model, GRASP, u, exact, 500, False),
        "`qd_step`, kappa = 100": lambda: _core._step_benchmark(
            model, GRASP, u, smooth, 500, False
        ),
        "`qd_linearize`, exact": lambda: _core._step_benchmark(model, GRASP, u, exact, 500, True),
        "`qd_linearize`, kappa = 100": lambda: _core._step_benchmark(
            model, GRASP, u, smooth, 500, True
        ),
        "`qdsim.step`, exact": lambda: seconds_per_call(
            lambda: qdsim.step(model, GRASP, u, exact), 500
        ),
        "`qdsim.linearize`, exact": lambda: seconds_per_call(
            lambda: qdsim.linearize(model, GRASP, u, exact), 500
        ),
    }


def table(margin: float, rounds: int) -> str:
    lines = beside_mujoco(race(contenders(margin), rounds))
    return "\n".join([f"Planar hand in a grasp, margin {margin} m", "", *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    for margin in (0.05, 10.0):
        print(table(margin, arguments.rounds), end="\n\n")


if __name__ == "__main__":
    main()

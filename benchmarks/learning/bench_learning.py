"""Learning: trainings, policies in MuJoCo, speed of environments and of pullbacks, and identification.

Trainings are read from build/learn (`make learn`): curves, and the results of examples/evaluate.py that are saved
with the policies. All other numbers are measured. Identification is compared with CMA-ES (if ``cma`` is installed)
and with mujoco.sysid (if the requirements of ``mujoco[sysid]`` are installed).
"""

from __future__ import annotations

import contextlib
import csv
import importlib.metadata
import importlib.util
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
from library_trainings import LIBRARIES, share, train

import qdsim
from qdsim.envs import TaskEnv, TaskVectorEnv, published
from qdsim.planning.execution.plant import second_order

PARTS = 8
FOLDER = Path(__file__).parents[2] / "build" / "learn"
NAMES = {
    "pushing": "planar pushing, PPO",
    "pushing_dynamic": "planar pushing, PPO in second-order steps (`--dynamics second_order`)",
    "hand": "planar hand, PPO",
    "robust": "planar hand, PPO on MuJoCo's contacts, heavier discs (`--contacts mujoco --scale 0.4`)",
    "ball": "Allegro ball, PPO",
    "ball_mujoco": "Allegro ball, PPO on MuJoCo's contacts (`--contacts mujoco --scale 0.2`)",
    "ball_both": "Allegro ball, that one refined on rigid and MuJoCo's contacts in turn",
    "ball_drawn": "Allegro ball, PPO with stiffness drawn (`--scale 0.2 --randomize pair_compliance=0..1e-3`)",
    "cloned": "planar pushing, cloned from the greedy teacher",
    "first": "planar pushing, first and zeroth order mixed (`shac.py`)",
    "order_1": "planar pushing, first order alone",
    "order_0": "planar pushing, zeroth order alone",
    "half": "planar pushing, PPO, stopped early",
    "refined_ppo": "that, refined by PPO",
    "refined": "that, refined by both orders",
}
SCENES = (
    ("qdsim/PlanarPushing-v0", "planar pushing"),
    ("qdsim/PlanarHand-v0", "planar hand"),
    ("qdsim/AllegroBall-v0", "Allegro ball"),
)


# ---------------------------------------------------------------- trainings


def curve(path: Path) -> list[tuple[int, float, float]]:
    """Return (actions, CPU seconds, share of episodes that reach the goal); seconds of a resumed run are added up."""
    rows, before, last = [], 0.0, 0.0
    for row in csv.DictReader(path.open()):
        seconds = float(row["cpu_seconds"])
        if seconds < last:
            before += last
        last = seconds
        rows.append((int(row["actions"]), before + seconds, float(row["success"])))
    return rows


def first_above(rows: list[tuple[int, float, float]], share: float) -> str:
    """Return actions and seconds until a share of the episodes reaches the goal."""
    for actions, seconds, success in rows:
        if success >= share:
            return f"{actions / 1000:.0f} k, {seconds:.0f} s"
    return "-"


def print_trainings() -> None:
    """Print the results of the training curves."""
    print("| training (seed) | half reach the goal | 0.9 | 0.95 | last | actions | CPU s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in sorted(FOLDER.glob("*.csv"), key=_order):
        rows = curve(path)
        if rows:
            actions, seconds, success = rows[-1]
            marks = " | ".join(first_above(rows, share) for share in (0.5, 0.9, 0.95))
            print(
                f"| {_title(path)} | {marks} | {success:.3f} | {actions / 1000:.0f} k | {seconds:.0f} |"
            )


def print_curves() -> None:
    """Print the shares of the episodes that reach the goal, along each training."""
    print(
        f"| share after k of {PARTS} parts of a training (seed) | {' | '.join(map(str, range(1, PARTS + 1)))} |"
    )
    print("| --- |" + " --- |" * PARTS)
    for path in sorted(FOLDER.glob("*.csv"), key=_order):
        rows = curve(path)
        if rows:
            at = [rows[-(-len(rows) * k // PARTS) - 1] for k in range(1, PARTS + 1)]
            print(f"| {_title(path)} | {' | '.join(f'{share:.2f}' for *_, share in at)} |")


def print_evaluations() -> None:
    """Print the results that evaluate.py has saved."""
    print("| policy (seed) | in the model, unseen problems | actions | in MuJoCo | how |")
    print("| --- | --- | --- | --- | --- |")
    for path in sorted(FOLDER.glob("*.json"), key=_order):
        said = json.loads(path.read_text())
        if "model" not in said:  # problems with other parameters alone
            continue
        model = said["model"]
        left = f"{model['success']:.3f} of {model['count']} | {model['actions']:.1f}"
        for run in said["mujoco"] or [None]:
            right = "- | -"
            if run is not None:
                pushes = f"{run['pushes']:.1f} pushes, " if run["success"] else ""
                right = (
                    f"**{run['success']} of {run['runs']}**, {pushes}"
                    f"{1e3 * run['shift']:.0f} mm and {run['turn']:.3f} rad left | {run['how']}"
                )
            print(f"| {_title(path)} | {left} | {right} |")


def print_drawn() -> None:
    """Print the shares of evaluate.py on problems of models with other parameters."""
    print("| policy (seed) | parameters | in the model, unseen problems | actions |")
    print("| --- | --- | --- | --- |")
    for path in sorted(FOLDER.glob("*.json"), key=_order):
        for drawn, found in json.loads(path.read_text()).get("drawn", {}).items():
            share = f"{found['success']:.3f} of {found['count']}"
            print(f"| {_title(path)} | `{drawn}` | {share} | {found['actions']:.1f} |")


def print_libraries() -> None:
    """Print results of trainings by other libraries, those that are installed."""
    print("| planar pushing, PPO by | success on 1024 unseen problems, three seeds | CPU s |")
    print("| --- | --- | --- |")
    for library in LIBRARIES:
        if importlib.util.find_spec(library) is None:
            continue
        with contextlib.redirect_stdout(sys.stderr):
            runs = [train(library, seed) for seed in range(3)]
        shares = ", ".join(f"{share(act):.3f}" for act, _ in runs)
        seconds = ", ".join(f"{spent:.0f}" for _, spent in runs)
        name = f"{library} {importlib.metadata.version(library)}"
        print(f"| {name} | {shares} | {seconds} |", flush=True)


def _order(path: Path) -> tuple[int, str]:
    stem = _stem(path)[0]
    return (list(NAMES).index(stem) if stem in NAMES else len(NAMES)), path.name


def _stem(path: Path) -> tuple[str, str]:
    name, _, seed = path.stem.rpartition("_")
    if path.stem in NAMES or not seed.isdigit():
        return path.stem, "0"
    return name, seed


def _title(path: Path) -> str:
    stem, seed = _stem(path)
    return f"{NAMES.get(stem, stem)} ({seed})"


# ---------------------------------------------------------------- speed


def fastest(act: Callable[[], None], times: int) -> float:
    """Return the CPU seconds of the fastest of several calls, on which the load of the machine has the least effect."""
    best = np.inf
    for _ in range(times):
        began = time.process_time()
        act()
        best = min(best, time.process_time() - began)
    return best


def env_speed(name: str, count: int, action: str) -> tuple[float, float]:
    """Return model steps per CPU second of the vector environment, and of its core alone with the same commands."""
    task, options = published(name, pool=64, action=action)
    env = TaskVectorEnv(task, count, options)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    shape = (count, env.rules.action_size)
    steps = count * env.rules.moves.steps
    whole = steps / fastest(lambda: (env.step(rng.uniform(-1.0, 1.0, shape)), None)[1], 12)
    players = env.players
    course = env.rules.moves.course(players.q, rng.uniform(-1.0, 1.0, shape))
    core = steps / fastest(
        lambda: (
            qdsim.rollout(
                task.model, course.begin, course.u, task.options, threads=1, errors="mark"
            ),
            None,
        )[1],
        12,
    )
    return whole, core


def single_speed(name: str, action: str) -> float:
    """Return model steps per CPU second of one environment."""
    task, options = published(name, pool=64, action=action)
    env = TaskEnv(task, options)
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (60, env.rules.action_size))

    def act() -> None:
        for x in actions:
            _, _, terminated, truncated, _ = env.step(x)
            if terminated or truncated:
                env.reset()

    act()
    return len(actions) * env.rules.moves.steps / fastest(act, 8)


def mujoco_speed(name: str, count: int) -> float:
    """Return model steps per CPU second of the same scene in MuJoCo, which steps by 1 ms; without observations."""
    task, _ = published(name)
    mj = second_order(task.model, task.object)
    mj.opt.timestep = 1e-3
    data = mujoco.MjData(mj)
    data.qpos[:] = task.start
    state = np.zeros(mujoco.mj_stateSize(mj, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(mj, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    rng = np.random.default_rng(0)
    per = round(task.options.h / 1e-3)
    u = task.model.command_from(task.start) + rng.uniform(-0.05, 0.05, (count, 1, task.model.nu))
    control = np.repeat(u, per, axis=1)
    states = np.repeat(state[None], count, axis=0)
    return count / fastest(lambda: (mujoco.rollout.rollout(mj, data, states, control), None)[1], 4)


PUBLISHED = (
    "| Shadow hand and cube, Isaac Lab, 8192 environments, steps without learning | 3.3 k | one RTX 4090: 200,000 steps "
    "of 1/60 s (Isaac Lab's page of benchmarks) |",
    "| LEAP hand and cube, MuJoCo Playground (MJX), with learning | 3.8 k | one A100: 76,354 steps of 1/20 s "
    "(arXiv 2502.08844) |",
)
"""Published speeds of other simulators, in task seconds per second of wall time."""


def print_task_seconds(rows: list[tuple[str, float]]) -> None:
    """Print simulated seconds per second; simulators differ in the length of their steps and in their scenes."""
    print("\n| task | task seconds a second | on |\n| --- | --- | --- |")
    for title, speed in rows:
        print(f"| {title} | {speed / 1000:.2f} k | one CPU thread |")
    print("\n".join(PUBLISHED), flush=True)


def print_speeds() -> None:
    """Print the speeds on one thread."""
    rows = []
    print(
        "| steps of the model a CPU second, one thread | 1 | 64 | 256 | core alone, 256 | MuJoCo at 1 ms, physics alone, 256 |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for name, title in SCENES:
        beside = mujoco_speed(name, 64 if "Allegro" in name else 256)
        h = published(name)[0].options.h
        rows.append((f"{title}, MuJoCo at 1 ms, physics alone", beside * h))
        for action in ("command", "push"):
            one = single_speed(name, action)
            some, _ = env_speed(name, 64, action)
            many, core = env_speed(name, 256, action)
            numbers = " | ".join(f"{x / 1000:.1f} k" for x in (one, some, many, core, beside))
            print(f"| {title}, {action} | {numbers} |", flush=True)
            rows.append((f"{title}, {action}, 256 environments", many * h))
    print_task_seconds(rows)


# ---------------------------------------------------------------- pullbacks


def pullback_ways(name: str, count: int, steps: int) -> dict[str, Callable[[], object]]:
    """Return calls of a rollout, and of the rollout with its pullback by commands, computed in several ways."""
    task, _ = published(name)
    model, options = task.model, task.options
    rng = np.random.default_rng(0)
    q = np.tile(task.start, (count, 1))
    way = np.cumsum(0.005 * rng.normal(size=(count, steps, model.nu)), axis=1)
    u = model.command_from(task.start) + way
    y = rng.normal(size=(count, steps + 1, model.nq))
    given: dict[str, Any] = {"wrt": ("u",), "threads": 1, "coordinates": "ambient"}
    ways: dict[str, Callable[[], object]] = {
        "rollout": lambda: qdsim.rollout(model, q, u, options, threads=1),
        "known": lambda: qdsim.rollout_vjp(model, q, u, options, cotangent=y, **given),
        "after": lambda: qdsim.rollout_vjp(model, q, u, options, cotangent=lambda _: y, **given),
    }
    with contextlib.suppress(ImportError):
        import torch

        import qdsim.torch

        torch.set_num_threads(1)
        begin, commands, cotangent = (torch.tensor(x) for x in (q, u, y))
        commands.requires_grad_()

        def by_torch() -> object:
            commands.grad = None
            path = qdsim.torch.rollout(model, begin, commands, options, threads=1)
            return path.backward(cotangent)

        ways["torch"] = by_torch
    return ways


def print_pullbacks() -> None:
    """Print medians of ratios; the contenders take turns."""
    print(
        "| 50 steps, one thread | rollout, ms of CPU | `rollout_vjp`, of the rollout | the same, "
        "cotangent made of the finished rollout | torch, of that |"
    )
    print("| --- | --- | --- | --- | --- |")
    for name, title in SCENES:
        for count in (1, 16):
            ways = pullback_ways(name, count, 50)
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(5 + 400 // count):
                for way, act in ways.items():
                    began = time.process_time()
                    act()
                    seconds[way].append(time.process_time() - began)
            of = {way: np.array(values) for way, values in seconds.items()}
            known, after = (np.median(of[way] / of["rollout"]) for way in ("known", "after"))
            last = f"{np.median(of['torch'] / of['after']):.2f}" if "torch" in of else "-"
            first = 1e3 * np.median(of["rollout"])
            print(
                f"| {title}, {count} at once | {first:.2f} | {known:.2f} | {after:.2f} | {last} |",
                flush=True,
            )


# ---------------------------------------------------------------- identification

SCENE = """
<mujoco><option gravity="0 0 0" timestep="2e-3"/><worldbody>
  <body name="carriage" pos="0.3 0 0"><joint name="c" type="slide" axis="1 0 0" stiffness="{k}" damping="20"/>
    <geom type="box" size="0.1 0.1 0.1" mass="0.5"/></body>
  <body name="finger"><joint name="f" type="slide" axis="1 0 0" damping="20"/>
    <geom type="sphere" size="{r}" mass="0.2"/></body></worldbody>
  <actuator><position joint="f" kp="200"/></actuator></mujoco>"""
TRUE = np.array([80.0, 0.062])
FIRST, LEAST, MOST = np.array([50.0, 0.05]), np.array([5.0, 0.02]), np.array([300.0, 0.09])
HOLD = 1000  # steps of MuJoCo that a command is held for


def recording(seed: int) -> qdsim.Recording:
    """Record a finger that pushes a carriage on a spring, in MuJoCo, with measurement noise of 0.3 mm."""
    u = np.concatenate([np.linspace(0.0, 0.4, 25), np.linspace(0.4, 0.1, 15)])[:, None]
    q = simulated(*TRUE, u)
    q[1:] += 3e-4 * np.random.default_rng(seed).standard_normal((len(u), 2))
    return qdsim.Recording(q, u)


def simulated(k: float, r: float, u: np.ndarray) -> np.ndarray:
    """Simulate the recording in MuJoCo; return positions (T + 1, 2)."""
    mj = mujoco.MjModel.from_xml_string(SCENE.format(k=k, r=r))
    mj.geom_solref[:] = (4e-3, 1.0)
    data = mujoco.MjData(mj)
    q = [data.qpos.copy()]
    for command in u:
        data.ctrl[:] = command
        mujoco.mj_step(mj, data, HOLD)
        q.append(data.qpos.copy())
    return np.array(q)


def by_qdsim(record: qdsim.Recording) -> tuple[np.ndarray, int]:
    """Identify by Gauss-Newton with exact derivatives; return the values and the number of calls of the model."""
    model = qdsim.load(SCENE.format(k=FIRST[0], r=FIRST[1]))
    sizes = -np.ones((len(model.geom_body), 3), dtype=int)
    sizes[np.flatnonzero(np.asarray(model.geom_body) == model.body_names.index("finger"))[0], 0] = 0
    carriage = -np.ones(2, dtype=int)
    carriage[model.joint_names.index("c")] = 0
    unknown = {"joint_stiffness": carriage, "geom_size": sizes}
    found = qdsim.identify(model, record, unknown, qdsim.Options(h=2.0), threads=1)
    order = [found.names.index(name) for name in ("joint_stiffness[0]", "geom_size[0]")]
    return found.values[order], found.iterations


def residual_in_model(record: qdsim.Recording) -> Callable[[np.ndarray], np.ndarray]:
    """Return the residuals of the quasi-dynamic model as a function of many candidates (n, 2)."""
    model = qdsim.load(SCENE.format(k=FIRST[0], r=FIRST[1]))
    finger = np.flatnonzero(np.asarray(model.geom_body) == model.body_names.index("finger"))[0]

    def residual(x: np.ndarray) -> np.ndarray:
        stiffness = np.repeat(np.asarray(model.parameters.joint_stiffness)[None], len(x), axis=0)
        sizes = np.repeat(np.asarray(model.parameters.geom_size)[None], len(x), axis=0)
        stiffness[:, model.joint_names.index("c")], sizes[:, finger, 0] = x[:, 0], x[:, 1]
        own = {"joint_stiffness": stiffness, "geom_size": sizes}
        q = qdsim.rollout(
            model, record.q[0], record.u, qdsim.Options(h=2.0), parameters=own, threads=1
        ).q
        return np.asarray((q - record.q).reshape(len(x), -1))

    return residual


def by_cma(record: qdsim.Recording) -> tuple[np.ndarray, int]:
    """Identify by CMA-ES on the same model, with the whole population in one batch."""
    import cma

    residual = residual_in_model(record)
    options = {"bounds": [0.0, 1.0], "verbose": -9, "seed": 1, "tolx": 1e-6, "tolfun": 1e-14}
    search = cma.CMAEvolutionStrategy((FIRST - LEAST) / (MOST - LEAST), 0.2, options)
    while not search.stop():
        xs = search.ask()
        errors = residual(LEAST + np.array(xs) * (MOST - LEAST))
        search.tell(xs, np.sum(errors**2, axis=1).tolist())
    return LEAST + search.result.xbest * (MOST - LEAST), int(search.result.evaluations)


def by_sysid(record: qdsim.Recording) -> tuple[np.ndarray, int]:
    """Identify by mujoco.sysid, with differences of simulations in the simulator of the recording."""
    # without what mujoco[sysid] asks for, the module is there and these are not
    from mujoco.sysid import Parameter, ParameterDict, optimize

    calls = 0

    def residual(x: Any, _: Any) -> Any:
        nonlocal calls
        x = np.asarray(x, dtype=float)
        columns = x.reshape(2, -1).T
        calls += len(columns)
        found = [(simulated(*c, record.u) - record.q)[1:].ravel() for c in columns]
        return ([found[0] if x.ndim == 1 else np.array(found).T], None, None)

    unknown = ParameterDict()
    for i, name in enumerate(("stiffness", "radius")):
        unknown.add(Parameter(name, FIRST[i], LEAST[i], MOST[i]))
    with contextlib.redirect_stdout(io.StringIO()):  # it prints whatever verbose says
        _, result = optimize(unknown, residual, verbose=False)
    return np.asarray(result.x), calls


def print_identification() -> None:
    """Print the results for five noisy recordings."""
    ways = {
        "`qdsim.identify`": by_qdsim,
        "CMA-ES on the same model": by_cma,
        "`mujoco.sysid`, in the simulator that recorded": by_sysid,
    }
    print(
        "| stiffness and radius of a recorded push in MuJoCo | CPU s | rollouts or iterations | error of the stiffness | of the radius, mm |"
    )
    print("| --- | --- | --- | --- | --- |")
    for name, way in ways.items():
        rows = []
        try:
            for seed in range(5):
                record = recording(seed)
                began = time.process_time()
                found, calls = way(record)
                off = np.abs(found - TRUE)
                rows.append((time.process_time() - began, calls, off[0] / TRUE[0], 1e3 * off[1]))
        except ImportError as error:
            print(f"| {name} | not measured: {error} | | | |")
            continue
        seconds, calls, stiffness, radius = np.median(rows, axis=0)
        print(
            f"| {name} | {seconds:.3f} | {calls:.0f} | {100 * stiffness:.2f} % | {radius:.2f} |",
            flush=True,
        )


def main() -> None:
    """Print all tables."""
    print(
        "One thread of a shared, busy machine: only CPU seconds are comparable. Success means the tolerance of the task."
    )
    for title, table in (
        ("Trainings", print_trainings),
        ("Curves", print_curves),
        ("Policies on unseen problems", print_evaluations),
        ("With other parameters", print_drawn),
        ("Other libraries", print_libraries),
        ("Speed of environments", print_speeds),
        ("Rollouts with pullbacks", print_pullbacks),
        ("Identification", print_identification),
    ):
        print(f"\n## {title}\n", flush=True)
        table()


if __name__ == "__main__":
    main()

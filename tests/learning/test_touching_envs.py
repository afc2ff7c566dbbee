"""Sensors in observations are those of a step that holds the command."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import qdsim
from qdsim.planning import Task
from qdsim.sensors import ContactSensor, ForceSensor, Sensor, Site, TaxelSensor, TouchSensor

pytest.importorskip("gymnasium")

from qdsim.envs import EnvOptions, GoalTaskEnv, Policy, Range, TaskEnv, TaskVectorEnv

Array = npt.NDArray[np.float64]
WRIST = ForceSensor("wrist", Site("finger"))
PAD = TaxelSensor("pad", "tip", [[0.04, 0, 0], [0, 0.04, 0]], [[1, 0, 0], [0, 1, 0]], 1e-4, 0.03)

PUSHER = """<mujoco><option timestep="0.002" cone="elliptic"/><worldbody>
<geom type="plane" size="2 2 1"/>
<body name="ball" pos="0 0 0.05"><freejoint name="ball"/><geom type="sphere" size="0.05" mass="0.3"/></body>
<body name="finger" pos="-0.095 0 0.05"><joint name="x" type="slide" axis="1 0 0"/>
<joint name="y" type="slide" axis="0 1 0"/><site name="s" size="0.1"/>
<geom name="tip" type="sphere" size="0.04" mass="0.5"/></body></worldbody>
<actuator><position joint="x" kp="200"/><position joint="y" kp="200"/></actuator>
<sensor><touch name="touch" site="s"/><contact name="net" body1="finger" body2="ball" data="force" reduce="netforce"/>
</sensor></mujoco>"""


def pusher() -> Task:
    model = qdsim.load(PUSHER)
    start, box = model.default_q, np.array([0.2, 0.2, 0.01, 0.1, 0.1, 3.0])
    goal = start.copy()
    goal[model.slice_q("ball")][0] += 0.1
    return Task(
        name="push the ball",
        model=model,
        options=qdsim.Options(h=0.02),
        start=start,
        goal=goal,
        object="ball",
        lower=-box,
        upper=box,
    )


def options(**more: Any) -> EnvOptions:
    return EnvOptions(
        action="command", start="task", scale=0.02, sensors=("touch", "net", WRIST, PAD), **more
    )


def felt(task: Task, q: Array, v: Array, u: Array, second_order: bool) -> Array:
    """Of a single step."""
    sensors: list[Sensor] = [*task.model.description.sensors, WRIST, PAD]
    step: Any
    if second_order:
        step = qdsim.step_dynamic(
            task.model, q, v, u, qdsim.DynamicOptions(h=0.002, contacts="mujoco")
        )
    else:
        step = qdsim.step(task.model, q, u, task.options)
    values = qdsim.read_sensors(task.model, q, step, v=v, sensors=sensors)
    return np.concatenate([np.ravel(value) for value in values.values()])


@pytest.mark.parametrize("dynamics", ["quasi_dynamic", "second_order"])
def test_values_are_those_of_the_held_command(dynamics: Any) -> None:
    task = pusher()
    contacts = "mujoco" if dynamics == "second_order" else "rigid"
    env = TaskEnv(task, options(dynamics=dynamics, contacts=contacts))
    plain = TaskEnv(
        task,
        EnvOptions(
            action="command", start="task", scale=0.02, dynamics=dynamics, contacts=contacts
        ),
    )
    size = 1 + 3 + 3 + 6
    assert env.observation_space.shape[0] == plain.observation_space.shape[0] + size
    seen, _ = env.reset(seed=1)
    others, _ = plain.reset(seed=1)
    pressed = 0
    for _ in range(6):
        action = np.array([1.0, 0.1])
        seen, *_ = env.step(action)
        others, *_ = plain.step(action)
        players = env._players
        assert players is not None
        np.testing.assert_array_equal(seen[:-size], others)
        wanted = felt(
            task, players.q[0], players.v[0], players.command[0], dynamics == "second_order"
        )
        np.testing.assert_allclose(seen[-size:], wanted, rtol=1e-9, atol=1e-9)
        pressed += bool(seen[-size] > 0.0)
    assert pressed


def test_vectors_goals_noise_and_copies() -> None:
    """Many environments feel what one feels; goals stay last; noise is of poses, not of forces."""
    task = pusher()
    own = options(observation="goal", randomize={"body_mass": (0.5, 2.0)})
    env, vector = GoalTaskEnv(task, own), TaskVectorEnv(task, 3, own)
    seen, _ = vector.reset(seed=4)
    for i in range(3):
        single, _ = env.reset(seed=4 + i)
        np.testing.assert_allclose(seen["observation"][i], single["observation"], atol=1e-9)
        np.testing.assert_allclose(seen["achieved_goal"][i], single["achieved_goal"], atol=1e-12)
    noisy = TaskEnv(task, options(randomize={"position_noise": Range(0.01, 0.01)}))
    exact = TaskEnv(task, options())
    for each in (noisy, exact):
        each.reset(seed=2)
    action = np.array([1.0, 0.0])
    with_noise, without = noisy.step(action)[0], exact.step(action)[0]
    np.testing.assert_allclose(with_noise[-13:], without[-13:], atol=1e-9)
    assert not np.allclose(with_noise[:-13], without[:-13])
    copy = pickle.loads(pickle.dumps(noisy))
    np.testing.assert_array_equal(copy.step(action)[0], noisy.step(action)[0])


def test_policies_keep_their_sensors(tmp_path: Path) -> None:
    contact = ContactSensor("c", ("geom", "tip"), ("body", "ball"), None, ("found", "force"))
    sensors = ("touch", WRIST, PAD, contact)
    zeros = np.zeros(3)
    policy = Policy(
        "id", [(np.zeros((3, 2)), np.zeros(2))], zeros, zeros + 1.0, 1, {"sensors": sensors}
    )
    policy.save(tmp_path / "policy.npz")
    assert Policy.load(tmp_path / "policy.npz").options == {"sensors": sensors}


@pytest.mark.parametrize(
    ("sensors", "error", "message"),
    [
        (("tuch",), ValueError, "did you mean 'touch'"),
        ("touch", TypeError, "sensors: expected names or sensors"),
        ((3,), TypeError, r"sensors\[0\]: expected a name or a sensor"),
        ((TouchSensor("t", Site("thumb")),), ValueError, "no body is named 'thumb'"),
        ((ContactSensor("c", ("geom", "tipp")),), ValueError, "no geom is named 'tipp'"),
    ],
)
def test_sensors_that_are_not_there(sensors: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TaskEnv(pusher(), EnvOptions(action="command", start="task", sensors=sensors))

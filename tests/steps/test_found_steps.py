"""Steps that once were not solved, or were called what they are not, and random steps of the same kinds: piles
and pyramids at rest, closed loops against their limits, bodies that fly off. What is solved satisfies the
optimality conditions, written down a second time in NumPy (test_step_optimality); what is not has no answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from program import assemble, clarabel_program
from test_step_optimality import check_exact, check_smoothed

import qdsim

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
import piles

FOUND = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/found_steps.jsonl").read_text().splitlines()
]
# deep in each other, and apart only by a motion of some hundred turns or by none
APART_BY_TURNS = ("tame_exact", "tame_smooth")
WITHOUT_ANSWER = tuple(step["name"] for step in FOUND if "iteration-limit" in step["name"])


def loop_errors(xml: str, q: np.ndarray) -> np.ndarray:
    """By how much MuJoCo finds the equality constraints violated."""
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    kinds = np.asarray(data.efc_type)
    errors: np.ndarray = data.efc_pos[kinds == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    return errors


@pytest.mark.short_cases(4)
@pytest.mark.parametrize("step", FOUND, ids=lambda step: str(step["name"]))
def test_found_steps(step: dict[str, Any]) -> None:
    model, options = qdsim.load(step["xml"]), qdsim.Options(**step["options"])
    q, u = np.array(step["q"]), np.array(step["u"])
    if step["name"] in WITHOUT_ANSWER:
        with pytest.raises(
            qdsim.SolverError, match=r"infeasible.*contact of.*exclude_overlaps"
        ) as caught:
            qdsim.step(model, q, u, options)
        assert caught.value.info.status == "infeasible"
    elif step["name"] in APART_BY_TURNS:
        try:
            result = qdsim.step(model, q, u, options)
        except qdsim.SolverError as error:
            assert error.info.status == "infeasible"
        else:
            assert result.info.relaxed_contacts > 0 or np.abs(result.delta).max() > 100.0
    elif model.constraint_count:
        errors = loop_errors(step["xml"], qdsim.step(model, q, u, options).q_next)
        assert len(errors) == 7 and np.abs(errors).max() <= 1e-9
    else:
        check_exact(SimpleNamespace(model=model), q, u, options)


# ---------------------------------------------------------------- piles


def rest_of(model: qdsim.Model, u: np.ndarray, options: qdsim.Options) -> np.ndarray:
    """What a pile comes to in eighty steps, or where it fails."""
    course = qdsim.rollout(model, model.default_q, np.tile(u, (80, 1)), options, errors="mark")
    q: np.ndarray = course.q[int(course.steps_done)]
    return q


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_random_piles_are_solved(seed: int) -> None:
    """The campaign of `make soak`, a little of it."""
    failed = [step for _, step in piles.campaign(seed, 8000) if step is not None]
    assert {step["status"] for step in failed} <= {"infeasible"}


@pytest.mark.short_cases(7)
@pytest.mark.parametrize("seed", range(30))
def test_random_piles_at_rest_are_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    xml, options, _ = piles.scene(rng)
    model = qdsim.load(xml)
    u = np.zeros(model.nu)
    exact = options.replace(kappa=None)
    q = rest_of(model, u, exact)
    for _ in range(2):  # and a step later, where distances are rounding
        check_exact(SimpleNamespace(model=model), q, u, exact)
        q = qdsim.step(model, q, u, exact).q_next
    check_smoothed(SimpleNamespace(model=model), q, u, options.replace(kappa=1e3))


@pytest.mark.parametrize("seed", range(12))
def test_piles_at_rest_cost_what_another_solver_says(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    xml, options, _ = piles.scene(rng)
    model, options = qdsim.load(xml), options.replace(kappa=None, friction="cone")
    u = np.zeros(model.nu)
    q = rest_of(model, u, options)
    step = qdsim.step(model, q, u, options)
    program = assemble(model, q, u, options, step.contacts)
    other = clarabel_program(program).answer()
    assert other is not None
    own = step.delta @ (0.5 * program.Q @ step.delta + program.b)
    fall = program.b @ np.linalg.solve(program.Q, program.b)
    assert abs(own - other.objective) <= 1e-7 * fall


# ---------------------------------------------------------------- pyramids of spheres

BALL = (
    '<body name="s{k}" pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{r}" density="1000" '
    'condim="{condim}" friction=".8 {spin} {roll}"/></body>'
)


def pyramid(layers: int, condim: int, r: float) -> str:
    parts = []
    for layer in range(layers):
        side = layers - layer
        for i, j in np.ndindex(side, side):
            x, y = ((2 * k - side + 1) * r for k in (i, j))
            z = r + layer * r * 2**0.5
            parts.append(
                BALL.format(
                    k=len(parts), x=x, y=y, z=z, r=r, condim=condim, spin=0.1 * r, roll=0.02 * r
                )
            )
    return (
        f'<mujoco><option gravity="0 0 -9.81"/><worldbody><geom type="plane" size="50 50 1" condim="{condim}" '
        f'friction=".8 {0.1 * r} {0.02 * r}"/>{"".join(parts)}</worldbody></mujoco>'
    )


@pytest.mark.short_cases(6)
@pytest.mark.parametrize("r", [1e-3, 0.05, 3.0])
@pytest.mark.parametrize("condim", [3, 4, 6])
@pytest.mark.parametrize("layers", [2, 4, 5])
def test_pyramids_stand(layers: int, condim: int, r: float) -> None:
    """At every step length, and with about as many factorisations at each."""
    model = qdsim.load(pyramid(layers, condim, r))
    weight = model.parameters.body_mass.sum() * 9.81
    counts = []
    for h in (0.05, 0.02, 0.015, 0.01, 0.005, 0.002, 0.001):
        options = qdsim.Options(h=h, margin=0.2 * r)
        step = qdsim.step(model, model.default_q, [], options)
        counts.append(step.info.factorizations)
        np.testing.assert_allclose(step.delta, 0.0, atol=1e-9 * max(r, 1.0))
        ground = (step.contacts["body_a"] == 0) | (step.contacts["body_b"] == 0)
        carried = np.abs(step.contacts["force"][ground, 0]).sum()
        np.testing.assert_allclose(carried, weight, rtol=1e-6)
    assert max(counts) <= 3 * min(counts) + 10


# ---------------------------------------------------------------- closed loops

LOOP = """
<mujoco><compiler angle="radian"/><option gravity="0 0 0"/><worldbody>
  <body name="crank{s}" pos="{x} 0 0"><joint name="a{s}" axis="0 1 0" {limit}/>
    <geom type="capsule" fromto="0 0 0 0 0 {l0}" size=".004" mass=".05" contype="0" conaffinity="0"/>
    <body name="coupler{s}" pos="0 0 {l0}"><joint name="b{s}" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 {l1} 0 0" size=".004" mass=".05" contype="0" conaffinity="0"/></body></body>
  <body name="rocker{s}" pos="{x2} 0 0"><joint name="c{s}" axis="0 1 0" {limit}/>
    <geom type="capsule" fromto="0 0 0 0 0 {l0}" size=".004" mass=".05" contype="0" conaffinity="0"/></body>
</worldbody>
<equality><connect body1="coupler{s}" body2="rocker{s}" anchor="{l1} 0 0"/></equality>
<actuator><position joint="a{s}" kp="{kp}"/></actuator></mujoco>"""


@pytest.mark.short_cases(5)
@pytest.mark.parametrize("seed", range(20))
def test_closed_loops_driven_into_their_limits(seed: int) -> None:
    """The command of a four-bar linkage lies beyond a limit of both cranks, which the loop makes the same limit."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-2, 0)
    l0, l1, x = scale * rng.uniform(0.5, 1.0, 3)
    reach = rng.uniform(0.1, 0.6)
    limit = f'limited="true" range="{-reach} {reach}"'
    xml = LOOP.format(s=0, x=x, x2=x + l1, l0=l0, l1=l1, limit=limit, kp=10.0 ** rng.uniform(0, 4))
    model = qdsim.load(xml)
    sign = float(rng.choice([-1, 1]))
    command = sign * (reach + 10.0 ** rng.uniform(-9, 0))
    start = sign * reach * (1.0 - 10.0 ** rng.uniform(-12, -1))
    q = np.array([start, -start, start])
    options = qdsim.Options(h=float(10.0 ** rng.uniform(-3, -1)))
    for _ in range(10):
        before, q = q, qdsim.step(model, q, [command], options).q_next
        assert np.all(sign * (q - before)[[0, 2]] >= -1e-9)
        assert np.abs(q).max() <= reach + 1e-9
        assert np.abs(loop_errors(xml, q)).max() <= 1e-6 * scale


# ---------------------------------------------------------------- what flies off


@pytest.mark.short_cases(5)
@pytest.mark.parametrize("seed", range(20))
def test_what_flies_off_takes_no_accuracy_from_what_stays(seed: int) -> None:
    """A body of a pile is pulled away by millions of its sizes: contacts of the others hold as before."""
    rng = np.random.default_rng(seed)
    xml, options, size = piles.scene(rng)
    model = qdsim.load(xml)
    options = options.replace(kappa=None, add_missed_pairs=False)
    u = np.zeros(model.nu)
    q = rest_of(model, u, options)
    name = str(rng.choice([name for name in model.body_names if name.startswith("o")]))
    body = model.body_names.index(name)
    pull = np.append(np.abs(rng.standard_normal(3)), np.zeros(3))
    pull *= model.parameters.body_mass[body] * 10.0 ** rng.uniform(3, 7) * size / options.h**2
    step = qdsim.step(model, q, u, options, wrench={name: pull})
    program = assemble(model, q, u, options, step.contacts)
    assert np.abs(step.delta).max() > 100.0 * size
    for J, contact in zip(program.J, step.contacts, strict=True):
        pair = (int(contact["body_a"]), int(contact["body_b"]))
        motion = J @ step.delta
        if body not in pair and np.abs(J * step.delta).max() < size:
            assert motion[0] + contact["dist"] >= -1e-8 * size


# ---------------------------------------------------------------- overlaps by design

OVERLAP = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
  <body name="base"><joint name="lift" type="slide" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="1"/>
    <body name="middle" pos="0 0 .05"><joint name="turn" axis="1 0 0"/><geom type="sphere" size=".01" mass=".1"/>
      <body name="hand" pos="0 0 .1"><joint name="roll" axis="0 1 0"/>
        <geom type="box" size=".06 .06 .08" mass="1"/></body></body></body>
</worldbody><actuator><position joint="turn" kp="{kp}"/><position joint="roll" kp="{kp}"/><position joint="lift" kp="1000"/></actuator></mujoco>"""


@pytest.mark.parametrize("kappa", [None, 1e2, 1e5])
@pytest.mark.parametrize("kp", [1.0, 1e4])
def test_a_hand_inside_a_link_is_named(kp: float, kappa: float | None) -> None:
    model = qdsim.load(OVERLAP.format(kp=kp), exclude_overlaps=False)
    options = qdsim.Options(margin=0.02, kappa=kappa)
    with pytest.raises(qdsim.SolverError, match=r"infeasible.*exclude_overlaps=True") as caught:
        qdsim.step(model, model.default_q, np.zeros(3), options)
    assert "contact of 'base' with 'hand'" in caught.value.culprits
    with pytest.warns(qdsim.ModelWarning, match="'base' and 'hand'"):
        apart = qdsim.load(OVERLAP.format(kp=kp))
    assert qdsim.step(apart, apart.default_q, np.zeros(3), options).info.status == "solved"

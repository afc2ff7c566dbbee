"""Starts that contradict themselves: the softened step has the least violation, and the least energy within it.

The least violation is found a second time by Clarabel, as a program of violations alone."""

from __future__ import annotations

import dataclasses
import pickle
import sys
from pathlib import Path

import clarabel_witness
import numpy as np
import pytest
from program import assemble, weights

import qdsim
from qdsim.description import Connect

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))
import piles

Matrix = np.ndarray


def cones_of(model: qdsim.Model, q: Matrix, u: Matrix, options: qdsim.Options, contacts):
    """(rows, offset) of each contact's cone and each limit; none of contacts whose bodies never part
    (a finger on a slide along the floor), which a step leaves out."""
    program = assemble(model, q, u, options, contacts)
    result = []
    for J, contact in zip(program.J, contacts, strict=True):
        D = np.concatenate([[1.0], weights(contact)])
        if np.any(np.abs(J[0]) > 1e-12):
            result.append((D[:, None] * J[: len(D)], np.eye(len(D))[0] * contact["dist"]))
    for v, sign, gap in program.limits:
        result.append((sign * np.eye(model.nv)[v : v + 1], np.array([gap])))
    return result


def violation(cones, delta: Matrix) -> Matrix:
    """Distance of each slack from its Lorentz cone."""
    found = []
    for rows, offset in cones:
        w = rows @ delta + offset
        across = float(np.linalg.norm(w[1:]))
        if w[0] >= across:
            found.append(0.0)
        elif w[0] <= -across:
            found.append(float(np.linalg.norm(w)))
        else:
            found.append((across - w[0]) / np.sqrt(2.0))
    return np.array(found)


def bounds(model: qdsim.Model, q: Matrix, deepest: float) -> Matrix:
    """How far each DOF moves at most: ten times the largest violation, a radian."""
    travel = 10.0 * deepest
    most = np.empty(model.nv)
    for body in model.body_names[1:]:
        v = model.slice_v(body)
        turns = np.any(np.abs(model.jacobian(q, body)[3:, v]) > 0.0, axis=0)
        most[v] = np.where(turns, 1.0, travel)
    return most


def least_violation(cones, most: Matrix, length: float, equalities=()) -> float:
    """Root of the least sum of squares of violations for motions of at most `most`, by Clarabel, in
    units of `length`; of equalities, (row, offset) each, a hundredth of theirs."""
    nv = len(most)
    m = sum(len(offset) for _, offset in cones) + len(equalities)
    A, b, kinds, at = [], [], [], 0
    for rows, offset in cones:
        k = len(offset)
        give = np.zeros((k, m))
        give[:, at : at + k] = np.eye(k)
        A.append(np.hstack([-rows, -give]))
        b.append(offset / length)
        kinds.append(("lorentz", k) if k > 1 else ("orthant", 1))
        at += k
    for k, (row, offset) in enumerate(equalities, start=m - len(equalities)):
        A.append(np.concatenate([-row, -100.0 * np.eye(m)[k]])[None])
        b.append(np.array([offset / length]))
        kinds.append(("zero", 1))
    A += [np.hstack([sign * np.eye(nv), np.zeros((nv, m))]) for sign in (1.0, -1.0)]
    b += [most / length, most / length]
    kinds.append(("orthant", 2 * nv))
    P = np.zeros((nv + m, nv + m))
    P[nv:, nv:] = np.eye(m)
    found = clarabel_witness.Program(
        P, np.zeros(nv + m), np.vstack(A), np.concatenate(b), kinds
    ).answer()
    assert found is not None
    return length * float(np.linalg.norm(found.x[nv:]))


def wedged(rng: np.random.Generator) -> tuple[str, float]:
    """Objects in a row between two walls that are nearer than they are long, by a tenth of a radius
    each, on a floor that they are in, too; a finger pushes one of them."""
    size = float(10.0 ** rng.uniform(-2, 0))
    count = int(rng.integers(1, 5))
    condim = int(rng.choice([1, 3, 4, 6]))
    radii = (size * rng.uniform(0.6, 1.0, count)).tolist()
    extra = f'condim="{condim}" friction="1 {0.01 * size!r} {0.001 * size!r}"'
    parts, x = [], 0.0
    for i, r in enumerate(radii):
        kind = rng.choice(["sphere", "box", "capsule"])
        numbers = {"sphere": f"{r!r}", "box": f"{r!r} {r!r} {r!r}", "capsule": f"{r!r} {0.5 * r!r}"}
        x += 0.9 * r
        y, z = float(0.05 * r * rng.standard_normal()), float(r * rng.uniform(0.9, 1.1))
        turn = 0.0 if kind == "box" else float(rng.uniform(-0.1, 0.1))
        parts.append(
            f'<body name="o{i}" pos="{x!r} {y!r} {z!r}" euler="{90 if kind == "capsule" else 0} {turn!r} 0"><freejoint/>'
            f'<geom type="{kind}" size="{numbers[str(kind)]}" density="500" {extra}/></body>'
        )
        x += r * 0.9
    wall = f'type="box" size="{0.2 * size!r} {3 * size!r} {3 * size!r}" {extra}'
    finger = (
        f'<body name="f" pos="{0.5 * x!r} {-4 * size!r} {size!r}"><joint name="f" type="slide" axis="0 1 0"/>'
        f'<geom size="{0.5 * size!r}" mass="1" {extra}/></body>'
    )
    xml = (
        f'<mujoco><worldbody><geom type="plane" size="5 5 1" {extra}/>'
        f'<geom pos="{-0.2 * size!r} 0 0" {wall}/><geom pos="{x + 0.2 * size!r} 0 0" {wall}/>'
        f"{''.join(parts)}{finger}</worldbody>"
        f'<actuator><position name="f" joint="f" kp="{float(10.0 ** rng.uniform(1, 4))!r}"/></actuator></mujoco>'
    )
    return xml, size


def wedge(seed: int, **changes) -> tuple[qdsim.Model, Matrix, Matrix, qdsim.Options, float]:
    rng = np.random.default_rng(seed)
    xml, size = wedged(rng)
    model = qdsim.load(xml)
    options = qdsim.Options(margin=0.1 * size, infeasible="soften", add_missed_pairs=False)
    u = np.array([float(rng.uniform(0, 4)) * size])
    return model, model.default_q, u, options.replace(**changes), size


def contradiction(seed: int) -> tuple[qdsim.Model, Matrix, Matrix, qdsim.Options, float]:
    """The first wedge from this seed on that no motion satisfies."""
    for more in range(seed, seed + 2000, 100):
        found = wedge(more)
        try:
            qdsim.step(*found[:3], found[3].replace(infeasible="error"))
        except qdsim.SolverError:
            return found
    raise AssertionError("all wedges have a motion")


@pytest.mark.short_cases(6)
@pytest.mark.parametrize("seed", range(24))
def test_wedged_rows_give_way_as_little_as_can_be(seed: int) -> None:
    model, q, u, options, size = wedge(seed)
    step = qdsim.step(model, q, u, options)
    cones = cones_of(model, q, u, options, step.contacts)
    own = violation(cones, step.delta)
    least = least_violation(cones, bounds(model, q, -step.contacts["dist"].min()), size)
    marked = step.contacts["softened"]
    assert step.info.softened == np.count_nonzero(marked)
    np.testing.assert_allclose(marked, own[: len(marked)], atol=1e-6 * size)
    if step.info.relaxed_contacts == 0:
        assert np.linalg.norm(own) <= least * (1 + 1e-4) + 1e-7 * size
    try:
        hard = qdsim.step(model, q, u, options.replace(infeasible="error"))
    except qdsim.SolverError as error:
        assert 'infeasible="soften"' in str(error)
        assert step.info.softened > 0 and least > 1e-6 * size
    else:
        assert step.info.softened == 0
        np.testing.assert_array_equal(hard.q_next, step.q_next)


def test_most_wedges_contradict_themselves() -> None:
    softened = [qdsim.step(*wedge(seed)[:4]).info.softened > 0 for seed in range(24)]
    assert sum(softened) > 16


@pytest.mark.parametrize("seed", range(8))
def test_within_the_violation_the_step_is_of_least_energy(seed: int) -> None:
    """A finger that touches nothing wedged goes where its command is; what is wedged rests: another softened step
    from where the first one ends moves it no more than the first one left open."""
    model, q, u, options, size = wedge(seed)
    u = np.array([-2.0 * size])  # away
    step = qdsim.step(model, q, u, options)
    at = model.slice_v("f")
    assert step.delta[at][0] == pytest.approx(-2.0 * size, rel=1e-6)
    assert np.all(step.contacts["force"][:, 0] >= -1e-9)


@pytest.mark.parametrize("kappa", [1e2, 1e5])
@pytest.mark.parametrize("seed", range(4))
def test_smoothed_steps_soften_too(seed: int, kappa: float) -> None:
    model, q, u, options, _ = wedge(seed, kappa=kappa, joint_limits=False)
    step = qdsim.step(model, q, u, options)
    exact = qdsim.step(model, q, u, options.replace(kappa=None))
    assert (step.info.softened > 0) == (exact.info.softened > 0)
    assert np.all(step.contacts["force"][:, 0] > 0.0)
    assert np.all(np.isfinite(step.contacts["force"]))


@pytest.mark.parametrize("seed", [1, 2, 6])
def test_derivatives_say_that_they_are_not_exact(seed: int) -> None:
    model, q, u, options, _ = contradiction(seed)
    line = qdsim.linearize(model, q, u, options)
    assert line.step.info.softened > 0 and line.step.info.derivative_exact is False
    assert np.all(np.isfinite(line.A)) and np.all(np.isfinite(line.B))
    np.testing.assert_allclose(
        line.q_next, qdsim.step(model, q, u, options).q_next, atol=1e-7, rtol=0
    )
    d = qdsim.differentiate(model, q, u, options)
    out = np.random.default_rng(seed).normal(size=model.nv)
    np.testing.assert_allclose(d.vjp(out)["u"], line.B.T @ out, atol=1e-6)


def test_batches_and_rollouts_soften() -> None:
    model, q, u, options, _ = wedge(2)
    u = u * np.linspace(-1.0, 1.0, 5)[:, None]
    batch = qdsim.step_batch(model, q, u, options, threads=2)
    for i in range(5):
        one = qdsim.step(model, q, u[i], options)
        np.testing.assert_array_equal(batch.q_next[i], one.q_next)
        np.testing.assert_array_equal(batch.contacts_of(i)["softened"], one.contacts["softened"])
        assert batch.softened[i] == one.info.softened > 0
    lines = qdsim.linearize_batch(model, q, u, options)
    assert not lines.derivative_exact.any()
    course = qdsim.rollout(model, q, u, options)
    assert course.ok
    for i in range(5):
        q = qdsim.step(model, q, u[i], options).q_next
        np.testing.assert_array_equal(course.q[i + 1], q)
    failed = qdsim.step_batch(
        model, model.default_q, u, options.replace(infeasible="error"), errors="mark"
    )
    assert not failed.ok.any() and not failed.softened.any()


def test_steps_that_have_a_solution_are_the_same_to_the_bit() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        xml, options, size = piles.scene(rng)
        model = qdsim.load(xml)
        for q in piles.starts(rng, model):
            u = piles.commands(rng, model, size, 1)[0, 0]
            try:
                hard = qdsim.step(model, q, u, options)
            except qdsim.SolverError:
                continue
            soft = qdsim.step(model, q, u, options.replace(infeasible="soften"))
            assert soft.info.softened == 0
            np.testing.assert_array_equal(soft.q_next, hard.q_next)
            np.testing.assert_array_equal(soft.contacts, hard.contacts)


@pytest.mark.parametrize("seed", range(6))
def test_points_that_a_body_is_to_be_at_meet_in_the_middle(seed: int) -> None:
    """Connected to several points of the world at once, all by its own origin: their mean, whatever it weighs."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(int(rng.integers(2, 5)), 3))
    ties = "".join(
        f'<connect body1="b" body2="p{i}" anchor="0 0 0"/>' for i, _ in enumerate(points)
    )
    posts = "".join(
        f'<body name="p{i}" pos="0 0 0"><geom size="0.01" contype="0" conaffinity="0"/></body>'
        for i, _ in enumerate(points)
    )
    xml = (
        f'<mujoco><worldbody><body name="b"><freejoint/><geom size="0.1" mass="{rng.uniform(0.1, 9)}"/></body>'
        f"{posts}</worldbody><equality>{ties}</equality></mujoco>"
    )
    description = qdsim.load(xml).description
    constraints = tuple(
        Connect(item.name, item.body_a, item.body_b, (0, 0, 0), tuple(point))
        for item, point in zip(description.constraints, points)
    )
    model = qdsim.build(dataclasses.replace(description, constraints=constraints))
    options = qdsim.Options(infeasible="soften")
    with pytest.raises(qdsim.SolverError, match=r"infeasible.*constraint"):
        qdsim.step(model, model.default_q, [], qdsim.Options())
    step = qdsim.step(model, model.default_q, [], options)
    np.testing.assert_allclose(step.q_next[:3], points.mean(axis=0), atol=1e-6)
    assert step.info.softened == 3 * len(points)


@pytest.mark.parametrize("seed", range(6))
def test_a_weld_out_of_reach_stretches_a_robot_to_its_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reach, away = rng.uniform(0.1, 2.0, 3), rng.uniform(3.0, 9.0, 3)
    slides = "".join(
        f'<joint name="{axis}" type="slide" axis="{vector}" range="{-r} {r}" limited="true"/>'
        for axis, vector, r in zip("xyz", ("1 0 0", "0 1 0", "0 0 1"), reach)
    )
    xml = (
        f'<mujoco><worldbody><body name="hand">{slides}<geom size="0.1" mass="1"/></body>'
        f'<body name="far" pos="{away[0]} {away[1]} {away[2]}"/></worldbody>'
        '<equality><weld body1="hand" body2="far" relpose="0 0 0 1 0 0 0"/></equality><actuator>'
        + "".join(f'<position joint="{axis}" kp="100"/>' for axis in "xyz")
        + "</actuator></mujoco>"
    )
    model = qdsim.load(xml)
    step = qdsim.step(model, np.zeros(3), np.zeros(3), qdsim.Options(infeasible="soften"))
    np.testing.assert_allclose(step.q_next, reach, atol=2e-3)  # a hundredth squared of some metres
    assert np.all(step.q_next >= reach - 1e-9) and step.info.softened > 0


def clutched(rng: np.random.Generator) -> tuple[str, float]:
    """Objects on a floor between two fingers that are in them, that follow each other, and that force-limited motors
    press together against dry friction; each finger has a pin whose range is next to nothing."""
    size = float(10.0 ** rng.uniform(-2.5, 0.5))
    count = int(rng.integers(1, 4))
    same = f'condim="{rng.choice([3, 4])}" friction="1 {0.01 * size!r} {0.001 * size!r}"'
    pull, narrow, deep, deeper = (
        float(10.0 ** rng.uniform(a, b)) for a, b in ((-1, 3), (-7, -4), (-5, -0.7), (-5, -0.7))
    )
    bodies = ""
    for i in range(count):
        r = float(0.4 * size * rng.uniform(0.8, 1.0))
        shape = rng.choice([f'type="box" size="{r} {r} {r}"', f'type="cylinder" size="{r} {r}"'])
        place = (0.8 * size * (i - (count - 1) / 2), 0.02 * size * rng.normal(), 0.9 * r)
        bodies += (
            f'<body name="o{i}" pos="{" ".join(map(str, place))}"><freejoint/>'
            f'<geom {shape} mass="{10.0 ** rng.uniform(-3, 0)}" {same}/></body>'
        )
    for side, sign, into in (("l", -1.0, deep), ("r", 1.0, deeper)):
        x = sign * size * (0.4 * count + 0.2 - into)
        bodies += f"""<body name="f{side}" pos="{x} 0 {0.5 * size}">
          <joint name="f{side}" type="slide" axis="{-sign} 0 0" range="0 {size}" frictionloss="1"/>
          <geom type="box" size="{0.2 * size} {0.5 * size} {0.4 * size}" mass="0.05" {same}/>
          <body name="p{side}" pos="{-sign * 0.2 * size} 0 0">
            <joint name="p{side}" type="slide" axis="0 0 1" frictionloss="1"
              range="{narrow * size!r} {narrow * size * (1 + 1e-6)!r}"/>
            <geom type="capsule" size="{0.05 * size} {0.2 * size}" mass="0.001" {same}/></body></body>"""
    xml = f"""<mujoco><compiler autolimits="true"/><worldbody><geom type="plane" size="5 5 1" {same}/>{bodies}
      </worldbody><equality><joint joint1="fl" joint2="fr"/></equality><actuator>
      <motor joint="fl" gear="{pull}" ctrlrange="-1 1"/><motor joint="fr" gear="{pull}" ctrlrange="-1 1"/></actuator>
      </mujoco>"""
    return xml, size


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("seed", range(32))
def test_grippers_that_are_in_what_they_hold_violate_the_least(seed: int) -> None:
    """However hard the motors pull, whatever rubs: forces have no part in how little can be violated. A start with a
    solution, as Clarabel finds, makes a step without softening, and any other one a softened step."""
    rng = np.random.default_rng(seed)
    xml, size = clutched(rng)
    model = qdsim.load(xml, exclude_overlaps=False)
    options = qdsim.Options(margin=0.1 * size, infeasible="soften", h=0.05, add_missed_pairs=False)
    q = model.clamp_to_limits(model.default_q)
    u = rng.uniform(-1, 1, 2)
    step = qdsim.step(model, q, u, options)
    cones = cones_of(model, q, u, options, step.contacts)
    left, right = (model.slice_v(name).start for name in ("fl", "fr"))
    couple = np.eye(model.nv)[left] - np.eye(model.nv)[right]
    apart = float(q[model.slice_q("fl")][0] - q[model.slice_q("fr")][0])
    own = np.append(violation(cones, step.delta), 0.01 * (couple @ step.delta + apart))
    deepest = max(abs(apart), *(-offset.min() for _, offset in cones))
    least = least_violation(cones, bounds(model, q, deepest), size, [(couple, apart)])
    assert np.linalg.norm(own) <= least * (1 + 1e-4) + 1e-6 * size
    assert (step.info.softened > 0) == (least > 1e-7 * size)


def test_the_option_is_checked() -> None:
    with pytest.raises(ValueError, match="infeasible"):
        qdsim.Options(infeasible="ignore")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="infeasible"):
        qdsim.Options(infeasible=True)  # type: ignore[arg-type]
    model, q, u, options, _ = contradiction(1)
    info = qdsim.step(model, q, u, options).info
    assert pickle.loads(pickle.dumps(info)).softened == info.softened > 0
    assert pickle.loads(pickle.dumps(options)) == options


def four_bar(rng: np.random.Generator, digits: int) -> tuple[str, float]:
    """A planar loop, closed by a connect, in any plane: its numbers end after some digits, so rows that lead out of
    the plane are of that size, and contradict each other by it."""
    size = float(10.0 ** rng.uniform(-2, 0))
    z = rng.normal(size=3)
    z /= np.linalg.norm(z)
    x = np.cross(z, rng.normal(size=3))
    x /= np.linalg.norm(x)
    y = np.cross(z, x)

    def written(v: Matrix) -> str:
        return " ".join(f"{item:.{digits}f}" for item in v)

    shape = 'contype="0" conaffinity="0"'
    noise = 10.0**-digits
    return (
        f"""<mujoco><option gravity="0 0 0"/><worldbody>
      <body name="a"><joint name="a" axis="{written(z)}"/><geom size="{0.1 * size}" mass="1" {shape}/>
        <body name="b" pos="{written(size * x)}"><joint name="b" axis="{written(z + noise * x)}"/>
          <geom size="{0.1 * size}" mass="1" {shape}/>
          <body name="c" pos="{written(size * y)}"><joint name="c" axis="{written(z - noise * y)}"/>
            <geom size="{0.1 * size}" mass="1" {shape}/></body></body></body>
      <body name="post" pos="{written(1.1 * size * y)}"/></worldbody>
      <equality><connect body1="c" body2="post" anchor="{written(-size * x)}"/></equality>
      <actuator><position name="a" joint="a" kp="10"/></actuator></mujoco>""",
        size,
    )


@pytest.mark.parametrize("digits", [6, 7, 8, 12])
@pytest.mark.parametrize("seed", range(4))
def test_loops_move_whatever_their_last_digits(seed: int, digits: int) -> None:
    xml, _ = four_bar(np.random.default_rng(seed), digits)
    model = qdsim.load(xml)
    q = np.zeros(3)
    for k in range(10):
        step = qdsim.step(model, q, [0.02 * k])
        assert np.abs(step.delta).max() < 0.2
        q = step.q_next
    assert 0.1 < q[0] < 0.18  # the masses lag
    np.testing.assert_allclose([q[1], q[2]], [-q[0], q[0]], atol=1e-4)  # a parallelogram
    assert step.info.softened == 0


def perched(depth: float, weight: float) -> str:
    """A block clamped between two walls, each in it by `depth`; a box rests on it. One island."""
    r = 0.05
    wall = f'type="box" size="{r} {r} {r}"'
    return f"""<mujoco><worldbody>
      <geom pos="{-2 * r + depth} 0 0" {wall}/><geom pos="{2 * r - depth} 0 0" {wall}/>
      <body name="block"><freejoint/><geom type="box" size="{r} {r} {2 * r}" mass="0.1"/></body>
      <body name="box" pos="0 0 {3 * r}"><freejoint/><geom type="box" size="{r} {r} {r}" mass="{weight}"/></body>
      </worldbody></mujoco>"""


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("h", [0.01, 1.0, 100.0])
def test_what_only_rests_on_a_contradiction_does_not_sink(h: float, weight: float) -> None:
    """The walls are what contradicts itself. The box, which would fall much farther in a step than motion is bounded
    by where the least violation is looked for, is to be held by its contact, not by that bound."""
    depth = 5e-3
    model = qdsim.load(perched(depth, weight))
    options = qdsim.Options(h=h, margin=0.01, infeasible="soften", add_missed_pairs=False)
    with pytest.raises(qdsim.SolverError, match=r"infeasible.*'block'"):
        qdsim.step(model, model.default_q, [], options.replace(infeasible="error"))
    step = qdsim.step(model, model.default_q, [], options)
    box = model.body_index("box")
    mine = (step.contacts["body_a"] == box) | (step.contacts["body_b"] == box)
    assert mine.sum() == 4 and step.info.softened >= np.count_nonzero(~mine)
    assert np.all(step.contacts["softened"][mine] <= 1e-3 * depth)
    np.testing.assert_allclose(step.contacts["softened"][~mine], depth, rtol=1e-4)
    assert step.contacts["force"][mine, 0].sum() == pytest.approx(9.81 * weight, rel=1e-5)


def gripper_on_an_arm(rng: np.random.Generator, digits: int) -> str:
    """Three joints that carry two loops whose drivers follow each other, in one plane or in two."""
    pieces = {}
    for side in "lr":
        xml, size = four_bar(rng, digits)
        for name in ("a", "b", "c", "post"):
            xml = xml.replace(f'"{name}"', f'"{name}{side}"')
        pieces[side] = xml
    bodies = [
        xml[xml.index('<body name="a') : xml.index("</worldbody>")] for xml in pieces.values()
    ]
    loops = [xml[xml.index("<connect") : xml.index("</equality>")] for xml in pieces.values()]
    arm = ""
    for name in ("pan", "lift", "roll"):
        axis, place = rng.normal(size=3), size * rng.normal(size=3)
        arm += (
            f'<body name="{name}" pos="{place[0]} {place[1]} {place[2]}">'
            f'<joint name="{name}" axis="{axis[0]} {axis[1]} {axis[2]}"/>'
            f'<geom size="{0.1 * size}" mass="1" contype="0" conaffinity="0"/>'
        )
    drives = "".join(f'<position joint="{name}" kp="100"/>' for name in ("pan", "lift", "roll"))
    return f"""<mujoco><option gravity="0 0 0"/><worldbody>{arm}{"".join(bodies)}</body></body></body></worldbody>
      <equality>{"".join(loops)}<joint joint1="al" joint2="ar"/></equality>
      <tendon><fixed name="split"><joint joint="al" coef=".5"/><joint joint="ar" coef=".5"/></fixed></tendon>
      <actuator><position name="a" tendon="split" kp="10" forcerange="-5 5"/>{drives}</actuator></mujoco>"""


@pytest.mark.parametrize("digits", [6, 8, 12])
@pytest.mark.parametrize("seed", range(4))
def test_loops_that_an_arm_carries_move_whatever_their_last_digits(seed: int, digits: int) -> None:
    """What the arm turns a loop's violation by leads out of the loop's plane, and is no way to undo it."""
    model = qdsim.load(gripper_on_an_arm(np.random.default_rng(seed), digits))
    q = np.array(model.default_q)
    for k in range(30):
        u = [0.01 * k, 0.5 * np.sin(0.2 * k), 0.4 * np.sin(0.3 * k), 0.3 * np.sin(0.4 * k)]
        step = qdsim.step(model, q, u)
        assert np.abs(step.delta).max() < 0.3
        q = np.array(step.q_next)
    for side in "lr":
        a, b, c = (float(q[model.slice_q(name + side)][0]) for name in "abc")
        assert a > 0.15
        np.testing.assert_allclose([b, c], [-a, a], atol=1e-3)


def four_bar_finger(side: str, sign: int, rubs: str) -> str:
    """An outer knuckle with the finger; its loop with the inner one is closed by a connect."""
    hits = 'type="box" contype="0" conaffinity="1"'
    return f"""<body name="{side}_outer" pos="0 {sign * 0.035} 0.06">
        <joint name="{side}_outer" axis="{sign} 0 0" range="0 0.85" {rubs}/>
        <geom {hits} size="0.008 0.005 0.02" pos="0 {sign * 0.018} 0.02" mass="0.03"/>
        <body name="{side}_finger" pos="0 {sign * 0.0355} 0.042">
          <joint name="{side}_finger" axis="{-sign} 0 0" range="0 0.85" {rubs}/>
          <geom type="box" contype="2" conaffinity="3" size="0.01 0.005 0.025" pos="0 {-sign * 0.024} 0.03" mass="0.05"/>
          <body name="{side}_tip" pos="0 {-sign * 0.03} 0.05" quat="-0.7071 0 0 0.7071"/></body></body>
      <body name="{side}_inner" pos="0 {sign * 0.02} 0.074">
        <joint name="{side}_inner" axis="{sign} 0 0" range="0 0.85" {rubs}/>
        <geom {hits} size="0.008 0.004 0.018" pos="0 {sign * 0.017} 0.02" mass="0.02"/></body>"""


def gripper_with_a_peg(rng: np.random.Generator) -> str:
    """An arm whose wrist a mocap body leads, a gripper of two four-bar fingers driven by strong motors, and a peg
    whose head is welded to one finger: on a slide of a range of 1e-7 m and three stiff hinges."""
    rubs = f'frictionloss="{rng.choice([0.0, 0.01, 1.0])}"'
    links = (
        ("0 0 .3", "0 0 1"), ("0 0 0", "0 1 0"), ("0.1 0 .3", "0 1 0"),
        ("0 0 .2", "0 0 1"), ("0 0 .1", "0 1 0"), ("0 0 .1", "1 0 0"),
    )  # fmt: skip
    arm = "".join(
        f'<body name="a{i}" pos="{place}"><joint name="a{i}" axis="{axis}" frictionloss="1" range="-3 3"/>'
        '<geom type="capsule" size="0.03 0.05" mass="1" contype="0" conaffinity="0"/>'
        for i, (place, axis) in enumerate(links)
    )
    hinges = "".join(
        f'<joint axis="{axis}" range="-.1 .1" frictionloss="1"/>'
        for axis in ("1 0 0", "0 1 0", "0 0 1")
    )
    loop = '<connect body1="{0}_inner" body2="{0}_finger" anchor="0 {1} 0.042"/>'
    return f"""<mujoco><compiler angle="radian" autolimits="true"/><worldbody><geom type="plane" size="2 2 1"/>
      <geom type="box" size="0.2 0.2 0.1" pos="0.3 0 0.1"/><body name="lead" mocap="true" pos="0.15 0.02 0.5"/>
      {arm}<body name="wrist">{four_bar_finger("left", 1, rubs)}{four_bar_finger("right", -1, rubs)}
        <geom type="cylinder" size="0.04 0.03" mass="0.5"/></body>{"</body>" * len(links)}
      <body name="peg" pos="0.3 0 0.24"><freejoint/><geom type="cylinder" size="0.03 0.035" mass="0.1"/>
        <body name="rod"><joint name="rod" type="slide" axis="0 0 1" range="0.0001 0.0001001" frictionloss="1"/>
          <geom type="capsule" size="0.002 0.03" mass="0.001" condim="4"/>
          <body name="head" pos="0 0 0.04" euler="0 3.14 0">{hinges}
            <geom type="capsule" size="0.002 0.004" mass="0.001" condim="4"/></body></body></body>
      <body name="block" pos="0.3 0.08 0.21"><freejoint/><geom type="box" size="0.03 0.03 0.03" mass="0.2"/></body>
      </worldbody><equality>{loop.format("left", 0.035)}{loop.format("right", -0.035)}
        <weld body1="left_tip" body2="head"/><weld body1="lead" body2="wrist" solref="0.01 1" solimp=".9 .9 .01"/>
        <joint joint1="left_inner" joint2="right_inner"/></equality>
      <actuator><motor joint="left_inner" ctrlrange="-1 1" gear="200"/>
        <motor joint="right_inner" ctrlrange="-1 1" gear="200"/></actuator></mujoco>"""


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("seed", [1, 3, 6, 12, 22])
def test_grippers_with_a_peg_need_no_softening(seed: int) -> None:
    """Constraints that lead out of the loops' planes contradict each other and the limits by 1e-7 m at most, and do so
    at every other step once the fingers are in what they hold: no step is refused for that, and one in six at most
    lets the fingers' coupling give way (by 8e-3 rad), and says so."""
    rng = np.random.default_rng(seed)
    model = qdsim.load(gripper_with_a_peg(rng), exclude_overlaps=True)
    q, phase = model.clamp_to_limits(model.default_q), rng.uniform(0, 6, 2)
    apart = []
    for k in range(60):
        step = qdsim.step(model, q, 0.2 * (np.sin(0.1 * k + phase) - np.sin(phase)))
        q = step.q_next
        left, right = (float(q[model.slice_q(f"{side}_inner")][0]) for side in ("left", "right"))
        apart.append(abs(left - right))
        assert apart[-1] <= 2e-4 or step.info.softened > 0  # each row by 1e-4, or it counts
    # which steps give way depends on last digits, and so does whether the last one is one of them
    assert np.quantile(apart, 0.8) <= 1e-6
    assert max(apart) <= 0.01
    assert 1e-4 - 1e-9 <= float(q[model.slice_q("rod")][0]) <= 1.001e-4 + 1e-9
    for loop in model.description.constraints:
        if isinstance(loop, Connect):
            (p_a, R_a), (p_b, R_b) = (
                model.body_pose(q, body) for body in (loop.body_a, loop.body_b)
            )
            gap = p_a + R_a @ np.array(loop.anchor_a) - p_b - R_b @ np.array(loop.anchor_b)
            assert np.abs(gap).max() < 1e-4


def test_balls_jammed_at_the_friction_angle_are_solved() -> None:
    """Between a floor and planes that lean over it by just the angle of friction, or in them by 1e-9 m: what a ball may
    do is one ray, or the tip of one, and no finite force need hold it there. It stays within rounding of the ray."""
    radius, friction = 0.05, 0.5
    for seed in range(31, 36):
        rng = np.random.default_rng(seed)
        bodies = pairs = ""
        leans = []
        for i in range(3):
            turn = rng.uniform(0, 6)
            tilt = np.arctan(friction)
            lean = np.array(
                [np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), -np.cos(tilt)]
            )
            leans.append(lean)
            place = np.array([3 * radius * i, 0, radius])
            at = place - (radius + rng.choice([0, 1e-9, -1e-9])) * lean
            x, y, z = (" ".join(map(repr, map(float, v))) for v in (place, at, lean))
            bodies += (
                f'<geom name="c{i}" type="plane" size="5 5 1" pos="{y}" zaxis="{z}" contype="0" conaffinity="0"/>'
                f'<body name="b{i}" pos="{x}"><freejoint/><geom name="b{i}" size="{radius}" mass="1" '
                f'friction="{friction}"/></body>'
            )
            pairs += f'<pair geom1="c{i}" geom2="b{i}" condim="{rng.choice([1, 3])}" friction="{friction} {friction}"/>'
        model = qdsim.load(
            f'<mujoco><worldbody><geom type="plane" size="5 5 1" friction="{friction}"/>{bodies}</worldbody>'
            f"<contact>{pairs}</contact></mujoco>"
        )
        for _ in range(4):
            tau = rng.normal(size=model.nv) * 10.0 ** rng.uniform(0, 4)
            step = qdsim.step(model, model.default_q, [], qdsim.Options(h=0.05), tau=tau)
            inside = min(0.0, float(step.contacts["dist"].min()))
            for i, lean in enumerate(leans):
                move = step.delta[model.slice_v(f"b{i}")][:3]
                assert move[2] >= inside - 1e-5 * radius  # above the floor
                assert lean @ move >= 2 * inside - 1e-5 * radius

"""Large heaps in motion: programs of a part of the contacts, solved in rounds, answer for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from coulomb_states import law_gaps, momentum_gap
from program import gravity_force

from qdsim import linearize_dynamic, step_dynamic, systems
from qdsim.systems.heaps import shaking

RADIUS, GRAINS = 0.05, 80
G = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope="module")
def heap():
    """Grains that have come to rest, and then are shaken: the system and its state."""
    system = systems.load_dynamic("brazil_nut_3d", grains=GRAINS)
    o = system.options.replace(h=0.03, restitution=0.0, margin=RADIUS / 2)
    done = system.simulate(0.45, o, tau=None)
    return system, done.q[-1], 0.0 * done.v[-1]


def check(model, options, q, v, tau, step):
    """Momentum of every body, and every contact's cone, force and product, in the list of all contacts."""
    h, v_next = options.h, step.v_next
    names = [model.body_names[k] for k in range(1, len(model.body_names))]
    centres = model.body_poses(q)[0]
    push, turn = np.zeros((len(names) + 1, 3)), np.zeros((len(names) + 1, 3))
    largest = step.contacts["force"][:, 0].max()
    for contact in step.contacts:
        frame, mu = contact["frame"], contact["friction"][0]
        velocity = np.zeros(3)
        for body, sign in ((contact["body_b"], 1.0), (contact["body_a"], -1.0)):
            if body == 0:
                continue
            own = v_next[model.slice_v(names[body - 1])]
            arm = contact["pos"] - centres[body]
            velocity += sign * (own[:3] + np.cross(own[3:], arm))
            world = sign * frame.T @ contact["force"][:3]
            push[body] += world
            turn[body] += np.cross(arm, world)
        normal, *slip = frame @ velocity
        force, friction = contact["force"][0], contact["force"][1:3]
        raised = mu * np.linalg.norm(slip) if options.law == "convex" else 0.0
        gap = contact["dist"] + h * (normal - raised)
        assert gap > -1e-9 * RADIUS
        assert force >= 0.0 and np.linalg.norm(friction) <= mu * force + 1e-9 * largest
        assert force * abs(gap) < 1e-7 * largest * RADIUS
        work = friction @ slip + mu * force * np.linalg.norm(slip)  # slides against its friction
        assert abs(work) * h < 1e-7 * largest * RADIUS
    for body, name in enumerate(names, 1):
        part = model.slice_v(name)
        geom = next(b for b in model.description.bodies if b.name == name)
        mass, radius = geom.mass, geom.geoms[0].size[0]
        change = mass * (v_next[part][:3] - v[part][:3]) / h - mass * G - tau[part][:3] - push[body]
        spin = 0.4 * mass * radius**2 * (v_next[part][3:] - v[part][3:]) / h - turn[body]
        assert np.abs(change).max() < 1e-9 * largest
        assert np.abs(spin).max() < 1e-9 * largest * radius


@pytest.mark.parametrize("h", [0.1, 0.02, 0.005])
def test_every_contact_of_a_shaken_heap_has_its_certificate(heap, h):
    system, q, v = heap
    o = system.options.replace(h=h, margin=RADIUS / 2, restitution=0.0)
    tau = shaking(system.model, 0.05, 0.5, h)
    for k in range(4):
        load = tau(k * h, q, v)
        step = step_dynamic(system.model, q, v, [], o, tau=load)
        check(system.model, o, q, v, load, step)
        q, v = step.q_next, step.v_next


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("h", [0.1, 0.02, 0.005])
def test_a_shaken_heap_obeys_coulombs_law(heap, h):
    """Of states on the convex law's way: Newton's steps on the shifts run away in most of them."""
    system, q, v = heap
    o = system.options.replace(h=h, margin=RADIUS / 2, restitution=0.0)
    tau = shaking(system.model, 0.05, 0.5, h)
    for k in range(4):
        load = tau(k * h, q, v)
        step = step_dynamic(system.model, q, v, [], o.replace(law="coulomb"), tau=load)
        assert step.info.law_residual <= 1e-9 * RADIUS
        check(system.model, o.replace(law="coulomb"), q, v, load, step)
        step = step_dynamic(system.model, q, v, [], o, tau=load)
        q, v = step.q_next, step.v_next


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 2])
def test_heaps_that_move_by_several_radii_obey_coulombs_law(seed):
    """150 grains at 2 m/s in a step of 100 ms: fixed points on convex programs find nothing there."""
    system = systems.load_dynamic("brazil_nut_3d", grains=150)
    model = system.model
    o = system.options.replace(h=0.03, restitution=0.0, margin=RADIUS / 2)
    done = system.simulate(0.45, o, tau=None)
    q, v, none = done.q[-1], 0.0 * done.v[-1], 0.0 * done.v[-1]
    rng = np.random.default_rng(seed)
    for name in model.body_names[1:]:
        v[model.slice_v(name)][:3] = 2.0 * rng.normal(size=3)
    o = o.replace(h=0.1, law="coulomb")
    step = step_dynamic(model, q, v, [], o, tau=none)
    assert step.info.law_residual <= 1e-9 * RADIUS
    check(model, o, q, v, none, step)


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("h", [0.1, 0.02])
def test_a_shaken_heap_of_disks_obeys_coulombs_law(h):
    """In the plane a pyramid of two rays is a cone, too."""
    system = systems.load_dynamic("brazil_nut", grains=90)
    model, q, v = system.model, system.q, system.v
    o = system.options.replace(h=h, restitution=0.0)
    tau = shaking(model, 0.75, 1.0, h)
    for k in range(round(1.8 / h)):
        load = tau(k * h, q, v)
        if k * h >= 1.3:
            s = step_dynamic(model, q, v, [], o.replace(law="coulomb"), tau=load)
            assert s.info.law_residual <= 1e-9
            closing, outside, power = law_gaps(model, q, s, "pyramid", 2)
            largest = 100.0 + s.contacts["force"].max()  # the large one's weight
            assert closing <= 1e-8 and outside <= 1e-8 * largest and power <= 1e-8 * largest
            assert momentum_gap(model, q, v, s, gravity_force(model, q) + load) <= 1e-8 * largest
        s = step_dynamic(model, q, v, [], o, tau=load)
        q, v = s.q_next, s.v_next


def test_rounds_do_not_show_in_the_answer(heap):
    """A warm start brings all loaded contacts in at once, and no round is rough: the same motion."""
    system, q, v = heap
    o = system.options.replace(h=0.05, margin=RADIUS / 2)
    load = shaking(system.model, 0.05, 0.5, 0.05)(0.0, q, v)
    cold = step_dynamic(system.model, q, v, [], o, tau=load)
    warm = step_dynamic(system.model, q, v, [], o, tau=load, warm_start=cold)
    assert np.abs(cold.v_next - warm.v_next).max() < 1e-8
    again = step_dynamic(system.model, q, v, [], o, tau=load)
    assert np.array_equal(cold.v_next, again.v_next)


@pytest.mark.parametrize("law", ["convex", "coulomb"])
def test_derivatives_of_a_heap_in_motion_are_differences(heap, law):
    system, q, v = heap
    o = system.options.replace(h=0.02, margin=RADIUS / 2, restitution=0.0, law=law)
    load = shaking(system.model, 0.05, 0.5, 0.02)(0.0, q, v)
    along = np.random.default_rng(0).standard_normal(v.size)
    lin = linearize_dynamic(system.model, q, v, [], o, tau=load)
    eps = 1e-7
    ends = [
        step_dynamic(system.model, q, v + sign * eps * along, [], o, tau=load).v_next
        for sign in (1.0, -1.0)
    ]
    difference = (ends[0] - ends[1]) / (2 * eps)
    along_v = lin.A[v.size :, v.size :] @ along
    assert np.abs(along_v - difference).max() < 1e-5 * np.abs(difference).max()


@pytest.mark.long
def test_the_best_of_some_programs_is_not_worse_than_the_convex_one():
    """`max_programs` in a shaken heap of disks: without shifts what a contact lacks to the law is its slip, so that the
    best of five programs lacks no more than bodies move. Rounds that ended early without their best left 200 m."""
    system = systems.load_dynamic("brazil_nut", seed=1)
    h, q, v = 0.1, system.q, system.v
    tau = shaking(system.model, 0.75, 1.0, h)
    o = system.options.replace(h=h, law="coulomb", max_programs=5, infeasible="soften")
    for k in range(60):
        s = step_dynamic(system.model, q, v, [], o, tau=tau(k * h, q, v))
        assert s.info.law_residual <= 2.0 * np.abs(s.delta).max()
        q, v = s.q_next, s.v_next

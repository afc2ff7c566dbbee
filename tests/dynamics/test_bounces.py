"""Bounces of many contacts at once: contacts make no energy, and ask for no more room than there is."""

import numpy as np
import pytest

import qdsim
from qdsim import DynamicOptions, step_dynamic

ROOM = "".join(
    f'<geom type="plane" size="1 1 .1" pos="{place}" zaxis="{axis}"/>'
    for place, axis in (
        ("0 0 0", "0 0 1"),
        ("0 0 .4", "0 0 -1"),
        (".2 0 0", "-1 0 0"),
        ("-.2 0 0", "1 0 0"),
        ("0 .2 0", "0 -1 0"),
        ("0 -.2 0", "0 1 0"),
    )
)


def rattle(rng, more=""):
    """Six bodies in a box, without gravity, thrown."""
    bodies = ""
    for i in range(6):
        x, y, z = (-0.1, 0.1)[i & 1], (-0.1, 0.1)[i >> 1 & 1], (0.1, 0.3)[i >> 2 & 1]
        sizes = " ".join(map(str, rng.uniform(0.03, 0.05, 3)))
        kind = ("box", "ellipsoid", "capsule")[i % 3]
        friction, dim = rng.uniform(0.1, 1), rng.choice([3, 4, 6])
        bodies += (
            f'<body pos="{x} {y} {z}"><freejoint/><geom type="{kind}" size="{sizes}" '
            f'friction="{friction} .01 .001" condim="{dim}"/></body>'
        )
    xml = f'<mujoco><option gravity="0 0 0"/><worldbody>{ROOM}{bodies}{more}</worldbody></mujoco>'
    model = qdsim.load(xml)
    return model, rng.normal(size=36) * np.tile([1, 1, 1, 5, 5, 5], 6)


@pytest.mark.parametrize("friction", ["cone", "pyramid"])
@pytest.mark.parametrize("law", ["convex", "coulomb"])
def test_contacts_make_no_energy(law, friction):
    """Without forces kinetic energy does not grow, up to what the capped recovery of rounding gives. (It grew by up to
    42 % in a step, and steps were infeasible.)"""
    shares = []
    for seed in range(3):
        model, v = rattle(np.random.default_rng(seed))
        q = model.default_q
        o = DynamicOptions(
            law=law, friction=friction, restitution=1.0, bounce_speed=0.0, recovery_speed=1e-6
        )
        for _ in range(80):
            s = step_dynamic(model, q, v, [], o)
            before, after = s.kinetic_energy
            assert after <= before * (1 + 1e-8)
            if s.info.bounces:
                shares.append(s.info.bounce_share)
            q, v = s.q_next, s.v_next
    assert len(shares) > 40 and np.mean(np.equal(shares, 1.0)) > 0.5
    assert 0.0 <= min(shares) < 1.0


def test_a_single_contact_keeps_its_coefficient():
    model = qdsim.load(
        '<mujoco><worldbody><geom type="plane" size="1 1 .1"/><body pos="0 0 .101"><freejoint/>'
        '<geom size=".1"/></body></worldbody></mujoco>'
    )
    v = np.array([1.0, 0.0, -2.0, 0.0, 0.0, 0.0])
    for law in ("convex", "coulomb"):
        s = step_dynamic(model, model.default_q, v, [], DynamicOptions(law=law, restitution=0.9))
        assert s.info.bounces == 1 and s.info.bounce_share == 1.0


def between(left, right):
    """A ball of 0.1 m between two walls, without gravity."""
    walls = (
        f'<geom type="plane" size="1 1 .1" pos="-{left} 0 0" zaxis="1 0 0"/>'
        f'<geom type="plane" size="1 1 .1" pos="{right} 0 0" zaxis="-1 0 0"/>'
    )
    return qdsim.load(
        f'<mujoco><option gravity="0 0 0"/><worldbody>{walls}<body><freejoint/><geom size=".1"/></body>'
        "</worldbody></mujoco>"
    )


@pytest.mark.parametrize(("law", "kappa"), [("convex", None), ("convex", 1e4), ("coulomb", None)])
def test_bounces_ask_for_no_more_room_than_there_is(law, kappa):
    """A ball between two walls 3 mm wider than it, that would fly 50 mm in the step after its bounce: it arrives at the
    other wall, within the share's last halving. (The step was infeasible.)"""
    model = between(0.101, 0.102)
    v = np.array([-5.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    o = DynamicOptions(h=0.01, law=law, kappa=kappa, restitution=1.0)
    d = qdsim.differentiate_dynamic(model, model.default_q, v, [], o)
    s = d.step
    assert s.info.bounces == 1 and s.info.bounce_share <= 0.04 and s.kinetic_energy[1] > 0.0
    if kappa is None:
        assert s.q_next[0] == pytest.approx(0.05 * s.info.bounce_share, abs=1e-12)
        assert 0.04 - s.info.bounce_share < 2.0**-8
    assert d.step.info.derivative_exact is False


@pytest.mark.parametrize("law", ["convex", "coulomb"])
def test_walls_that_are_too_narrow_still_contradict_each_other(law):
    o = DynamicOptions(law=law, restitution=1.0)
    with pytest.raises(qdsim.SolverError, match="infeasible"):
        step_dynamic(between(0.09, 0.09), [0, 0, 0, 1, 0, 0, 0], [-5.0, 0, 0, 0, 0, 0], [], o)


FLOOR = '<geom type="plane" size="50 50 1" friction=".5"/>'
PADDLE = (
    '<body name="paddle" mocap="true" pos="8.85 0 .1">'
    '<geom type="box" size=".05 .1 .09" friction=".5"/></body>'
)


def two_balls(between):
    balls = "".join(
        f'<body pos="{x} 0 .1"><freejoint/><geom size=".1" mass=".5" friction=".5"/></body>'
        for x in (0, 9)
    )
    return qdsim.load(f"<mujoco><worldbody>{FLOOR}{balls}{between}</worldbody></mujoco>")


@pytest.mark.parametrize("law", ["convex", "coulomb"])
@pytest.mark.parametrize(("deep", "push"), [(0.0, 0.0), (5e-3, 0.0), (0.0, 5e-3), (5e-3, 0.02)])
def test_bounces_do_not_know_what_is_far_away(law, deep, push):
    """Newton's rule for one ball, whether another is pushed out of the floor or by a paddle: neither makes energy by
    bouncing. (The ball left at 0.13 m/s, or not at all.)"""
    model = two_balls(PADDLE)
    q, v = model.default_q.copy(), np.zeros(model.nv)
    q[9] -= deep
    v[[0, 2]] = 0.3, -1.0
    o = DynamicOptions(h=0.005, restitution=0.5, law=law)
    pose = [8.85 + push, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0]
    s = step_dynamic(model, q, v, [], o, mocap={"paddle": pose})
    assert s.info.bounces == 1 and s.info.bounce_share == 1.0
    assert s.v_next[2] == pytest.approx(0.5, abs=1e-7)
    assert s.v_next[8] > (0.5 if deep else -1e-9) and s.v_next[6] > (0.5 if push else -1e-9)


def test_a_ball_bounces_on_what_is_pushed_out():
    """The same in one island: a ball falls on a box that is 2 mm deep in the floor, and leaves it at half its speed."""
    model = qdsim.load(
        f'<mujoco><worldbody>{FLOOR}<body pos="0 0 .098"><joint type="slide" axis="0 0 1"/>'
        '<geom type="box" size=".1 .1 .1" mass="5"/></body><body pos="0 0 .298">'
        '<joint type="slide" axis="0 0 1"/><geom size=".1" mass=".5"/></body></worldbody></mujoco>'
    )
    o = DynamicOptions(h=0.005, restitution=0.5)
    s = step_dynamic(model, [0.0, 0.0], [0.0, -1.0], [], o)
    assert s.info.bounces == 1 and s.info.bounce_share == 1.0
    assert s.v_next[1] - s.v_next[0] == pytest.approx(0.5, abs=1e-7)


def test_islands_bounce_with_shares_of_their_own():
    """Beside a thrown heap whose bounces are made smaller, a ball on a floor bounces as if it were alone."""
    far = (
        '<geom type="plane" size="1 1 .1" contype="2" conaffinity="2"/><body pos="9 0 .1">'
        '<freejoint/><geom size=".1" mass=".5" contype="2" conaffinity="2"/></body>'
    )
    shared = 0
    for seed in range(3):
        heap, thrown = rattle(np.random.default_rng(seed), far)
        v = np.concatenate([thrown[:36], [0.0, 0.0, -1.0, 0.0, 0.0, 0.0]])
        q = heap.default_q.copy()
        o = DynamicOptions(restitution=1.0, bounce_speed=0.0, recovery_speed=1e-6)
        for _ in range(12):
            v[36:], q[-7:] = [0.0, 0.0, -1.0, 0.0, 0.0, 0.0], heap.default_q[-7:]
            s = step_dynamic(heap, q, v, [], o)
            assert s.v_next[38] == pytest.approx(1.0, abs=1e-7)
            shared += s.info.bounce_share < 1.0
            q, v = s.q_next.copy(), s.v_next.copy()
    assert shared > 0

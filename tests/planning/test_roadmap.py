"""Roadmaps: every plan replays to its goal, bits do not depend on executors, files belong to their model."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.array_type import Array
from qdsim.parallel import RayExecutor
from qdsim.planning import NotCoveredError, Roadmap, RoadmapOptions, Task
from qdsim.planning.plans.segment import Segment
from qdsim.planning.roadmap import roadmap as module
from qdsim.planning.roadmap.coverage import Coverage, wilson
from qdsim.planning.roadmap.legs import Leg, Legs
from qdsim.planning.roadmap.poses import away, draw_poses
from qdsim.planning.roadmap.query import Query
from qdsim.planning.roadmap.shortest_path import shortest_path

SMALL = RoadmapOptions(nodes=3, neighbours=1, trials=1)


@pytest.fixture(scope="module")
def disc() -> Task:
    return systems.load("planar_hand").tasks["half_turn"]


@pytest.fixture(scope="module")
def built(disc: Task) -> Roadmap:
    return planning.roadmap(disc, SMALL, seed=3)


def same(a: Roadmap, b: Roadmap) -> bool:
    ours, theirs = ({"nodes": m.nodes, **m.edges.arrays()} for m in (a, b))
    return all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)


def test_plans_end_at_their_goals_in_the_model(disc: Task, built: Roadmap) -> None:
    rng = np.random.default_rng(0)
    for start, goal in zip(draw_poses(disc, 4, rng), draw_poses(disc, 4, rng)):
        plan = built.query(start, goal)
        assert np.array_equal(plan.start, start)
        verdict = plan.check(disc)
        assert verdict, verdict
        assert 0.0 < plan.success <= 1.0


def test_plans_for_an_execution_leave_room_for_its_errors(disc: Task, built: Roadmap) -> None:
    start, goal = draw_poses(disc, 2, np.random.default_rng(0))
    plan = built.planner(goal)(start, seed=0)
    assert away(disc, plan.end, goal) <= 0.5
    assert plan.check(disc)


def test_plans_lead_on_from_a_grasp_in_the_middle_of_a_plan(disc: Task, built: Roadmap) -> None:
    """A measured state: the disc between the fingers and not at rest in any node."""
    rng = np.random.default_rng(1)
    start, goal, other = draw_poses(disc, 3, rng)
    plan = built.query(start, goal)
    configurations = plan.segments[-1].configurations
    state = configurations[len(configurations) // 2]
    again = built.query(state, other)
    assert np.array_equal(again.start, state)
    assert again.check(disc)


@pytest.mark.parametrize("system", ["planar_pushing", "planar_hand"])
def test_edges_lead_from_node_to_node(system: str, built: Roadmap, disc: Task) -> None:
    made = built
    if system == "planar_pushing":
        task = next(iter(systems.load(system).tasks.values()))
        made = planning.roadmap(task, RoadmapOptions(nodes=2, neighbours=1, trials=0))
    assert made.edges.count > 0
    for k in range(made.edges.count):
        leg = made.edges.leg(k)
        source, target = made.nodes[made.edges.source[k]], made.nodes[made.edges.target[k]]
        assert np.array_equal(leg.segments[0].start, source)
        assert away(made.task, leg.end, target) <= 1.0
        for segment in leg.segments:
            q = segment.start
            for u, after in zip(segment.inputs, segment.configurations[1:]):
                q = qdsim.step(made.task.model, q, u, made.task.options).q_next
                assert q.tobytes() == after.tobytes()


@contextlib.contextmanager
def on_ray() -> Iterator[Executor]:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()


def executors() -> list[Any]:
    return [
        pytest.param(lambda: ThreadPoolExecutor(4), id="threads"),
        pytest.param(
            lambda: ProcessPoolExecutor(4, mp_context=get_context("spawn")), id="processes"
        ),
        pytest.param(on_ray, id="ray"),
    ]


@pytest.mark.long
@pytest.mark.parametrize("make", executors())
def test_bits_do_not_depend_on_the_executor(disc: Task, built: Roadmap, make: Any) -> None:
    executor: Executor
    with make() as executor:
        assert same(planning.roadmap(disc, SMALL, seed=3, executor=executor), built)
    assert not same(planning.roadmap(disc, SMALL.replace(nodes=2), seed=4), built)


@pytest.mark.long
def test_what_is_done_is_kept_at_an_interrupt(
    disc: Task, built: Roadmap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()
    find = module.find_edges

    def interrupted(*args: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return find(*args)

    monkeypatch.setattr(module, "find_edges", interrupted)
    with pytest.raises(KeyboardInterrupt):
        planning.roadmap(disc, SMALL, seed=3, folder=tmp_path)
    again = itertools.count()
    monkeypatch.setattr(module, "find_edges", lambda *args: (next(again), find(*args))[1])
    assert same(planning.roadmap(disc, SMALL, seed=3, folder=tmp_path), built)
    assert next(again) == SMALL.nodes - 2
    with pytest.raises(ValueError, match="folder"):
        planning.roadmap(disc, SMALL, seed=5, folder=tmp_path)


@pytest.mark.long
def test_files_keep_all_and_belong_to_their_task(
    disc: Task, built: Roadmap, tmp_path: Path
) -> None:
    path = tmp_path / "roadmap.npz"
    built.save(path)
    there = Roadmap.load(path, disc.replace(goal=disc.start))
    assert same(there, built)
    assert there.options == built.options
    start, goal = draw_poses(disc, 2, np.random.default_rng(7))
    plans = [m.query(start, goal) for m in (built, there)]
    assert plans[0].end.tobytes() == plans[1].end.tobytes()
    heavier = disc.options.replace(h=0.05)
    with pytest.raises(ValueError, match="another model or task"):
        Roadmap.load(path, disc.replace(options=heavier))
    other = next(iter(systems.load("planar_pushing").tasks.values()))
    with pytest.raises(ValueError, match="another model or task"):
        Roadmap.load(path, other)
    with pytest.raises(ValueError, match=r"search: .* other options"):
        Roadmap.load(path, disc, search=planning.RRTOptions())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"roadmap\.npz: not a roadmap"):
        Roadmap.load(path, disc)


def test_a_plan_of_a_roadmap_is_saved_as_any_plan(
    disc: Task, built: Roadmap, tmp_path: Path
) -> None:
    plan = built.query(*draw_poses(disc, 2, np.random.default_rng(2)))
    plan.save(tmp_path / "plan.npz")
    assert planning.Plan.load(tmp_path / "plan.npz").check(disc)


def test_goals_out_of_coverage_are_said_to_be(disc: Task, built: Roadmap) -> None:
    far = disc.with_object(disc.start, [3.0, 0.0, 0.0])
    with pytest.raises(NotCoveredError, match="from the nearest node") as caught:
        built.query(disc.start, far)
    assert np.array_equal(caught.value.q, disc.start)


def test_a_search_that_may_do_nothing_covers_nothing(disc: Task, built: Roadmap) -> None:
    """Queries end, with an answer that says what failed, even where every connection fails."""
    weak = built.options.replace(search=planning.RRTOptions(max_nodes=1), attempts=2)
    lame = Roadmap(disc, weak, built.nodes, built.edges)
    start, goal = draw_poses(disc, 2, np.random.default_rng(0))
    with pytest.raises(NotCoveredError):
        lame.query(start, goal)


class Straying(Legs):
    """Legs of a plant, which go a share of the way to their pose."""

    def __init__(self, task: Task, options: RoadmapOptions, share: float) -> None:
        super().__init__(task, options)
        self.share = share
        self.asked: list[bytes] = []

    def connect(
        self,
        q: Array,
        pose: Array,
        seed: int,
        region: Any = None,
        leave: bool = True,
    ) -> Leg | None:
        self.asked.append(pose.tobytes())
        way = self.task.space.difference(pose, q)
        ends = np.array([q, self.task.with_object(q, self.share * way)])
        return Leg((Segment(np.zeros((1, self.task.model.nu)), ends, np.array([1])),))

    def follow(self, q: Array, edge: Leg, pose: Array, seed: int) -> Leg | None:
        return self.connect(q, pose, seed)


def test_what_failed_in_a_plant_is_tried_again_from_where_the_object_is(
    disc: Task, built: Roadmap
) -> None:
    """Legs go four fifths of the way, so that each leaves a fifth of the distance."""
    start = built.nodes[0]
    goal = disc.with_object(start, [0.9 * built.reach, 0.0, 0.0])
    maker = Straying(disc, built.options, 0.8)
    query = Query(built, maker, start, goal, 0)
    query.go()
    assert away(disc, query.q, goal) <= 1.0
    expected = math.ceil(math.log(away(disc, start, goal)) / math.log(5.0))
    assert len(maker.asked) == expected > 1


@pytest.mark.parametrize("share, why", [(-1.0, "5 connections failed"), (0.0, "no edges lead")])
def test_a_drive_ends_where_no_leg_arrives(
    disc: Task, built: Roadmap, share: float, why: str
) -> None:
    """Each drives the object off as far again as its pose was, or leaves it in place, where none is tried again."""
    few = Roadmap(disc, built.options.replace(attempts=4), built.nodes, built.edges)
    gap = 1.5 * disc.position_tolerance
    start = disc.with_object(built.nodes[0], [3.0 * gap, 0.0, 0.0])
    maker = Straying(disc, few.options, share)
    with pytest.raises(NotCoveredError, match=why):
        Query(few, maker, start, disc.with_object(start, [0.0, gap, 0.0]), 0).go()
    assert len(maker.asked) == (5 if share else len(set(maker.asked)))
    assert len(maker.asked) > 1


@pytest.mark.long
def test_growth_covers_what_was_asked(disc: Task) -> None:
    lower, upper = np.array(disc.lower), np.array(disc.upper)
    upper[0] = 0.0  # half of the box
    half = disc.replace(lower=lower, upper=upper)
    few = planning.roadmap(half, RoadmapOptions(nodes=2, neighbours=1, trials=0))
    goal = disc.with_object(disc.start, [0.3, 0.1, 2.0 * few.reach / disc.length])
    with pytest.raises(NotCoveredError):
        few.query(few.nodes[0], goal)
    more = few.grow(goal[None])
    assert len(more.nodes) == 3
    assert away(disc, more.nodes[2], goal) < 1e-6
    assert more.edges.arrays()["inputs"][: len(few.edges.inputs)].tobytes() == (
        few.edges.inputs.tobytes()
    )
    same_again = more.grow(more.nodes[:1])
    assert same_again is more


@pytest.mark.long
def test_coverage_is_the_same_for_the_same_seed(disc: Task, built: Roadmap) -> None:
    found = built.coverage(3, seed=1)
    assert np.array_equal(found.goals, built.coverage(3, seed=1).goals)
    low, high = found.interval
    assert 0.0 <= low <= found.share <= high <= 1.0
    assert "of 3 queries" in str(found)


@pytest.mark.parametrize("successes, tries", [(0, 10), (7, 10), (94, 100), (250, 250)])
def test_intervals_end_where_the_share_is_a_quantile_away(successes: int, tries: int) -> None:
    """Wilson's ends p solve |share - p| = z sqrt(p (1 - p) / n)."""
    share = successes / tries
    reached = np.arange(tries) < successes
    assert Coverage(np.empty((0, 1)), np.empty((0, 1)), reached).share == share
    for p in wilson(successes, tries):
        variance = 1.959963984540054**2 * p * (1 - p) / tries
        assert (share - p) ** 2 == pytest.approx(variance, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_ways_are_the_cheapest(seed: int) -> None:
    """Against all simple ways through a small graph."""
    rng = np.random.default_rng(seed)
    n = 5
    cost = np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), np.inf)
    ways = [
        [(b, float(cost[a, b]), a * n + b) for b in range(n) if np.isfinite(cost[a, b])]
        for a in range(n)
    ]
    entries, exits = {0: 0.3, 1: 0.1}, {3: 0.2, 4: 0.4}
    best = math.inf
    for size in range(1, n + 1):
        for nodes in itertools.permutations(range(n), size):
            if nodes[0] in entries and nodes[-1] in exits:
                legs = sum(cost[a, b] for a, b in itertools.pairwise(nodes))
                best = min(best, entries[nodes[0]] + legs + exits[nodes[-1]])
    way = shortest_path(entries, ways, exits)
    if way is None:
        assert best == math.inf
        return
    assert all(edge == a * n + b for (a, _), (b, edge) in itertools.pairwise(way))
    legs = sum(cost[a, b] for (a, _), (b, _) in itertools.pairwise(way))
    assert entries[way[0][0]] + legs + exits[way[-1][0]] == pytest.approx(best)


def test_arguments_are_named_where_they_are_wrong(disc: Task) -> None:
    with pytest.raises(ValueError, match="nodes: expected an integer >= 1"):
        RoadmapOptions(nodes=0)
    with pytest.raises(ValueError, match="radius: expected"):
        RoadmapOptions(radius=0.5)
    with pytest.raises(TypeError, match="search: expected"):
        RoadmapOptions(search=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="task: expected a Task"):
        planning.roadmap(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="executor: expected"):
        planning.roadmap(disc, SMALL, executor=3)  # type: ignore[arg-type]


def test_queries_name_what_is_wrong(disc: Task, built: Roadmap) -> None:
    with pytest.raises(ValueError, match="start: expected"):
        built.query(disc.start[:-1], disc.goal)
    with pytest.raises(ValueError, match="goal: element"):
        built.query(disc.start, np.full(disc.model.nq, np.nan))
    with pytest.raises(ValueError, match="count: expected"):
        built.coverage(0)
    with pytest.raises(ValueError, match="goals: expected"):
        built.grow(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="task: expected a Task"):
        Roadmap.load("nowhere.npz", 3)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        Roadmap.load("nowhere.npz", disc)
    assert str(built).startswith("Roadmap('half turn of the disc': 3 nodes, ")

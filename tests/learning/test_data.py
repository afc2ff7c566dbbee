"""Demonstrations: played again by single environments, kept in files, gone on with, written for Minari."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from qdsim.data import Demonstrations, collecting, demonstrations
from qdsim.envs import TaskEnv, published
from qdsim.parallel import Result
from qdsim.planning import RRTOptions

PUSH, COMMAND = "qdsim/PlanarPushing-v0", "qdsim/PlanarHandCommand-v0"
FIELDS = tuple(f.name for f in dataclasses.fields(Demonstrations))


def same(a: Demonstrations, b: Demonstrations) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in FIELDS)


def test_episodes_of_the_greedy_teacher_reach_their_goals() -> None:
    task, options = published(PUSH, pool=64, randomize={"pair_friction": (0.7, 1.3)})
    data = demonstrations(task, 6, options, candidates=96, seed=40)
    assert data.success.sum() >= 5 and np.array_equal(data.problem, np.arange(6))
    env = TaskEnv(task, options)
    for k in range(6):  # played again, one environment at a time
        rows = np.flatnonzero(data.episode == k)
        observation, _ = env.reset(seed=40 + k)
        assert np.allclose(env._players.goals.q[0], data.goals[k])
        for row in rows:
            assert np.allclose(observation, data.observations[row], atol=1e-9)
            observation, reward, terminated, *_, info = env.step(data.actions[row])
            assert np.isclose(reward, data.rewards[row], atol=1e-9)
        assert np.allclose(observation, data.last[k], atol=1e-9)
        assert info["success"] == data.success[k] and terminated == data.terminated[k]


@pytest.mark.parametrize("hindsight", [True, False])
def test_segments_of_plans_as_episodes(hindsight: bool) -> None:
    task, options = published(COMMAND, pool=32, near=2.0)
    data = demonstrations(task, 3, options, teacher="plans", hindsight=hindsight, seed=1)
    assert len(data.success) >= 3 and set(data.problem.tolist()) <= {0, 1, 2}
    assert np.abs(data.actions).max() <= 1.0
    if hindsight:
        assert data.success.all() and data.terminated.all()
    else:  # segments of one plan have one goal, which its last one reaches
        for problem in set(data.problem.tolist()):
            own = np.flatnonzero(data.problem == problem)
            assert (data.goals[own] == data.goals[own[0]]).all()
        assert data.success.any()


@pytest.mark.long
def test_what_was_begun_goes_on(tmp_path: Path) -> None:
    task, options = published(PUSH, pool=16)
    path = tmp_path / "pushes.npz"
    whole = demonstrations(task, 5, options, candidates=8, seed=3)
    demonstrations(task, 2, options, candidates=8, seed=3, path=path)
    more = dataclasses.replace(options, threads=2)
    found = demonstrations(task, 5, more, candidates=8, seed=3, path=path)
    assert same(found, whole) and same(Demonstrations.load(path), whole)
    few = demonstrations(task, 2, options, candidates=8, seed=3, path=path)
    assert same(few, whole.of_problems(2)) and len(few.success) == 2
    for changes in ({"seed": 4}, {"candidates": 9}):
        with pytest.raises(ValueError, match=r"^checkpoint: .*belongs to another task, teacher"):
            demonstrations(task, 5, options, path=path, **{"candidates": 8, "seed": 3, **changes})


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("teacher", ["greedy", "plans"])
def test_an_executor_makes_the_same(
    tmp_path: Path, teacher: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, options = published(PUSH if teacher == "greedy" else COMMAND, pool=32, near=2.0)
    monkeypatch.setattr("qdsim.data.teachers.Greedy.block", 2)
    more = {"teacher": teacher, "candidates": 4, "seed": 3}
    whole = demonstrations(task, 5, options, **more)
    path = tmp_path / "pushes.npz"
    demonstrations(task, 1, options, path=path, **more)
    with ThreadPoolExecutor(3) as executor:
        assert same(demonstrations(task, 5, options, path=path, executor=executor, **more), whole)
    assert same(demonstrations(task, 5, options, path=path, **more), whole)
    assert [found.name for found in tmp_path.iterdir()] == ["pushes.npz"]


@pytest.mark.long
def test_what_an_executor_has_done_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, options = published(COMMAND, pool=32, near=2.0)
    path, teach, calls = tmp_path / "pushes.npz", collecting.taught, itertools.count()

    def killed(*args: object) -> Result:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return teach(*args)

    monkeypatch.setattr(collecting, "taught", killed)
    make = functools.partial(ThreadPoolExecutor, 1)
    with pytest.raises(KeyboardInterrupt):
        demonstrations(task, 3, options, teacher="plans", path=path, executor=make)
    done = next(calls) - 1
    assert done >= 1
    found = demonstrations(task, 3, options, teacher="plans", path=path, executor=make)
    assert same(found, demonstrations(task, 3, options, teacher="plans"))


def test_damaged_files_are_named(tmp_path: Path) -> None:
    task, options = published(PUSH, pool=16)
    data = demonstrations(task, 2, options, candidates=4)
    path = tmp_path / "pushes.npz"
    data.save(path)
    content = path.read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    shifted = data.start.copy()
    shifted[1] = shifted[-1] + 1
    dataclasses.replace(data, start=shifted).save(tmp_path / "start.npz")
    wide = np.column_stack((data.last, data.last))
    dataclasses.replace(data, last=wide).save(tmp_path / "last.npz")
    nan = np.where(np.arange(data.actions.shape[1]) == 0, np.nan, data.actions)
    dataclasses.replace(data, actions=nan).save(tmp_path / "nan.npz")
    for name in ("cut", "start", "last", "nan"):
        with pytest.raises(ValueError, match=rf"{name}\.npz: not a file of demonstrations"):
            Demonstrations.load(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError):
        Demonstrations.load(tmp_path / "none.npz")


def test_wrong_arguments_are_named() -> None:
    task, options = published(PUSH, pool=4)
    for wrong in ({"count": 0}, {"candidates": 0}, {"seed": -1}, {"teacher": "me"}):
        with pytest.raises(ValueError, match=f"^{next(iter(wrong))}: "):
            demonstrations(task, **{"count": 1, "options": options, **wrong})
    for wrong in ({"path": 3}, {"hindsight": 1}, {"planner": 3}, {"options": 3}, {"progress": 1}):
        with pytest.raises(TypeError, match=f"^{next(iter(wrong))}: "):
            demonstrations(task, **{"count": 1, "options": options, **wrong})
    with pytest.raises(ValueError, match=r"^teacher: 'plans' are commands"):
        demonstrations(task, 1, options, teacher="plans")


def test_problems_without_a_plan_have_no_episodes() -> None:
    task, options = published(COMMAND, pool=4)
    none = RRTOptions(max_iterations=1, max_nodes=2)
    data = demonstrations(task, 2, options, teacher="plans", planner=none)
    assert len(data.success) == 0 and data.actions.shape == (0, 4)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what else Minari would like to know
def test_minari_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    pytest.importorskip("h5py")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    task, options = published(PUSH, pool=16)
    data = demonstrations(task, 3, options, candidates=32)
    data.to_minari("qdsim/pushes-v0", description="three problems")
    found = minari.load_dataset("qdsim/pushes-v0")
    assert found.total_episodes == 3 and found.total_steps == len(data.actions)
    for k, episode in enumerate(found.iterate_episodes()):
        own = data.episode == k
        assert np.array_equal(episode.actions, data.actions[own])
        assert np.array_equal(episode.observations[:-1], data.observations[own])
        assert np.array_equal(episode.observations[-1], data.last[k])
        assert episode.terminations[-1] == data.success[k] and not episode.terminations[:-1].any()
        assert np.array_equal(episode.infos["goal"][0], data.goals[k])
    with pytest.raises(ValueError, match="pushes-v0"):
        data.to_minari("qdsim/pushes-v0")

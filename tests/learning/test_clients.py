"""What others expect of environments: Gymnasium's wrappers of vectors, and Stable-Baselines3's VecEnv."""

from __future__ import annotations

import importlib
import pickle
import sys
import types

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.spaces import Box  # noqa: E402
from gymnasium.vector import AutoresetMode, VectorEnv  # noqa: E402
from gymnasium.wrappers import vector as wrappers  # noqa: E402

import qdsim  # noqa: E402, F401  # registers the ids
from qdsim.envs import EnvOptions, TaskEnv, published  # noqa: E402

NAME = "qdsim/PlanarPushing-v0"
SMALL = {"pool": 16, "horizon": 3, "near": 4.0}
COUNT = 6


def made(name: str = NAME, **changes: object) -> VectorEnv:
    """As users make them, with Gymnasium's own default of everything that is not a setting of ours."""
    return gymnasium.make_vec(
        name, COUNT, vectorization_mode="vector_entry_point", **{**SMALL, **changes}
    )


def half(x: np.ndarray) -> np.ndarray:
    return 0.5 * x


WRAPPERS = {
    "RecordEpisodeStatistics": lambda envs: wrappers.RecordEpisodeStatistics(envs),
    "NormalizeObservation": lambda envs: wrappers.NormalizeObservation(envs),
    "NormalizeReward": lambda envs: wrappers.NormalizeReward(envs),
    "ClipReward": lambda envs: wrappers.ClipReward(envs, -1.0, 1.0),
    "TransformReward": lambda envs: wrappers.TransformReward(envs, half),
    "ClipAction": lambda envs: wrappers.ClipAction(envs),
    "RescaleAction": lambda envs: wrappers.RescaleAction(envs, -2.0, 2.0),
    "FlattenObservation": lambda envs: wrappers.FlattenObservation(envs),
    "DtypeObservation": lambda envs: wrappers.DtypeObservation(envs, np.float32),
    "ReshapeObservation": lambda envs: wrappers.ReshapeObservation(
        envs, (1, *envs.single_observation_space.shape)
    ),
    "TransformObservation": lambda envs: wrappers.TransformObservation(envs, half),
    "DictInfoToList": lambda envs: wrappers.DictInfoToList(envs),
}


@pytest.mark.short_cases(3)
@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_wrappers_of_vectors_take_them_as_they_are(name: str) -> None:
    envs = WRAPPERS[name](made())
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observation, _ = envs.reset(seed=0)
    lengths = []
    for _ in range(12):
        assert observation in envs.observation_space
        observation, reward, terminated, truncated, info = envs.step(
            np.random.default_rng(0).uniform(-1.0, 1.0, envs.action_space.shape)
        )
        assert reward.shape == (COUNT,) and np.isfinite(reward).all()
        if name == "RecordEpisodeStatistics" and (terminated | truncated).any():
            lengths += info["episode"]["l"][info["_episode"]].tolist()
        if name == "DictInfoToList":
            assert len(info) == COUNT and all("shift" in one or not one for one in info)
    if name == "RecordEpisodeStatistics":
        assert len(lengths) >= COUNT and set(lengths) <= {1, 2, 3} and 3 in lengths


def test_normalised_observations_are() -> None:
    envs = wrappers.NormalizeObservation(made(near=None, horizon=20))
    seen = [envs.reset(seed=1)[0]]
    for k in range(150):
        action = np.random.default_rng(k).uniform(-1.0, 1.0, envs.action_space.shape)
        seen.append(envs.step(action)[0])
    late = np.concatenate(seen[50:])
    assert np.all(np.abs(late.mean(axis=0)) < 0.7)
    assert np.all((late.std(axis=0) > 0.3) & (late.std(axis=0) < 2.0))


@pytest.mark.parametrize("keys", [("observation",), ("achieved_goal", "desired_goal")])
def test_parts_of_observations_with_goals(keys: tuple[str, ...]) -> None:
    envs = wrappers.FilterObservation(made("qdsim/PlanarPushingGoal-v0"), keys)
    assert tuple(sorted(envs.reset(seed=0)[0])) == tuple(sorted(keys))


# ---------------------------------------------------------------- Stable-Baselines3


class _VecEnv:
    """What Stable-Baselines3's abstract class does for its own, where that is not installed."""

    def __init__(self, num_envs: int, observation_space: object, action_space: object) -> None:
        self.num_envs = num_envs
        self.observation_space, self.action_space = observation_space, action_space
        self.reset_infos: list[dict] = [{} for _ in range(num_envs)]
        self._reset_seeds()
        self._reset_options()
        (self.render_mode,) = set(self.get_attr("render_mode"))

    def _reset_seeds(self) -> None:
        self._seeds: list[int | None] = [None] * self.num_envs

    def _reset_options(self) -> None:
        self._options: list[dict] = [{} for _ in range(self.num_envs)]

    def seed(self, seed: int) -> None:
        self._seeds = [seed + k for k in range(self.num_envs)]

    def set_options(self, options: dict | list[dict]) -> None:
        self._options = [options] * self.num_envs if isinstance(options, dict) else options

    def step(self, actions: np.ndarray) -> tuple:
        self.step_async(actions)
        return self.step_wait()

    def _get_indices(self, indices: object) -> object:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else indices


@pytest.fixture
def sb3(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Our module, over Stable-Baselines3 or what stands for it."""
    monkeypatch.delitem(sys.modules, "qdsim.envs.sb3", raising=False)
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        for name in ("stable_baselines3", "stable_baselines3.common"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        stub = types.ModuleType("stable_baselines3.common.vec_env")
        stub.VecEnv = _VecEnv  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, stub.__name__, stub)
    return importlib.import_module("qdsim.envs.sb3")


def test_a_vec_env_is_many_single_ones(sb3: types.ModuleType) -> None:
    """Numbers, ends and last observations are those of single environments that are reset by hand."""
    task, options = published(NAME, **SMALL)
    singles = [TaskEnv(task, options) for _ in range(COUNT)]
    envs = sb3.TaskVecEnv(task, COUNT, options)
    envs.seed(5)
    seen = envs.reset()
    expected = np.array([env.reset(seed=5 + k)[0] for k, env in enumerate(singles)])
    rng, ends = np.random.default_rng(0), {True: 0, False: 0}
    for _ in range(10):
        assert np.array_equal(seen, expected) and seen in envs.envs.observation_space
        action = rng.uniform(-1.0, 1.0, (COUNT, *envs.action_space.shape))
        seen, reward, done, infos = envs.step(action)
        for k, env in enumerate(singles):
            expected[k], value, terminated, truncated, info = env.step(action[k])
            assert reward[k] == value and done[k] == (terminated or truncated)
            late = infos[k].pop("TimeLimit.truncated")
            assert late == truncated and isinstance(late, bool)
            if done[k]:
                ends[late] += 1
                assert np.array_equal(infos[k].pop("terminal_observation"), expected[k])
                assert infos[k].pop("is_success") is info["success"]
                expected[k] = env.reset()[0]
            assert infos[k] == info
    assert min(ends.values()) > 0


def test_a_vec_env_of_an_id_with_goals(sb3: types.ModuleType) -> None:
    """What HerReplayBuffer asks of it."""
    envs = sb3.TaskVecEnv("qdsim/PlanarPushingGoal-v0", 3, EnvOptions(observation="goal", **SMALL))
    assert all(isinstance(part, Box) for part in envs.observation_space.spaces.values())
    envs.seed(0)
    seen = envs.reset()
    seen, reward, _, infos = envs.step(np.zeros((3, *envs.action_space.shape)))
    goals = [
        np.array(
            [
                info.get("terminal_observation", {}).get(name, row)
                for info, row in zip(infos, seen[name])
            ]
        )
        for name in ("achieved_goal", "desired_goal")
    ]
    (found,) = envs.env_method("compute_reward", *goals, infos, indices=[0])
    assert np.array_equal(found, reward)
    assert envs.env_is_wrapped(object) == [False] * 3 and envs.get_images() == [None] * 3
    assert envs.get_attr("num_envs", indices=1) == [3]
    with pytest.raises(AttributeError, match="set_attr"):
        envs.set_attr("horizon", 3)
    envs.close()


@pytest.mark.long
def test_episodes_of_a_vec_env_begin_where_they_are_told_to(sb3: types.ModuleType) -> None:
    task, options = published(NAME, **SMALL)
    envs = sb3.TaskVecEnv(task, 2, options)
    starts = [task.start, task.start + 0.1]
    envs.set_options([{"q": q} for q in starts])
    envs.reset()
    assert np.allclose(envs.envs.players.q, starts)
    envs.set_options([{"q": task.start}, {}])
    with pytest.raises(ValueError, match=r"^set_options: expected the same keys"):
        envs.reset()
    assert isinstance(sb3.TaskVecEnv(NAME, 2).envs.rules.options, EnvOptions)
    copied = pickle.loads(pickle.dumps(envs.envs))
    assert copied.num_envs == 2


def test_without_stable_baselines_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "qdsim.envs.sb3", raising=False)
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    with pytest.raises(ImportError, match=r"qdsim\[sb3\]"):
        importlib.import_module("qdsim.envs.sb3")

"""A network for consecutive goals of a cube in a hand, by PPO in the quasi-dynamic model, in jax alone.

    python examples/student.py --output build/learn/student --resume

An environment is a hand that makes one move after another, as ``turning.py`` asks for them: turns to rotations in any
direction, quarter turns from where the cube lies, and turns that lay it down with the fingers at home. The next move
begins where the last one has ended, and what it will bring counts as well, so a network learns to end moves where others
can begin. First a hand begins anew after each move that fails. Then fingers go straight home, and a hand begins anew only
if the cube is lost, or if some moves in a row fail.

``ppo.py`` does the rest. Written are the policy, with which ``turning.Student`` controls a hand, and the curve.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import ppo
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from turning import HOME, HOMING, NEAR, PATIENCE, QUARTERS, Hand, angle, turned

from qdsim import step_batch, systems

Array = NDArray[np.float64]
ID = "CubeMoves-v0"
AHEAD = (0.5, 1.6)
"""Angles of goals in any direction, rad."""
SPREAD = (0.006, 0.15, 0.05)
"""Largest displacement of the object and of the joints where a hand begins, m, rad and rad."""
LOST = (1.5, -0.7, 1.7)
"""The object is lost if it is farther from the middle than this, sideways, or lower or higher, in its lengths."""
ARRIVED, ANGLE, FREE, HOMEWARD = 3.0, 3.0, 0.27, 1.5
"""Rewards: of an arrival, and its negative of a loss; of an angle, per rad; displacement sideways, in lengths of the
object, that costs nothing; and reward of the way home of all joints, per rad, of moves that lay the object down."""
STAGES = (
    (1_500_000, {"shift": 2.0, "loose": 0.6, "hopeless": 1}),
    (6_680_000, {"shift": 6.0, "loose": 0.3, "hopeless": 3}),
)
"""Numbers of actions after which stages end, and their moves. Without the first one, some quarter turns are not
found."""
SETTINGS = ppo.Settings(ID, envs=512, length=16, gamma=0.97, width=96, epochs=3, rate=7e-4)


class Moves(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Hands that make moves.

    Args:
        num_envs: Number of hands.
        shift: Reward of a displacement to the middle, per length of the object.
        loose: Share of moves to goals in any direction; those that follow an arrival begin there, without a way home.
        hopeless: Number of failed moves in a row after which a hand begins anew.
        options: Unused, as ppo.py gives them.
    """

    def __init__(
        self,
        num_envs: int = 1,
        shift: float = 2.0,
        loose: float = 0.0,
        hopeless: int = 1,
        **options: Any,
    ) -> None:
        self.shift, self.loose, self.hopeless = shift, loose, hopeless
        self.hand = Hand(systems.load("allegro_cube").tasks["turn"])
        self.num_envs = n = num_envs
        task = self.hand.task
        # Pyramids cost three quarters of the time of cones.
        self.options = dataclasses.replace(task.options, friction="pyramid", margin=0.012)
        self.q, self.u = np.tile(task.start, (n, 1)), np.tile(self.hand.home, (n, 1))
        self.goal, self.since, self.failed = np.tile(np.eye(3), (n, 1, 1)), *np.zeros((2, n), int)
        self.home, self.rng = np.zeros(n, bool), np.random.default_rng(0)
        self.now = self.hand.look(self.q, self.u, self.goal, self.home)
        shape = self.now.seen.shape[1:]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape)
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (task.model.nu,))
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self.metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin all hands anew."""
        self.rng = np.random.default_rng(seed)
        self._begin(np.arange(self.num_envs))
        self._aim(np.arange(self.num_envs), self.rng.random(self.num_envs) < self.loose)
        self.now = self.hand.look(self.q, self.u, self.goal, self.home)
        return self.now.seen, {}

    def step(self, action: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """A control period of all hands; those whose moves end go home and begin the next one."""
        before = self.now
        self.u = self.hand.commanded(self.q, self.u, action)
        self.q, lost = self._stepped(self.q, self.u)
        self.now, self.since = self.hand.look(self.q, self.u, self.goal, self.home), self.since + 1
        x, y, z = self.now.shift.T / self.hand.task.length
        side, low, high = LOST
        lost |= (x**2 + y**2 > side**2) | (z < low) | (z > high)
        arrived = self.now.arrived & ~lost
        ended = arrived | (self.since >= PATIENCE) | lost
        reward = self._potential(self.now) - self._potential(before)
        reward += ARRIVED * arrived - ARRIVED * lost
        self.failed = np.where(ended, np.where(arrived, 0, self.failed + 1), self.failed)
        over = lost | (self.failed >= self.hopeless)
        final = self.now.seen
        loose = ended & (self.rng.random(self.num_envs) < self.loose)
        self._go_home(np.flatnonzero(ended & ~arrived & ~over))
        self._begin(np.flatnonzero(over))
        self._aim(np.flatnonzero(ended), loose)
        if ended.any():
            self.now = self.hand.look(self.q, self.u, self.goal, self.home)
        # What comes after an arrival counts, as if the move had been cut off there.
        final = np.where(arrived[:, None], self.now.seen, final)
        info = {"final_info": {"success": arrived.astype(float)}, "final_obs": final}
        return self.now.seen, reward, lost, ended & ~lost, info

    def _potential(self, look: Any) -> Array:
        away = np.linalg.norm(look.shift[:, :2], axis=1) / self.hand.task.length
        open_ = HOMEWARD * self.home * np.linalg.norm(look.joints, axis=1)
        return np.asarray(-ANGLE * look.off - self.shift * np.maximum(away - FREE, 0.0) - open_)

    def _stepped(self, q: Array, u: Array) -> tuple[Array, NDArray[np.bool_]]:
        found = step_batch(
            self.hand.model, q, u, self.options, threads=1, errors="mark", contacts=False
        )
        failed = np.asarray(found.status) != 0
        return np.where(failed[:, None], q, found.q_next), failed

    def _go_home(self, rows: NDArray[np.intp]) -> None:
        """Let the fingers go straight home."""
        q, u = self.q[rows], self.u[rows]
        for _ in range(HOMING if len(rows) else 0):
            u = self.hand.homeward(q, u)
            q, _ = self._stepped(q, u)
        self.q[rows], self.u[rows] = q, u

    def _begin(self, rows: NDArray[np.intp]) -> None:
        """Set these hands to displaced starts, with new moves."""
        task, (shift, turn, joints) = self.hand.task, SPREAD
        q = np.tile(task.start, (len(rows), 1))
        for row in q:
            x, y, yaw = self.rng.uniform(-1.0, 1.0, 3) * (shift, shift, turn)
            row[:] = task.with_object(row, [x, y, 0.1 * task.length, 0.0, 0.0, yaw])
        u = self.hand.home + self.rng.uniform(-joints, joints, (len(rows), task.model.nu))
        if len(rows):
            q, _ = self._stepped(q, np.clip(u, *self.hand.range))
        self.q[rows], self.u[rows], self.failed[rows] = q, u, 0

    def _aim(self, rows: NDArray[np.intp], loose: NDArray[np.bool_]) -> None:
        """Draw moves, and for the hands that are loose goals in any direction from here."""
        self.since[rows] = 0
        count, hand, rng = len(rows), self.hand, self.rng
        if not count:
            return
        R, free = hand.rotation(self.q[rows]), loose[rows]
        level = hand.leveled(R)
        joints = np.abs(hand.joints(self.q[rows]) - hand.home).max(axis=1)
        lies = (angle(level @ np.swapaxes(R, 1, 2)) <= NEAR) & (joints <= HOME)
        quarter = QUARTERS[rng.integers(len(QUARTERS), size=count)] @ level
        down = np.where(lies[:, None, None], quarter, level)
        ahead = turned(unit(rng.standard_normal((count, 3))), rng.uniform(*AHEAD, count)) @ R
        self.home[rows] = ~free & ~lies
        self.goal[rows] = np.where(free[:, None, None], ahead, down)


def unit(v: Array) -> Array:
    """Rows of length one."""
    return np.asarray(v / np.linalg.norm(v, axis=1, keepdims=True))


gymnasium.register(ID, vector_entry_point=Moves)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=Path("student"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    resume = given.resume
    for steps, changes in STAGES:
        stage = dataclasses.replace(SETTINGS, steps=steps, seed=given.seed)
        ppo.train(stage, given.output, resume, **changes)
        resume = True


if __name__ == "__main__":
    main()

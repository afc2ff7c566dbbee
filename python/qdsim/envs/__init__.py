"""Planning tasks as Gymnasium environments (extra ``envs``); docs/learning.md describes them.

`TaskEnv` is one environment, `TaskVectorEnv` many in one batch of the core, for any `Task`. The
published ones have ids, once `qdsim` is imported: ``gymnasium.make("qdsim/PlanarPushing-v0")``.
"""

from qdsim.envs.deployment import Deployed, deploy
from qdsim.envs.draws import Range
from qdsim.envs.env import GoalTaskEnv, TaskEnv
from qdsim.envs.ids import GOAL_IDS, IDS, published
from qdsim.envs.laws import MujocoContacts
from qdsim.envs.options import EnvOptions
from qdsim.envs.policy import Policy
from qdsim.envs.vector_env import TaskVectorEnv

__all__ = [
    "GOAL_IDS",
    "IDS",
    "Deployed",
    "EnvOptions",
    "GoalTaskEnv",
    "MujocoContacts",
    "Policy",
    "Range",
    "TaskEnv",
    "TaskVectorEnv",
    "deploy",
    "published",
]

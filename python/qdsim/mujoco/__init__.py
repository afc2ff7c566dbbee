"""Derivatives of MuJoCo's own step, for any ``MjModel`` and ``MjData``, without a model of this
package."""

from qdsim.mujoco.batch import Transitions, linearize_batch
from qdsim.mujoco.differences import contact_change
from qdsim.mujoco.linearize import Transition, linearize, refusals
from qdsim.mujoco.products import jvp, vjp

__all__ = [
    "Transition",
    "Transitions",
    "contact_change",
    "jvp",
    "linearize",
    "linearize_batch",
    "refusals",
    "vjp",
]

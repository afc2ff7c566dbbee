"""Convex quasi-dynamic contact: simulate, differentiate, smooth, and plan manipulation with it.

``load`` reads a model, ``step`` computes a step, ``linearize`` differentiates it. ``step_batch``,
``linearize_batch`` and ``rollout`` do the same for many states on all cores, ``vjp_batch`` and
``rollout_vjp`` compute gradients of them, and ``pair_distances`` computes distances between
geometries. ``qdsim.systems`` has the published tasks, ``qdsim.smoothing`` the smoothed local
models, and ``qdsim.planning`` the planners; they are imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from qdsim import core_choice  # noqa: F401  (before the core is imported)
from qdsim._core import SolverError
from qdsim.batches.dynamics import (
    BatchDynamicSteps,
    DynamicRolloutPullbacks,
    DynamicRolloutPushforwards,
    DynamicRollouts,
    rollout_dynamic,
    rollout_dynamic_jvp,
    rollout_dynamic_vjp,
    step_dynamic_batch,
)
from qdsim.batches.feedback import Feedback
from qdsim.batches.products import (
    BatchPullbacks,
    BatchPushforwards,
    RolloutPullbacks,
    RolloutPushforwards,
    jvp_batch,
    rollout_jvp,
    rollout_vjp,
    vjp_batch,
)
from qdsim.batches.queries import body_poses, pair_distances
from qdsim.batches.rollouts import Rollouts, rollout
from qdsim.batches.steps import BatchLinearizations, BatchSteps, linearize_batch, step_batch
from qdsim.complementarity import (
    CoulombInfo,
    CoulombSolution,
    LcpInfo,
    LcpSolution,
    MlcpSolution,
    UnsolvedError,
    solve_coulomb,
    solve_lcp,
    solve_mlcp,
)
from qdsim.cone import ConeSolution, solve_cone_program
from qdsim.contact_surfaces import ContactSurface, pressure_surface
from qdsim.description import (
    Description,
    HeightField,
    ModelWarning,
    PointCloud,
    SceneBuilder,
    Softness,
)
from qdsim.differential import Differential, differentiate, jvp, vjp
from qdsim.dynamics import (
    DynamicDifferential,
    DynamicLinearization,
    DynamicOptions,
    DynamicStep,
    differentiate_dynamic,
    linearize_dynamic,
    step_dynamic,
)
from qdsim.loading import build, load
from qdsim.model import Model
from qdsim.ocp import OcpSolution, solve_ocp_qp
from qdsim.parameters import Parameters
from qdsim.registration import register_with_gymnasium
from qdsim.sensors import contact_forces, read_sensors
from qdsim.simulation import Simulation, simulate
from qdsim.step import CommonOptions, Linearization, Options, SolverInfo, Step, linearize, step
from qdsim.velocities import from_mujoco_velocity, mujoco_velocity_jacobians, to_mujoco_velocity

if TYPE_CHECKING:
    from qdsim import formats, parallel, planning, pressure, smoothing, systems, viewer
    from qdsim.identification import Identified, Recording, identify

__version__ = "0.1.0"

__all__ = [
    "BatchDynamicSteps",
    "BatchLinearizations",
    "BatchPullbacks",
    "BatchPushforwards",
    "BatchSteps",
    "CommonOptions",
    "ConeSolution",
    "ContactSurface",
    "CoulombInfo",
    "CoulombSolution",
    "Description",
    "Differential",
    "DynamicDifferential",
    "DynamicLinearization",
    "DynamicOptions",
    "DynamicRolloutPullbacks",
    "DynamicRolloutPushforwards",
    "DynamicRollouts",
    "DynamicStep",
    "Feedback",
    "HeightField",
    "Identified",
    "LcpInfo",
    "LcpSolution",
    "Linearization",
    "MlcpSolution",
    "Model",
    "ModelWarning",
    "OcpSolution",
    "Options",
    "Parameters",
    "PointCloud",
    "Recording",
    "RolloutPullbacks",
    "RolloutPushforwards",
    "Rollouts",
    "SceneBuilder",
    "Simulation",
    "Softness",
    "SolverError",
    "SolverInfo",
    "Step",
    "UnsolvedError",
    "body_poses",
    "build",
    "contact_forces",
    "differentiate",
    "differentiate_dynamic",
    "formats",
    "from_mujoco_velocity",
    "identify",
    "jvp",
    "jvp_batch",
    "linearize",
    "linearize_batch",
    "linearize_dynamic",
    "load",
    "mujoco_velocity_jacobians",
    "pair_distances",
    "parallel",
    "planning",
    "pressure",
    "pressure_surface",
    "read_sensors",
    "rollout",
    "rollout_dynamic",
    "rollout_dynamic_jvp",
    "rollout_dynamic_vjp",
    "rollout_jvp",
    "rollout_vjp",
    "simulate",
    "smoothing",
    "solve_cone_program",
    "solve_coulomb",
    "solve_lcp",
    "solve_mlcp",
    "solve_ocp_qp",
    "step",
    "step_batch",
    "step_dynamic",
    "step_dynamic_batch",
    "systems",
    "to_mujoco_velocity",
    "viewer",
    "vjp",
    "vjp_batch",
]

_LAZY = frozenset({"formats", "parallel", "planning", "pressure", "smoothing", "systems", "viewer"})
_IDENTIFICATION = frozenset({"Identified", "Recording", "identify"})

register_with_gymnasium()


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _IDENTIFICATION:
        return getattr(importlib.import_module(f"{__name__}.identification"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""OMPL's RRT-Connect on the joints of a robot. OMPL is imported here only (extra ``planning``)."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qdsim.array_type import ROUNDING, Array

if TYPE_CHECKING:
    from qdsim.planning.motion.clearance import RobotSpace
    from qdsim.planning.task.motion_options import MotionOptions

__all__ = ["rrt_connect"]


def rrt_connect(
    space: RobotSpace, a: Array, b: Array, floor: Array, options: MotionOptions, seed: int
) -> Array | None:
    """Search a path ``(points, nu)`` from ``a`` to ``b`` on which pairs keep the distance ``floor``
    (m); None if none was found.

    States are the joints times their weights, so that lengths are in metres of the point that moves
    farthest.

    Raises:
        ImportError: if OMPL is not installed.
    """
    base, geometric, util = (_need(f"ompl.{name}") for name in ("base", "geometric", "util"))
    n, weight = len(a), space.weight
    bounds = base.RealVectorBounds(n)
    for i in range(n):
        bounds.setLow(i, float(weight[i] * space.lower[i]))
        bounds.setHigh(i, float(weight[i] * space.upper[i]))

    def point(state: Any) -> Array:
        return np.array(state[0:n]) / weight

    class Edges(base.MotionValidator):  # type: ignore[misc, name-defined]
        def checkMotion(self, first: Any, second: Any) -> bool:
            return space.clear(point(first), point(second), floor)

    with _quiet(util):
        _seed(seed)
        states = base.RealVectorStateSpace(n)
        states.setBounds(bounds)
        information = base.SpaceInformation(states)
        information.setStateValidityChecker(
            lambda state: bool((space.distances(point(state)[None])[0] >= floor - ROUNDING).all())
        )
        information.setMotionValidator(Edges(information))
        information.setup()
        ends = states.allocState(), states.allocState()
        for state, x in zip(ends, (a, b)):
            state[0:n] = (weight * x).tolist()
        problem = base.ProblemDefinition(information)
        problem.setStartAndGoalStates(*ends)
        planner = geometric.RRTConnect(information)
        planner.setProblemDefinition(problem)
        planner.setup()
        end = time.thread_time() + options.time_limit
        planner.solve(base.PlannerTerminationCondition(lambda: time.thread_time() >= end))
        if not problem.hasExactSolution():
            return None
        path = problem.getSolutionPath()
        points = np.array([point(path.getState(i)) for i in range(path.getStateCount())])
    points[0], points[-1] = a, b
    return points


def _need(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            "the straight line is blocked, and motions around obstacles need ompl: "
            "pip install 'qdsim[planning]'",
            name="ompl",
        ) from None


@contextlib.contextmanager
def _quiet(util: Any) -> Iterator[None]:
    """Switch off OMPL's messages to the terminal; its log level is global to the process."""
    level = util.getLogLevel()
    util.setLogLevel(util.LOG_NONE)
    try:
        yield
    finally:
        util.setLogLevel(level)


def _seed(seed: int) -> None:
    """Seed the random generators that OMPL creates from now on.

    OMPL's Python module lacks ``ompl::RNG::setSeed``, but the shared library next to it has this
    function. If it is missing, paths are still found, but they differ from run to run.
    """
    package = Path(import_module("ompl").__file__ or "").parent
    with contextlib.suppress(OSError, AttributeError):
        function = ctypes.CDLL(str(package / "libompl.so"))._ZN4ompl3RNG7setSeedEm
        function.argtypes, function.restype = [ctypes.c_ulong], None
        function(seed)

"""What is no array of real numbers, or no number, is refused by everything public, at once and by name.

NumPy reads numbers out of text, bytes, objects and booleans, forgets what a mask hides, and copies a view of a
terabyte when asked for its doubles. Integers beyond the range of a double overflow. None of it may pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import test_planning_refusals as planned

import qdsim
from qdsim import smoothing

MODEL, Q = planned.MODEL, planned.Q
U = np.array([0.05, 0.1])
ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "text": lambda a: a.astype(str),
    "text in a list": lambda a: a.astype(str).tolist(),
    "bytes": lambda a: a.astype("S24"),
    "raw bytes": lambda a: a.tobytes(),
    "objects": lambda a: a.astype(object),
    "booleans": lambda a: a > 0,
    "complex": lambda a: a + 0j,
    "times": lambda a: a.astype("m8[s]"),
    "masked": lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, bool)),
    "not masked": lambda a: np.ma.masked_array(a),
    "long integers": lambda a: np.full(a.shape, 10**400, object).tolist(),
    "ragged": lambda a: [[1.0], [1.0, 2.0]],
    "terabytes": lambda a: np.broadcast_to(np.float32(0.0), (10**6, 10**6)),
    "terabytes of doubles": lambda a: np.broadcast_to(0.0, (10**6, 10**6, 3)),
    "nothing like it": lambda a: object(),
}
NUMBERS: dict[str, Any] = {
    "text": "1.0", "bytes": b"1", "flag": True, "NumPy's flag": np.True_, "complex": 1j,
    "long integer": 10**400, "long negative integer": -(10**400), "nan": float("nan"),
    "array": np.ones(3), "object": object(),
}  # fmt: skip

CONE = {
    "Q": np.eye(2), "b": np.ones(2), "G": np.eye(2), "g": np.ones(2), "cones": [("orthant", 2)],
    "C": np.ones((1, 2)), "c": np.zeros(1),
}  # fmt: skip
CONTROL = {
    "A": np.zeros((2, 2, 2)), "B": np.ones((2, 2, 1)), "c": np.zeros((2, 2)), "x_first": np.zeros(2),
    "u_before": np.zeros(1), "Q": np.eye(2), "q": np.ones((2, 2)), "R": np.eye(1), "r": np.ones((2, 1)),
    "S": np.eye(1), "s": np.zeros((2, 1)), "x_lower": -np.ones(2), "x_upper": np.ones(2),
    "u_lower": -np.ones(1), "u_upper": np.ones(1), "d_lower": -np.ones(1), "d_upper": np.ones(1),
}  # fmt: skip
STEP = {
    "model": MODEL,
    "q": Q,
    "u": U,
    "tau": np.zeros(5),
    "wrench": np.zeros((MODEL.body_count, 6)),
}


def parameters_changed(**given: Any) -> Any:
    return MODEL.with_parameters(**given)


PARAMETERS = {
    name: np.array(getattr(MODEL.parameters, name))
    for name in ("body_mass", "body_com", "actuator_stiffness", "pair_friction", "gravity")
}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "step": (qdsim.step, STEP),
    "linearize": (qdsim.linearize, STEP),
    "differentiate": (qdsim.differentiate, STEP),
    "step_batch": (qdsim.step_batch, STEP),
    "linearize_batch": (qdsim.linearize_batch, STEP),
    "rollout": (qdsim.rollout, {"model": MODEL, "q0": Q, "u": np.tile(U, (3, 1))}),
    "pair_distances": (qdsim.pair_distances, {"model": MODEL, "q": Q}),
    "solve_cone_program": (qdsim.solve_cone_program, CONE),
    "solve_ocp_qp": (qdsim.solve_ocp_qp, CONTROL),
    "with_parameters": (parameters_changed, PARAMETERS),
    "exact": (smoothing.Exact().linearize, {"model": MODEL, "q": Q, "u": U}),
}
for name in ("Task", "act", "close_grasp", "connect", "drop", "is_stable", "force_closure",
             "holding_command", "reach_point", "bounded_least_squares", "ClosingSampler",
             "BoxFaceSampler"):  # fmt: skip
    function, good, _ = planned.CALLS[name]
    CALLS[name] = (function, dict(good))
CALLS["holding_command"][1]["tau"] = np.zeros(5)
CALLS["reach_point"][1].update(axis=[1.0, 0.0, 0.0], direction=[0.0, 1.0, 0.0])
CALLS["Task"][1].update(command_lower=-np.ones(2), command_upper=np.ones(2))


def are_numbers(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f"
    if not isinstance(value, (list, tuple)) or not value:
        return False
    return all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in value)


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_array_of_numbers_is_named(name: str, kind: str) -> None:
    function, good = CALLS[name]
    given = [argument for argument, value in good.items() if are_numbers(value)]
    assert given
    for argument in given:
        wrong = ARRAYS[kind](np.asarray(good[argument], dtype=np.float64))
        with pytest.raises((TypeError, ValueError)) as caught:
            function(**{**good, argument: wrong})
        said = str(caught.value)
        assert argument in said, f"{name}({argument}: {kind}): {said}"


SCALARS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = {
    "Options": (
        qdsim.Options, {},
        ("h", "rays", "kappa", "epsilon", "mass_ratio", "margin", "tolerance", "iteration_limit"),
    ),
    "solve_cone_program": (
        qdsim.solve_cone_program, CONE, ("target_mu", "tolerance", "iteration_limit")
    ),
    "solve_ocp_qp": (qdsim.solve_ocp_qp, CONTROL, ("tolerance", "iteration_limit")),
    "pair_distances": (qdsim.pair_distances, {"model": MODEL, "q": Q}, ("margin", "threads")),
    "collide": (MODEL.collide, {"q": Q}, ("margin",)),
    "Analytic": (smoothing.Analytic, {}, ("kappa",)),
    "Randomized": (smoothing.Randomized, {"std": 0.1}, ("samples",)),
}  # fmt: skip
for name in ("close_grasp", "force_closure", "holding_command", "reach_point", "packing_ratio",
             "Stabilizer", "SurfaceSampler", "ClosingSampler", "BoxFaceSampler", "RRTOptions"):  # fmt: skip
    function, good, optional = planned.CALLS[name]
    words = {"options", "rng", "tau", "axis", "direction", "actuators", "tips", "opened", "place",
             "top", "smoothing", "metric", "goal_as_subgoal", "checkpoint", "progress", "close"}  # fmt: skip
    chosen = tuple(word for word in optional if word not in words)
    SCALARS[name] = (function, dict(good), chosen)


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("name", SCALARS)
def test_what_is_no_number_is_named(name: str, kind: str) -> None:
    function, good, numbers = SCALARS[name]
    for argument in numbers:
        try:
            function(**{**good, argument: NUMBERS[kind]})
        except (TypeError, ValueError) as error:
            said = str(error)
            assert argument in said, f"{name}({argument}: {kind}): {said}"
            continue
        # only infinity, for what may be infinite, switches among options, and one number per actuator
        own = getattr(qdsim.planning.RRTOptions(), argument, None) if name == "RRTOptions" else 0
        each = (name, argument, kind) == ("RRTOptions", "force", "array")
        assert each or kind.startswith("long") or isinstance(own, bool), (
            f"{name}({argument}: {kind}) passed"
        )


@pytest.mark.parametrize("count", [2**31, 2**40, 2**63, 10**400])
def test_counts_that_nothing_could_hold_are_refused(count: int) -> None:
    for make, argument in (
        (lambda **given: smoothing.Randomized(std=0.1, **given), "samples"),
        (qdsim.planning.RRTOptions, "max_nodes"),
        (qdsim.planning.ImpcOptions, "horizon"),
        (lambda **given: qdsim.planning.SurfaceSampler("tray", **given), "draws"),
        (lambda **given: qdsim.pair_distances(MODEL, Q, **given), "threads"),
        (lambda **given: qdsim.solve_cone_program(**CONE, **given), "iteration_limit"),
        (qdsim.Options, "iteration_limit"),
    ):
        with pytest.raises(ValueError, match=f"^{argument}: expected an integer"):
            make(**{argument: count})

"""Refusals: numbers that make no sense are named, by every option class and with the same words."""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import Any

import numpy as np
import pytest

import qdsim
from qdsim import arguments, planning, smoothing

POINTLESS = [math.nan, math.inf, -math.inf, 10**400]
NO_NUMBERS = ["1", True, np.True_, [1.0], 1j, object()]


@pytest.mark.parametrize(
    ("limits", "good", "bad", "words"),
    [
        ({}, [-1e300, 0, 3], [], "a number"),
        ({"above": 0}, [1e-300, 5], [0.0, -1], "a number > 0"),
        ({"least": 0}, [0, 0.5], [-1e-300], "a number >= 0"),
        ({"least": 0, "most": 1}, [0, 1.0], [1.1, -0.1], "a number from 0 to 1"),
        ({"above": 0, "below": 1}, [0.5], [0.0, 1], "a number in (0, 1)"),
        ({"above": 0, "most": 1}, [1], [0, 1.5], "a number in (0, 1]"),
        ({"least": 0, "below": 1}, [0], [1, -1], "a number in [0, 1)"),
    ],
)
def test_numbers_lie_in_their_range(
    limits: dict[str, Any], good: list[float], bad: list[float], words: str
) -> None:
    for value in good:
        for made in (
            value,
            np.float64(value),
            np.float32(value) if 1e-30 < abs(value) < 1e30 else value,
        ):
            found = arguments.number("x", made, **limits)
            assert type(found) is float and found == float(made)
    for value in bad + POINTLESS:
        with pytest.raises(ValueError) as caught:
            arguments.number("x", value, **limits)
        assert str(caught.value).startswith(f"x: expected {words}, got ")
    for thing in [*NO_NUMBERS, None]:
        with pytest.raises(TypeError) as caught_type:
            arguments.number("x", thing, **limits)
        assert str(caught_type.value) == f"x: expected {words}, got {type(thing).__name__}"


def test_infinity_counts_where_it_is_allowed() -> None:
    assert arguments.number("x", math.inf, least=0, infinite=True) == math.inf
    assert arguments.number("x", 10**400, least=0, infinite=True) == math.inf
    for value in (math.nan, -math.inf, -(10**400)):
        with pytest.raises(ValueError, match=r"^x: expected a number >= 0, got "):
            arguments.number("x", value, least=0, infinite=True)


def test_integers_flags_and_words() -> None:
    assert type(arguments.integer("n", np.int32(3), least=1)) is int
    for value in (0, -5):
        with pytest.raises(ValueError, match=f"^n: expected an integer >= 1, got {value}$"):
            arguments.integer("n", value, least=1)
    with pytest.raises(ValueError, match=r"^n: expected an integer from 1 to 4, got 5$"):
        arguments.integer("n", 5, least=1, most=4)
    for thing in (1.0, np.float64(2.0), "1", True, None):
        with pytest.raises(TypeError, match=r"^n: expected an integer >= 1, got "):
            arguments.integer("n", thing, least=1)
    assert arguments.flag("f", np.False_) is False
    for thing in (0, 1, "yes", None):
        with pytest.raises(TypeError, match=r"^f: expected True or False, got "):
            arguments.flag("f", thing)
    assert arguments.one_of("w", "b", ("a", "b")) == "b"
    with pytest.raises(ValueError, match=r"^w: expected 'a', 'b' or 'c', got 'd'$"):
        arguments.one_of("w", "d", ("a", "b", "c"))
    with pytest.raises(TypeError, match=r"^w: expected 'a' or 'b', got list$"):
        arguments.one_of("w", ["a"], ("a", "b"))


def test_one_number_for_all_or_one_each() -> None:
    assert arguments.numbers("x", 2, per="joint", above=0) == 2.0
    assert arguments.numbers("x", np.array([1.0, 2.0]), per="joint", least=0) == (1.0, 2.0)
    wanted = "^x: expected a number > 0 or one per joint, got "
    for value in ([], [[1.0]], [1.0, 0.0], [1.0, math.nan], math.inf, -1):
        with pytest.raises(ValueError, match=wanted):
            arguments.numbers("x", value, per="joint", above=0)
    for thing in ("1", True, [True, False], [1.0, None], [[1.0], [1.0, 2.0]], None):
        with pytest.raises(TypeError, match=wanted):
            arguments.numbers("x", thing, per="joint", above=0)


def test_arrays_are_real_and_finite() -> None:
    given = np.arange(6.0).reshape(2, 3)
    assert arguments.reals("a", given) is given
    assert arguments.reals("a", [1, 2]).dtype == np.float64
    for thing in ([1j], ["1"], [True], [[1.0], [1.0, 2.0]], None):
        with pytest.raises(TypeError, match=r"^a: expected an array of real numbers"):
            arguments.reals("a", thing)  # type: ignore[arg-type]
    holed = given.copy()
    holed[1, 2] = math.nan
    with pytest.raises(ValueError, match=r"^a: element \[1, 2\] is nan$"):
        arguments.finite("a", holed)
    holed[1, 2] = math.inf
    assert arguments.finite("a", holed, infinite=True) is holed
    with pytest.raises(ValueError, match=r"^a: inf$"):
        arguments.finite("a", np.asarray(math.inf))


def test_seeds_and_generators() -> None:
    own = np.random.default_rng(0)
    assert arguments.generator_of(own) is own
    assert arguments.generator_of(3).random() == np.random.default_rng(3).random()
    for thing in (True, "seed", 1.5):
        with pytest.raises(TypeError, match=r"^rng: expected a seed or a generator"):
            arguments.generator_of(thing)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^rng: expected a seed or a generator"):
        arguments.generator_of(-1)


# ------------------------------------------------- every option class

CLASSES: list[tuple[type, dict[str, Any]]] = [
    (qdsim.Options, {}),
    (smoothing.Analytic, {"kappa": 1.0}),
    (smoothing.Randomized, {"std": 0.1}),
    (planning.RRTOptions, {}),
    (planning.ImpcOptions, {}),
    (planning.TrackingCost, {}),
    (planning.MotionOptions, {}),
    (planning.RefineOptions, {}),
    (planning.TransferOptions, {}),
    (planning.GripOptions, {}),
    (planning.GaitOptions, {}),
    (planning.SurfaceSampler, {"object": "cup"}),
]


def fields_of(kind: type, *types: type) -> list[str]:
    """Names of the fields whose annotation has one of the types."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return [
        field.name
        for field in dataclasses.fields(kind)
        if field.init and {hints[field.name], *typing.get_args(hints[field.name])} & set(types)
    ]


@pytest.mark.parametrize(("kind", "settings"), CLASSES, ids=[c.__name__ for c, _ in CLASSES])
def test_options_refuse_what_is_no_number(kind: type, settings: dict[str, Any]) -> None:
    names = fields_of(kind, int, float)
    assert names
    for name in names:
        for value in (math.nan, -math.inf, -1.0, -1, "1", True, object()):
            with pytest.raises((TypeError, ValueError), match=rf"^{name}: expected .*, got "):
                kind(**{**settings, name: value})
        if name not in ("margin",):  # a margin may be infinite: every pair
            with pytest.raises((TypeError, ValueError), match=f"^{name}: expected "):
                kind(**{**settings, name: math.inf})
    for name in fields_of(kind, bool):
        if name in names or name == "soft_constraints":  # NumPy 1's ArrayLike holds bool; a word
            continue
        left_open = kind.__dataclass_fields__[name].default is None  # "None: what suits the task"
        for value in (1, "no") if left_open else (1, "no", None):
            with pytest.raises(TypeError, match=f"^{name}: expected True or False, got "):
                kind(**{**settings, name: value})


def test_options_hold_built_in_numbers() -> None:
    found = planning.RRTOptions(gamma=np.float32(0.5), max_nodes=np.int64(7), hold=np.False_)
    assert type(found.gamma) is float and type(found.max_nodes) is int and found.hold is False
    assert planning.MotionOptions(speed=np.array([1.0, 2.0])).speed == (1.0, 2.0)

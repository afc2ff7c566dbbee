"""Exact derivatives of MuJoCo's step.

MuJoCo's step minimises a smooth convex function of accelerations (Todorov, ICRA 2014; MuJoCo's
documentation, "Computation"). Its derivative follows from the implicit function theorem, with
MuJoCo's own rows, forces and matrices, and analytic derivatives of inertias, forces, Jacobians and
contacts with respect to configuration and velocity.
"""

from __future__ import annotations

import threading
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import mujoco
import numpy as np
import numpy.typing as npt

from qdsim import _core
from qdsim.arguments import one_of
from qdsim.array_type import Array
from qdsim.description.hulls import hull_of_compiled
from qdsim.mujoco.differences import contact_changes
from qdsim.mujoco.refusals import has_spatial, options_refused, what_is_refused


class Plan(NamedTuple):
    """Data that is computed once per model."""

    core: object
    """Addresses of the model's arrays, which are valid while the model lives, and its meshes."""
    spatial: bool
    """Whether the model has spatial tendons."""


_NO_STAGE = int(mujoco.mjtStage.mjSTAGE_NONE)

_plans: WeakKeyDictionary[Any, Plan] = WeakKeyDictionary()
_views: WeakKeyDictionary[Any, object] = WeakKeyDictionary()
_lock = threading.Lock()


class _Matrices(NamedTuple):
    A: Array
    B: Array
    C: None
    D: None


class Transition(_Matrices):
    """Derivatives of one step, with the names of ``mjd_transitionFD``; the tuple (A, B, C, D).

    Attributes:
        A: (2 nv + na, 2 nv + na) derivative of the next state [dq, dv, act] with respect to the
            present one, in MuJoCo's tangent coordinates.
        B: (2 nv + na, nu) derivative of the next state with respect to the controls.
        C: None: sensors are not differentiated.
        D: None, as C.
        differenced: Number of contacts differentiated by finite differences of MuJoCo's collision
            detection; not part of the tuple.
    """

    differenced: int

    def __new__(
        cls, A: Array, B: Array, C: None = None, D: None = None, differenced: int = 0
    ) -> Transition:
        """Make the tuple (A, B, C, D) with the attribute ``differenced``."""
        made = tuple.__new__(cls, (A, B, C, D))
        made.differenced = differenced
        return made


def refusals(model: Any) -> list[str]:
    """List the features of a model that ``linearize`` cannot differentiate, by name; empty if there
    are none.

    Args:
        model: A ``mujoco.MjModel``.

    Raises:
        TypeError: ``model`` is not an ``MjModel``.
    """
    _check("model", model, mujoco.MjModel)
    return what_is_refused(model)


def linearize(
    model: Any, data: Any, *, contacts: Literal["exact", "differences"] = "exact"
) -> Transition:
    """Compute the exact derivatives A, B of one ``mj_step`` from the state and controls in
    ``data``.

    They are the derivatives of MuJoCo's own step with its own contacts, accurate to rounding for any
    tolerance of MuJoCo's solver. Supported are the integrators Euler, implicitfast and discrete, both cones, every condim,
    limits, dry friction, equalities (connect, weld, joint, tendon), springs and dampers, tendons,
    and actuators with affine gains and biases and any linear activation. The function calls
    ``mj_forward(model, data)``, which updates the quantities derived from the state. At kinks (a
    contact that just touches, a control at its limit) the derivatives are one-sided. If a tendon
    touches a geometry from inside, MuJoCo computes the point to an angle of 1e-6; the derivatives
    are those at the exact point.

    Args:
        model: A ``mujoco.MjModel``.
        data: Its ``mujoco.MjData``.
        contacts: Treatment of contacts whose derivative has no closed form, because they differ
            from the contact that this package computes: often of cylinders and ellipsoids,
            sometimes of meshes, always of height fields. "exact": ValueError. "differences": such
            contacts alone are differentiated by central differences of MuJoCo's collision detection.

    Returns:
        ``Transition`` (A, B, C, D) with the shapes and meaning of ``mjd_transitionFD``; C and D
        (sensors) are None.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The model has features without derivative, which the message names (``refusals``
            lists them), or a contact has no known derivative (the message names its geometries).
        ArithmeticError: The step's Newton matrix is not positive definite.
    """
    one_of("contacts", contacts, allowed=("exact", "differences"))
    plan = plan_of(model)
    _check("data", data, mujoco.MjData)
    return transition(plan, model, data, contacts)


def transition(plan: Plan, model: Any, data: Any, contacts: str) -> Transition:
    """Compute ``linearize`` for checked arguments."""
    view = _view_of(data)
    _core._mujoco_fits(plan.core, view)
    mujoco.mj_forwardSkip(model, data, _NO_STAGE, 1)
    sparse = bool(mujoco.mj_isSparse(model))
    found = _core._mujoco_linearize(plan.core, view, model, data, sparse, None)
    changes: dict[int, Array] = {}
    while not isinstance(found, tuple):
        if contacts == "exact" or found[0] in changes:
            raise ValueError(_unknown_contacts(model, data, found, found[0] in changes))
        changes.update(contact_changes(model, data, found))
        found = _core._mujoco_linearize(plan.core, view, model, data, sparse, changes)
    return Transition(*found, differenced=len(changes))


def _check(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected a mujoco.{kind.__name__}, got {type(value).__name__}")


def plan_of(model: Any) -> Plan:
    """Return the plan of a model; it is made at the first call."""
    _check("model", model, mujoco.MjModel)
    plan = _plans.get(model)
    if plan is None or options_refused(model, plan.spatial):
        refused = what_is_refused(model)
        if refused:
            raise ValueError("model: no derivatives of " + "; ".join(refused))
    if plan is None:
        with _lock:
            plan = Plan(_core._mujoco_plan(model, *_hulls(model)), has_spatial(model))
            _plans[model] = plan
    return plan


def _view_of(data: Any) -> object:
    """Return the addresses of the arrays of a data, which are valid while it lives; found at the first call."""
    view = _views.get(data)
    if view is None:
        with _lock:
            view = _views[data] = _core._mujoco_view(data)
    return view


def _hulls(model: Any) -> tuple[Array | npt.NDArray[np.int32], ...]:
    """Return the vertices and triangles of all meshes that collide."""
    counts, faces = [], []
    for i in range(model.nmesh):
        hull = hull_of_compiled(model, i)
        counts.append(len(hull))
        faces.append(hull)
    face = np.concatenate([*faces, np.zeros((0, 3), np.int32)])
    return (
        np.array(model.mesh_vertnum, np.int32),
        np.array(model.mesh_vert, float).reshape(-1, 3),
        np.array(counts, np.int32),
        np.ascontiguousarray(face, np.int32),
    )


def _unknown_contacts(model: Any, data: Any, contacts: list[int], differenced: bool) -> str:
    pairs = []
    for i in contacts:
        names = [repr(model.geom(g).name or int(g)) for g in data.contact[i].geom if g >= 0]
        pair = " and ".join(names)
        if pair not in pairs:
            pairs.append(pair)
    why = (
        "the tangents of the contact jump, as where a capsule stands upright on a plane"
        if differenced
        else "contacts='differences' differences these alone"
    )
    return (
        "contacts: no exact derivative of how MuJoCo's contacts of these geometries change: "
        f"{'; '.join(pairs)} ({why})"
    )

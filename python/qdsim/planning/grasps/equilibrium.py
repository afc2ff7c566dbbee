"""Forces of a grasp: the command that holds it in equilibrium, and force closure."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from qdsim._core import SolverError
from qdsim.arguments import finite, instance, number, reals, vector
from qdsim.array_type import ROUNDING, Array
from qdsim.cone import solve_cone_program
from qdsim.model import Model
from qdsim.planning.task.bounds import beyond
from qdsim.planning.task.drives import lengths, owners, robot_v, shares, sharing, slopes
from qdsim.planning.task.followers import folded
from qdsim.planning.task.robot import check_springs, force_reach
from qdsim.planning.task.space import ObjectSpace

__all__ = ["EquilibriumError", "ForceClosure", "Holding", "force_closure", "holding_command"]


class EquilibriumError(ValueError):
    """No contact forces within the friction cones balance the load.

    Attributes:
        residual: ``(nv,)`` generalised force on the unactuated joints that the best contact forces
            do not balance, N and Nm; zero on actuated joints.
    """

    def __init__(self, message: str, residual: Array) -> None:
        super().__init__(message)
        self.residual = residual


@dataclasses.dataclass(frozen=True, eq=False)
class Holding:
    """A command that holds a configuration, and the contact forces of this equilibrium.

    Attributes:
        u: ``(nu,)`` command.
        contacts: the contacts as returned by ``Model.collide``, with ``force`` filled in (N, Nm).
        torque: ``(nu,)`` forces of the actuators, N or Nm.
    """

    u: Array
    contacts: NDArray[np.void]
    torque: Array


@dataclasses.dataclass(frozen=True, eq=False)
class ForceClosure:
    """Whether contacts can resist any wrench on an object.

    Attributes:
        closed: whether they can.
        margin: largest t for which there are contact forces without net wrench, with normal forces
            of 1 N in all, that stay inside their friction cones when each loses t newtons of its
            normal force; 0 without force closure. It does not depend on the unit of length.
        radius: radius of the largest ball of object wrenches (N, and Nm divided by ``length``) that
            contact forces with normal forces of 1 N in all can balance (Ferrari and Canny's L1
            measure), found by a search from many directions; 0 without force closure.
        weakest: ``(size,)`` unit wrench in which the ball touches its hull; zeros without force
            closure.
        rank: rank of the grasp map; force closure needs as many as the object has degrees of
            freedom.
    """

    closed: bool
    margin: float
    radius: float
    weakest: Array
    rank: int

    def __bool__(self) -> bool:
        return self.closed


def holding_command(
    model: Model,
    q: ArrayLike,
    *,
    tau: ArrayLike | None = None,
    reach: float = 1e-3,
    gravity_on_actuated: bool = False,
    tolerance: float = 1e-7,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> Holding:
    """Find the command that holds a configuration in equilibrium with the smallest contact forces.

    Minimises the sum of squared contact forces subject to the friction cones and the equilibrium of
    all unactuated joints, ``J_u' f + tau_u = 0``, with gravity, springs and ``tau``. The command
    then stretches the actuators' springs to balance contacts and loads, ``u = gear (q_a - (J_a' f +
    tau_a) / stiffness)``. Bounds of the command and force limits of the actuators
    (``Actuator.force_range``) are constraints of the minimisation.

    Joints that share a tendon are in equilibrium with its force; their dry friction counts as a
    contact force. Forces of joint limits, of dry friction in other joints and of bilateral
    constraints are not used, except couplings by which joints follow actuated ones.

    Args:
        model: the model.
        q: ``(nq,)`` configuration.
        tau: ``(nv,)`` applied forces besides gravity, N or Nm.
        reach: pairs up to this far apart count as contacts, m.
        gravity_on_actuated: as in ``Options``.
        tolerance: of the equilibrium, relative to the load, or to 1 N if the load is smaller.
        lower, upper: ``(nu,)`` bounds of the command, infinite for none; None: the actuators'
            ranges.

    Raises:
        EquilibriumError: if no forces within the cones, and no command within the bounds, hold the
            load; its ``residual`` is the unbalanced force.
        ValueError: if an argument is invalid; the message names it.
    """
    check_springs(instance("model", model, Model))
    reach, tolerance = number("reach", reach, least=0), number("tolerance", tolerance, least=0)
    here = vector("q", q, model.nq)
    load = generalised_load(model, here, gravity_on_actuated)
    if tau is not None:
        load = load + vector("tau", tau, model.nv)
    contacts = model.collide(here, reach)
    contacts = contacts[contacts["dist"] <= reach].copy()
    rows, J, scale, cones = contact_rows(model, here, contacts)
    fold = folded(model)
    rubbing, most = _rubbing(model)
    J, load = np.vstack((J @ fold, np.eye(model.nv)[rubbing])), load @ fold
    cone = _cone(scale, cones, most)
    loose, share = _loose(model, here, fold), shares(model, here)
    C, c = loose.T @ J.T, load @ loose
    f = np.zeros(len(J))
    left = c
    unit = tolerance * max(1.0, float(np.linalg.norm(c)))
    low = _bounds("lower", lower, np.asarray(model.u_lower))
    high = _bounds("upper", upper, np.asarray(model.u_upper))
    gear, robot = np.asarray(model.actuator_gear), lengths(model, here)
    rest = robot * gear
    below, above = force_reach(model)
    low, high = np.maximum(low, rest + below), np.minimum(high, rest + above)
    stiffness = np.asarray(model.parameters.actuator_stiffness)

    def command(forces: Array) -> tuple[Array, Array]:
        torque = -((forces @ J + load) @ share)
        return torque, np.asarray((robot + torque / stiffness) * gear)

    if len(J) and len(c):
        f = _least_forces(C, c, cone, unit)
        left = C @ f + c
        if float(np.linalg.norm(left)) <= unit and beyond(command(f)[1], low, high).any():
            _, still = command(np.zeros(len(J)))
            slope = -(gear / stiffness)[:, None] * (J @ share).T
            f = _forces_within(C, c, cone, slope, still, low, high, f)
            left = C @ f + c
    torque, u = command(f)
    outside = beyond(u, low, high)
    if float(np.linalg.norm(left)) > unit or outside.any():
        residual = loose @ left
        if outside.any():
            i = int(outside.argmax())
            raise EquilibriumError(
                "q: no command within the bounds holds this configuration: actuator "
                f"{model.actuator_names[i]!r} would be {outside[i]:.3g} beyond [{low[i]:g}, {high[i]:g}]",
                residual,
            )
        worst = int(np.abs(residual).argmax())
        joint = next(
            j for j in model.joint_names if worst in range(*model.slice_v(j).indices(model.nv))
        )
        raise EquilibriumError(
            f"q: {len(contacts)} contacts cannot hold the load: {np.linalg.norm(left):.3g} (N, Nm) "
            f"are unbalanced, most on joint {joint!r} ({residual[worst]:.3g})",
            residual,
        )
    for (k, row), value in zip(rows, f):
        contacts["force"][k, row] = value
    return Holding(np.clip(u, low, high), contacts, np.asarray(torque))


def force_closure(
    model: Model,
    q: ArrayLike,
    object: str,
    *,
    reach: float = 1e-3,
    length: float = 1.0,
    tolerance: float = 1e-7,
) -> ForceClosure:
    """Compute whether the contacts of an object can resist any wrench on its degrees of freedom.

    There is force closure if and only if the grasp map has full rank and there are contact forces
    strictly inside all friction cones without net wrench (Murray, Li and Sastry 1994, prop. 5.3).
    One cone program decides this. Contacts with the robot and with the surroundings both count.

    Args:
        model: the model.
        q: ``(nq,)`` configuration.
        object: name of the object's body; its degrees of freedom are its unactuated joints.
        reach: pairs up to this far apart count as contacts, m.
        length: converts torques to forces for ``radius``, for example the object's radius, m.
        tolerance: a margin of at most this is no force closure.

    Raises:
        ValueError: if an argument is invalid; the message names it.
    """
    instance("model", model, Model)
    reach, tolerance = number("reach", reach, least=0), number("tolerance", tolerance, least=0)
    here = vector("q", q, model.nq)
    length = number("length", length, above=0)
    space = ObjectSpace(model, object)
    contacts = model.collide(here, reach)
    contacts = contacts[contacts["dist"] <= reach]
    _, J, scale, cones = contact_rows(model, here, contacts)
    n = space.size
    G = J[:, space.v].T / np.where(space.rotation, length, 1.0)[:, None]
    keep: list[int] = []
    used: list[int] = []
    first = 0
    for size in cones:  # leave out contacts that do not touch this object
        own = slice(first, first + size)
        if np.any(np.abs(G[:, own]) > 1e-12):
            keep += range(first, first + size)
            used.append(size)
        first += size
    G, scale = G[:, keep], scale[keep]
    rank = int(np.linalg.matrix_rank(G, ROUNDING)) if len(keep) else 0
    none = ForceClosure(False, 0.0, 0.0, np.zeros(n), rank)
    if rank < n:
        return none
    margin = _margin(G, scale, used)
    if margin <= tolerance:
        return none
    radius, weakest = _ball(G * scale, used)
    return ForceClosure(True, margin, radius, weakest, rank)


# -------------------------------------------------------------------- parts


def _loose(model: Model, q: Array, fold: Array) -> Array:
    """Return an orthonormal basis ``(nv, n)`` of the displacements that no actuator holds and no
    coupling determines.

    These are motions of objects, and motions of joints that share a tendon at constant length.
    """
    own = robot_v(model)
    free = np.setdiff1d(model.unactuated_v[np.any(fold[:, model.unactuated_v], axis=0)], own)
    loose = np.eye(model.nv)[:, free]
    if not sharing(model):
        return loose
    slope = slopes(model, q)[:, own]
    within = np.zeros((model.nv, len(own) - model.nu))
    within[own] = np.linalg.svd(slope)[2][model.nu :].T
    return np.hstack((loose, within))


def _rubbing(model: Model) -> tuple[NDArray[np.intp], Array]:
    """Return the degrees of freedom of joints that share tendons and have dry friction, and this
    friction, N or Nm."""
    if not sharing(model):
        return np.empty(0, dtype=np.intp), np.empty(0)
    own = robot_v(model)[np.asarray(model.actuated_v)[owners(model)] < 0]
    loss = {
        model.slice_v(j).start: k
        for j, k in zip(model.joint_names, model.parameters.joint_friction)
    }
    most = np.array([loss[dof] for dof in own.tolist()])
    return own[most > 0.0], most[most > 0.0]


def _cone(scale: Array, sizes: list[int], most: Array) -> dict[str, Any]:
    """Return the constraints on forces: friction cones, and dry friction between minus and plus ``most``."""
    m, n = len(scale), len(most)
    G = np.zeros((m + 2 * n, m + n))
    G[:m, :m] = np.diag(1.0 / scale)
    G[m : m + n, m:], G[m + n :, m:] = np.eye(n), -np.eye(n)
    kinds = _kinds(sizes) + [("orthant", 2 * n)] * bool(n)
    return {"G": G, "g": np.concatenate((np.zeros(m), most, most)), "cones": kinds}


def generalised_load(model: Model, q: Array, gravity_on_actuated: bool) -> Array:
    """Return the generalised forces ``(nv,)`` of gravity and springs."""
    p = model.parameters
    load = np.asarray(model.gravity_force(q))
    if not gravity_on_actuated:
        load[model.actuated_v[model.actuated_v >= 0]] = 0.0
    for i, joint in enumerate(model.description.joints):
        if p.joint_stiffness[i] != 0.0:
            v, at = model.slice_v(joint.name), model.slice_q(joint.name).start
            turned = not joint.scalar
            stretch = (
                model.difference(q, model.description.reference_q)[v]
                if turned
                else q[at] - p.joint_springref[i]
            )
            load[v] -= p.joint_stiffness[i] * stretch
    return load


def contact_rows(
    model: Model, q: Array, contacts: NDArray[np.void]
) -> tuple[list[tuple[int, int]], Array, Array, list[int]]:
    """Return the force components of contacts.

    Returns:
        For each component its contact and its index in ``force``; its generalised force per newton
        ``(components, nv)``; its divisor in the cone ``(components,)``; and the sizes of the cones.
    """
    pos, rot = model.body_poses(q)
    rows: list[tuple[int, int]] = []
    made: list[Array] = []
    scale: list[float] = []
    cones: list[int] = []
    for k, contact in enumerate(contacts):
        relative = np.zeros((6, model.nv))
        for side, sign in (("body_b", 1.0), ("body_a", -1.0)):
            b = int(contact[side])
            if b:
                local = rot[b].T @ (contact["pos"] - pos[b])
                relative += sign * model.jacobian(q, b, local)
        size = 0
        for row in range(int(contact["dim"])):
            friction = 1.0 if row == 0 else float(contact["friction"][row - 1])
            if friction == 0.0:
                continue
            part = relative[:3] if row < 3 else relative[3:]
            rows.append((k, row))
            made.append(contact["frame"][row % 3] @ part)
            scale.append(friction)
            size += 1
        cones.append(size)
    J = np.array(made).reshape(len(rows), model.nv)
    return rows, J, np.array(scale), cones


def _kinds(sizes: list[int]) -> list[tuple[str, int]]:
    return [("lorentz" if size > 1 else "orthant", size) for size in sizes]


def _least_forces(C: Array, c: Array, cone: dict[str, Any], unit: float) -> Array:
    """Return the smallest forces within the cones that balance ``c``, or those with the smallest residual."""
    m = C.shape[1]
    size = float(np.abs(C).max()) ** 2
    f = _nearest_forces(C, c, cone, 1e-12 * size)
    left = C @ f + c
    # The regularisation leaves a small residual. With a larger residual, the load cannot be
    # balanced.
    if float(np.linalg.norm(left)) > max(unit, 1e-6 * float(np.linalg.norm(c))):
        return f
    U, s, _ = np.linalg.svd(C)
    rank = int(np.count_nonzero(s > 1e-10 * s[0]))
    try:
        return solve_cone_program(
            np.eye(m), np.zeros(m), **cone, C=U[:, :rank].T @ C, c=U[:, :rank].T @ c
        ).x
    except SolverError:
        return f


def _forces_within(
    C: Array,
    c: Array,
    cone: dict[str, Any],
    slope: Array,
    still: Array,
    lower: Array,
    upper: Array,
    otherwise: Array,
) -> Array:
    """Return the smallest forces within the cones that balance ``c`` with commands ``still + slope
    f`` within bounds.

    If there are none, it returns ``otherwise``.
    """
    below, above = np.isfinite(lower), np.isfinite(upper)
    # The bounds are slightly tightened, so that results within the solver's tolerance satisfy the
    # original ones.
    room = ROUNDING * np.maximum(1.0, np.abs(still))
    G = np.vstack((cone["G"], slope[below], -slope[above]))
    g = np.concatenate((cone["g"], (still - lower - room)[below], (upper - still - room)[above]))
    kinds = [*cone["cones"], ("orthant", int(below.sum() + above.sum()))]
    U, s, _ = np.linalg.svd(C)
    rank = int(np.count_nonzero(s > 1e-10 * s[0]))
    m = C.shape[1]
    try:
        return solve_cone_program(
            np.eye(m), np.zeros(m), G, g, kinds, U[:, :rank].T @ C, U[:, :rank].T @ c
        ).x
    except SolverError:
        return otherwise


def _bounds(name: str, given: ArrayLike | None, otherwise: Array) -> Array:
    if given is None:
        return otherwise
    array = finite(name, reals(name, given), infinite=True)
    if array.shape != otherwise.shape:
        raise ValueError(f"{name}: expected shape {otherwise.shape}, got {array.shape}")
    return array


def _nearest_forces(C: Array, c: Array, cone: dict[str, Any], regularization: float) -> Array:
    """Return the forces with the smallest residual.

    A small regularisation, near rounding, changes the result least. If the solver then takes
    internal forces for an unbounded direction because they cost almost nothing, a larger one is
    used.
    """
    eye = np.eye(C.shape[1])
    try:
        return solve_cone_program(C.T @ C + regularization * eye, C.T @ c, **cone).x
    except SolverError:
        return solve_cone_program(C.T @ C + 1e4 * regularization * eye, C.T @ c, **cone).x


def _margin(G: Array, scale: Array, cones: list[int]) -> float:
    """Compute the margin of :class:`ForceClosure`: a linear program over cones, in forces and t."""
    n, m = G.shape
    starts = np.cumsum([0, *cones])[:-1]
    rows = np.zeros((m + 1, m + 1))
    rows[:m, :m] = np.diag(1.0 / scale)
    rows[starts, m] = -1.0
    rows[m, starts] = -1.0
    g = np.zeros(m + 1)
    g[m] = 1.0
    b = np.zeros(m + 1)
    b[m] = -1.0
    U, s, _ = np.linalg.svd(G, full_matrices=False)
    C = np.hstack((U.T @ G / s[:, None], np.zeros((n, 1))))
    kinds = [*_kinds(cones), ("orthant", 1)]
    # A small quadratic cost makes the forces unique. It changes t by about its own size, and
    # amplifies rounding errors by at most its inverse.
    solution = solve_cone_program(
        1e-8 * np.eye(m + 1), b, rows, g, kinds, C, np.zeros(n), tolerance=1e-10
    )
    return max(0.0, float(solution.x[m]))


def _ball(G: Array, cones: list[int]) -> tuple[float, Array]:
    """Find the direction in which the support function of the contacts' wrenches is smallest.

    The support function h is convex, but the unit sphere is not. Each start w is therefore
    replaced by the direction of the point x of {h <= 1} that lies furthest along w, until it no
    longer changes. Then h(x) = 1 and |x| >= w x >= 1 / h(w), so the support never rises. For
    pyramids, each such point is the normal of a facet of the wrenches' hull.

    Returns:
        The smallest value found, and its direction ``(n,)``.
    """
    n, m = G.shape
    starts = np.cumsum([0, *cones])[:-1]
    # The constraints are 1 - g_0 w >= |g_k w|. Columns of G are multiplied by their friction
    # coefficients, so that all cones have unit slope.
    rows = G.T.copy()
    rows[starts] *= -1.0
    g = np.zeros(m)
    g[starts] = 1.0

    def support(w: Array) -> float:
        value = G.T @ w
        sizes = [
            value[i] + float(np.linalg.norm(value[i + 1 : i + size]))
            for i, size in zip(starts, cones)
        ]
        return float(max(sizes))

    rng = np.random.default_rng(0)
    directions = [*np.eye(n), *-np.eye(n), *rng.standard_normal((4 * n, n))]
    best, weakest = math.inf, np.zeros(n)
    for start in directions:
        w = start / np.linalg.norm(start)
        value = support(w)
        for _ in range(30):
            try:
                x = solve_cone_program(1e-10 * np.eye(n), -w, rows, g, _kinds(cones)).x
            except SolverError:
                break
            x = x / np.linalg.norm(x)
            lower = support(x)
            if not lower < value * (1.0 - 1e-10):
                break
            w, value = x, lower
        if value < best:
            best, weakest = value, w
    return best, weakest

"""The step's cone program written down a second time, in NumPy and from public queries alone."""

from __future__ import annotations

from dataclasses import dataclass

import clarabel_witness
import numpy as np
from numpy.typing import NDArray

import qdsim

Matrix = NDArray[np.float64]


@dataclass
class Program:
    """minimise 1/2 d'Qd + b'd subject to, per contact, J d + dist e1 in the friction cone's dual,
    and sign (q + d - bound) >= 0 per limit. Columns are all DOFs; `free` marks those that move."""

    Q: Matrix
    b: Matrix
    J: list[Matrix]  # (6, nv) each: rows n, t1, t2 of velocity, then of angular velocity
    contacts: NDArray[np.void]
    limits: list[tuple[int, float, float]]  # dof, sign, gap
    free: NDArray[np.bool_]


def contact_jacobian(model: qdsim.Model, q: Matrix, contact: np.void) -> Matrix:
    def at(body_index: int) -> Matrix:
        if body_index == 0:
            return np.zeros((6, model.nv))
        name = model.body_names[body_index]
        position, rotation = model.body_pose(q, name)
        return model.jacobian(q, name, rotation.T @ (contact["pos"] - position))

    relative = at(int(contact["body_b"])) - at(int(contact["body_a"]))
    frame = contact["frame"]
    return np.vstack([frame @ relative[:3], frame @ relative[3:]])


def gravity_force(model: qdsim.Model, q: Matrix) -> Matrix:
    tau = np.zeros(model.nv)
    parameters = model.parameters
    for index, name in enumerate(model.body_names):
        if index > 0:
            linear = model.jacobian(q, name, parameters.body_com[index])[:3]
            tau += parameters.body_mass[index] * linear.T @ parameters.gravity
    return tau


def assemble(
    model: qdsim.Model,
    q: Matrix,
    u: Matrix,
    options: qdsim.Options,
    contacts: NDArray[np.void],
    tau: Matrix | None = None,
) -> Program:
    nv = model.nv
    parameters = model.parameters
    actuated = np.zeros(nv, dtype=bool)
    actuated[model.actuated_v] = True
    mass = model.mass_matrix(q)
    Q = (
        np.where(~actuated[:, None] & ~actuated[None, :], mass, 0.0)
        * options.epsilon
        / options.h**2
    )
    falls = np.ones(nv, dtype=bool) if options.gravity_on_actuated else ~actuated
    b = -np.where(falls, gravity_force(model, q), 0.0)
    if tau is not None:
        b = b - tau
    limits = []
    for index, joint in enumerate(model.joint_names):
        v, p = model.slice_v(joint), model.slice_q(joint)
        if v.stop - v.start != 1:
            continue
        stiffness = parameters.joint_stiffness[index]
        Q[v.start, v.start] += stiffness
        b[v.start] += stiffness * (q[p.start] - parameters.joint_springref[index])
        if options.joint_limits:
            lower, upper = model.joint_range[index]
            if np.isfinite(lower):
                limits.append((v.start, 1.0, q[p.start] - lower))
            if np.isfinite(upper):
                limits.append((v.start, -1.0, upper - q[p.start]))
    gear = model.actuator_gear
    hold = gear * q[model.actuated_q]  # where the actuators' own springs rest
    for i, v in enumerate(model.actuated_v):
        stiffness = parameters.actuator_stiffness[i]
        Q[v, v] += stiffness
        b[v] -= stiffness * (u[i] - hold[i]) / gear[i]
    free = np.ones(nv, dtype=bool)
    for name in options.held:
        free[model.slice_v(name)] = False
    J = [contact_jacobian(model, q, contact) for contact in contacts]
    return Program(Q, b, J, contacts, limits, free)


def weights(contact: np.void) -> Matrix:
    """D of the friction cone, one entry per component of the contact after the normal."""
    return np.asarray(contact["friction"])[: int(contact["dim"]) - 1]


def optimality(
    model: qdsim.Model, q: Matrix, u: Matrix, options: qdsim.Options, step: qdsim.Step
) -> tuple[float, float, float]:
    """What an exact step lacks to stationarity (N), to the cones (m; forces in micronewtons), and in the products of
    slacks and forces (J), from public queries and the reported forces alone.
    """
    program = assemble(model, q, u, options, step.contacts)
    gradient = program.Q @ step.delta + program.b - step.limit_force
    gap = product = 0.0
    for J, contact in zip(program.J, program.contacts, strict=True):
        dim = int(contact["dim"])
        force, friction = contact["force"][:dim], weights(contact)
        gradient -= J[:dim].T @ force
        motion = J[:dim] @ step.delta
        motion[0] += contact["dist"]
        # the slack is (w_n, D w_t): it lies in the Lorentz cone
        gap = max(gap, np.linalg.norm(friction * motion[1:]) - motion[0])
        gap = max(gap, (np.linalg.norm(force[1:] / friction) - force[0]) * 1e-6)
        product = max(product, abs(motion @ force))
    return float(np.abs(gradient).max()), float(gap), float(product)


def clarabel_program(program: Program) -> clarabel_witness.Program:
    """The program with friction cones as Clarabel has solved it, held DOFs left out."""
    free = program.free
    rows, offsets, cones = [np.zeros((0, int(free.sum())))], [np.zeros(0)], []
    for J, contact in zip(program.J, program.contacts, strict=True):
        if np.any(np.abs(J[0, free]) > 1e-12):
            D = np.concatenate([[1.0], weights(contact)])
            rows.append((D[:, None] * J[: len(D)])[:, free])
            offsets.append(np.eye(len(D))[0] * contact["dist"])
            cones.append(("lorentz", len(D)))
    for v, sign, gap in program.limits:
        if free[v]:
            rows.append(sign * np.eye(len(free))[v : v + 1, free])
            offsets.append(np.array([gap]))
            cones.append(("orthant", 1))
    Q = program.Q[np.ix_(free, free)]
    return clarabel_witness.Program(
        Q, program.b[free], -np.vstack(rows), np.concatenate(offsets), cones
    )


def rays(count: int) -> Matrix:
    angle = 2.0 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def pyramid_rows(contact: np.void, ray_count: int) -> Matrix:
    """Rows that act on the relative motion (6), one per half space of the pyramid."""
    dim = int(contact["dim"])
    if dim == 1:
        return np.eye(6)[:1]
    rows = []
    for ray in rays(ray_count):
        rows.append([1.0, *(contact["friction"][0] * ray), 0.0, 0.0, 0.0])
    for c in range(3, dim):
        for sign in (1.0, -1.0):
            row = np.zeros(6)
            row[0] = 1.0
            row[c] = sign * contact["friction"][c - 1]
            rows.append(row)
    return np.array(rows)

"""Objects of a model: bodies that move and that no actuator moves."""

from __future__ import annotations

import numpy as np

from qdsim.description import Coupling
from qdsim.model import Model

__all__ = ["objects_of"]


def objects_of(model: Model) -> tuple[str, ...]:
    """Return the names of the bodies on unactuated joints, in the order of the model.

    Bodies that such a body carries come after it.

    Bodies that an actuated joint carries, or that carry one (a floating base), are parts of a
    robot.
    """
    bodies = model.description.bodies
    index = {body.name: i for i, body in enumerate(bodies)}
    above = [index.get(body.parent or "world", 0) for body in bodies]
    driven = _driven(model)
    own = [any(joint.name in driven for joint in body.joints) for body in bodies]
    part = [False] * len(bodies)
    for b in range(1, len(bodies)):
        chain = [b]
        while above[chain[-1]] != 0:
            chain.append(above[chain[-1]])
        if any(own[c] for c in chain):
            part[b] = True
        if own[b]:
            for c in chain:
                part[c] = True
    return tuple(body.name for b, body in enumerate(bodies) if b and body.joints and not part[b])


def _driven(model: Model) -> set[str]:
    """Return the names of the joints that actuators move, directly, by a tendon, or by a coupling
    to another joint."""
    v = np.asarray(model.actuated_v)
    moved = np.zeros(model.nv, dtype=bool)
    moved[v[v >= 0]] = True
    tendons = np.asarray(model.actuated_tendons)
    if np.any(tendons >= 0):
        pulled = model.tendon_jacobians(model.default_q) != 0.0
        moved |= pulled[tendons[tendons >= 0]].any(axis=0)
    found = {name for name in model.joint_names if moved[model.slice_v(name)].any()}
    for item in model.description.constraints:
        if isinstance(item, Coupling) and found & {item.joint, item.follows}:
            found |= {item.joint, item.follows or item.joint}
    return found

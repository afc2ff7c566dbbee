"""A model in nimblephysics, whose derivatives of a step are analytic (`pip install nimblephysics`, which needs NumPy 1)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from qdsim.description import Body, Geom, Joint
from qdsim.model import Model

__all__ = ["NimbleWorld"]

GROUND = 10.0
"""Half the side of the box that stands for a plane, m."""


class NimbleWorld:
    """The model and a state of it; hinges, slides and free joints; spheres, boxes and planes; actuators of gear 1.

    Args:
        model: to be simulated.
        q: (nq,), where it is.
        u: (nu,), commands of the position actuators, which become springs of their joints.
        h: s, the time step.
    """

    def __init__(self, model: Model, q: Any, u: Any, h: float) -> None:
        import nimblephysics as nimble

        self._nimble, self.model = nimble, model
        self.world = nimble.simulation.World()
        self.world.setTimeStep(h)
        self.world.setGravity(np.array(model.parameters.gravity))
        self._skeletons: dict[str, Any] = {}
        self._bodies: dict[str, Any] = {"world": None}
        self._joints: list[tuple[Joint, Any]] = []
        for body in model.description.bodies:
            if body.name != "world" or body.geoms:
                self._add(body)
        for skeleton in dict.fromkeys(self._skeletons.values()):
            skeleton.disableSelfCollisionCheck()
            self.world.addSkeleton(skeleton)
        self._drive(u)
        self._place(np.asarray(q))

    def jacobians(self) -> tuple[Any, Any]:
        """Return the derivatives of one step with respect to the state and the input."""
        nimble = self._nimble
        self.world.setState(self._state)
        self.world.setAction(np.zeros(self.world.getActionSize()))
        snapshot = nimble.neural.forwardPass(self.world, True)
        state = snapshot.getStateJacobian(self.world)
        return state, snapshot.getActionJacobian(self.world)

    def _pose(self, pos: Any, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> Any:
        w, x, y, z = np.array(quat, dtype=float) / np.linalg.norm(quat)
        pose = self._nimble.math.Isometry3()
        skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        pose.set_rotation(np.eye(3) + 2.0 * w * skew + 2.0 * skew @ skew)
        pose.set_translation(np.array(pos, dtype=float))
        return pose

    def _add(self, body: Body) -> None:
        """A body behind its joints; bodies of almost no mass between several of them."""
        world = body.name == "world"
        parent = None if world else self._bodies[body.parent]
        if parent is None:
            self._skeletons[body.name] = self._nimble.dynamics.Skeleton()
            self._skeletons[body.name].setName(body.name)
        else:
            self._skeletons[body.name] = self._skeletons[body.parent]
        skeleton, offset = self._skeletons[body.name], body.pos
        link, quat = parent, body.quat
        joints: list[Joint | None] = [*body.joints] or [None]
        for k, joint in enumerate(joints):
            made, link = self._join(skeleton, link, joint)
            at = (0.0, 0.0, 0.0) if joint is None or joint.type == "free" else joint.pos
            there = self._pose(offset, quat).multiply(self._pose(at))
            if joint is not None and joint.type == "free":
                there = self._pose((0.0, 0.0, 0.0))
            made.setTransformFromParentBodyNode(there)
            made.setTransformFromChildBodyNode(self._pose(at))
            offset, quat = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
            link.setName(f"{body.name}/{k}")
            link.setMass(1e-9)
            link.setMomentOfInertia(1e-12, 1e-12, 1e-12)
        if body.mass > 0.0:
            link.setMass(body.mass)
            link.setLocalCOM(np.array(body.com))
            i = np.array(body.inertia)
            link.setMomentOfInertia(i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
        self._bodies[body.name] = None if world else link
        for geom in body.geoms:
            self._add_geom(link, geom)

    def _join(self, skeleton: Any, parent: Any, joint: Joint | None) -> tuple[Any, Any]:
        kind = "weld" if joint is None else joint.type
        create = {
            "weld": skeleton.createWeldJointAndBodyNodePair,
            "free": skeleton.createFreeJointAndBodyNodePair,
            "hinge": skeleton.createRevoluteJointAndBodyNodePair,
            "slide": skeleton.createPrismaticJointAndBodyNodePair,
        }[kind]
        made, link = create() if parent is None else create(parent)
        if joint is not None:
            made.setName(joint.name)
            self._joints.append((joint, made))
            if kind in ("hinge", "slide"):
                made.setAxis(np.array(joint.axis) / np.linalg.norm(joint.axis))
        return made, link

    def _add_geom(self, link: Any, geom: Geom) -> None:
        dynamics = self._nimble.dynamics
        names = [known.name for known in self.model.description.geoms]
        touching = set(np.asarray(self.model.pair_geom).ravel().tolist())
        if names.index(geom.name) not in touching:
            return
        pos = np.array(geom.pos, dtype=float)
        if geom.type == "sphere":
            shape = dynamics.SphereShape(geom.size[0])
        elif geom.type == "box":
            shape = dynamics.BoxShape(2.0 * np.array(geom.size))
        else:
            assert geom.type == "plane"
            shape = dynamics.BoxShape(2.0 * np.array([GROUND, GROUND, GROUND]))
            pos = pos - np.array([0.0, 0.0, GROUND])
        node = link.createShapeNode(shape)
        node.createVisualAspect()
        node.createCollisionAspect()
        node.setRelativeTransform(self._pose(pos, geom.quat))
        link.setFrictionCoeff(geom.friction[0])

    def _drive(self, u: Any) -> None:
        made = {joint.name: nimble for joint, nimble in self._joints}
        stiffness = np.asarray(self.model.parameters.actuator_stiffness)
        for actuator, k, command in zip(self.model.description.actuators, stiffness, u):
            made[actuator.joint].setSpringStiffness(0, float(k))
            made[actuator.joint].setRestPosition(0, float(command))

    def _place(self, q: Any) -> None:
        for joint, made in self._joints:
            own = q[self.model.slice_q(joint.name)]
            if joint.type == "free":
                w, x, y, z = own[3:]
                angle = 2.0 * np.arctan2(np.linalg.norm([x, y, z]), w)
                axis = np.array([x, y, z]) / max(np.linalg.norm([x, y, z]), 1e-300)
                made.setPositions(np.concatenate((angle * axis, own[:3])))
            else:
                made.setPositions(own)
        self._state = self.world.getState()

    def contacts(self) -> int:
        """Return the number of contacts of the last step."""
        return sum(1 for _ in itertools.chain(self.world.getLastCollisionResult().getContacts()))

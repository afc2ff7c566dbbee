"""A model in Drake's discrete time, its soft geometries as compliant hydroelastic ones: another judge of plans and
motions (`pip install drake`)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from qdsim.array_type import Array
from qdsim.description import Body, Geom, Joint
from qdsim.model import Model
from qdsim.planning.execution.world import World, damping_of
from qdsim.planning.task.robot import mass_metric
from qdsim.planning.task.space import ObjectSpace
from qdsim.planning.task.transfer_options import TransferOptions

__all__ = ["DrakeScene", "DrakeWorld"]

POINT_STIFFNESS, POINT_DISSIPATION = 1e6, 10.0
"""Stiffness, N/m, and dissipation, s/m, of contacts between rigid bodies, which are not hydroelastic."""


class DrakeWorld(World):
    """The model as Drake simulates it: hydroelastic contact where a geometry is soft, points elsewhere.

    Args:
        model: hinges, slides and free joints; spheres, boxes and planes; actuators of gear 1.
        space: of the object.
        options: the same as in other worlds.
        compensated: whether the robot has no gravity.
        bounds: of the commands.
    """

    def __init__(
        self,
        model: Model,
        space: ObjectSpace,
        options: TransferOptions,
        compensated: bool,
        bounds: tuple[Array, Array] | None = None,
    ) -> None:
        damping = damping_of(model, space, options)
        super().__init__(model, space, options, damping, compensated, bounds)
        self._h = options.timestep
        scene = DrakeScene(model, damping, options.timestep, compensated)
        self._plant, self._simulator = scene.plant, scene.simulator
        self._columns, self._rows, self._order = scene.columns, scene.rows, scene.order
        self._context = scene.plant_context
        self._drives, self._forces = scene.drives, scene.forces
        self._robot = scene.robot
        self._mass = mass_metric(model)[space.v]
        self._reach = options.support_friction * 9.81 * self._h
        self._pull, self._pushed = np.zeros(len(self._mass)), np.zeros(len(self._mass))

    @property
    def q(self) -> Array:
        return np.asarray(self._plant.GetPositions(self._context)[self._columns])

    @property
    def v(self) -> Array:
        return np.asarray(self._plant.GetVelocities(self._context)[self._rows])

    def _place(self, q: Array) -> None:
        positions = np.empty(self.model.nq)
        positions[self._columns] = q
        self._plant.SetPositions(self._context, positions)
        self._plant.SetVelocities(self._context, np.zeros(self.model.nv))
        self._simulator.get_mutable_context().SetTime(0.0)
        self._pull[:], self._pushed[:] = 0.0, 0.0
        self._count = 0
        self._simulator.Initialize()

    def _step(self, u: Array) -> None:
        self._drives.FixValue(
            self._context, np.concatenate((u[self._order], np.zeros(self.model.nu)))
        )
        own, before = self._object, self.v
        if self.rubs:
            self._rub(before[own])
        self._count += 1
        self._simulator.AdvanceTo(self._count * self._h)
        if self.rubs:
            self._pushed = self._mass * (self.v - before)[own] / self._h - self._pull

    def _rub(self, v: Array) -> None:
        """Apply the friction of the support against the motion by momentum and the last contact forces."""
        momentum = self._mass * v + self._h * self._pushed
        heaviest = float((self._mass / self._per_mass).max())
        speed = float(np.sqrt(np.sum(momentum**2 / self._mass) / heaviest))
        self._pull = -momentum * min(1.0, self._reach / max(speed, 1e-300)) / self._h
        tau, forces = np.zeros(self.model.nv), np.zeros(self.model.nv)
        tau[self._object] = self._pull
        forces[self._rows] = tau
        self._forces.FixValue(self._context, forces)


class DrakeScene:
    """Plant, scene graph and simulator; where each coordinate of the model is in Drake's.

    Args:
        model: hinges, slides and free joints; spheres, boxes and planes; actuators of gear 1.
        damping: (nv,), of the joints.
        h: s, the time step.
        compensated: whether the robot has no gravity.
        sampled: whether outputs are of the last step, as Drake has it by default; derivatives of a step need False.
    """

    def __init__(
        self, model: Model, damping: Array, h: float, compensated: bool, sampled: bool = True
    ) -> None:
        import pydrake.all as drake

        self._drake, self.model = drake, model
        builder = drake.DiagramBuilder()
        self.plant, graph = drake.AddMultibodyPlantSceneGraph(builder, time_step=h)
        self.plant.SetUseSampledOutputPorts(sampled)
        self.plant.set_contact_model(drake.ContactModel.kHydroelasticWithFallback)
        self.plant.mutable_gravity_field().set_gravity_vector(np.array(model.parameters.gravity))
        self._damping = damping
        self.robot = self.plant.AddModelInstance("robot")
        self._bodies: dict[str, Any] = {"world": self.plant.world_body()}
        self._joints: list[tuple[Joint, Any]] = []
        self._shapes: dict[str, Any] = {}
        driven = {a.joint for a in model.description.actuators}
        instances = {"world": None}
        for body in model.description.bodies:
            if body.name != "world":
                held = any(j.name in driven for j in body.joints)
                inherited = instances.get(body.parent)
                own = self.robot if held or inherited is not None else None
                instances[body.name] = own
                self._add(body, own or drake.default_model_instance())
            touching = set(np.asarray(model.pair_geom).ravel().tolist())
            names = [geom.name for geom in model.description.geoms]
            for geom in (g for g in body.geoms if names.index(g.name) in touching):
                self._add_geom(self._bodies[body.name], geom)
        if model.nu > 0:
            self._actuate()
        if compensated:
            self.plant.set_gravity_enabled(self.robot, False)
        self.plant.Finalize()
        self._filter(graph)
        diagram = builder.Build()
        self.simulator = drake.Simulator(diagram)
        self.plant_context = self.plant.GetMyMutableContextFromRoot(
            self.simulator.get_mutable_context()
        )
        self._find_coordinates()
        self.drives = self.plant.get_desired_state_input_port(self.robot) if model.nu else None
        self.forces = self.plant.get_applied_generalized_force_input_port()

    # ------------------------------------------------------------------------------------------------ bodies

    def _pose(self, pos: Any, quat: Any = (1.0, 0.0, 0.0, 0.0)) -> Any:
        drake = self._drake
        w = np.array(quat, dtype=float)
        turn = drake.RotationMatrix(drake.Quaternion(w / np.linalg.norm(w)))
        return drake.RigidTransform(turn, np.array(pos, dtype=float))

    def _inertia(self, body: Body) -> Any:
        drake = self._drake
        i = np.array(body.inertia)
        turning = drake.RotationalInertia(i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
        com = np.array(body.com)
        return drake.SpatialInertia.MakeFromCentralInertia(body.mass, com, turning)

    def _add(self, body: Body, instance: Any) -> None:
        """A body behind its joints; bodies without mass between several of them."""
        drake, plant = self._drake, self.plant
        parent, offset = self._bodies[body.parent], self._pose(body.pos, body.quat)
        none = drake.SpatialInertia.Zero()
        joints = body.joints
        for k, joint in enumerate(joints):
            last = k == len(joints) - 1
            inertia = self._inertia(body) if last else none
            link = plant.AddRigidBody(body.name if last else f"{body.name}/{k}", instance, inertia)
            self._join(parent, offset, link, joint)
            parent, offset = link, self._pose((0, 0, 0))
        if not joints:
            parent = plant.AddRigidBody(body.name, instance, self._inertia(body))
            plant.WeldFrames(self._bodies[body.parent].body_frame(), parent.body_frame(), offset)
        self._bodies[body.name] = parent

    def _join(self, parent: Any, offset: Any, link: Any, joint: Joint) -> None:
        drake, plant = self._drake, self.plant
        assert joint.ref == 0.0 and joint.type != "ball"
        anchor = self._pose(joint.pos)
        frame_p = plant.AddFrame(
            drake.FixedOffsetFrame(f"{joint.name}/p", parent.body_frame(), offset @ anchor)
        )
        frame_c = plant.AddFrame(
            drake.FixedOffsetFrame(f"{joint.name}/c", link.body_frame(), anchor)
        )
        d = float(self._damping[self.model.slice_v(joint.name)].max())
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        if joint.type == "free":
            # q counts in the world, so the joint's parent frame is that of the parent body.
            made = drake.QuaternionFloatingJoint(
                joint.name, parent.body_frame(), link.body_frame(), d, d
            )
        elif joint.type == "hinge":
            made = drake.RevoluteJoint(joint.name, frame_p, frame_c, axis, d)
        else:
            made = drake.PrismaticJoint(joint.name, frame_p, frame_c, axis, damping=d)
        self._joints.append((joint, plant.AddJoint(made)))

    def _actuate(self) -> None:
        stiffness = np.asarray(self.model.parameters.actuator_stiffness)
        made = {joint.name: drake_joint for joint, drake_joint in self._joints}
        self.order = np.arange(self.model.nu)
        for actuator, k in zip(self.model.description.actuators, stiffness):
            assert abs(actuator.gear) == 1.0
            motor = self.plant.AddJointActuator(actuator.name, made[actuator.joint])
            motor.set_controller_gains(self._drake.PdControllerGains(p=float(k), d=0.0))

    # ------------------------------------------------------------------------------------------------ shapes

    def _add_geom(self, body: Any, geom: Geom) -> None:
        drake = self._drake
        size = geom.size
        if geom.type == "sphere":
            shape, length = drake.Sphere(size[0]), size[0]
        elif geom.type == "box":
            shape, length = drake.Box(*(2 * np.array(size))), min(size)
        elif geom.type == "cylinder":
            shape, length = drake.Cylinder(size[0], 2 * size[1]), size[0]
        elif geom.type == "ellipsoid":
            shape, length = drake.Ellipsoid(*size), min(size)
        else:
            assert geom.type == "plane"
            shape, length = drake.HalfSpace(), 1.0
        properties = drake.ProximityProperties()
        mu = geom.friction[0]
        if geom.soft is None:
            drake.AddContactMaterial(
                POINT_DISSIPATION, POINT_STIFFNESS, drake.CoulombFriction(mu, mu), properties
            )
            drake.AddRigidHydroelasticProperties(0.5 * length, properties)
        else:
            soft = geom.soft
            drake.AddContactMaterial(
                soft.dissipation, POINT_STIFFNESS, drake.CoulombFriction(mu, mu), properties
            )
            if soft.thickness is not None:
                drake.AddCompliantHydroelasticPropertiesForHalfSpace(
                    soft.thickness, soft.modulus, properties
                )
            else:
                drake.AddCompliantHydroelasticProperties(
                    soft.hint or 0.25 * length, soft.modulus, properties
                )
        self._shapes[geom.name] = self.plant.RegisterCollisionGeometry(
            body, self._pose(geom.pos, geom.quat), shape, geom.name, properties
        )

    def _filter(self, graph: Any) -> None:
        """Allow contacts of the model's pairs only."""
        drake, model = self._drake, self.model
        pairs = {frozenset(pair) for pair in np.asarray(model.pair_geom).tolist()}
        names = [geom.name for geom in model.description.geoms]
        declaration = drake.CollisionFilterDeclaration()
        for a, b in itertools.combinations(range(len(names)), 2):
            known = names[a] in self._shapes and names[b] in self._shapes
            if known and frozenset((a, b)) not in pairs:
                one, other = (drake.GeometrySet(self._shapes[names[k]]) for k in (a, b))
                declaration.ExcludeBetween(one, other)
        graph.collision_filter_manager().Apply(declaration)

    def _find_coordinates(self) -> None:
        """Find the columns of Drake's positions and velocities that correspond to the model's."""
        model = self.model
        self.columns = np.zeros(model.nq, dtype=int)
        self.rows = np.zeros(model.nv, dtype=int)
        for joint, made in self._joints:
            q, v = made.position_start(), made.velocity_start()
            if joint.type == "free":  # quaternion first, and angular velocities
                self.columns[model.slice_q(joint.name)] = q + np.array([4, 5, 6, 0, 1, 2, 3])
                self.rows[model.slice_v(joint.name)] = v + np.array([3, 4, 5, 0, 1, 2])
            else:
                self.columns[model.slice_q(joint.name)] = q
                self.rows[model.slice_v(joint.name)] = v

"""The held ball and cube and the box on an incline of `bench_creep.py` in Drake's discrete time (`pip install drake`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydrake.geometry import (
    AddCompliantHydroelasticProperties,
    AddContactMaterial,
    AddRigidHydroelasticProperties,
    Box,
    HalfSpace,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform
from pydrake.multibody.plant import AddMultibodyPlant, CoulombFriction, MultibodyPlantConfig
from pydrake.multibody.tree import PdControllerGains, PrismaticJoint, SpatialInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

__all__ = ["creep_in_drake"]

STEP, MODULUS, SLAB = 1e-3, 1e7, 0.05
"""Time step, s; modulus of the held object, Pa (everything else is rigid); resolution of rigid surfaces, m."""


def creep_in_drake(
    half: float,
    mass: float,
    ball: bool,
    u: Sequence[float],
    gravity: Sequence[float],
    approximation: str,
    rest: float,
    seconds: float,
) -> float:
    """Return the speed, mm/s, of an object between plates on springs (commands u) or on a half-space (no commands)."""
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(
        time_step=STEP,
        contact_model="hydroelastic",
        discrete_contact_approximation=approximation,
    )
    plant, _ = AddMultibodyPlant(config, builder)
    plant.mutable_gravity_field().set_gravity_vector(gravity)
    if u:
        _add_plates(plant)
    else:
        plant.RegisterCollisionGeometry(
            plant.world_body(), RigidTransform(), HalfSpace(), "ground", _surface(None)
        )
    side = 2.0 * half
    inertia = SpatialInertia.SolidBoxWithMass(mass, side, side, side)
    if ball:
        inertia = SpatialInertia.SolidSphereWithMass(mass, half)
    held = plant.AddRigidBody("held", inertia)
    shape = Sphere(half) if ball else Box(side, side, side)
    plant.RegisterCollisionGeometry(held, RigidTransform(), shape, "held", _surface(half / 3.0))
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    plant.SetFreeBodyPose(context, held, RigidTransform([0.0, 0.0, 0.0 if u else half]))
    if u:
        wanted = np.array([u[0] - 0.04, u[1] + 0.04, 0.0, 0.0])
        robot = plant.GetModelInstanceByName("DefaultModelInstance")
        plant.get_desired_state_input_port(robot).FixValue(context, wanted)
    places = []
    for time in (rest, rest + seconds):
        simulator.AdvanceTo(time)
        places.append(plant.EvalBodyPoseInWorld(context, held).translation())
    return 1e3 * float(np.linalg.norm(places[1] - places[0])) / seconds


def _surface(resolution: float | None) -> Any:
    """Return a surface with friction 1, compliant if it has a resolution and otherwise rigid."""
    found = ProximityProperties()
    if resolution is None:
        AddRigidHydroelasticProperties(SLAB, found)
    else:
        AddCompliantHydroelasticProperties(resolution, MODULUS, found)
    AddContactMaterial(dissipation=1.0, friction=CoulombFriction(1.0, 1.0), properties=found)
    return found


def _add_plates(plant: Any) -> None:
    for name, x in (("left", -0.04), ("right", 0.04)):
        inertia = SpatialInertia.SolidBoxWithMass(0.5, 0.02, 0.6, 0.6)
        body = plant.AddRigidBody(name, inertia)
        slide = plant.AddJoint(
            PrismaticJoint(name, plant.world_frame(), body.body_frame(), [1, 0, 0])
        )
        slide.set_default_translation(x)
        shape = Box(0.02, 0.6, 0.6)
        plant.RegisterCollisionGeometry(body, RigidTransform(), shape, name, _surface(None))
        drive = plant.AddJointActuator(name, slide)
        drive.set_controller_gains(PdControllerGains(p=5000.0, d=200.0))

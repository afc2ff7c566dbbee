"""Sliding, rolling, bouncing and grasping compared with closed forms: qdsim's second-order step, MuJoCo and Drake.

The scenes are those of tests/witness_scenes.py. Errors are the largest error at the end of the quantities with a
closed form, as a share of the motion. MuJoCo has elliptic cones and contacts with a time constant of five steps, or a
spring without damping if a ball bounces. Drake (if its wheel is installed) has CENIC with an accuracy of 1e-4, and
its discrete solver, with its own contacts, or with 1e5 N/m without dissipation if a ball bounces. CPU times of one
simulation, without loading.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np

import qdsim
from qdsim import DynamicOptions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from witness_scenes import SCENES, WitnessScene


def ours(scene: WitnessScene, h: float, law: str, accuracy: float | None = None):
    model = qdsim.load(scene.xml)
    o = DynamicOptions(h=h, law=law, restitution=scene.restitution)
    v = np.array(scene.v, dtype=float)
    begin = time.process_time()
    done = qdsim.simulate(model, model.default_q, v, scene.u, scene.duration, o, accuracy=accuracy)
    return done.q[-1], len(done.u), time.process_time() - begin


def theirs(scene: WitnessScene, h: float):
    model = mujoco.MjModel.from_xml_string(scene.xml)
    model.opt.timestep = h
    model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
    model.geom_solref[:] = (-((0.3 / h) ** 2), 0.0) if scene.restitution else (5 * h, 1.0)
    data = mujoco.MjData(model)
    data.qvel[:], data.ctrl[:] = scene.v, scene.u
    steps = round(scene.duration / h)
    begin = time.process_time()
    for _ in range(steps):
        mujoco.mj_step(model, data)
    return np.array(data.qpos), steps, time.process_time() - begin


def drake(scene: WitnessScene, h: float, cenic: bool):
    """Simulate in Drake, whose coordinates have the order of the joints in the file."""
    from pydrake.geometry import DefaultProximityProperties, SceneGraphConfig
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
    from pydrake.multibody.tree import SpatialInertia
    from pydrake.systems.analysis import ResetIntegratorFromFlags, Simulator
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, graph = AddMultibodyPlantSceneGraph(builder, h)
    if scene.restitution:
        contact = DefaultProximityProperties(point_stiffness=1e5, hunt_crossley_dissipation=0.0)
        graph.set_config(SceneGraphConfig(default_proximity_properties=contact))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scene.xml"
        file.write_text(_named(scene), encoding="utf-8")
        Parser(plant).AddModels(str(file))
    plant.Finalize()
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    order = [plant.GetJointByName(n).velocity_start() for n in _joints(scene)]
    v = np.zeros(plant.num_velocities())
    v[order] = scene.v
    plant.SetVelocities(context, v)
    for index in plant.GetBodyIndices(plant.GetModelInstanceByName("scene")):
        body = plant.get_body(index)
        if body.default_mass() == 0.0:  # between joints of one body; CENIC wants a mass
            body.SetSpatialInertiaInBodyFrame(
                context, SpatialInertia.SolidSphereWithMass(1e-4, 0.1)
            )
    if scene.u:
        plant.get_actuation_input_port().FixValue(context, np.array(scene.u))
    if cenic:
        ResetIntegratorFromFlags(simulator, "cenic", 0.02)
        simulator.get_mutable_integrator().set_target_accuracy(1e-4)
    simulator.Initialize()
    begin = time.process_time()
    simulator.AdvanceTo(scene.duration)
    each = time.process_time() - begin
    steps = simulator.get_integrator().get_num_steps_taken() if cenic else round(scene.duration / h)
    return plant.GetPositions(context)[order], steps, each


def _joints(scene: WitnessScene) -> list[str]:
    model = mujoco.MjModel.from_xml_string(_named(scene))
    return [model.joint(k).name for k in range(model.njnt)]


def _named(scene: WitnessScene) -> str:
    """Return the scene with names for joints that have none."""
    parts = scene.xml.split("<joint ")
    named = [
        p if p.startswith("name=") else f'name="joint{k}" {p}' for k, p in enumerate(parts[1:])
    ]
    return "<joint ".join([parts[0], *named])


def main() -> None:
    print("| scene | who | steps | error | CPU ms |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name, scene in SCENES.items():
        rows = {
            "qdsim, convex, 10 ms": lambda s=scene: ours(s, 0.01, "convex"),
            "qdsim, Coulomb, 10 ms": lambda s=scene: ours(s, 0.01, "coulomb"),
            "qdsim, Coulomb, 1 ms": lambda s=scene: ours(s, 0.001, "coulomb"),
            "qdsim, Coulomb, accuracy 1e-4": lambda s=scene: ours(s, 0.02, "coulomb", 1e-4),
            "MuJoCo, 1 ms": lambda s=scene: theirs(s, 1e-3),
            "MuJoCo, 0.2 ms": lambda s=scene: theirs(s, 2e-4),
            "Drake, discrete, 1 ms": lambda s=scene: drake(s, 1e-3, False),
            "Drake, CENIC, 1e-4": lambda s=scene: drake(s, 0.0, True),
        }
        for who, call in rows.items():
            try:
                q, steps, each = call()
            except ImportError:
                continue
            print(f"| {name} | {who} | {steps} | {100 * scene.error(q):.2f} % | {1e3 * each:.1f} |")


if __name__ == "__main__":
    main()

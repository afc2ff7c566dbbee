"""Draw every published system into docs/images/systems (needs a MuJoCo that can render: MUJOCO_GL=egl).

Usage: python tools/draw_systems.py [name ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image

import qdsim
from qdsim import systems

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "systems"
SIZE = (320, 240)
OVERSAMPLING = 2
SHARE = {"allegro_sphere": 0.6, "plate_pickup": 0.8, "rope": 0.65, "box_pivoting": 0.55}
LAST = {"cloud_grasp", "cloud_grasp_without_torsion", "block_stacking"}
ROBOT, OBJECT, SCENE = (0.5, 0.58, 0.7, 1.0), (0.95, 0.5, 0.2, 1.0), (0.9, 0.91, 0.92, 1.0)
LINK = np.array([0.35, 0.4, 0.5, 1.0], dtype=np.float32)
AZIMUTH = {"allegro_door": 20.0, "allegro_door_pull": 20.0, "allegro_plate": 60.0}


def configuration(system: systems.System) -> np.ndarray:
    """In the middle of the motion, or the start."""
    q = np.array(system.model.keyframes[system.commands_from].q)
    count = len(system.commands)
    share = 1.0 if system.name in LAST else SHARE.get(system.name, 0.5)
    for u in system.commands[: round(share * count)]:
        q = qdsim.step(system.model, q, u, system.options).q_next
    return np.array(q)


def paint(model: mujoco.MjModel, actuated: set[str]) -> None:
    """Colours by what moves a body; grounds that fill no picture."""
    for g in range(model.ngeom):
        body, moved = int(model.geom_bodyid[g]), None
        while body and moved is None:
            if model.body_jntnum[body]:
                moved = model.joint(int(model.body_jntadr[body])).name in actuated
            body = int(model.body_parentid[body])
        model.geom_rgba[g] = SCENE if moved is None else ROBOT if moved else OBJECT
        if moved is None and model.geom_type[g] == mujoco.mjtGeom.mjGEOM_BOX:
            model.geom_rgba[g, 3] = 0.3  # walls would hide what happens


def add_links(model: mujoco.MjModel, data: mujoco.MjData, scene: mujoco.MjvScene) -> None:
    """Thin bars between the frames of jointed bodies: collision spheres alone do not look like arms."""
    radii = [r for r in model.geom_rbound if r > 1e-3]
    for body in range(1, model.nbody):
        parent = int(model.body_parentid[body])
        here, there = data.xpos[body], data.xpos[parent]
        length = np.linalg.norm(here - there)
        if parent == 0 or length < 1e-3 or scene.ngeom >= scene.maxgeom:
            continue
        geom = scene.geoms[scene.ngeom]
        width = min(0.12 * float(length), 0.3 * float(np.median(radii)) if radii else 0.01)
        capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
        mujoco.mjv_initGeom(geom, capsule, np.zeros(3), np.zeros(3), np.zeros(9), LINK)
        mujoco.mjv_connector(geom, capsule, width, there, here)
        scene.ngeom += 1


def show_clouds(
    system: systems.System, model: mujoco.MjModel, data: mujoco.MjData, scene: mujoco.MjvScene
) -> None:
    """Point clouds as small spheres: MuJoCo has the hull of their points, which ``paint`` hid."""
    sphere, frame = mujoco.mjtGeom.mjGEOM_SPHERE, np.eye(3).ravel()
    colour = np.array(OBJECT, dtype=np.float32)
    for body in system.model.description.bodies:
        for cloud in [geom.cloud for geom in body.geoms if geom.cloud is not None]:
            index = model.body(body.name).id
            places = data.xpos[index] + cloud.points @ data.xmat[index].reshape(3, 3).T
            for place in places[: scene.maxgeom - scene.ngeom]:
                geom = scene.geoms[scene.ngeom]
                mujoco.mjv_initGeom(geom, sphere, np.full(3, 1.5e-3), place, frame, colour)
                scene.ngeom += 1


def draw(name: str) -> Image.Image:
    system = systems.load(name)
    files = systems.files()
    model = mujoco.MjModel.from_xml_string(files[f"{name}.xml"].decode(), files)
    driven = {system.model.joint_names[i] for i in range(system.model.joint_count)}
    indices = {int(i) for i in system.model.actuated_v}
    actuated = {joint for joint in driven if system.model.slice_v(joint).start in indices}
    paint(model, actuated)
    for geom in system.model.description.geoms:
        if geom.cloud is not None:
            model.geom(geom.name).rgba[3] = 0.0
    data = mujoco.MjData(model)
    data.qpos[:] = configuration(system)
    mujoco.mj_forward(model, data)
    solid = [g for g in range(model.ngeom) if model.geom_type[g] != mujoco.mjtGeom.mjGEOM_PLANE]
    moving = [g for g in solid if model.body_weldid[model.geom_bodyid[g]]] or solid
    centres, radii = data.geom_xpos[moving], model.geom_rbound[moving, None]
    low, high = (centres - radii).min(axis=0), (centres + radii).max(axis=0)
    camera = mujoco.MjvCamera()
    camera.lookat[:] = 0.5 * (low + high)
    camera.distance = 1.15 * float(np.linalg.norm(high - low)) + 0.02
    normal = system.model.planar_normal
    if normal is None:
        camera.azimuth, camera.elevation = AZIMUTH.get(name, 135.0), -25.0
    elif abs(normal[0]) > 0.5 or name == "two_spheres_1d":  # the yz plane, y to the right
        camera.azimuth, camera.elevation = 180.0, -4.0
    else:
        camera.azimuth, camera.elevation = 90.0, -50.0
    width, height = (OVERSAMPLING * side for side in SIZE)
    model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.5, 0.5
    model.vis.headlight.specular[:] = 0.1
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    with mujoco.Renderer(model, height, width) as renderer:
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
        renderer.update_scene(data, camera)
        add_links(model, data, renderer.scene)
        show_clouds(system, model, data, renderer.scene)
        pixels = np.array(renderer.render())
        renderer.enable_depth_rendering()
        pixels[renderer.render() > 0.99 * model.vis.map.zfar * model.stat.extent] = 255
        image = Image.fromarray(pixels)
    return image.resize(SIZE, Image.Resampling.LANCZOS)


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or list(systems.NAMES):
        draw(name).quantize(64).save(FOLDER / f"{name}.png", optimize=True)
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])

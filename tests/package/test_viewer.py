"""The viewer: surfaces of all shapes, forces, pages that need no network, and what it refuses."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, open_page

import qdsim
from qdsim import planning, systems

pytest.importorskip("viser")

from qdsim import viewer
from qdsim.viewer.forces import arrows, cone_lines, forces_of
from qdsim.viewer.frames import film_of_plan
from qdsim.viewer.quaternions import quaternions as to_quaternions
from qdsim.viewer.roles import roles_of
from qdsim.viewer.surfaces import surface_of
from qdsim.viewer.tones import LIGHT, toned

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium")

WEDGE = "<asset><mesh name='wedge' vertex='0 0 0 .3 0 0 0 .3 0 0 0 .3 .3 .3 0'/></asset>"
RGBA = {"red": "1 0 0 1", "green": "0 .6 0 1", "blue": "0 0 1 1"}


def scene(shape: str, colour: str = "red") -> qdsim.Model:
    """A floating thing of one shape."""
    return qdsim.load(
        f"<mujoco>{WEDGE}<worldbody><body name='thing'><freejoint/>"
        f"<geom {shape} rgba='{RGBA[colour]}'/></body></worldbody></mujoco>"
    )


SHAPES = {
    "sphere": "type='sphere' size='.2'",
    "box": "type='box' size='.2 .1 .15'",
    "capsule": "type='capsule' size='.1 .2'",
    "cylinder": "type='cylinder' size='.15 .2'",
    "ellipsoid": "type='ellipsoid' size='.2 .1 .15'",
    "mesh": "type='mesh' mesh='wedge'",
}


@pytest.fixture(scope="module")
def plan() -> planning.Plan:
    return planning.rrt(systems.load("planar_hand").tasks["half_turn"], rng=1).plan()


# ------------------------------------------------------------------------------------------------ shapes


@pytest.mark.parametrize("name", SHAPES)
def test_surfaces_lie_on_their_shapes(name: str) -> None:
    """Every corner is at distance zero from the shape, by the collision that the step uses."""
    model = scene(SHAPES[name])
    geom = model.description.geoms[0]
    surface = surface_of(model, geom, np.asarray(model.parameters.geom_size[0]), 1.0)
    corners = np.concatenate([surface.vertices, surface.lines.reshape(-1, 3)])
    size = np.asarray(model.parameters.geom_size[0])
    assert np.abs(_signed_distance(name, size, corners, geom, model)).max() < 1e-6
    faces = surface.vertices[surface.faces]
    volume = np.einsum("ij,ij->", faces[:, 0], np.cross(faces[:, 1], faces[:, 2])) / 6.0
    assert volume == pytest.approx(_volume(name, size), rel=0.03), "faces look outwards"


def test_a_height_field_is_its_triangles() -> None:
    """Its highest and lowest corners are there, however large the grid is."""
    x = np.linspace(-1.0, 1.0, 600)
    hills = qdsim.HeightField(0.1 * np.abs(x) + 0.2 * np.abs(x)[:, None], (1.0, 2.0), 0.5)
    builder = qdsim.SceneBuilder()
    builder.geom("world", "hfield", hfield=hills)
    model = qdsim.build(builder.build())
    surface = surface_of(model, model.description.geoms[0], np.zeros(3), 1.0)
    assert len(surface.faces) < 2 * 260**2
    assert surface.vertices.max(axis=0) == pytest.approx([1.0, 2.0, 0.3])
    assert surface.vertices.min(axis=0) == pytest.approx([-1.0, -2.0, hills.bottom])


def _signed_distance(name, size, points, geom, model):
    if name == "sphere":
        return np.linalg.norm(points, axis=1) - size[0]
    if name == "ellipsoid":
        return np.linalg.norm(points / size, axis=1) - 1.0
    if name == "box":
        return np.max(np.abs(points) - size, axis=1)
    radius = np.hypot(points[:, 0], points[:, 1])
    if name == "cylinder":
        return np.maximum(radius - size[0], np.abs(points[:, 2]) - size[1])
    if name == "capsule":
        along = np.clip(points[:, 2], -size[1], size[1])
        return np.hypot(radius, points[:, 2] - along) - size[0]
    vertices = np.asarray(model.description.meshes[0].vertices)
    return np.linalg.norm(points[:, None] - vertices[None], axis=2).min(axis=1)


def _volume(name, size):
    return {
        "sphere": 4 / 3 * np.pi * size[0] ** 3,
        "ellipsoid": 4 / 3 * np.pi * np.prod(size),
        "box": 8 * np.prod(size),
        "cylinder": 2 * np.pi * size[0] ** 2 * size[1],
        "capsule": 2 * np.pi * size[0] ** 2 * size[1] + 4 / 3 * np.pi * size[0] ** 3,
        "mesh": 2 * 0.3**3 / 6,
    }[name]


def test_quaternions_of_any_rotation() -> None:
    rng = np.random.default_rng(0)
    quaternions = rng.normal(size=(200, 4))
    quaternions[:4] = np.eye(4)
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    model = scene(SHAPES["sphere"])
    matrices = np.array([model.body_poses([0, 0, 0, *q])[1][1] for q in quaternions])
    found = to_quaternions(matrices)
    assert np.abs(np.einsum("ij,ij->i", found, quaternions)) == pytest.approx(1.0, abs=1e-12)


# ------------------------------------------------------------------------------------------------ forces


def test_forces_on_the_object_lie_outside_of_it() -> None:
    """A ball that rests on two others: arrows end on it, come from below, and add up to its weight."""
    model = qdsim.load(
        "<mujoco><worldbody><geom size='.1' pos='-.1 0 0'/><geom size='.1' pos='.1 0 0'/>"
        "<body name='ball' pos='0 0 .17320508'><freejoint/><geom size='.1' mass='2'/></body>"
        "</worldbody></mujoco>"
    )
    step = qdsim.step(model, model.default_q, (), qdsim.Options())
    for objects in ({1}, set()):
        forces = forces_of(step, objects)
        assert len(forces) == 2
        assert forces.forces.sum(axis=0) == pytest.approx([0, 0, 2 * 9.81], rel=1e-4, abs=1e-6)
        assert (forces.inwards[:, 2] > 0.8).all()
        ends = arrows(forces, 10.0, 0.1)
        assert ends[:, 1] == pytest.approx(forces.points)
        assert (ends[:, 0, 2] < ends[:, 1, 2]).all()
        lines = cone_lines(forces, 0.05)
        away = np.einsum(
            "ij,ij->i",
            lines[:, 1] - forces.points[np.arange(len(lines)) // 24],
            np.repeat(forces.inwards, 24, axis=0),
        )
        assert (away < 0.0).all()


def test_many_parallel_forces_are_one_at_their_centre_of_pressure() -> None:
    """A tray of nine feet, its weight off the middle, and a ball beside it: moments stay."""
    feet = "".join(
        f"<geom size='.01' pos='{0.1 * x} {0.1 * y} 0' mass='0'/>"
        for x in (-1, 0, 1)
        for y in (-1, 0, 1)
    )
    model = qdsim.load(
        "<mujoco><worldbody><geom type='plane' size='1 1 .1' friction='.6'/>"
        "<body pos='0 1 .1'><freejoint/><geom size='.1'/></body>"
        f"<body name='tray' pos='0 0 .01'><freejoint/>{feet}"
        "<geom size='.001' pos='.03 .02 .1' mass='2' contype='0' conaffinity='0'/></body></worldbody></mujoco>"
    )
    step = qdsim.step(model, model.default_q, (), qdsim.Options(kappa=1e3))
    found = forces_of(step, {1, 2})
    each = np.einsum("nij,ni->nj", step.contacts["frame"], step.contacts["force"][:, :3])
    assert len(each) == 10 and len(found) == 2
    assert found.forces.sum(axis=0) == pytest.approx(each.sum(axis=0))
    turns = np.cross(found.points, found.forces * [0, 0, 1]).sum(axis=0)
    wanted = np.cross(step.contacts["pos"], each * [0, 0, 1]).sum(axis=0)
    assert turns == pytest.approx(wanted)


def test_friction_cones_have_the_coefficient_as_their_slope() -> None:
    model = qdsim.load(
        "<mujoco><worldbody><geom type='plane' size='1 1 .1' friction='.7'/>"
        "<body name='ball' pos='0 0 .1'><freejoint/><geom size='.1' friction='.7'/></body>"
        "</worldbody></mujoco>"
    )
    forces = forces_of(qdsim.step(model, model.default_q, ()), {1})
    rays = cone_lines(forces, 0.05)[:12]
    along = rays[:, 1] - rays[:, 0]
    assert np.linalg.norm(along, axis=1) == pytest.approx(0.05)
    assert np.hypot(along[:, 0], along[:, 1]) / -along[:, 2] == pytest.approx(0.7)


def test_film_of_a_plan_has_every_step_at_its_beginning(plan: planning.Plan) -> None:
    model = systems.load("planar_hand").model
    film = film_of_plan(plan, model, 20.0)
    steps = [frame for frame in film.frames if frame.step is not None]
    assert len(steps) == plan.step_count
    for frame in steps[:: len(steps) // 10]:
        assert np.array_equal(model.integrate(frame.q, frame.step.delta), frame.step.q_next)
    assert [name for _, name in film.marks].count("regrasp 1") == 1


# ------------------------------------------------------------------------------------------------ pages


@pytest.mark.long
def test_what_can_be_shown(plan: planning.Plan, tmp_path: Path) -> None:
    system = systems.load("planar_hand")
    model, task = system.model, system.tasks["half_turn"]
    step = qdsim.step(model, system.start.q, system.start.u, system.options)
    u = np.repeat(system.start.u[None], 5, axis=0)
    rollouts = qdsim.rollout(model, system.start.q, u, system.options)
    robot = tmp_path / "robot.xml"
    robot.write_text(systems.files()["planar_hand.xml"].decode())
    for thing in (model, system, task, planning.rrt(task, rng=0), robot, str(robot)):
        with viewer.show(thing, open=False) as page:
            assert page.url.startswith("http://127.0.0.1:")
    for thing in (step, plan, rollouts, system.start.q, np.tile(system.start.q, (3, 1))):
        with viewer.show(thing, model, open=False):
            pass
        if thing is not plan:  # whose task is a published one
            with pytest.raises(ValueError, match="model: "):
                viewer.show(thing, open=False)
    with viewer.show(plan, open=False):
        pass


@pytest.mark.long
def test_all_systems_can_be_shown() -> None:
    for name in systems.NAMES:
        system = systems.load(name)
        with viewer.Viewer(system.model, configurations=system.start.q) as page:
            page.update(
                system.start.q,
                step=qdsim.step(system.model, system.start.q, system.start.u, system.options),
            )


@pytest.mark.long
def test_cameras_look_at_the_object_from_outside() -> None:
    for name in ("allegro_sphere", "planar_hand", "iiwa_bimanual_box", "rope"):
        system = systems.load(name)
        roles = roles_of(system.model, None, system.start.q[None])
        pos, _ = system.model.body_poses(system.start.q)
        ray = roles.centre - roles.eye
        assert np.linalg.norm(ray) > 0.5 * roles.size
        assert np.linalg.norm(pos[roles.object] - roles.centre) < roles.size
        assert np.linalg.norm(np.cross(ray / np.linalg.norm(ray), roles.up)) > 0.1


def test_bad_arguments_are_named(plan: planning.Plan, tmp_path: Path) -> None:
    hand, rope = systems.load("planar_hand").model, systems.load("rope").model
    with pytest.raises(TypeError, match="model"):
        viewer.Viewer("planar_hand")
    with pytest.raises(ValueError, match="object"):
        viewer.Viewer(hand, object="nonsense")
    with pytest.raises(ValueError, match="configurations"):
        viewer.Viewer(hand, configurations=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="port"):
        viewer.Viewer(hand, port=70000)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match="port"):
            viewer.Viewer(hand, port=taken.getsockname()[1])
    with pytest.raises(ValueError, match="nq"):
        viewer.show(plan, rope, open=False)
    with pytest.raises(FileNotFoundError):
        viewer.show(tmp_path / "missing.xml", open=False)
    with viewer.Viewer(hand) as page:
        for bad in (np.zeros(3), np.full(hand.nq, np.nan), np.zeros((2, hand.nq)), "text"):
            with pytest.raises((TypeError, ValueError), match="q"):
                page.update(bad)
        with pytest.raises(ValueError, match="rate"):
            page.add_plan(plan, rate=0.0)
        with pytest.raises(OSError):
            page.save_html(tmp_path / "no" / "page.html")
    page.close()


def test_live_steps_on_and_resets() -> None:
    system = systems.load("planar_pushing")
    with viewer.Viewer(system.model, configurations=system.start.q) as page:
        seen: list[np.ndarray] = []
        page.update = lambda q, **_: seen.append(np.array(q))  # type: ignore[method-assign]
        page.live(system.options, system.start.q)
        live = page._live
        assert live is not None
        live._commands[0].value += 0.1
        wait(lambda: seen and np.abs(seen[-1] - system.start.q).max() > 0.05)
        live._paused.value = True
        live._restart()
        assert np.array_equal(live._q, system.start.q)
    count = len(seen)
    time.sleep(0.1)
    assert len(seen) <= count + 1


def test_a_finger_drags_the_object() -> None:
    """The point that is held goes where it is pulled; let go, the object rests; meanwhile contacts are shown."""
    model = qdsim.load(
        "<mujoco><worldbody><geom type='plane' size='1 1 .1' friction='.3'/>"
        "<body name='box' pos='0 0 .1'><freejoint/><geom type='box' size='.1 .1 .1' friction='.3'/></body>"
        "</worldbody></mujoco>"
    )
    start = model.default_q
    with viewer.Viewer(model) as page:
        seen: list[tuple[np.ndarray, qdsim.Step]] = []
        page.update = lambda q, **how: seen.append((q, how["step"]))  # type: ignore[method-assign]
        page.live(qdsim.Options(), start)
        live = page._live
        assert live is not None
        live.pull(1, np.array([0.1, 0.0, 0.1]), np.array([0.5, 0.0, 0.1]))
        wait(lambda: seen and seen[-1][0][0] > 0.2)
        forces = seen[-1][1].contacts["force"]
        assert forces[:, 0].sum() > 0.0 and np.abs(forces[:, 1:3]).max() > 0.0
        live.pull(1, None, None)

        def rests() -> bool:
            q = np.array(live._q)
            return bool(np.abs(qdsim.step(model, q, ()).q_next - q).max() < 1e-6)

        wait(rests)


def test_a_finger_does_not_throw_what_it_drags() -> None:
    """A ball that falls by half a metre a step without the finger comes to its target, and halves its way each step."""
    model = qdsim.load(
        "<mujoco><worldbody><body name='ball'><freejoint/><geom size='.06'/></body></worldbody></mujoco>"
    )
    target = np.array([0.4, -0.1, 0.3])
    with viewer.Viewer(model) as page:
        page.update = lambda q, **_: None  # type: ignore[method-assign]
        page.live(qdsim.Options(epsilon=0.2), model.default_q)
        live = page._live
        assert live is not None
        live._paused.value = True
        live._over.set()
        live._thread.join()
        live._q = np.array(model.default_q)
        live.pull(1, np.zeros(3), target)
        for _ in range(8):
            live._advance()
        assert np.abs(live._q[:3] - target).max() < 0.02


@pytest.mark.long
def test_a_finger_does_not_throw_what_fingers_hold() -> None:
    """The ball in the hand comes to rest where the hand lets it go no further."""
    system = systems.load("allegro_sphere")
    model, start = system.model, np.array(system.start.q)
    ball, place = model.body_names.index("ball"), []
    with viewer.Viewer(model) as page:
        page.update = lambda q, **_: None  # type: ignore[method-assign]
        page.live(system.options, start)
        live = page._live
        assert live is not None
        live._over.set()
        live._thread.join()
        live._q = start
        top = model.body_poses(start)[0][ball] + [0.0, 0.0, 0.05]
        live.pull(ball, top, top + [0.0, -0.05, 0.03])
        for _ in range(60):
            live._advance()
            place.append(model.body_poses(live._q)[0][ball])
    assert np.ptp(place[-10:], axis=0).max() < 5e-3


def test_layers_of_a_live_page_can_be_hidden(plan: planning.Plan) -> None:
    """Forces of flat models lie before the discs, nodes below their layer's, which a switch hides."""
    model = systems.load("planar_hand").model
    with viewer.Viewer(model) as page:
        page.add_plan(plan)
        scene, step = page._scene, next(f.step for f in page._film.frames if f.step is not None)
        page.update(plan.segments[0].start, step=step)
        for name, node in scene._layers.items():
            assert node.visible
            scene.show_layer(name, False)
            assert not node.visible
        assert scene._arrows["exact"].name.startswith("/forces/")
        assert scene._cones.name.startswith("/cones/")
        normal = np.abs(model.planar_normal)
        points = scene._arrows["exact"].points.reshape(-1, 3) @ normal
        assert points == pytest.approx(0.7 * page._roles.flat, abs=1e-6)
        assert plan.segments[0].steps and "to go" in page._player._caption.content


def test_bodies_of_a_live_page_can_be_looked_through() -> None:
    """All of them, and then they are as they were; what was glass before stays."""
    xml = "<geom size='.1'/><geom pos='1 0 0' size='.1' rgba='1 0 0 .1'/>"
    model = qdsim.load(f"<mujoco><worldbody><body><freejoint/>{xml}</body></worldbody></mujoco>")
    with viewer.Viewer(model) as page:
        before = [handle.opacity for handle, _ in page._scene._solid]
        page._scene.look_through(True)
        assert all(handle.opacity < 0.5 for handle, _ in page._scene._solid)
        assert min(handle.opacity for handle, _ in page._scene._solid) == pytest.approx(0.1)
        page._scene.look_through(False)
        assert [handle.opacity for handle, _ in page._scene._solid] == before


def test_colours_are_seen_as_they_are_meant() -> None:
    """The film's curve of the live page, as three.js has it, of the colour that is asked for: the one that is meant,
    up to the white that it can show."""
    rng = np.random.default_rng(2)
    for colour in rng.uniform(60.0, 200.0, size=(50, 3)):
        for light in (1.0, LIGHT):
            asked = np.asarray(toned(colour, light)) / 255.0
            seen = stored(film(light * linear(asked)))
            meant = stored(0.85 * linear(colour / 255.0))
            assert seen == pytest.approx(meant, abs=0.02)


def linear(c):
    return np.where(c < 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def stored(c):
    return np.where(c < 0.0031308, 12.92 * c, 1.055 * c ** (1 / 2.4) - 0.055)


def film(c):
    """ACESFilmicToneMapping of three.js."""
    into = [[0.59719, 0.35458, 0.04823], [0.076, 0.90834, 0.01566], [0.0284, 0.13383, 0.83777]]
    out = [
        [1.60475, -0.53108, -0.07367],
        [-0.10208, 1.10813, -0.00605],
        [-0.00327, -0.07276, 1.07602],
    ]
    v = np.asarray(into) @ (c / 0.6)
    mapped = (v * (v + 0.0245786) - 0.000090537) / (v * (0.983729 * v + 0.432951) + 0.238081)
    return np.clip(np.asarray(out) @ mapped, 0.0, 1.0)


@pytest.mark.long
def test_the_first_view_holds_what_is_seen() -> None:
    for name in ("planar_hand", "allegro_sphere", "iiwa_bimanual_box"):
        system = systems.load(name)
        with viewer.Viewer(system.model, configurations=system.start.q) as page:
            camera, roles = page._server.initial_camera, page._roles
            distance = np.linalg.norm(np.subtract(camera.position, camera.look_at))
            seen = 2.0 * distance * np.tan(0.5 * camera.fov)
            assert roles.size < seen < 1.5 * roles.size


def test_player_shows_the_frame_of_its_slider(plan: planning.Plan) -> None:
    model = systems.load("planar_hand").model
    with viewer.Viewer(model) as page:
        page.add_plan(plan)
        shown: list[int] = []
        player = page._player
        assert player is not None
        player._show = shown.append
        player._slider.value = 7
        player._moved()
        assert shown[-1] == 7
        player._play.value = True
        wait(lambda: shown[-1] > 10)


def wait(condition, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# ------------------------------------------------------------------------------------------------ pictures of pages


def colours(picture: np.ndarray) -> dict[str, int]:
    """How many pixels are clearly red, green, blue."""
    r, g, b = (picture[..., i].astype(int) for i in range(3))
    return {
        "red": int(((r > 1.5 * g) & (r > 1.5 * b) & (r > 60)).sum()),
        "green": int(((g > 1.3 * r) & (g > 1.3 * b) & (g > 50)).sum()),
        "blue": int(((b > 1.5 * r) & (b > 1.5 * g) & (b > 60)).sum()),
    }


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("names", [list(SHAPES)[:3], list(SHAPES)[3:]])
def test_every_shape_is_drawn_in_its_colour(names: list[str], tmp_path: Path) -> None:
    bodies = "".join(
        f"<body pos='{0.6 * k} 0 0'><freejoint/><geom {SHAPES[name]} rgba='{RGBA[colour]}'/></body>"
        for k, (name, colour) in enumerate(zip(names, RGBA))
    )
    path = tmp_path / "page.html"
    viewer.save_html(qdsim.load(f"<mujoco>{WEDGE}<worldbody>{bodies}</worldbody></mujoco>"), path)
    with open_page(path.as_uri(), tmp_path, offline=True) as page:
        seen = colours(page.settled_picture()[110:400])
        assert not [url for url in page.requests if url.startswith(("http", "ws"))]
        assert page.complaints == []
    assert all(count > 1000 for count in seen.values()), seen


# ------------------------------------------------------------------------------------------------ trees, ground


@pytest.mark.long
def test_a_click_on_a_node_of_a_tree_shows_its_pose() -> None:
    task = systems.load("planar_hand").tasks["half_turn"]
    tree = planning.rrt(task, planning.RRTOptions(max_nodes=4), rng=0)
    with viewer.Viewer(task.model) as page:
        page.add_tree(tree)
        shown: list[np.ndarray] = []
        page.update = shown.append  # type: ignore[method-assign]
        page._chosen(tree, 2)
        assert shown[0] == pytest.approx(tree.q[2])
        assert page._said is not None and page._said.content


def test_the_ground_lies_below_hills() -> None:
    """A plane through hills would hide their valleys: it lies below their lowest point, which is 0.3 m down."""
    heights = " ".join(str(height) for height in (0, 1, 0, 1, 0, 1, 0, 1, 1))
    model = qdsim.load(
        "<mujoco><asset><hfield name='hills' nrow='3' ncol='3' size='1 1 .4 .1' "
        f"elevation='{heights}'/></asset><worldbody><geom type='hfield' hfield='hills' pos='0 0 -.3'/>"
        "<body name='box' pos='0 0 .3'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
        "</worldbody></mujoco>"
    )
    roles = roles_of(model, None, model.default_q[None])
    assert -0.6 < roles.floor[0, 2] < -0.3

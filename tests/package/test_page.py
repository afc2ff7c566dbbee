"""The page of a plan: whole in one file, small, safe, with its controls, and what a browser makes of it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, open_page

import qdsim
from qdsim import planning, systems

pytest.importorskip("trimesh")

from qdsim import viewer
from qdsim.planning import pictures
from qdsim.viewer.surfaces import surface_of, thinned
from qdsim.viewer.things import shown_of

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium")

MOST = 1_500_000
EVIL = "</script><b id='evil' onmouseover=alert(1)>&amp;\"'"


@pytest.fixture(scope="module")
def plan() -> planning.Plan:
    return planning.rrt(systems.load("planar_hand").tasks["half_turn"], rng=1).plan()


@pytest.fixture(scope="module")
def page(plan: planning.Plan) -> str:
    return shown_of(plan, systems.load("planar_hand").model, 20.0).page()


def stage(page: str) -> dict:
    packed = re.search(r'id="data"[^>]*>([^<]*)<', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def position(stage: dict, frame: int, body: int) -> np.ndarray:
    if body not in stage["moving"]:
        return np.array(stage["rest"][7 * body : 7 * body + 3]) * stage["unit"]
    row = stage["poses"][frame][7 * stage["moving"].index(body) :]
    return np.array(row[:3]) * stage["unit"]


def test_a_page_is_whole_and_small(page: str) -> None:
    assert len(page.encode()) < MOST
    assert page.startswith("<!doctype html>")
    assert not re.search(r"""(src|href)=["']?(https?:)?//|@import|url\(|fetch\(|XMLHttp""", page)


def test_a_page_has_its_controls(page: str, plan: planning.Plan) -> None:
    for name in (
        "title",
        "caption",
        "legend",
        "play",
        "scrubber",
        "marks",
        "speed",
        "home",
        "shot",
    ):
        assert f'id="{name}"' in page
    for layer in ("forces", "cones", "goal", "trail", "tree", "pressure", "collision", "ground"):
        assert f'data-layer="{layer}"' in page
    assert f"<title>{plan.task.capitalize()}</title>" in page


def test_a_page_shows_every_step_where_it_was(page: str, plan: planning.Plan) -> None:
    shown = stage(page)
    model = systems.load("planar_hand").model
    names = [mark[1] for mark in shown["marks"]]
    assert [n for n in names if n.startswith("regrasp")] == [
        f"regrasp {k + 1}" for k in range(len(plan.regrasps))
    ]
    begins = {name: frame for frame, name in shown["marks"]}
    for k, segment in enumerate(plan.segments):
        for i in (0, segment.steps - 1):
            pos, _ = model.body_poses(segment.configurations[i])
            for b in range(len(pos)):
                found = position(shown, begins[f"segment {k + 1}"] + i, b)
                assert found == pytest.approx(pos[b], abs=2 * shown["unit"])
    assert shown["left"][0].startswith("180\u00b0")
    assert shown["said"][begins["segment 1"]] == f"step 1 of {plan.step_count}"


def test_forces_of_a_page_push_the_object(page: str) -> None:
    """Every force presses: it has a part along the inward normal and lies within its cone."""
    rows = np.concatenate([np.reshape(r, (-1, 10)) for r in stage(page)["forces"] if r])
    assert len(rows) > 50
    along = np.einsum("ni,ni->n", rows[:, 3:6], rows[:, 6:9])
    across = np.linalg.norm(rows[:, 3:6] - along[:, None] * rows[:, 6:9], axis=1)
    assert (along > 0.0).all()
    assert (across <= 1.01 * rows[:, 9] * along + 1e-3).all()


def test_names_are_text() -> None:
    spec = qdsim.SceneBuilder(name=EVIL)
    spec.body("thing", mass=1.0, inertia=(0.1, 0.1, 0.1))
    spec.joint("thing", "free")
    spec.geom("thing", "sphere", (0.1,))
    page = shown_of(qdsim.build(spec.build()), None, 20.0).page()
    assert "id='evil'" not in page and html.escape(EVIL) in page
    assert stage(page)["title"] == EVIL


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", ["allegro_door", "carrots", "planar_hand_soft", "rope"])
def test_pages_of_other_systems_are_small(name: str) -> None:
    system = systems.load(name)
    page = shown_of(np.tile(system.start.q, (3, 1)), system.model, 20.0).page()
    assert len(page.encode()) < MOST


def test_an_execution_is_shown_in_its_own_time(plan: planning.Plan) -> None:
    """One frame per twentieth of a second, with the robot's configuration, and marks where it begins something else."""
    model = systems.load("planar_hand").model
    world = planning.TransferOptions(timestep=4e-3, speed=0.3, carry_on=False)
    run = planning.transfer(plan, model, world, controller="open")
    shown = stage(shown_of(run, model, 20.0).page())
    times = np.arange(len(shown["poses"])) / 20.0
    assert times[-1] == pytest.approx(run.motion.t[-1], abs=0.1)
    names = [name for name in model.body_names if name != "world"]
    for k in (0, len(times) // 2, len(times) - 1):
        q = run.motion.at(times[k])
        for body in range(1, len(names) + 1):
            place = model.body_pose(q, model.body_names[body])[0]
            np.testing.assert_allclose(position(shown, k, body), place, atol=2 * shown["unit"])
    marks = [text for _, text in run.motion.marks]
    assert marks == [f"segment {k + 1}" for k in range(len(plan.segments))]
    assert "segment 1, 0.0 s" in shown["said"][0]


def test_an_execution_is_drawn_and_filmed(plan: planning.Plan, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    model = systems.load("planar_hand").model
    world = planning.TransferOptions(timestep=4e-3, speed=0.3, carry_on=False)
    run = planning.transfer(plan, model, world, controller="open").motion
    film, picture = tmp_path / "run.gif", tmp_path / "run.png"
    pictures.draw_execution(run, model, picture, most=5)
    assert image.open(picture).width > 1000  # rows of four
    pictures.write_execution(run, model, [film], frames_per_second=2, speed=4.0, size=2.0)
    assert image.open(film).n_frames == pytest.approx(run.t[-1] / 2.0, abs=2.0)
    other = systems.load("planar_pushing").model
    for draw, files in ((pictures.draw_execution, picture), (pictures.write_execution, [film])):
        with pytest.raises(ValueError, match="model: it has nq"):
            draw(run, other, files)
        with pytest.raises(TypeError, match="motion: expected"):
            draw(run.q, model, files)
    with pytest.raises(ValueError, match="speed"):
        pictures.write_execution(run, model, [film], speed=0.0)
    with pytest.raises(ValueError, match="most"):
        pictures.draw_execution(run, model, picture, most=1)


@pytest.mark.long
def test_large_meshes_and_long_films_are_thinned() -> None:
    """Sixty thousand triangles and ten thousand frames: still a page, whose surface is near the true one."""
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(5, 0.1)
    spec = qdsim.SceneBuilder(name="large")
    for k in range(3):
        spec.mesh(f"ball {k}", ball.vertices, ball.faces)
        spec.body(f"thing {k}", mass=1.0, inertia=(0.1, 0.1, 0.1))
        spec.joint(f"thing {k}", "free")
        spec.geom(f"thing {k}", "mesh", mesh=f"ball {k}")
    model = qdsim.build(spec.build())
    surface = surface_of(model, model.description.geoms[0], np.zeros(3), 1.0)
    coarse = thinned(surface, 15)
    assert len(coarse.faces) < 0.2 * len(surface.faces)
    assert np.linalg.norm(coarse.vertices, axis=1) == pytest.approx(0.1, abs=1e-9)
    rng = np.random.default_rng(0)
    path = np.tile(model.default_q, (10_000, 1))
    path[:, :3] = np.cumsum(1e-3 * rng.normal(size=(10_000, 3)), axis=0)
    page = shown_of(path, model, 20.0).page()
    assert len(page.encode()) < MOST
    shown = stage(page)
    last = position(shown, len(shown["poses"]) - 1, 1)
    assert last == pytest.approx(path[-1, :3], abs=2 * shown["unit"])


def test_a_tree_can_be_walked() -> None:
    tree = planning.rrt(systems.load("planar_hand").tasks["half_turn"], rng=1)
    shown = stage(shown_of(tree, None, 20.0).page())
    assert len(shown["tree"]["nodes"]) == 3 * tree.count
    assert len(shown["poses"]) == tree.count


def test_flat_models_are_discs_and_bars(page: str) -> None:
    shown = stage(page)
    assert shown["flat"]
    links = [s for s in shown["shapes"] if s["name"].startswith("link")]
    assert links and all(s["layer"] == "visual" for s in links)
    for shape in shown["shapes"]:
        corners = np.reshape(shown["meshes"][shape["mesh"]]["vertices"], (-1, 3))
        assert np.ptp(corners[:, 0]) < 0.7 * np.ptp(corners[:, 1:], axis=0).max(), "flat along x"


@pytest.mark.long
def test_notebooks_keep_the_whole_page(plan: planning.Plan, monkeypatch) -> None:
    """What a cell shows is a frame with the page in it, and no server is begun."""
    said: list[str] = []
    monkeypatch.setattr("qdsim.viewer.things.notebook_display", lambda: said.append)
    monkeypatch.setattr("qdsim.viewer.viewer._server", lambda *_: pytest.fail("a server"))
    model = systems.load("planar_hand").model
    assert viewer.show(plan, height=333) is None
    plan.show(model)
    start = systems.load("planar_hand").start
    step = qdsim.step(model, start.q, start.u, qdsim.Options(margin=0.05))
    assert step.show(model, height=200) is None
    assert 'height="200"' in said[2] and len(said) == 3
    with pytest.raises(TypeError, match="argument"):
        step.show()
    with pytest.raises(ValueError, match="model"):
        step.show(systems.load("rope").model)
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)"([^>]*)></iframe>', said[0])
    assert stage(html.unescape(frame[1]))["title"] == "Half turn of the disc"
    assert 'height="333"' in frame[2]


# ------------------------------------------------------------------------------------------------ in a browser


@pytest.mark.long
@needs_chromium
def test_a_saved_page_plays_offline(plan: planning.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    viewer.save_html(plan, path, systems.load("planar_hand").model)
    with open_page(path.as_uri(), tmp_path, offline=True) as page:
        wait(page, "window.qdsimPage && qdsimPage.look().playing")
        wait(page, "qdsimPage.look().now > 3")
        press(page, " ")
        assert page.evaluate("qdsimPage.look().playing") is False
        before = page.evaluate("qdsimPage.look().now")
        press(page, "ArrowRight")
        assert page.evaluate("qdsimPage.look().now") == before + 1
        press(page, "ArrowUp")
        assert page.evaluate("document.getElementById('said').textContent").startswith("regrasp")
        page.evaluate("qdsimPage.show(30)")
        with_forces = page.settled_picture(6.0)
        page.evaluate("document.querySelector('[data-layer=forces] input').click()")
        time.sleep(0.5)
        assert page.evaluate("qdsimPage.look().layers.forces") is False
        red = [red_pixels(picture) for picture in (with_forces, page.settled_picture(6.0))]
        assert red[0] > red[1] + 100
        assert page.evaluate("document.querySelectorAll('#marks span').length") == len(
            plan.regrasps
        )
        assert not [url for url in page.requests if url.startswith(("http", "ws"))]
        assert page.complaints == []


def red_pixels(picture: np.ndarray) -> int:
    r, g, b = (picture[100:380, :, i].astype(int) for i in range(3))
    return int(((r > 2 * g) & (r > 2 * b) & (r > 100)).sum())


def press(page, key: str) -> None:
    page.evaluate(f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}))")


def wait(page, condition: str, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        time.sleep(0.1)

"""The command line: what each command prints, what it ends with, and what it says of bad arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import qdsim
from qdsim import planning, systems
from qdsim.cli.main import main
from qdsim.cli.outcome import UnusableError
from qdsim.planning.task.goal_set import GoalSet
from qdsim.progress import away, progress_bar

HAND = systems.files()["planar_hand.xml"].decode()


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "half_turn"
    assert main(["plan", "planar_hand", "--seed", "1", "-o", str(path)]) == 0
    return path


def report(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a command which cannot run prints."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.strip().splitlines()
    assert line.startswith(f"qdsim {arguments[0]}: ")
    return line


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("start", [["-m", "qdsim"], ["-c", "import qdsim.cli.main as m; m.main()"]])
def test_without_a_command_it_helps(start: list[str]) -> None:
    run = subprocess.run([sys.executable, *start], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("usage: qdsim")
    for command in (
        "demo",
        "check",
        "plan",
        "view",
        "replay",
        "render",
        "systems",
        "info",
        "bench",
    ):
        assert f"\n    {command} " in run.stdout


@pytest.mark.parametrize("command", ["demo", "check", "view", "plan", "replay", "render", "bench"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: qdsim {command}" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nonsense"], ["plan"], ["plan", "rope", "--seed", "x"]])
def test_wrong_usage_ends_with_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.long
def test_what_needs_no_planner_loads_none() -> None:
    code = (
        "import sys; from qdsim.cli.main import main; main(['info'])\n"
        "heavy = ['qdsim.planning', 'qdsim.systems', 'mujoco', 'matplotlib', 'scipy']\n"
        "assert not [name for name in heavy if name in sys.modules]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.long
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = f"set -o pipefail; {sys.executable} -m qdsim systems | head -n 1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("SYSTEM")


def test_info_names_versions(capsys: pytest.CaptureFixture[str]) -> None:
    said = report(capsys, "info")
    assert said["qdsim"] == qdsim.__version__
    assert said["packages"]["numpy"] == np.__version__
    assert "matplotlib" in said["extras"]["demo"]


@pytest.mark.long
def test_systems_lists_all_with_their_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    said = report(capsys, "systems")
    assert tuple(said) == systems.NAMES
    assert list(said["planar_hand"]["tasks"]) == list(systems.load("planar_hand").tasks)
    main(["systems"])
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(systems.NAMES)


# ------------------------------------------------------------------------------------------------ robots


def test_check_counts_what_a_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "hand.anything", tmp_path / "hand.png"
    path.write_text(HAND)
    said = report(capsys, "check", str(path), "--picture", str(picture))
    model = qdsim.load(path)
    assert (said["nq"], said["nv"], said["nu"]) == (model.nq, model.nv, model.nu)
    assert said["counts"]["joints"] == len(model.joint_names)
    assert said["step"]["solved"]
    assert said["ready_to_plan"] and said["obstacle"] is None
    (disc,) = said["objects"]
    radius = float(model.parameters.geom_size[model.geom_index("disc"), 0])
    assert disc["name"] == "disc" and sorted(disc["size"])[1:] == pytest.approx(2 * [2 * radius])
    assert disc["mass"] == pytest.approx(model.parameters.body_mass[model.body_index("disc")])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_check_draws_what_is_seen_or_what_can_touch(tmp_path: Path) -> None:
    """A red ball that is there to be seen around a small box that can touch."""
    path, pictures = tmp_path / "thing.xml", [tmp_path / "seen.png", tmp_path / "touch.png"]
    path.write_text(
        "<mujoco><worldbody><body><freejoint/><geom size='.1' rgba='1 0 0 1' contype='0' "
        "conaffinity='0'/><geom type='box' size='.05 .05 .05' rgba='0 0 1 1'/></body>"
        "</worldbody></mujoco>"
    )
    for picture, more in zip(pictures, ([], ["--collision"])):
        main(["check", str(path), "--picture", str(picture), *more])
    imageio = pytest.importorskip("imageio.v2")
    red, blue = (imageio.imread(picture)[..., :3].mean(axis=(0, 1)) for picture in pictures)
    assert red[0] > red[2] + 20.0 and blue[2] > blue[0] + 20.0


def test_check_tells_units_limits_and_contacts(
    pusher: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = report(capsys, "check", pusher)
    joint = {row["name"]: row for row in said["joints"]}
    assert joint["x"]["range"] == "-1 to 1 m"
    assert "500 N/m" in joint["x"]["actuator"] and "at most 50 N" in joint["x"]["actuator"]
    assert said["objects"][0]["size"] == pytest.approx([0.16, 0.16, 0.1])
    assert said["objects"][0]["mass"] == pytest.approx(0.5)
    assert said["contacts"][0]["distance"] == pytest.approx(0.0, abs=1e-9)
    assert said["contacts"][0]["pair"][0] == "table"


def test_check_tells_contacts_of_a_body_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stool whose four legs stand on the floor, the nearest 1 mm above it."""
    legs = "".join(
        f"<geom type='capsule' size='.01' fromto='{x} {y} {0.011 + 0.001 * k} {x} {y} .3'/>"
        for k, (x, y) in enumerate(((-0.1, -0.1), (-0.1, 0.1), (0.1, -0.1), (0.1, 0.1)))
    )
    path = tmp_path / "stool.xml"
    path.write_text(
        "<mujoco><worldbody><geom name='floor' type='plane' size='1 1 1'/>"
        f"<body name='stool'><freejoint/>{legs}</body></worldbody></mujoco>"
    )
    assert main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if "floor and" in line]
    assert line.split() == ["floor", "and", "stool", "(4", "pairs", "of", "geometries)", "1", "mm"]
    contacts = report(capsys, "check", str(path))["contacts"]
    assert [row["distance"] for row in contacts] == pytest.approx([0.001, 0.002, 0.003, 0.004])
    assert all(row["bodies"] == ["floor", "stool"] for row in contacts)


@pytest.mark.parametrize("damping, late", [(0.15, None), (3.0, "0.15"), (0.0, None)])
def test_check_tells_what_damping_delays(
    damping: float, late: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A joint with a spring of 20 Nm/rad and a damper of 3 Nm s/rad follows a ramp 0.15 s late."""
    path = tmp_path / "arm.xml"
    path.write_text(f"""<mujoco><worldbody><body><joint name="elbow" damping="{damping}"/>
        <geom size=".1" mass="1"/></body></worldbody>
        <actuator><position name="drive" joint="elbow" kp="20"/></actuator></mujoco>""")
    assert main(["check", str(path)]) == 0
    out = capsys.readouterr().out
    assert ("damping:" in out) == (late is not None)
    assert late is None or f"up to {late} s late ('drive')" in out
    assert report(capsys, "check", str(path))["lag"] == pytest.approx(damping / 20.0)


@pytest.mark.parametrize(
    "angle, limits, command, guess",
    [
        ("radian", "-90 90", "", "were degrees meant"),
        ("degree", "-1.57 1.57", "", "were radians meant"),
        ("degree", "-90 90", "ctrlrange='-90 90'", "reads ctrlrange in radians"),
        ("degree", "-90 90", "ctrlrange='-1.5 1.5'", None),
        ("degree", "-90 90", "", None),
    ],
)
def test_check_guesses_what_angles_meant(
    angle: str,
    limits: str,
    command: str,
    guess: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(
        f"<mujoco><compiler angle='{angle}'/><worldbody><body><joint name='elbow' range='{limits}' armature='.1'/>"
        f"<geom size='.1' pos='.3 0 0'/><body><joint name='wrist' range='{limits}' armature='.2'/>"
        "<geom size='.1' pos='.6 0 0'/></body></body></worldbody>"
        f"<actuator><position joint='elbow' kp='10' {command}/><position joint='wrist' kp='10'/></actuator></mujoco>"
    )
    said = report(capsys, "check", str(path))
    assert any(guess in text for text in said["warnings"]) if guess else not said["warnings"]
    assert not said["ready_to_plan"] and "no object" in said["obstacle"]
    main(["check", str(path)])
    assert "armature of 2 joints (elbow, wrist)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", ["", "no XML", "<mujoco><worldbody><body>", HAND[: len(HAND) // 2], "<svg/>"]
)
def test_check_says_why_a_file_is_refused(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.xml"
    path.write_text(content)
    said = report(capsys, "check", str(path), status=1)
    assert said["loads"] is False and said["reason"]


def test_check_ends_with_one_where_the_first_step_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wedged.xml"
    path.write_text(
        "<mujoco><worldbody><geom type='box' size='1 1 .5' pos='0 0 .5'/>"
        "<geom type='box' size='1 1 .5' pos='0 0 1.6'/>"
        "<body pos='0 0 1.05'><joint type='slide' axis='0 0 1'/><geom size='.1'/></body></worldbody></mujoco>"
    )
    said = report(capsys, "check", str(path), status=1)
    assert said["loads"] and not said["step"]["solved"]
    assert "infeasible" in said["step"]["reason"]


def test_check_of_what_is_no_file(
    tmp_path: Path, plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no file" in refusal(capsys, "check", str(tmp_path / "missing.xml"))
    assert "folder" in refusal(capsys, "check", str(tmp_path))
    assert "qdsim replay" in refusal(capsys, "check", str(plan_file))
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)))
    assert "UTF-8" in refusal(capsys, "check", str(binary))


# ------------------------------------------------------------------------------------------------ plans


def test_a_plan_is_written_and_replayed(
    plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = report(capsys, "replay", str(plan_file))
    plan = planning.Plan.load(plan_file)
    assert said["good"] and said["replay_error"] == 0.0
    assert said["steps"] == plan.step_count
    named = report(capsys, "replay", str(plan_file), "--model", "planar_hand")
    assert named == said


def test_a_plan_that_misses_its_goal_ends_with_one(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import dataclasses

    plan = planning.Plan.load(plan_file)
    short = tmp_path / "short.npz"
    dataclasses.replace(plan, segments=plan.segments[:1], motions=()).save(short)
    said = report(capsys, "replay", str(short), status=1)
    assert any("goal" in fault for fault in said["faults"])


@pytest.mark.long
@pytest.mark.parametrize("ending, begins", [(".png", b"\x89PNG"), (".gif", b"GIF8")])
def test_a_plan_is_drawn(plan_file: Path, tmp_path: Path, ending: str, begins: bytes) -> None:
    picture = tmp_path / f"plan{ending}"
    if ending == ".gif":  # a movie of one segment says as much
        import dataclasses

        plan = planning.Plan.load(plan_file)
        plan_file = tmp_path / "short"
        dataclasses.replace(plan, segments=plan.segments[:1], motions=()).save(plan_file)
    assert main(["render", str(plan_file), "-o", str(picture)]) == 0
    assert picture.read_bytes().startswith(begins)


URDF = """<robot name="pusher"><link name="world"/><link name="tip"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><box size="0.2 0.2 0.2"/></geometry></visual>
<collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="slide" type="prismatic"><parent link="world"/><child link="tip"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="5" velocity="1"/></joint></robot>"""


def test_a_urdf_without_springs_is_shown_and_checked_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pusher.urdf"
    path.write_text(URDF)
    assert main(["render", str(path), "-o", str(tmp_path / "pusher.png")]) == 0
    assert main(["view", str(path), "--html", str(tmp_path / "pusher.html")]) == 0
    assert main(["check", str(path)]) == 1
    assert "stiffness" in capsys.readouterr().out
    assert main(["check", str(path), "--stiffness", "100"]) == 0
    assert "nq, nv, nu" in capsys.readouterr().out


BLOCK = """<link name="block"><inertial><mass value=".3"/>
<inertia ixx="5e-4" iyy="5e-4" izz="5e-4" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size=".1 .1 .1"/></geometry></collision></link>
<joint name="float" type="floating"><parent link="world"/><child link="block"/><origin xyz=".3 0 0"/></joint></robot>"""
GROUND = """<link name="world"><collision><origin xyz="0 0 -.1"/><geometry><box size="2 2 .1"/></geometry>
</collision></link>"""


def test_plans_of_a_urdf_are_replayed_with_its_springs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, plan, springs = tmp_path / "own robot.urdf", tmp_path / "plan", ["--stiffness", "100"]
    scene = URDF.replace("</robot>", BLOCK).replace('<link name="world"/>', GROUND)
    path.write_text(scene)
    assert main(["check", str(path), *springs]) == 0
    assert f"yes: qdsim plan '{path}' --stiffness 100 --goal" in capsys.readouterr().out
    goal = ["--goal", ".4 - - -", "--max-nodes", "2", "-o", str(plan)]
    main(["plan", str(path), *springs, *goal])
    said = report(capsys, "replay", str(plan), "--model", str(path), *springs, status=1)
    assert said["replay_error"] == 0.0
    assert "--stiffness" in refusal(capsys, "replay", str(plan), "--model", str(path))
    assert "--model" in refusal(capsys, "replay", str(plan), *springs)


def test_what_falls_for_ever_is_not_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "falling.urdf"
    path.write_text(URDF.replace("</robot>", BLOCK))
    said = report(capsys, "check", str(path), "--stiffness", "100")
    assert not said["ready_to_plan"] and "'block' does not come to rest" in said["obstacle"]


@pytest.mark.parametrize(
    "flag, arguments",
    [
        *((flag, ["plan", "planar_hand", flag, "1"]) for flag in ("--h", "--margin", "--start")),
        ("--stiffness", ["plan", "planar_hand", "--stiffness", "1"]),
        ("--sampler", ["plan", "planar_hand", "--sampler", "none"]),
        ("--model", ["view", "rope", "--model", "rope", "--html", "x.html"]),
        ("--html", ["view", "rope", "--html", "x.pdf"]),
        ("--leave-out", ["view", "rope", "--leave-out", "tendons", "--html", "x.html"]),
        ("--model", ["render", "rope", "--model", "rope", "-o", "x.png"]),
        ("--package-dir", ["bench", "rope", "--package-dir", "."]),
        ("--collision", ["check", "robot.xml", "--collision"]),
        ("--seed", ["demo", "--seed", "-1"]),
    ],
)
def test_flags_without_meaning_are_refused(
    flag: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(capsys, *arguments).startswith(f"qdsim {arguments[0]}: {flag}: ")


@pytest.mark.parametrize("system", ["rope", "allegro_pen", "two_spheres_1d", "cloud_grasp"])
def test_any_system_is_drawn(system: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    assert main(["render", system, "-o", str(picture)]) == 0
    assert picture.stat().st_size > 2000


@pytest.mark.long
def test_pages_are_written(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("viser")
    for source in (str(plan_file), "rope"):
        page = tmp_path / "page.html"
        assert main(["view", source, "--html", str(page)]) == 0
        assert page.stat().st_size > 1e5
    assert "--live" in refusal(capsys, "view", str(plan_file), "--live")
    assert "port" in refusal(capsys, "view", "rope", "--port", "70000")


PUSHER = """<mujoco model="pusher"><worldbody>
  <geom name="table" type="plane" size="1 1 .1"/>
  <body name="finger" pos="-.3 0 .05" gravcomp="1"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
    <joint name="y" type="slide" axis="0 1 0" range="-1 1" armature=".1"/><geom type="sphere" size=".03" mass=".3"/></body>
  <body name="box" pos="0 0 .05" euler="0 0 {turn}"><freejoint name="box"/>
    <geom type="box" size=".08 .08 .05" mass=".5" friction=".5"/></body></worldbody>
  <actuator><position name="x" joint="x" kp="500" forcerange="-50 50"/><position name="y" joint="y" kp="500"/></actuator>
</mujoco>"""


@pytest.fixture
def pusher(tmp_path: Path) -> str:
    path = tmp_path / "pusher.xml"
    path.write_text(PUSHER.format(turn=0))
    return str(path)


@pytest.mark.long
def test_a_file_of_ones_own_is_planned(
    pusher: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan, replayed on the model, ends where the words of the goal say."""
    out = tmp_path / "plan.npz"
    said = report(capsys, "plan", pusher, "--goal", "0.2 0.1 - 60deg", "--out", str(out))
    assert said["good"] and said["reached"]
    model, plan = qdsim.load(pusher), planning.Plan.load(out)
    end = plan.replay(model).steps[-1][-1].q_next
    place, rotation = model.body_pose(end, "box")
    assert place == pytest.approx([0.2, 0.1, 0.05], abs=0.02)
    heading = np.arctan2(rotation[1, 0], rotation[0, 0])
    assert heading == pytest.approx(np.pi / 3, abs=0.05)
    assert report(capsys, "replay", str(out), "--model", pusher)["good"]


@pytest.mark.long
@pytest.mark.parametrize("ending, begins", [("png", b"\x89PNG"), ("gif", b"GIF8"), ("html", b"<!")])
def test_plans_of_own_files_are_filmed(
    ending: str, begins: bytes, pusher: str, tmp_path: Path
) -> None:
    film = tmp_path / f"plan.{ending}"
    assert main(["plan", pusher, "--goal", "0.03 0 -", "--film", str(film)]) == 0
    assert film.read_bytes().startswith(begins)


@pytest.mark.long
def test_plans_of_own_files_are_executed(
    pusher: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = tmp_path / "run.gif"
    said = report(capsys, "plan", pusher, "--goal", "0.1 0 -", "--execute", "--film", str(film))
    assert said["execution"]["loop"] == "auto"
    assert said["execution"]["outcome"] == "reached"
    assert said["execution"]["position_error"] < 0.02
    movie = pytest.importorskip("PIL.Image").open(film)
    assert 20 < movie.n_frames <= 302  # the execution, in at most 15 s; the plan alone has fewer


@pytest.mark.long
def test_what_was_planned_is_told_before_it_is_executed(
    pusher: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An execution may take minutes, or fail."""
    told: list[str] = []

    def failing(*_: object, **__: object) -> None:
        told.append(capsys.readouterr().out)
        with progress_bar(False, None, "pushing", "segments") as show:
            show(2, away(0.01, 0.0))
            with progress_bar(False, 9, "a search for the way on", "nodes"):
                raise KeyboardInterrupt

    monkeypatch.setattr(planning, "transfer", failing)
    assert main(["plan", pusher, "--goal", "0.03 0 -", "--execute"]) == 130
    assert "distance to goal" in told[0] and "verdict" in told[0]
    said = capsys.readouterr().out.split("\n")[0]
    assert (
        said == "  the execution was interrupted after 2 segments, to the goal 0.010 m, 0.000 rad"
    )


@pytest.mark.long
def test_ctrl_c_says_what_is_kept(
    pusher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("draw_key_frames", "draw_configuration"):
        monkeypatch.setattr(planning.pictures, name, stopped)
    folder = tmp_path / "demo"
    assert main(["demo", "--output", str(folder), "--no-movie"]) == 130
    assert capsys.readouterr().err.endswith(f"interrupted: written: plan.npz in {folder}\n")
    assert main(["render", pusher, "-o", "x.png"]) == 130
    assert capsys.readouterr().err == "qdsim render: interrupted: x.png is not written\n"


@pytest.mark.long
def test_a_hand_of_two_fingers_is_executed_by_strokes(capsys: pytest.CaptureFixture[str]) -> None:
    """Strokes belong to the task as it is, not to the paced one, whose object resists: they missed by 156 degrees."""
    said = report(capsys, "plan", "planar_hand", "--execute")
    assert said["execution"]["loop"] == "auto"
    assert said["execution"]["outcome"] == "reached"


def test_goals_in_words(tmp_path: Path) -> None:
    from qdsim.cli.goals import goal_of

    model = qdsim.load(PUSHER.format(turn=30))
    space, start = planning.ObjectSpace(model, "box"), np.array(model.default_q)

    def pose(text: str) -> tuple[np.ndarray, np.ndarray]:
        return model.body_pose(goal_of(model, space, start, text)[0], "box")

    def heading(angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    kept, place = heading(np.pi / 6), [0.3, -0.1, 0.05]
    for text, rotation in (
        ("0.3 -0.1 -", kept),
        ("0.3,-0.1,0.05,-", kept),
        ("0.3 -0.1 - 1.5", heading(1.5)),
        ("0.3 -0.1 - -90deg", heading(-np.pi / 2)),
        ("0.3 -0.1 - 2 0 0 0", np.eye(3)),
    ):
        np.testing.assert_allclose(pose(text)[0], place, atol=1e-12)
        np.testing.assert_allclose(pose(text)[1], rotation, atol=1e-12)
    door = qdsim.load(
        "<mujoco><worldbody><body name='door'><joint name='hinge'/><geom size='.1' pos='.3 0 0'/></body>"
        "<body pos='0 2 0'><joint name='x' type='slide'/><geom size='.1'/></body></worldbody>"
        "<actuator><position joint='x' kp='10'/></actuator></mujoco>"
    )
    turned, _ = goal_of(door, planning.ObjectSpace(door, "door"), door.default_q, "45deg")
    assert turned[door.slice_q("hinge")] == pytest.approx(np.pi / 4)


def test_what_a_goal_leaves_free() -> None:
    from qdsim.cli.goals import goal_of

    lying = np.array([0.0, 0.1, 0.2, 0.3, np.cos(0.6), 0.0, np.sin(0.6), 0.0])
    model = qdsim.load(
        "<mujoco><worldbody><body name='box'><freejoint name='box'/><geom size='.1'/></body>"
        "<body pos='0 2 0'><joint name='x' type='slide'/><geom size='.1'/></body></worldbody>"
        "<actuator><position joint='x' kp='10'/></actuator></mujoco>"
    )
    space = planning.ObjectSpace(model, "box")
    start = np.array(model.default_q)
    start[space.q] = lying[1:]

    def goals(text: str) -> GoalSet:
        return GoalSet(model, space, *goal_of(model, space, start, text))

    def error(text: str, *shift: float) -> tuple[float, float]:
        v = np.zeros(model.nv)
        v[space.v] = shift
        return goals(text).errors(model.integrate(start, v))

    assert error("0.2 0.2 - free", 0.1, 0.0, 0.0, 1.0, 2.0, 0.5) == pytest.approx((0.0, 0.0))
    assert error("0.2 0.2 0.7 free", 0.1, 0.0, 0.0, 1.0, 2.0, 0.5) == pytest.approx((0.4, 0.0))
    assert error("free 0.2 0..0.5", 9.0, 0.0, 0.3, 0, 0, 0) == pytest.approx((0.1, 0.0))
    # the box leans by 1.2 rad, wherever it is and however it is turned about the vertical
    for text in ("upright", "- free - upright", "- -5..5 - upright"):
        assert error(text, 0.0, 1.0, 0.0, 0.0, 0.0, 0.7) == pytest.approx((0.0, 1.2))
    assert error("upright", 0.0, 0.0, 0.0, 0.0, -1.2, 0.0) == pytest.approx((0.0, 0.0), abs=1e-7)
    for text, said in (
        ("0.3..0.2 0 0", "is an interval with its larger end first"),
        ("free free free free", "every pose counts as the goal"),
        ("0.2 0.1 upright", "expected numbers"),
    ):
        with pytest.raises((ValueError, UnusableError), match=said):
            goals(text)


@pytest.mark.parametrize(
    "shapes, round_about",
    [
        ("<geom type='cylinder' size='.1 .2' quat='.70710678 .70710678 0 0'/>", "y"),
        ("<geom type='capsule' size='.1 .2'/><geom size='.12' pos='0 0 .2'/>", "z"),
        ("<geom type='ellipsoid' size='.1 .2 .2'/>", "x"),
        ("<geom size='.1'/>", "xyz"),
        ("<geom type='cylinder' size='.1 .2'/><geom type='box' size='.1 .01 .1'/>", ""),
        ("<geom type='cylinder' size='.1 .2' pos='.1 0 0'/>", ""),
        ("<geom type='cylinder' size='.1 .2'/><geom size='.1' pos='.1 0 .1'/>", ""),
    ],
)
def test_turns_of_round_objects_count_only_if_asked_for(shapes: str, round_about: str) -> None:
    """A can on its side, a pill of two shapes, a disc, a ball; then a mug and two that turn beside their axis."""
    from qdsim.cli.goals import goal_of

    model = qdsim.load(
        f"<mujoco><worldbody><body name='it'><freejoint name='it'/>{shapes}</body>"
        "<body pos='0 2 0'><joint name='x' type='slide'/><geom size='.1'/></body></worldbody>"
        "<actuator><position joint='x' kp='10'/></actuator></mujoco>"
    )
    space = planning.ObjectSpace(model, "it")
    for axis, name in zip(np.eye(3), "xyz"):
        v = np.zeros(model.nv)
        v[space.v[3:]] = 0.7 * axis
        turned = model.integrate(model.default_q, v)
        for text, counts in (("- - -", False), ("- - - -", False), ("- - - 1 0 0 0", True)):
            goals = GoalSet(model, space, *goal_of(model, space, model.default_q, text))
            free = name in round_about and not counts
            assert goals.errors(turned)[1] == pytest.approx(0.0 if free else 0.7, abs=1e-7)


def test_goals_that_are_none(pusher: str, capsys: pytest.CaptureFixture[str]) -> None:
    def said(goal: str) -> str:
        return refusal(capsys, "plan", pusher, "--goal", goal)

    assert "looks like degrees: write 60deg" in said("0.2 0.1 - 60")
    assert "'x y z yaw'" in said("0.2 0.1")
    assert "expected metres" in said("0.2 90deg -")
    assert "'far'" in said("0.2 far -")
    assert "finite" in said("0.2 nan -")
    assert "zeros" in said("0 0 0 0 0 0 0")
    assert "'x y z yaw'" in refusal(capsys, "plan", pusher)
    assert "objects in it: box" in refusal(
        capsys, "plan", pusher, "--goal", "0 0 0", "--object", "b"
    )
    assert "no key frame" in refusal(capsys, "plan", pusher, "--goal", "0 0 0", "--start", "home")
    assert "--step" in refusal(capsys, "plan", pusher, "--goal", "0 0 0", "--step", "-1")
    assert "--film" in refusal(capsys, "plan", pusher, "--goal", "0 0 0", "--film", "plan.avi")
    assert "no folder" in refusal(capsys, "plan", pusher, "--goal", "0 0 0", "-o", "no/plan.npz")


def test_ctrl_c_leaves_the_nearest_plan(
    pusher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import qdsim.cli.plan as command

    draw, calls = planning.SurfaceSampler.__call__, []

    def interrupted(*arguments: object) -> object:
        calls.append(1)
        if len(calls) > 6:
            raise KeyboardInterrupt
        return draw(*arguments)

    monkeypatch.setattr(command, "_SAVED", 0.0)
    monkeypatch.setattr(planning.SurfaceSampler, "__call__", interrupted)
    out = tmp_path / "so_far.npz"
    goal = ["--goal", "0.4 0.3 - 170deg", "-o", str(out)]
    said = report(capsys, "plan", pusher, *goal, status=130)
    assert said["interrupted"] and not said["reached"]
    model, plan = qdsim.load(pusher), planning.Plan.load(out)
    verdict = plan.check(model)
    assert verdict.replay_error == 0.0 and not verdict.good
    assert said["position_error"] == verdict.position_error


@pytest.mark.parametrize("stage, flags", [("_draw", ["--film", "x.png"]), ("", ["--motions"])])
def test_ctrl_c_after_the_search_keeps_the_plan(
    stage: str,
    flags: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import qdsim.cli.plan as command

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        *((command, stage) if stage else (planning, "connect_segments")), interrupted
    )
    plan = tmp_path / "plan.npz"
    wanted = ["planar_hand", "--max-nodes", "3", "-o", str(plan)]
    said = report(capsys, "plan", *wanted, *flags, status=130)
    assert "film" not in said and planning.Plan.load(plan).task == said["task"]


def test_systems_are_found_by_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("qdsim/AllegroBall-v0", "Allegro-Sphere", "ball"):
        assert systems.load(name).name == "allegro_sphere"
    for name, meant in (("balls", "allegro_sphere"), ("bucket2", "iiwa_bimanual_cylinder")):
        assert meant in refusal(capsys, "render", name, "-o", "x.png")
    with pytest.raises(ValueError, match="near it: allegro_plate"):
        systems.load("plates")
    assert "no such file" in refusal(capsys, "plan", "robot.xml")


def test_what_cannot_be_planned_or_drawn(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "planar_hand" in refusal(capsys, "plan", "planar_hnd")
    assert "half_turn" in refusal(capsys, "plan", "planar_hand/nonsense")
    assert "no task" in refusal(capsys, "plan", "rope")
    assert "--seed" in refusal(capsys, "plan", "planar_hand", "--seed", "-1")
    assert ".png" in refusal(capsys, "render", "rope", "-o", str(tmp_path / "rope.gif"))
    assert ".gif" in refusal(capsys, "render", str(plan_file), "-o", str(tmp_path / "plan.txt"))
    assert "nq" in refusal(capsys, "replay", str(plan_file), "--model", "rope")
    assert "nonsense" in refusal(capsys, "replay", str(plan_file), "--model", "nonsense")
    live = refusal(capsys, "view", "rope", "--html", str(tmp_path / "rope.html"), "--live")
    assert "--live and --html" in live
    nowhere = str(tmp_path / "no" / "folder" / "plan.npz")
    assert nowhere in refusal(capsys, "plan", "planar_hand", "-o", nowhere)


@pytest.mark.parametrize("cut", [0, 100, 3000])
def test_a_damaged_plan_is_one_line(
    cut: int, plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(plan_file.read_bytes()[:cut])
    assert "damaged.npz" in refusal(capsys, "replay", str(damaged))


def test_a_tree_is_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tree.npz"
    task = systems.load("planar_hand").tasks["half_turn"]
    planning.rrt(task, rng=0).save(path)
    assert "qdsim-tree" in refusal(capsys, "replay", str(path))


def test_bench_times_files_and_systems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hand.xml"
    path.write_text(HAND)
    said = report(capsys, "bench", str(path), "planar_pushing", "--seconds", "0.01")
    assert list(said) == [str(path), "planar_pushing"]
    assert all(times["step"] > 0 and times["mj_step"] > 0 for times in said.values())
    assert main(["bench", str(path), "--seconds", "0.01"]) == 0
    assert "steps/s" in capsys.readouterr().out
    assert "--seconds" in refusal(capsys, "bench", "planar_hand", "--seconds", "nan")

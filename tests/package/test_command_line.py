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
    assert picture.read_bytes().startswith(b"\x89PNG")


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


@pytest.mark.parametrize("system", ["rope", "allegro_pen", "two_spheres_1d", "cloud_grasp"])
def test_any_system_is_drawn(system: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    assert main(["render", system, "-o", str(picture)]) == 0
    assert picture.stat().st_size > 2000


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
    assert "--seconds" in refusal(capsys, "bench", "planar_hand", "--seconds", "nan")

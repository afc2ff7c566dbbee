"""Files that the package writes and reads: whole or not there, and damaged ones are errors that name them."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import io
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qdsim
from qdsim import planning
from qdsim.cli.main import main
from qdsim.description import PointCloud
from qdsim.formats import read_points
from qdsim.planning.plans.archive import Format, write_archive
from qdsim.planning.task.fingerprint import fingerprint, hash_of
from qdsim.whole_files import replacing

HAND = qdsim.systems.load("planar_hand")
TASK = HAND.tasks["half_turn"]
SEARCH = planning.RRTOptions(max_nodes=40)
IMPC = planning.ImpcOptions(iterations=2, horizon=4, start=("hold", "squeeze"), trials=1, threads=1)
REFINE = planning.RefineOptions(impc=IMPC, most_steps=4)


@pytest.fixture(scope="module")
def plan() -> planning.Plan:
    tree = planning.rrt(TASK, rng=0)
    found = tree.plan()
    first, second, *_ = found.segments
    return dataclasses.replace(found, segments=(first.cut(2), second.cut(2)))


# -------------------------------------------------------------------- written whole


@contextlib.contextmanager
def full_disk(room: int) -> Iterator[None]:
    """No file may grow beyond ``room`` bytes: writing fails there as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def writers(plan: planning.Plan) -> dict[str, Callable[[Path], object]]:
    """Everything that writes a file, by the file's name."""
    from qdsim.formats.decomposition import _write_cache
    from qdsim.planning import pictures

    tree = planning.rrt(TASK, planning.RRTOptions(max_nodes=4), rng=0)
    short = dataclasses.replace(plan, segments=plan.segments[:1])
    replay = short.replay(HAND.model)
    cube = np.random.default_rng(0).random((500, 3))
    return {
        "plan.npz": plan.save,
        "tree.npz": tree.save,
        "search.npz": lambda path: planning.rrt(TASK, SEARCH, checkpoint=path),
        "impc.npz": lambda path: planning.impc(TASK, IMPC, checkpoint=path),
        "refine.npz": lambda path: planning.refine(plan, TASK, REFINE, checkpoint=path),
        "tree.png": lambda path: pictures.draw_tree(tree, path),
        "movie.gif": lambda path: pictures.write_movie(
            short, replay, HAND.model, [path], frames_per_second=1, size=1.0
        ),
        "cache.npz": lambda path: _write_cache(path, [(cube, np.zeros((0, 3), np.int32))]),
    }


@pytest.mark.long
def test_a_full_disk_leaves_what_was_there(plan: planning.Plan, tmp_path: Path) -> None:
    for name, write in writers(plan).items():
        path = tmp_path / name
        write(path)
        whole = path.read_bytes()
        assert len(whole) > 600, name
        for room in (0, 500):
            with full_disk(room), contextlib.suppress(OSError):
                write(path)
            assert path.read_bytes() == whole, name
    # Nothing else is left lying about.
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(writers(plan))


def test_a_full_disk_is_an_error(plan: planning.Plan, tmp_path: Path) -> None:
    with full_disk(500), pytest.raises(OSError):
        plan.save(tmp_path / "plan.npz")
    assert not list(tmp_path.iterdir())


def test_a_link_at_a_guessable_temporary_name_is_not_followed(
    plan: planning.Plan, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path = tmp_path / "plan.npz"
    for name in ("plan.npz.part", "plan.npz.tmp", "plan.part", ".plan.npz.part", "plan.npz~"):
        (tmp_path / name).symlink_to(victim)
    plan.save(path)
    planning.rrt(TASK, SEARCH, checkpoint=tmp_path / "search.npz")
    assert planning.Plan.load(path).step_count == plan.step_count
    assert victim.read_text() == "precious"


def test_the_temporary_name_cannot_be_taken(tmp_path: Path, monkeypatch: Any) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("secrets.token_hex", lambda n: "known")
    (tmp_path / ".known.bin").symlink_to(victim)
    with pytest.raises(FileExistsError), replacing(tmp_path / "file.bin") as file:
        file.write(b"x")
    assert victim.read_text() == "precious" and not (tmp_path / "file.bin").exists()


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_the_umask_or_of_the_file_before(
    umask: int, tmp_path: Path
) -> None:
    path = tmp_path / "file.bin"

    def write() -> int:
        with replacing(path) as file:
            file.write(b"content")
        return stat.S_IMODE(path.stat().st_mode)

    before = os.umask(umask)
    try:
        assert write() == 0o666 & ~umask
        path.chmod(0o640)
        assert write() == 0o640
    finally:
        os.umask(before)


def test_links_stay_and_what_they_point_to_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real.bin", tmp_path / "link.bin"
    real.write_bytes(b"old")
    link.symlink_to(real)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink() and real.read_bytes() == b"new"


def test_devices_are_written_to_and_folders_are_errors(tmp_path: Path) -> None:
    with replacing(os.devnull) as file:
        file.write(b"content")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(IsADirectoryError), replacing(tmp_path) as file:
        pass
    missing = tmp_path / "nowhere" / "file.bin"
    with pytest.raises(FileNotFoundError, match="nowhere"), replacing(missing) as file:
        pass
    long = tmp_path / ("n" * 250 + ".bin")
    with replacing(long) as file:
        file.write(b"content")
    assert long.read_bytes() == b"content"


def test_an_error_while_writing_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half of the n")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


# -------------------------------------------------------------------- damaged files


def readers(plan: planning.Plan, folder: Path) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """A good file of every kind, and what reads it and goes on with it."""
    kinds: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
        "plan": (plan.save, planning.Plan.load),
        "tree": (
            lambda path: planning.rrt(TASK, SEARCH, rng=1).save(path),
            lambda path: planning.Tree.load(path, TASK),
        ),
        "search": (
            lambda path: planning.rrt(TASK, SEARCH.replace(max_iterations=3), checkpoint=path),
            lambda path: planning.rrt(TASK, SEARCH.replace(max_iterations=4), checkpoint=path),
        ),
        "impc": (
            lambda path: planning.impc(TASK, IMPC, checkpoint=path),
            lambda path: planning.impc(TASK, IMPC, checkpoint=path),
        ),
        "refine": (
            lambda path: planning.refine(plan, TASK, REFINE, checkpoint=path),
            lambda path: planning.refine(plan, TASK, REFINE, checkpoint=path),
        ),
    }
    made = {}
    for name, (write, read) in kinds.items():
        path = folder / f"{name}.npz"
        write(path)
        made[name] = path, read
    return made


@pytest.fixture(scope="module")
def good(
    plan: planning.Plan, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[bytes, Callable[[Path], object]]]:
    folder = tmp_path_factory.mktemp("good")
    return {name: (p.read_bytes(), read) for name, (p, read) in readers(plan, folder).items()}


KINDS = ("plan", "tree", "search", "impc", "refine")


def attempt(content: bytes, read: Callable[[Path], object], path: Path) -> str | None:
    """What the reader says of a file; anything but a ValueError that names it fails the test."""
    path.write_bytes(content)
    try:
        read(path)
    except ValueError as error:
        assert path.name in str(error), error
        assert "pickle" not in str(error)
        return str(error)
    return None


def members(content: bytes) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(io.BytesIO(content)) as archive:
        return {name: archive[name] for name in archive.files}


def packed(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


@pytest.mark.short_cases(2)
@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_changed_and_ends_that_are_missing(kind: str, good: Any, tmp_path: Path) -> None:
    content, read = good[kind]
    rng = np.random.default_rng(0)
    path = tmp_path / "broken.npz"
    for cut in (0, 1, 30, *rng.integers(31, len(content) - 1, 8)):
        assert attempt(content[:cut], read, path)
    for _ in range(20):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), rng.integers(1, 6)):
            damaged[at] = rng.integers(0, 256)
        attempt(bytes(damaged), read, path)  # dates may change without harm
    for _ in range(15):  # what says where things are
        damaged = bytearray(content)
        for at in rng.integers(len(content) - 400, len(content), 3):
            damaged[at] = rng.integers(0, 256)
        attempt(bytes(damaged), read, path)
    for text in (b"", b"not a plan at all", "ein Plan: äöü".encode() * 100, bytes(range(256))):
        assert attempt(text, read, path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_entries_of_other_types_and_sizes(kind: str, good: Any, tmp_path: Path) -> None:
    content, read = good[kind]
    arrays, path = members(content), tmp_path / "broken.npz"
    assert attempt(packed(arrays), read, path) is None
    for name, array in arrays.items():
        others: list[Any] = [
            np.zeros(0),
            np.array("text"),
            np.array(array.tolist() if array.dtype.names is None else [1.0], dtype=object),
            np.array([array]),
            np.zeros((2, 0, 3)),
        ]
        if array.ndim and array.shape[0] > 1:
            others += [array[:-1], np.concatenate((array, array))]
        if array.dtype.kind == "f" and array.size:
            others += [array * np.nan, array.astype(np.float32), array.astype(">f8")]
        if array.dtype.kind == "i" and array.size:
            large = np.iinfo(array.dtype)
            others += [array.astype(np.float64), np.full_like(array, large.max)]
            others.append(np.full_like(array, large.min))
        for other in others:
            if other.dtype.hasobject or not _same(other, array):
                assert attempt(packed(arrays | {name: other}), read, path), (name, other)
        missing = {k: v for k, v in arrays.items() if k != name}
        attempt(packed(missing), read, path)  # forces and motions a plan may be without
    assert "does not belong" in str(attempt(packed(arrays | {"more": np.ones(3)}), read, path))


def _same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def headers(value: Any) -> Iterator[Any]:
    """Headers with one value of another kind, or missing, at any depth."""
    odd: tuple[Any, ...] = (None, -1, 10**30, 0.5, "text", [], {}, [[]], True, float("nan"))
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {k: v for k, v in value.items() if k != name}
            for other in (*odd, *headers(inner)):
                yield value | {name: other}
    elif isinstance(value, list):
        for i, inner in enumerate(value[:3]):
            for other in (*odd, *headers(inner)):
                yield [*value[:i], other, *value[i + 1 :]]
        yield value[1:]


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_headers_of_any_other_content(kind: str, good: Any, tmp_path: Path) -> None:
    content, read = good[kind]
    arrays, path = members(content), tmp_path / "broken.npz"
    tried = list(headers(json.loads(str(arrays["header"]))))
    rng = np.random.default_rng(1)
    for i in rng.permutation(len(tried))[:40]:
        text = np.array(json.dumps(tried[i]))
        with contextlib.suppress(qdsim.SolverError):  # a search that goes on from other numbers
            attempt(packed(arrays | {"header": text}), read, path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_huge_is_not_read(kind: str, good: Any, tmp_path: Path) -> None:
    content, read = good[kind]
    arrays, path = members(content), tmp_path / "huge.npz"
    for name in ("unused", *(name for name, array in arrays.items() if array.ndim < 3)):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for other, array in arrays.items():
                if other != name:
                    with archive.open(f"{other}.npy", "w") as stream:
                        np.lib.format.write_array(stream, array)
            with archive.open(f"{name}.npy", "w") as stream:
                # 8 MB of zeros, of the right type and as many dimensions
                like = arrays.get(name, np.zeros(1))
                dtype = np.dtype(np.int8) if name == "header" else like.dtype
                row = dtype.itemsize * int(np.prod(like.shape[1:]))
                shape = (8_000_000 // max(row, 1), *like.shape[1:])
                descr = np.lib.format.dtype_to_descr(dtype)
                claim = {"descr": descr, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(stream, claim)  # type: ignore[arg-type]
                stream.write(bytes(shape[0] * row))
        path.write_bytes(file.getvalue())
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"huge\.npz"):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4_000_000, name


def test_claims_that_are_larger_than_the_file(good: Any, tmp_path: Path) -> None:
    """An array that says it has terabytes is refused before there is room made for it."""
    content, read = good["plan"]
    arrays, path = members(content), tmp_path / "broken.npz"
    for name in ("goal", "steps", "inputs", "configurations"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for other, array in arrays.items():
                stream = io.BytesIO()
                if other == name:
                    shape = (10**12,) * array.ndim
                    np.lib.format.write_array_header_1_0(
                        stream,
                        {"descr": array.dtype.str, "fortran_order": False, "shape": shape},
                    )
                    stream.write(array.tobytes())
                else:
                    np.lib.format.write_array(stream, array)
                archive.writestr(f"{other}.npy", stream.getvalue())
        assert attempt(file.getvalue(), read, path)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_points_are_errors_that_name_the_file(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    stream, path = io.BytesIO(), tmp_path / "points.npy"
    np.save(stream, rng.random((20, 3)))
    whole = stream.getvalue()
    for _ in range(75):
        damaged = bytearray(whole)
        for at in rng.integers(0, 128, rng.integers(1, 5)):  # the header
            damaged[at] = rng.integers(0, 256)
        path.write_bytes(damaged)
        try:
            read_points(path)
        except ValueError as error:
            assert "points.npy" in str(error)


# -------------------------------------------------------------------- what checkpoints belong to


def elements(description: Any) -> Iterator[tuple[str, Any]]:
    """Descriptions that differ from one in one field of one element."""

    def changed(value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, float):
            return value + 2.0**-40
        if isinstance(value, int):
            return value + 1
        if isinstance(value, str):
            return value + "_"
        if isinstance(value, np.ndarray) and value.size:
            other = value.copy()
            other.flat[-1] += 1
            return other
        if isinstance(value, tuple) and value:
            return (changed(value[0]), *value[1:])
        return None

    def bare(element: Any, **changes: Any) -> Any:
        """A copy that nothing checks."""
        copy = object.__new__(type(element))
        for f in dataclasses.fields(element):
            object.__setattr__(copy, f.name, changes.get(f.name, getattr(element, f.name)))
        return copy

    def variants(element: Any) -> Iterator[tuple[str, Any]]:
        for f in dataclasses.fields(element):
            value = getattr(element, f.name)
            if isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
                for i, inner in enumerate(value):
                    for where, other in variants(inner):
                        whole = (*value[:i], other, *value[i + 1 :])
                        yield f"{f.name}[{i}].{where}", bare(element, **{f.name: whole})
            elif dataclasses.is_dataclass(value):
                for where, other in variants(value):
                    yield f"{f.name}.{where}", bare(element, **{f.name: other})
            elif (new := changed(value)) is not None:
                yield f.name, bare(element, **{f.name: new})

    yield from variants(description)


def rich() -> Any:
    """A description with elements of every kind."""
    from qdsim import description as d

    return d.Description(
        bodies=(
            d.Body("world", geoms=(d.Geom("floor", "plane"),)),
            d.Body(
                "arm",
                mass=1.0,
                inertia=np.eye(3).tolist(),
                joints=(d.Joint("hinge", "hinge", range=(-1.0, 1.0)), d.Joint("slide", "slide")),
                geoms=(d.Geom("link", "capsule", (0.1, 0.2)),),
            ),
            d.Body(
                "thing",
                mass=1.0,
                inertia=np.eye(3).tolist(),
                joints=(d.Joint("free", "free"),),
                geoms=(
                    d.Geom("hull", "mesh", mesh="tetra"),
                    d.Geom("points", "cloud", (0.01,), cloud=PointCloud(np.eye(3))),
                ),
            ),
        ),
        actuators=(d.Actuator("motor", "hinge", 10.0, range=(-1.0, 1.0)),),
        pairs=(d.Pair("floor", "link"),),
        excludes=(d.Exclude("arm", "thing"),),
        constraints=(d.Coupling("gear", "slide", "hinge"),),
        keyframes=(d.Keyframe("home", (0.0, 0.0, 0, 0, 1, 1, 0, 0, 0), (0.0,)),),
        meshes=(d.Mesh("tetra", np.vstack((np.zeros(3), np.eye(3)))),),
        gravity=(0.0, 0.0, -9.81),
        ignored=("something",),
    )


def test_the_hash_of_a_description_depends_on_all_of_it() -> None:
    description = rich()
    seen = {hash_of(description): "itself"}
    for where, other in elements(description):
        found = hash_of(other)
        assert found not in seen, f"{where} hashes as {seen[found]}"
        seen[found] = where
    assert len(seen) > 100
    again = hash_of(rich())
    assert seen[again] == "itself"


@pytest.mark.short_cases(1)
@pytest.mark.parametrize("name", ["planar_hand", "allegro_door", "iiwa_box_push"])
def test_the_fingerprint_of_a_task_depends_on_every_parameter_of_its_model(name: str) -> None:
    task = next(iter(qdsim.systems.load(name).tasks.values()))
    rng = np.random.default_rng(0)
    seen = {fingerprint(task)}
    assert fingerprint(task.replace()) in seen
    parameters = task.model.parameters
    there = [
        field
        for field in dataclasses.fields(parameters)
        # Rigid geometries have no modulus.
        if getattr(parameters, field.name).any() or field.name != "geom_modulus"
    ]
    for field in there:
        array = np.array(getattr(parameters, field.name))
        scale = 1.0 + 1e-9 * rng.random(array.shape)
        if field.name == "body_inertia":
            array = array * (1.0 + 1e-9)  # stays that of a body
        elif field.name == "pair_friction":
            array = array * np.repeat(1.0 + 1e-9 * rng.random((len(array), 1)), 5, axis=1)
        elif field.name == "actuator_force_range":
            array = np.where(np.isfinite(array), array * scale, np.sign(array) * 1e9)
        elif np.any(array):
            array = array * scale
        else:
            array = array + 1e-9
        other = task.replace(model=task.model.with_parameters(**{field.name: array}))
        seen.add(fingerprint(other))
    assert len(seen) == 1 + sum(getattr(parameters, field.name).size > 0 for field in there)


def test_a_checkpoint_of_a_model_with_other_centres_of_mass_is_refused(
    plan: planning.Plan, tmp_path: Path
) -> None:
    com = np.array(HAND.model.parameters.body_com)
    com[-1, 1] += 1e-3
    other = TASK.replace(model=HAND.model.with_parameters(body_com=com))
    files = {name: path for name, (path, _) in readers(plan, tmp_path).items()}
    for run in (
        lambda: planning.Tree.load(files["tree"], other),
        lambda: planning.rrt(other, SEARCH, checkpoint=files["search"]),
        lambda: planning.impc(other, IMPC, checkpoint=files["impc"]),
        lambda: planning.refine(plan, other, REFINE, checkpoint=files["refine"]),
    ):
        with pytest.raises(ValueError, match="belongs to another"):
            run()


@pytest.mark.parametrize("version", [1, 99])
def test_other_versions_are_named(version: int, tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    write_archive(path, Format("qdsim-plan", version, ""), {}, {})
    with pytest.raises(ValueError, match=rf"plan\.npz: not a plan of qdsim: version {version}"):
        planning.Plan.load(path)


# -------------------------------------------------------------------- files that do not end, disks that are full


def test_a_full_disk_is_named() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no device that is always full")
    with pytest.raises(OSError, match="/dev/full") as caught, replacing("/dev/full") as file:
        file.write(b"content")
    assert caught.value.filename == "/dev/full"


@pytest.mark.parametrize("named", [False, True])
def test_a_disk_that_fills_up_leaves_nothing_and_is_named(named: bool, tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    with pytest.raises(OSError, match=r"plan\.npz"), replacing(path, named=named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="the system has no files without a name")
def test_a_killed_writer_leaves_nothing_behind(tmp_path: Path) -> None:
    code = f"""import os, signal
from qdsim.whole_files import replacing
with replacing({str(tmp_path / "plan.npz")!r}) as file:
    file.write(b"half of the n")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code])
    assert done.returncode == -signal.SIGKILL and not list(tmp_path.iterdir())


def test_what_never_ends_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "robot.xml"
    os.mkfifo(pipe)
    for path in ("/dev/zero", str(pipe)):
        for read in (qdsim.load, planning.Plan.load):
            with pytest.raises((OSError, ValueError), match="never end"):
                read(path)
        for command in ("check", "plan", "replay", "bench", "render"):
            with contextlib.suppress(SystemExit):
                assert main([command, path, *(["x.png"] if command == "render" else [])]) == 2

"""Work items over executors: the same results from any of them, and nothing lost when something dies."""

import concurrent.futures as futures
import functools
import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from qdsim import parallel, planning, systems

SPAWN = multiprocessing.get_context("spawn")


def processes(count=2):
    """A function that makes processes, as a caller would who wants them made again."""
    return functools.partial(futures.ProcessPoolExecutor, count, mp_context=SPAWN)


def drawn(seed, size):
    return {"numbers": np.random.default_rng(seed).random(size)}


def items(count, size=3):
    return [(parallel.seed_of(7, i), size) for i in range(count)]


def dies_once(path, item):
    """The first call ends its process; those that follow do not."""
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"item": np.array(item)}


def dies(item):
    if item == 1:
        os._exit(9)
    return {"item": np.array(item)}


def fails(item):
    if item == 1:
        raise ValueError("item one is odd")
    return {"item": np.array(item)}


def counts_calls(folder, item):
    with open(os.path.join(folder, "calls"), "a") as file:
        file.write(f"{item}\n")
    return {"item": np.array(item)}


def same(one, other):
    return all(
        a["numbers"].tobytes() == b["numbers"].tobytes() for a, b in zip(one, other, strict=True)
    )


def test_seeds_belong_to_items():
    seeds = [parallel.seed_of(3, i) for i in range(1000)]
    assert len(set(seeds)) == 1000
    assert parallel.seed_of(4, 0) not in seeds
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_executors_give_the_same_bits():
    here = parallel.run(drawn, items(6))
    with futures.ThreadPoolExecutor(3) as threads:
        assert same(here, parallel.run(drawn, items(6), executor=threads))
    assert same(here, parallel.run(drawn, items(6), executor=processes()))


def test_ray_gives_the_same_bits():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert same(
            parallel.run(drawn, items(6)),
            parallel.run(drawn, items(6), executor=parallel.RayExecutor()),
        )
    finally:
        ray.shutdown()


def test_submitit_gives_the_same_bits(tmp_path):
    pytest.importorskip("submitit")
    slurm = parallel.SlurmExecutor(tmp_path, cluster="local", poll=0.05, timeout_min=1)
    assert same(parallel.run(drawn, items(3)), parallel.run(drawn, items(3), executor=slurm))


@pytest.mark.long
def test_a_worker_that_dies_is_replaced(tmp_path):
    path = str(tmp_path / "died")
    found = parallel.run(dies_once, [(path, i) for i in range(4)], executor=processes())
    assert [int(result["item"]) for result in found] == [0, 1, 2, 3]


@pytest.mark.long
def test_the_item_that_kills_is_named_and_the_others_are_there():
    with pytest.raises(parallel.WorkError, match="1 of 3 items failed; item 1") as caught:
        parallel.run(dies, [(i,) for i in range(3)], executor=processes())
    assert list(caught.value.errors) == [1]
    assert [r is None for r in caught.value.results] == [False, True, False]


@pytest.mark.parametrize("executor", [None, futures.ThreadPoolExecutor(2)])
def test_an_error_of_an_item_comes_when_the_others_are_done(executor):
    with pytest.raises(parallel.WorkError, match="item 1: ValueError: item one is odd") as caught:
        parallel.run(fails, [(i,) for i in range(4)], executor=executor)
    assert [r is None for r in caught.value.results] == [False, True, False, False]


def test_a_folder_goes_on_where_a_run_was_killed(tmp_path):
    kept = tmp_path / "kept"
    work = [(str(tmp_path), i) for i in range(5)]
    parallel.run(counts_calls, work[:2], folder=kept, mark="a")
    found = parallel.run(counts_calls, work, folder=kept, mark="a")
    assert [int(r["item"]) for r in found] == list(range(5))
    assert (tmp_path / "calls").read_text().split() == ["0", "1", "2", "3", "4"]
    with pytest.raises(ValueError, match=r"folder: .*kept holds results of other work"):
        parallel.run(counts_calls, work, folder=kept, mark="b")
    (kept / "0000001.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"folder: .*0000001\.npz is damaged"):
        parallel.run(counts_calls, work, folder=kept, mark="a")


INTERRUPTED = """
import os, signal, sys, time
import numpy as np
from qdsim import parallel
signal.signal(signal.SIGINT, signal.default_int_handler)  # where it is ignored: children of "make test &"
def slow(item):
    if item == 2:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    return {"item": np.array(item)}
parallel.run(slow, [(i,) for i in range(5)], folder=sys.argv[1])
"""


@pytest.mark.long
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    kept = tmp_path / "kept"
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(kept)], capture_output=True, timeout=900
    )
    assert ended.returncode != 0 and b"KeyboardInterrupt" in ended.stderr
    assert sorted(p.name for p in kept.glob("*.npz")) == ["0000000.npz", "0000001.npz"]


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match="executor: expected a concurrent"):
        parallel.run(drawn, items(1), executor=4)
    with pytest.raises(TypeError, match=r"executor: .*got ThreadPoolExecutor"):
        parallel.run(drawn, items(1), executor=futures.ThreadPoolExecutor)
    with pytest.raises(TypeError, match="executor: the function returned int"):
        parallel.run(drawn, items(1), executor=lambda: 3)
    with pytest.raises(TypeError, match="function: expected a function"):
        parallel.run("no", items(1))
    with pytest.raises(ValueError, match="seed"):
        parallel.seed_of(-1, 0)


@pytest.mark.long
def test_plans_of_many_seeds_are_those_of_single_searches():
    task = next(iter(systems.load("planar_pushing").tasks.values()))
    here = planning.plan_many(task, seeds=3, seed=5)
    there = planning.plan_many(task, seeds=3, seed=5, executor=processes())
    assert [p.seed for p in here] == [parallel.seed_of(5, k) for k in range(3)]
    for one, other in zip(here, there, strict=True):
        assert (one.seed, one.nodes, one.steps) == (other.seed, other.nodes, other.steps)
        assert (one.plan is None) == (other.plan is None)
        if one.plan is not None:
            assert one.plan.end.tobytes() == other.plan.end.tobytes()
    alone = planning.rrt(task, rng=here[0].seed)
    assert (alone.count, alone.steps) == (here[0].nodes, here[0].steps)
    with pytest.raises(ValueError, match="goals: expected shape"):
        planning.plan_many(task, np.zeros((2, task.model.nq + 1)))

# SPDX-License-Identifier: Apache-2.0
"""Many bags side by side: over processes, and over a Dask cluster whose workers are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags")

from bag_files import SETPOINT, setpoints, write_bag

from eom_dynamics import load_robot
from eom_dynamics.bags import BagError, Layout, OutputTopic, Storage, open_writer
from eom_dynamics.cli.main import main
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.replay import Format, Job, find_bags, replay_bag, replay_bags
from eom_dynamics.trajectory import paper_motion

NAMES = load_robot("planar_2r").joint_names
STATES = np.array(paper_motion(2).derivatives(np.arange(200) * 1e-3))


def make(path: Path, seed: int = 0) -> Path:
    return write_bag(path, {"/setpoint": (SETPOINT, setpoints(NAMES, STATES + 0.01 * seed))})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_bags_are_found_in_folders(tmp_path: Path) -> None:
    make(tmp_path / "a")
    make(tmp_path / "sub/deep/b")
    killed = make(tmp_path / "sub/killed")
    (killed / "metadata.yaml").unlink()
    (killed / "killed.mcap").rename(killed / "killed_0.mcap")
    bare = make(tmp_path / "bare")
    (bare / "metadata.yaml").unlink()
    (bare / "bare.mcap").rename(bare / "monday.mcap")
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / ".eom_dynamics-x").mkdir()
    found = [str(path.relative_to(tmp_path)) for path in find_bags(tmp_path)]
    assert found == ["a", "bare/monday.mcap", "sub/deep/b", "sub/killed"]
    assert find_bags(tmp_path / "a") == [tmp_path / "a"]
    (tmp_path / "none").mkdir()
    with pytest.raises(BagError, match="has no bags in it"):
        find_bags(tmp_path / "none")


def test_a_bag_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    bags = [make(tmp_path / f"in/{k}", k) for k in range(3)]
    (tmp_path / "in/broken.mcap").write_bytes(b"none")
    jobs = [
        Job(bag, tmp_path / "out" / bag.stem, "planar_2r")
        for bag in [*bags[:1], tmp_path / "in/broken.mcap", *bags[1:]]
    ]
    shares = []
    outcomes = replay_bags(jobs, processes=2, progress=lambda under_way, done: shares.append(len(done)))
    assert [outcome.report is not None for outcome in outcomes] == [True, False, True, True]
    assert "does not begin like one" in outcomes[1].error and shares[-1] == 4
    for k, bag in enumerate(bags):
        alone = Job(bag, tmp_path / "alone" / bag.stem, "planar_2r")
        replay_bag(alone)
        assert contents(alone.output) == contents(tmp_path / "out" / str(k))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0", "1", "2"]


def test_resuming_makes_what_lacks_and_keeps_what_is_there(tmp_path: Path) -> None:
    jobs = [Job(make(tmp_path / f"in/{k}", k), tmp_path / "out" / str(k), "planar_2r") for k in range(2)]
    first = replay_bag(jobs[0])
    before = contents(tmp_path / "out")
    stamp = (tmp_path / "out/0/metadata.yaml").stat().st_mtime_ns
    (tmp_path / "out/.eom_dynamics-left").mkdir()  # as a process that was killed leaves it
    again = replay_bags(jobs, processes=1)
    assert "--resume" in again[0].error and again[1].report is not None
    outcomes = replay_bags(jobs, processes=1, resume=True)
    assert [outcome.done_before for outcome in outcomes] == [True, True]
    assert outcomes[0].report == first
    assert (tmp_path / "out/0/metadata.yaml").stat().st_mtime_ns == stamp
    assert {name: data for name, data in contents(tmp_path / "out").items() if name in before} == before
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0", "1"]
    other = replay_bags([Job(jobs[0].bag, jobs[0].output, "planar_2r", topic="/setpoint")], resume=True)
    assert "not made of this bag by the same settings" in other[0].error
    forced = replay_bags([Job(jobs[0].bag, jobs[0].output, "planar_2r", topic="/setpoint", force=True)], processes=1)
    assert forced[0].report is not None
    foreign = replay_bags([Job(jobs[0].bag, jobs[1].bag, "planar_2r", force=True)], processes=1)
    assert "was not made by eom_dynamics replay" in foreign[0].error


def long_bag(path: Path, seconds: int) -> Path:
    """A bag at 1 kHz, written as arrays, as rosbags would need longer for it than the replay."""
    path.mkdir(parents=True)
    from bag_files import STORE, setpoint

    message = setpoint(0, NAMES, np.zeros((5, 2)))
    layout = Layout(STORE, SETPOINT, bytes(STORE.serialize_cdr(message, SETPOINT)))
    writer = open_writer(path, path.name, Storage.MCAP, [OutputTopic.of("/setpoint", SETPOINT)])
    times = 1_700_000_000_000_000_000 + 1_000_000 * np.arange(1000 * seconds)
    rows = np.tile(layout.template, (len(times), 1))
    layout.set_numbers(rows, "position", np.random.default_rng(seconds).standard_normal((len(times), 2)))
    writer.write(times, [rows])
    writer.close({})
    return path


def finished(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("[!.]*")} if folder.is_dir() else set()


def wait_for(condition, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.005)


def options(tmp_path: Path) -> list[str]:
    return ["replay", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--robot", "planar_2r", "--jobs", "2"]


@contextmanager
def under_way(tmp_path: Path, **keywords: Any) -> Iterator[subprocess.Popen[str]]:
    """The command in a process, when it has begun to write."""
    # As it is installed: a pool's processes read the file of the program, too.
    program = Path(sys.prefix) / "bin/eom_dynamics"
    command = [str(program)] if program.is_file() else [sys.executable, "-m", "eom_dynamics.cli.main"]
    with subprocess.Popen([*command, *options(tmp_path)], text=True, **keywords) as process:
        wait_for(lambda: list((tmp_path / "out").glob(".eom_dynamics-*/files/*.mcap")))
        yield process


def children_of(process: subprocess.Popen[str]) -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()


def test_a_process_of_the_pool_that_is_killed_costs_no_bag(tmp_path: Path) -> None:
    bags = [long_bag(tmp_path / f"in/{k}", 30) for k in range(3)]
    with under_way(tmp_path, stdout=subprocess.PIPE) as process:
        children = children_of(process)
        workers = [pid for pid in children if b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(int(workers[0]), signal.SIGKILL)
        output, _ = process.communicate(timeout=100)
    assert process.returncode == 0, output
    assert finished(tmp_path / "out") == {"0", "1", "2"} == {path.name for path in (tmp_path / "out").iterdir()}
    replay_bag(Job(bags[2], tmp_path / "alone/2", "planar_2r"))
    assert contents(tmp_path / "alone/2") == contents(tmp_path / "out/2")


def test_a_command_that_is_killed_leaves_no_processes_and_is_resumed(tmp_path: Path) -> None:
    for k in range(3):
        long_bag(tmp_path / f"in/{k}", 30)
    with under_way(tmp_path) as process:
        children = children_of(process)
        process.kill()

    def lives(pid: str) -> bool:
        file = Path(f"/proc/{pid}/cmdline")
        return file.is_file() and b"multiprocessing" in file.read_bytes()

    wait_for(lambda: not any(lives(pid) for pid in children))
    assert main([*options(tmp_path), "--resume"]) == 0
    assert finished(tmp_path / "out") == {"0", "1", "2"} == {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize("number", [signal.SIGINT])
def test_an_interrupted_command_leaves_nothing_half_written(tmp_path: Path, number: int) -> None:
    for k in range(3):
        long_bag(tmp_path / f"in/{k}", 60)
    with under_way(tmp_path, stderr=subprocess.PIPE) as process:
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and error == "eom_dynamics replay: interrupted\n"
    for name in {path.name for path in (tmp_path / "out").iterdir()}:
        assert name in ("0", "1", "2") and (tmp_path / "out" / name / "metadata.yaml").is_file()


@pytest.fixture
def cluster(tmp_path: Path):
    """Address of a scheduler on the loopback interface, and its two workers, processes of one thread each."""
    pytest.importorskip("distributed")
    from distributed import Client

    environment = {
        **os.environ,
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "20s",
        "DASK_LOGGING__DISTRIBUTED": "critical",
    }
    dask = [sys.executable, "-m", "distributed.cli."]
    file = tmp_path / "scheduler.json"
    processes = []

    def start(name: str, *arguments: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [*dask[:2], dask[2] + name, *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        processes.append(process)
        return process

    start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    wait_for(file.is_file)
    worker = ["--scheduler-file", str(file), "--no-nanny", "--nthreads", "1", "--no-dashboard"]
    workers = [start("dask_worker", *worker, "--local-directory", str(tmp_path / f"w{k}")) for k in range(2)]
    with Client(scheduler_file=str(file), set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client.scheduler.address, workers
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kind", [Format.MCAP, Format.PARQUET])
def test_a_worker_of_the_cluster_that_is_killed_loses_nothing_and_repeats_nothing(
    tmp_path: Path, cluster, kind: Format
) -> None:
    address, workers = cluster
    suffix = ".parquet" if kind is Format.PARQUET else ""
    jobs = [
        Job(long_bag(tmp_path / f"in/{k}", 20), tmp_path / f"out/{k}{suffix}", "planar_2r", format=kind)
        for k in range(8)
    ]
    seen: dict[str, int] = {}

    def watch(shares, done) -> None:
        """Kill a worker in the middle, while the other one has finished bags."""
        for outcome in done:
            output = outcome.job.output
            seen.setdefault(output.name, output.stat().st_mtime_ns)
        if len(done) == 2:
            workers[0].kill()

    outcomes = replay_bags(jobs, scheduler=address, progress=watch)
    assert all(outcome.report is not None and outcome.report.commands == 20_000 for outcome in outcomes), [
        outcome.error for outcome in outcomes
    ]
    assert finished(tmp_path / "out") == {job.output.name for job in jobs}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {job.output.name for job in jobs}
    # Those that were finished when the worker was killed were not made again.
    assert workers[0].wait() == -signal.SIGKILL
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in seen} == seen
    replay_bag(Job(jobs[5].bag, tmp_path / f"alone/5{suffix}", "planar_2r", format=kind))
    if kind is Format.MCAP:
        assert contents(tmp_path / "alone/5") == contents(jobs[5].output)
    else:
        assert (tmp_path / "alone/5.parquet").read_bytes() == jobs[5].output.read_bytes()


def test_a_scheduler_that_is_not_there_is_an_error_on_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("eom_dynamics.replay.many._CONNECT_TIMEOUT", 1.0)
    job = Job(make(tmp_path / "in"), tmp_path / "out", "planar_2r")
    with pytest.raises(
        EomDynamicsError, match=r"the Dask scheduler at tcp://127\.0\.0\.1:9 cannot be reached"
    ) as caught:
        replay_bags([job], scheduler="tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)

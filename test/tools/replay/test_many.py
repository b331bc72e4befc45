# SPDX-License-Identifier: Apache-2.0
"""Many bags in parallel, on processes and on a Dask cluster, some of which are killed."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import numpy as np
import pytest
from bag_files import SETPOINT, robot_file, setpoints, write_bag
from dask_worker import run_worker
from paths import contents

from eom_dynamics import load_robot
from eom_dynamics.bags import BagError
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.tools.excite import write_setpoints
from eom_dynamics.tools.replay.job import Job
from eom_dynamics.tools.replay.one import Outcome, replay_bag, run_job
from eom_dynamics.tools.replay.run import find_bags, replay_bags
from eom_dynamics.trajectory import paper_motion, rest_to_rest

NAMES = load_robot("planar_2r").joint_names
STATES = np.array(paper_motion(2).derivatives(np.arange(50) * 1e-3))
SPRING = {"type": "linear", "stiffness": 500.0}
PROCESSES = multiprocessing.get_context("forkserver")


@pytest.fixture(scope="module", autouse=True)
def import_once() -> None:
    """Import what processes of these tests need in the one that they are copies of."""
    PROCESSES.set_forkserver_preload(["eom_dynamics.tools.replay.run", "pyarrow.parquet", "distributed"])
    ensure_running()


def make(path: Path, seed: int = 0) -> Path:
    return write_bag(path, {"/setpoint": (SETPOINT, setpoints(NAMES, STATES + 0.01 * seed))})


def long_bag(path: Path, count: int = 10_000) -> Path:
    """A bag at 1 kHz that is read in many blocks, which leaves time to break off a replay."""
    path.mkdir(parents=True)
    write_setpoints(path, rest_to_rest([0.0, 0.0], [1.0, -1.0], (count - 1) * 1e-3), NAMES, 1000.0)
    return path


def robot(folder: Path) -> str:
    return robot_file(folder, SPRING)


def resumed(job: Job, *, resume: bool = True) -> Outcome:
    (outcome,) = replay_bags([job], resume=resume)
    assert (outcome.report is None) == bool(outcome.error)
    return outcome


def outputs(folder: Path) -> list[str]:
    """Names of those that are complete; killed processes leave temporary folders."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def wait_for(condition, timeout: float = 60.0) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


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


def test_a_process_that_is_killed_ends_the_others_and_resume_goes_on(tmp_path: Path) -> None:
    broken = tmp_path / "in/broken.mcap"
    broken.parent.mkdir()
    broken.write_bytes(b"none")
    bags = [broken, long_bag(tmp_path / "in/0"), make(tmp_path / "in/1")]
    jobs = [Job(bag, tmp_path / "out" / bag.stem, robot(tmp_path), folder=tmp_path / "out") for bag in bags]

    def kill(fractions, done) -> None:
        """Kill the process that is at the long bag; Ctrl-C, which reaches all processes of a terminal, it ignores."""
        if any(0 < fraction < 1 for fraction in fractions):
            for process in multiprocessing.active_children():
                os.kill(process.pid, signal.SIGINT)
                process.kill()

    outcomes = replay_bags(jobs, processes=1, progress=kill)
    assert "broken.mcap: cannot be read" in outcomes[0].error and outputs(tmp_path / "out") == []
    for job, outcome in zip(jobs[1:], outcomes[1:], strict=True):
        assert outcome.report is None and outcome.error.startswith(f"{job.bag}: A process in the process pool was")
        assert outcome.error.endswith("; go on with --resume") and "\n" not in outcome.error
    outcomes = replay_bags(jobs, processes=1, resume=True)
    assert [outcome.report is not None for outcome in outcomes] == [False, True, True], outcomes
    assert outputs(tmp_path / "out") == ["0", "1", "replayed.jsonl"]
    alone = replace(jobs[2], output=tmp_path / "alone/1", folder=tmp_path / "alone")
    replay_bag(alone)
    assert contents(alone.output) == contents(tmp_path / "out/1")


def test_an_interrupted_command_leaves_nothing_half_written_and_is_resumed(tmp_path: Path) -> None:
    bags = [make(tmp_path / "in/0"), long_bag(tmp_path / "in/1"), make(tmp_path / "in/2", 2)]
    jobs = [Job(bag, tmp_path / "out" / bag.name, robot(tmp_path), folder=tmp_path / "out") for bag in bags]

    def interrupt(fractions, done) -> None:
        if done and any(0 < fraction < 1 for fraction in fractions):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay_bags(jobs, processes=1, progress=interrupt)
    assert outputs(tmp_path / "out") == ["0", "replayed.jsonl"] and not multiprocessing.active_children()
    stamp = (tmp_path / "out/0/metadata.yaml").stat().st_mtime_ns

    outcomes = replay_bags(jobs, processes=2, resume=True)
    assert [outcome.done_before for outcome in outcomes] == [True, False, False]
    assert [outcome.report.commands for outcome in outcomes] == [50, 10_000, 50]
    assert (tmp_path / "out/0/metadata.yaml").stat().st_mtime_ns == stamp
    assert outputs(tmp_path / "out") == ["0", "1", "2", "replayed.jsonl"]


@pytest.mark.parametrize("kind", ["mcap", "parquet"])
def test_an_output_that_exists_is_kept_replaced_or_refused(tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    job = Job(make(tmp_path / "in"), tmp_path / "out" / f"own.{kind}", "planar_2r", format=kind)
    report = replay_bag(job)
    before = contents(tmp_path / "out")
    assert resumed(job).done_before and resumed(job).report == report
    content = job.output.read_bytes()
    job.output.write_bytes(content[:-100])
    assert f"not as replay wrote it: {job.output.name}; remove it" in resumed(job).error
    job.output.write_bytes(content)
    assert "exists; keep it with --resume, or overwrite it with --force" in resumed(job, resume=False).error
    other = replace(job, topic="/setpoint")
    assert "not made of this bag with the same settings" in resumed(other).error
    assert contents(tmp_path / "out") == before
    assert resumed(replace(other, force=True), resume=False).report == report
    assert contents(tmp_path / "out") != before


def test_contents_decide_what_is_resumed_and_paths_do_not(tmp_path: Path) -> None:
    job = Job(make(tmp_path / "in"), tmp_path / "out", robot(tmp_path))
    report = replay_bag(job)
    (tmp_path / "elsewhere").mkdir()
    moved = replace(job, robot=robot(tmp_path / "elsewhere"), bag=(tmp_path / "in").rename(tmp_path / "b"))
    assert resumed(moved).done_before and resumed(moved).report == report
    written = (job.output / "out.mcap").rename(tmp_path / "taken_out")
    assert "is missing, or not as replay wrote it: out.mcap; remove it" in resumed(moved).error
    written.rename(job.output / "out.mcap")
    heavier = Path(moved.robot).read_text(encoding="utf-8").replace("mass: 1.0", "mass: 1.5", 1)
    Path(moved.robot).write_text(heavier, encoding="utf-8")
    assert "(other: content of the robot); remove it" in resumed(moved).error
    unchanged = replace(job, bag=moved.bag)
    assert resumed(unchanged).done_before
    shutil.rmtree(moved.bag)
    make(moved.bag, seed=1)
    assert "(other: content of the bag); remove it" in resumed(unchanged).error


def test_lines_of_the_manifest_that_are_cut_off_do_not_count(tmp_path: Path) -> None:
    """As those of a disk that was full, and of outputs that something else has put there."""
    job = Job(make(tmp_path / "in"), tmp_path / "out", "planar_2r")
    report = replay_bag(job)
    line = job.manifest.read_text(encoding="utf-8")
    for text, kept in ((line[:-30], False), ("[]\n{}\n" + line + line[:50], True), ("", False)):
        job.manifest.write_text(text, encoding="utf-8")
        outcome = resumed(job)
        assert outcome.done_before == kept
        assert outcome.report == report if kept else "exists, but is not in" in outcome.error


@pytest.mark.parametrize(("name", "folder"), [("a", "."), ("a", None), ("a.parquet", "."), ("a.parquet", None)])
def test_a_process_that_is_killed_as_its_output_appears_has_done_its_bag(
    tmp_path: Path, monkeypatch, name, folder
) -> None:
    kind = "parquet" if name.endswith("parquet") else "mcap"
    job = Job(make(tmp_path / "in"), tmp_path / name, "planar_2r", format=kind, folder=folder and tmp_path / folder)

    def killed(*paths) -> None:
        move(*paths)
        if paths[-1] == job.output:
            raise SystemExit

    move = os.replace
    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(SystemExit):
        replay_bag(job)
    monkeypatch.undo()
    assert resumed(job).done_before and run_job(job).report.commands == STATES.shape[1]


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    job = Job(long_bag(tmp_path / "in"), tmp_path / "out/0", robot(tmp_path))
    command = PROCESSES.Process(target=replay_bags, args=([job],), kwargs={"processes": 1})
    command.start()
    wait_for(lambda: list((tmp_path / "out").glob(".eom_dynamics-*/files/*/*.mcap")))
    others = descendants(command.pid)
    assert others
    command.kill()
    command.join()
    wait_for(lambda: not any(is_running(pid) for pid in others))


def descendants(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [pid for child in children for pid in descendants(child)]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("later", [0.0, 0.3])
def test_ctrl_c_while_processes_start_is_one_line(tmp_path: Path, later: float) -> None:
    """All processes of the terminal get it: the command, and those that still import their modules."""
    for k in range(2):
        make(tmp_path / f"in/{k}")
    code = "import sys; from eom_dynamics.tools.cli.main import main; print('ready', flush=True); sys.exit(main())"
    command = [sys.executable, "-c", code, "replay", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    process = subprocess.Popen(
        [*command, "--robot", "planar_2r"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"

    def starting() -> list[int]:
        return [pid for pid in descendants(process.pid) if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    wait_for(starting)
    time.sleep(later)
    os.killpg(process.pid, signal.SIGINT)
    answer, errors = process.communicate(timeout=60)
    if answer:
        pytest.skip("the replay was faster")
    assert process.returncode == 130 and errors.splitlines() == ["eom_dynamics replay: interrupted"], errors


@pytest.fixture
def cluster(tmp_path: Path):
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("pyarrow")
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address=":0") as local:
        arguments = [(local.scheduler_address, str(tmp_path / f"worker_{k}")) for k in range(2)]
        workers = [PROCESSES.Process(target=run_worker, args=each, daemon=True) for each in arguments]
        for worker in workers:
            worker.start()
        with distributed.Client(local.scheduler_address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield local.scheduler_address, workers
        for worker in workers:
            worker.kill()
            worker.join()


def test_a_worker_of_the_cluster_that_is_killed_loses_nothing_and_repeats_nothing(tmp_path: Path, cluster) -> None:
    address, workers = cluster
    formats = {f"{k}": "mcap" for k in range(3)} | {f"{k}.parquet": "parquet" for k in range(3)}
    bag = long_bag(tmp_path / "in", 5000)
    out = tmp_path / "out"
    jobs = [Job(bag, out / name, "planar_2r", format=kind, folder=out) for name, kind in formats.items()]
    seen: dict[str, int] = {}

    def watch(fractions, done) -> None:
        for outcome in done:
            seen.setdefault(outcome.job.output.name, outcome.job.output.stat().st_mtime_ns)
        if len(done) >= 2:  # several may have finished since the call before
            workers[0].kill()

    outcomes = replay_bags(jobs, scheduler=address, progress=watch)
    assert [(outcome.error, outcome.report.commands) for outcome in outcomes] == [("", 5000)] * len(jobs)
    assert outputs(out) == sorted([*formats, "replayed.jsonl"])
    # Those that were finished when the worker was killed were not made again.
    workers[0].join()
    assert workers[0].exitcode == -signal.SIGKILL
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in seen} == seen
    for name, kind in (("2", "mcap"), ("2.parquet", "parquet")):
        replay_bag(Job(bag, tmp_path / "alone" / name, "planar_2r", format=kind, folder=tmp_path / "alone"))
    (tmp_path / "alone/replayed.jsonl").unlink()
    repeated = {name: data for name, data in contents(out).items() if name.startswith("2")}
    assert contents(tmp_path / "alone") == repeated


def test_a_scheduler_that_does_not_answer_is_an_error_on_one_line(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("eom_dynamics.tools.replay.run._CONNECT_TIMEOUT", 0.2)
    job = Job(make(tmp_path / "in"), tmp_path / "out", "planar_2r")
    with pytest.raises(EomDynamicsError, match=r"scheduler at tcp://127\.0\.0\.1:9 cannot be reached") as caught:
        replay_bags([job], scheduler="tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)

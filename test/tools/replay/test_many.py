# SPDX-License-Identifier: Apache-2.0
"""Many bags in parallel, on processes and on a Dask cluster; outputs that exist are kept, refused or overwritten."""

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_files import SETPOINT, setpoints, write_bag
from paths import CONFIG, contents

from eom_dynamics import load_robot
from eom_dynamics.exceptions import EomDynamicsError
from eom_dynamics.recordings.bags import BagError, find_bags
from eom_dynamics.tools.options import CommandOptions
from eom_dynamics.tools.replay.bag import Job, replay_bag
from eom_dynamics.tools.replay.compare import Difference, Golden
from eom_dynamics.tools.replay.run import Outcome, attempt, replay, replay_bags, replay_result
from eom_dynamics.tools.writing import whole_folder
from eom_dynamics.trajectory import paper_motion

NAMES = load_robot("planar_2r").joint_names
STATES = np.array(paper_motion(2).derivatives(np.arange(50) * 1e-3))
SETTINGS = Job(Path(), Path(), "planar_2r")


def make(path: Path, seed: int = 0) -> Path:
    return write_bag(path, {"/setpoint": (SETPOINT, setpoints(NAMES, STATES + 0.01 * seed))})


def make_three(folder: Path) -> None:
    for k in range(3):
        make(folder / f"in/{k}", k)


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


def test_bags_of_a_folder_are_replayed_as_alone(tmp_path: Path) -> None:
    """A broken one fails alone."""
    make_three(tmp_path)
    (tmp_path / "in/broken.mcap").write_bytes(b"none")
    shares: list[tuple[float, int]] = []
    outcomes = replay([tmp_path / "in"], tmp_path / "out", SETTINGS, progress=lambda *done: shares.append(done))
    assert [bool(outcome.report) for outcome in outcomes] == [True, True, True, False]
    assert "broken.mcap: cannot be read" in outcomes[3].error and shares == [(k, 4) for k in range(1, 5)]
    for k in range(3):
        replay([tmp_path / f"in/{k}"], tmp_path / f"alone/{k}", SETTINGS)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def killed_at_the_second(job: Job) -> Outcome:
    if job.resume:
        return attempt(job)
    if job.bag.name == "1":
        time.sleep(0.5)  # until another bag is being replayed
        os._exit(9)
    with whole_folder(job.output.parent / f"slow_{job.bag.name}", force=False):
        time.sleep(1.0)
    return attempt(job)


def test_resume_does_what_a_killed_process_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_three(tmp_path)
    monkeypatch.setattr("eom_dynamics.tools.replay.run.get_context", lambda _: multiprocessing.get_context("fork"))
    monkeypatch.setattr("eom_dynamics.tools.replay.run.attempt", killed_at_the_second)
    outcomes = replay([tmp_path / "in"], tmp_path / "out", SETTINGS)
    assert outcomes[1].error.startswith(f"{tmp_path / 'in/1'}: A process in the process pool was terminated")
    assert outcomes[1].error.endswith("; go on with --resume") and "\n" not in outcomes[1].error
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*/*")}
    outcomes = replay([tmp_path / "in"], tmp_path / "out", replace(SETTINGS, resume=True))
    assert not any(outcome.error for outcome in outcomes) and outcomes[1].report is not None
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"0", "1", "2"}


@pytest.mark.parametrize("kind", ["mcap", "parquet"])
def test_an_output_that_exists_is_kept_overwritten_or_refused(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pyarrow")
    job = replace(SETTINGS, bag=make(tmp_path / "in"), output=tmp_path / "out" / f"own.{kind}", format=kind)
    replay_bag(job)
    before = contents(tmp_path / "out")
    (kept,) = replay_bags([replace(job, resume=True)])
    assert kept.kept and not kept.failures
    assert "exists already; name another file, or use --force to overwrite it" in attempt(job).error
    assert contents(tmp_path / "out") == before
    changed = replace(job, bag=make(tmp_path / "other", 1), force=True)
    assert attempt(changed).report is not None and contents(tmp_path / "out") != before


@pytest.mark.parametrize("output", ["own", "own.mcap", "own.parquet"])
def test_resume_rewrites_outputs_of_another_robot_parameter_or_bag(tmp_path: Path, output: str) -> None:
    pytest.importorskip("pyarrow")
    kind = "parquet" if output.endswith("parquet") else "mcap"
    job = replace(SETTINGS, bag=make(tmp_path / "in"), output=tmp_path / "out" / output, format=kind)
    robot = tmp_path / "arm.yaml"
    robot.write_text((CONFIG / f"{SETTINGS.robot}.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    job = replace(job, robot=str(robot))
    replay_bag(job)

    def is_kept(changed: Job) -> bool:
        (outcome,) = replay_bags([replace(changed, resume=True)])
        assert not outcome.failures
        return outcome.kept

    assert is_kept(job) and is_kept(job)
    other = replace(job, options=CommandOptions(parameters=(("stop_duration", 0.7),)))
    assert not is_kept(other) and is_kept(other) and not is_kept(job)
    text = robot.read_text(encoding="utf-8")
    robot.write_text(re.sub(r"mass: *([0-9.]+)", r"mass: 1\1", text, count=1), encoding="utf-8")
    assert not is_kept(job) and is_kept(job)
    shutil.rmtree(tmp_path / "in")
    make(tmp_path / "in", 1)
    assert not is_kept(job) and is_kept(job)


def test_a_replay_that_fails_leaves_nothing_half_written(tmp_path: Path) -> None:
    def stop(share: float) -> None:
        assert list(tmp_path.glob(".eom_dynamics-*/files/*/*.mcap"))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay_bag(replace(SETTINGS, bag=make(tmp_path / "in"), output=tmp_path / "out"), stop)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


INTERRUPTED = """
import os, signal, sys, threading
from pathlib import Path
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.replay import run
def interrupt(futures, wait=run.as_completed):
    for future in wait(futures):
        os.killpg(0, signal.SIGINT)  # as Ctrl-C does
        yield future
if __name__ == "__main__":
    run.as_completed = interrupt
    sys.exit(main())
"""


def test_ctrl_c_is_one_line_and_outputs_are_complete(tmp_path: Path) -> None:
    """It reaches all processes of a terminal."""
    make_three(tmp_path)
    (tmp_path / "main.py").write_text(INTERRUPTED)
    command = [sys.executable, tmp_path / "main.py", "replay", tmp_path / "in", "-o", tmp_path / "out"]
    done = subprocess.run(
        [*map(str, command), "--robot", "planar_2r"], capture_output=True, text=True, start_new_session=True
    )
    assert (done.returncode, done.stderr) == (130, "eom_dynamics replay: interrupted\n")
    outputs = list((tmp_path / "out").iterdir())
    assert outputs and all((path / "metadata.yaml").is_file() for path in outputs)


def test_a_cluster_does_the_same(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    make_three(tmp_path)
    replay([tmp_path / "in"], tmp_path / "alone", SETTINGS)
    settings = {"n_workers": 1, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
    with distributed.LocalCluster(**settings) as cluster:
        outcomes = replay([tmp_path / "in"], tmp_path / "out", SETTINGS, scheduler=cluster.scheduler_address)
    assert [outcome.report.commands for outcome in outcomes] == [50, 50, 50]
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


class CancelingExecutor(ThreadPoolExecutor):
    """Cancels each job as often as told, once after its output was written, as a cluster that loses its workers."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self.times = times

    def submit(self, work: Any, job: Job) -> Any:  # type: ignore[override]
        if self.times <= 0:
            return super().submit(work, job)
        self.times -= 1
        work(job)
        future: Future[Outcome] = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize(("times", "fails"), [(1, False), (4, False), (9, True)])
def test_jobs_that_a_cluster_cancels_are_submitted_again(
    times: int, fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_three(tmp_path)
    monkeypatch.setattr("eom_dynamics.tools.replay.run._executor", lambda _: CancelingExecutor(times))
    done: list[float] = []
    outcomes = replay(
        [tmp_path / "in"], tmp_path / "out", SETTINGS, scheduler="x", progress=lambda k, _: done.append(k)
    )
    assert [bool(outcome.error) for outcome in outcomes] == [fails] * 3 and done == [1, 2, 3]
    assert not fails or "CancelledError; go on with --resume" in outcomes[0].error


def test_many_bags_that_differ_are_a_line_each(tmp_path: Path) -> None:
    count = 25
    outcomes = []
    for k in range(count):
        job = replace(SETTINGS, bag=tmp_path / f"bag{k}", golden=Golden(tmp_path))
        rows = [
            Difference("/feedforward", x, 50, 0.1, 50 * (k < 3), 0, 1e-9, worst="joint_1") for x in ("effort", "data")
        ]
        outcomes.append(Outcome(job, differences=rows))
    result = replay_result(outcomes, tmp_path, {})
    text = result.as_text()
    assert len(text.splitlines()) <= 10 and "bag3" not in text
    line = "bag0: /feedforward: effort differs in 50 messages, by up to 0.1 of joint_1, tolerance 1e-09 + 0 relative"
    assert f"{line}; 1 more fields differ\n" in text
    assert result.failures == [f"3 of {count} bags differ from {tmp_path}: bag0, bag1, bag2"]


def test_a_scheduler_that_does_not_answer_is_an_error_on_one_line(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("eom_dynamics.tools.replay.run._CONNECT_TIMEOUT", 0.2)
    with pytest.raises(EomDynamicsError, match=r"scheduler.*tcp://127\.0\.0\.1:9") as caught:
        replay([make(tmp_path / "in")], tmp_path / "out", SETTINGS, scheduler="tcp://127.0.0.1:9")
    assert "\n" not in str(caught.value)

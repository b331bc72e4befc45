# SPDX-License-Identifier: Apache-2.0
"""Worker process that plans trajectories: its answers, its end, and the end of its node."""

import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from launching import wait_for
from node_client import joint_trajectory
from rclpy.serialization import serialize_message

import eom_dynamics as eom
from eom_dynamics.control.serialized import trajectory_outline
from eom_dynamics.exceptions import StateError, TrajectoryError
from eom_dynamics.robot.payload import payload_parameters
from eom_dynamics.ros.dynamics import planner
from eom_dynamics.ros.dynamics.planner import PlannerProcess
from eom_dynamics.ros.planning.fits import plan
from eom_dynamics.ros.planning.jobs import PlanningJob
from eom_dynamics.trajectory import check

ROBOT = eom.load_robot("sea_planar_2r")
NAMES = list(ROBOT.joint_names)
PLAIN = PlanningJob(pickle.dumps(ROBOT), payload_parameters(ROBOT, []))


def job(times: Any = (0.0, 2.0), names: Any = NAMES, **changes: Any) -> PlanningJob:
    positions = np.outer(np.linspace(0.0, 0.1, len(times)), np.ones(len(names)))
    return PLAIN._replace(message=serialize_message(joint_trajectory(list(names), times, positions)), **changes)


@pytest.fixture
def process() -> Iterator[PlannerProcess]:
    process = PlannerProcess()
    yield process
    process.close()


def test_a_process_that_ends_is_started_again(process: PlannerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    motion = process.compute(job()).motion
    np.testing.assert_array_equal(motion.states, plan(job()).motion.states)
    with pytest.raises(TrajectoryError, match="the robot has no joint 'elbow'"):
        process.compute(job(names=["elbow", NAMES[1]]))
    first = process._process
    assert os.getpriority(os.PRIO_PROCESS, first.pid) >= 10
    (ignored,) = re.findall(r"SigIgn:\t(\w+)", Path(f"/proc/{first.pid}/status").read_text())
    assert int(ignored, 16) >> signal.SIGINT - 1 & 1
    os.kill(first.pid, signal.SIGSTOP)
    monkeypatch.setattr(planner, "_CHECK_PERIOD", 0.01)
    with pytest.raises(TrajectoryError, match=r"the planner process did not answer .* and is started again"):
        process.compute(job(), lambda: False)
    assert first.poll() is not None
    process.compute(job())
    second = process._process
    os.kill(second.pid, signal.SIGKILL)
    second.wait()
    assert process.compute(job()).motion.end == motion.end  # nobody had noticed
    process.close()
    with pytest.raises(TrajectoryError, match="the node ends"):
        process.compute(job())


PARENT = """
import sys, time
from eom_dynamics.ros.dynamics.planner import PlannerProcess
sys.path.insert(0, sys.argv[1])
process = PlannerProcess()
process._start()
print(process._process.pid, flush=True)
time.sleep(600)
"""


def test_the_process_ends_with_its_node(tmp_path: Path) -> None:
    """With kill -9, during an endless import."""
    (tmp_path / "rclpy.py").write_text("print(flush=True)\nimport time\ntime.sleep(600)")
    with subprocess.Popen([sys.executable, "-c", PARENT, tmp_path], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = Path(f"/proc/{int(parent.stdout.readline())}")
        parent.stdout.readline()  # of the import
        parent.kill()
    wait_for(lambda: not worker.exists() or "\nState:\tZ" in (worker / "status").read_text())


def test_outlines_are_those_of_the_message() -> None:
    for effort in ([], [1.0, 2.0]):
        message = joint_trajectory(NAMES, [0.25, 1.0], np.zeros((2, 2)))
        message.header.frame_id, message.header.stamp.sec = "base", 17
        message.points[0].effort = effort
        data = serialize_message(message)
        assert trajectory_outline(data, of_points=True) == (17 * 10**9, "base", 2, 0.25)
    with pytest.raises(StateError, match="incomplete"):
        trajectory_outline(data[:40], of_points=True)


def test_joints_without_a_name_are_held_at_their_positions() -> None:
    found = plan(job(names=NAMES[:1], positions=np.array([0.0, 0.7])))
    assert found.held.tolist() == [False, True]
    np.testing.assert_array_equal(found.motion.states[0][:, 1], 0.7)
    with pytest.raises(StateError, match="no position of the joints without a name is known"):
        plan(job(names=NAMES[:1]))


def test_a_motion_starts_from_the_positions_of_an_arm_at_rest() -> None:
    start = plan(job((1.0, 2.0), begin=0.5, is_at_rest=True, positions=np.array([-0.1, 0.1]))).motion
    np.testing.assert_array_equal(start.states[0, 0], [-0.1, 0.1])
    assert (start.start, start.end) == (0.5, 2.0)
    assert plan(job((1.0, 2.0), begin=1.5)).motion.start == 2.0
    with pytest.raises(StateError, match=r"it ended 0\.5 s ago"):
        plan(job((1.0, 2.0), begin=2.5))


def test_motions_beyond_limits_are_refused_slowed_down_or_noted() -> None:
    fast = (0.0, 0.01)
    for policies in ({}, {"trajectory_limits": "ignore"}, {"limits": "ignore"}):
        with pytest.raises(TrajectoryError, match="exceeds limits"):
            plan(job(fast, **policies))
    slower = plan(job(fast, trajectory_limits="slow_down"))
    assert slower.motion.end > 0.1 and slower.notes[0].startswith("trajectory slowed down from 0.01 s")
    fastest = plan(job(trajectory_limits="fastest")).motion.end
    assert 0.01 < fastest < 2.0
    for motion in (slower.motion, plan(job(trajectory_limits="fastest")).motion):  # with a reserve for pauses
        verdict = check(eom.ElasticArm(ROBOT), motion, rate=2000.0)
        used = {x.quantity: x.ratio for x in verdict.peaks if x.quantity not in ("position", "velocity")}
        assert verdict.ok and max(used.values()) <= 0.951 and max(x.ratio for x in verdict.peaks) > 0.94
    (note,) = plan(job(fast, limits="warn", trajectory_limits="ignore")).notes
    assert note.startswith("trajectory exceeds limits: ")
    assert plan(job(fast, limits="ignore", trajectory_limits="ignore")).notes == ()

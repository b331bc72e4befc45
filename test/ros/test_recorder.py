# SPDX-License-Identifier: Apache-2.0
"""``eom_dynamics record``: what is published is in the file, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from node_client import PATIENCE
from processes import popen

pytest.importorskip("rosbags")

from eom_dynamics.bags import Bag, Layouts, Rows
from eom_dynamics.tools.cli.main import main
from eom_dynamics.tools.replay import Job, replay_bag

COMMAND = (sys.executable, "-m", "eom_dynamics.tools.cli.main", "record")


def started(path: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [*COMMAND, "-o", path, "--namespace", "recorded", *arguments]
    return popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("ending", ["Ctrl-C", "SIGKILL", "size"])
def test_what_is_published_is_recorded(ros, tmp_path: Path, ending: str) -> None:
    from eom_dynamics.msg import JointTrajectorySetpoint
    from sensor_msgs.msg import JointState

    path = tmp_path / "new/bag.mcap"
    recorder = started(path, *(["--size", "0.1"] if ending == "size" else []))
    node = ros.create_node("source", namespace="recorded")
    setpoints = node.create_publisher(JointTrajectorySetpoint, "setpoint", 1000)
    states = node.create_publisher(JointState, "joint_states", 1000)
    names, filler = ["joint_1", "joint_2"], "x" * (4000 if ending == "SIGKILL" else 0)  # for whole chunks
    count = 0
    try:
        deadline = time.monotonic() + PATIENCE
        while not (setpoints.get_subscription_count() and states.get_subscription_count()):
            assert time.monotonic() < deadline and recorder.poll() is None
            time.sleep(0.05)
        # For some time, since the recorder meets the publishers later than they meet it.
        begin = time.monotonic()
        while count < 200 or time.monotonic() < begin + 3 or (ending == "size" and recorder.poll() is None):
            q = [1e-4 * count, 0.0]
            message = JointTrajectorySetpoint(joint_names=names, position=q, velocity=q, acceleration=q, jerk=q, snap=q)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(10**9 + count * 10**6, 10**9)
            setpoints.publish(message)
            state = JointState(name=names, position=q)
            state.header.frame_id = filler
            states.publish(state)
            count += 1
            time.sleep(3e-3)
        if ending != "size":
            time.sleep(1.0)
            recorder.send_signal(signal.SIGINT if ending == "Ctrl-C" else signal.SIGKILL)
        output, errors = recorder.communicate(timeout=PATIENCE)
    finally:
        node.destroy_node()
        recorder.kill()
        recorder.wait()
    assert recorder.returncode == (-signal.SIGKILL if ending == "SIGKILL" else 0), errors
    assert ending == "SIGKILL" or f"MB: {path}" in output
    with Bag(path) as bag:
        assert bool(bag.damage) == (ending == "SIGKILL")
        topics = {topic.name: topic for topic in bag.topics}
        setpoint = topics["/recorded/setpoint"]
        layouts, stamps = Layouts(setpoint.types(), setpoint.type), []
        for _, messages in bag.messages(setpoint):
            for rows in layouts.rows(messages):
                assert isinstance(rows, Rows)
                stamps += rows.layout.numbers(rows.rows, "header.stamp.nanosec")[:, 0].tolist()
    found = len(stamps)
    assert found > 0 and (ending != "Ctrl-C" or stamps[-1] == (count - 1) * 10**6 % 10**9)
    report = replay_bag(Job(path, tmp_path / "out", "planar_2r"))
    assert report.commands == found and not report.refusals.total


@pytest.mark.parametrize("moment", [0.0, 0.05])
def test_ctrl_c_while_the_recorder_starts_is_no_traceback(tmp_path: Path, moment: float) -> None:
    """From the start of the process that takes the place of the command."""
    command = [*COMMAND, "-o", str(tmp_path / "bag.mcap")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while b"eom_dynamics.ros.recorder" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "Traceback" not in errors, errors
    assert "no message came; are the nodes in this namespace" in errors


@pytest.mark.parametrize("namespace", ["a b", "1st", "left//arm", "é"])
def test_a_namespace_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], namespace: str
) -> None:
    path = tmp_path / "bag.mcap"
    assert main(["record", "-o", str(path), "--namespace", namespace]) == 2
    error = capsys.readouterr().err
    assert "must be names of letters" in error and error.count("\n") == 1
    assert not path.exists()


def test_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "bag.mcap"
    path.write_text("a recording")
    for name, reason in (("bag.mcap", "exists; name another file"), ("bag", "must end in .mcap")):
        done = subprocess.run([*COMMAND, "-o", tmp_path / name], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and reason in done.stderr and done.stderr.count("\n") == 1
    assert path.read_text() == "a recording"

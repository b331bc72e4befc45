# SPDX-License-Identifier: Apache-2.0
"""The fastest motion over the real nodes: planned by a service, streamed, followed by the simulated robot, recorded."""

from __future__ import annotations

import signal
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import numpy as np
from node_client import PATIENCE, status_of
from paths import CONFIG
from processes import popen
from test_simulated_robot import BY_CLOCK, RobotClient

import eom_dynamics as eom
from eom_dynamics.elastic.bounds import bounds
from eom_dynamics.messages.fields import STATE_FIELDS

PARAMETERS = CONFIG / "sea_planar_2r.yaml"
ARM = eom.ElasticArm(eom.load_robot(PARAMETERS))
NAMES = list(ARM.robot.joint_names)
WAYPOINTS = [[0.0, 0.5], [0.25, 0.3], [0.4, 0.6]]

# Held for 1 ms, commands move the motors with a ripple.
RIPPLE = 0.02

TOPICS = {"feedforward": "FeedforwardCommand", "motor_states": "JointState"}


def planned(planning: Any) -> np.ndarray:
    """Samples (5, N, n) at 1 kHz of the fastest motion through the waypoints, by the service."""
    from eom_dynamics.srv import ComputeTrajectoryFeedforward
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    trajectory = JointTrajectory(joint_names=NAMES)
    for k, q in enumerate(WAYPOINTS):
        point = JointTrajectoryPoint(positions=array("d", q))
        point.time_from_start.sec = k
        trajectory.points.append(point)
    request = ComputeTrajectoryFeedforward.Request(trajectory=trajectory, timing="fastest", sample_rate=1000.0)
    answer = planning.call(ComputeTrajectoryFeedforward, "eom_dynamics/trajectory_feedforward", request)
    assert answer.success, answer.message
    assert not answer.exceeded
    return np.array([np.reshape(getattr(answer, field), (-1, len(NAMES))) for field in STATE_FIELDS])


def test_no_limit_is_exceeded_in_the_recording(start: Any, tmp_path: Path) -> None:
    dynamics = start("--params-file", PARAMETERS)
    beside = {"beside": dynamics.process}
    at_start = ("-p", f"initial_position:={WAYPOINTS[0]}", "-p", "publish_rate:=1000.0")
    robot = start(
        *("--params-file", PARAMETERS, *at_start, *BY_CLOCK),
        module="simulated_robot_node",
        client=RobotClient,
        **beside,
    )
    planning = start.planning("--params-file", PARAMETERS, **beside)
    bag, namespace = tmp_path / "bag.mcap", dynamics.process.namespace
    command = (sys.executable, "-m", "eom_dynamics.tools.cli.main", "record", "-o", bag, "--namespace", namespace)
    recorder = popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        states = planned(planning)
        robot.start_clock()
        # This process, and the recorder.
        robot.wait(
            lambda: all(dynamics.node.count_subscribers(f"{namespace}/{topic}") >= 2 for topic in TOPICS),
            "the recorder",
        )
        sent = []
        robot.repeat(
            lambda: sent.append(dynamics.publish(**dict(zip(STATE_FIELDS, states[:, 0], strict=True)))),
            lambda: status_of(robot.diagnostics[-1])[2]["commands"] != "0",
            "a command",
        )
        for k, setpoint in enumerate(np.swapaxes(states, 0, 1), start=1):
            sent.append(dynamics.publish(**dict(zip(STATE_FIELDS, setpoint, strict=True))))
            dynamics.wait(lambda: len(dynamics.motor_setpoint) == len(sent), "the command")
            robot.tick(k, lambda k=k: len(robot.motors) >= k)
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=PATIENCE)
    finally:
        recorder.kill()
        recorder.wait()
    assert recorder.returncode == 0, errors
    np.testing.assert_allclose(robot.joints[-1].position, WAYPOINTS[-1], rtol=0, atol=2e-3)
    recorded = read_bag(bag)
    limits = bounds(ARM)
    counts = [len(recorded[f"{namespace}/{topic}"]) for topic in TOPICS]
    assert min(counts) >= states.shape[1]

# SPDX-License-Identifier: Apache-2.0
"""Motions sent to a dynamics node while its process is stopped."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from sensor_msgs.msg import JointState

import eom_dynamics as eom
from eom_dynamics.control.trajectories import write_spline
from eom_dynamics.ros.interfaces import SplineTrajectory, TrajectoryStatus
from eom_dynamics.trajectory import rest_to_rest

ROBOT = eom.load_robot("panda")
NAMES = list(ROBOT.joint_names)
HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])


@contextmanager
def held_up(client: Any) -> Iterator[None]:
    client.process.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        client.process.process.send_signal(signal.SIGCONT)


def test_a_motion_that_was_ended_while_the_node_was_held_up_does_not_begin(start: Any) -> None:
    client = start("-p", "robot_file:=panda", "-p", "safety:=strict")
    states = client.publisher(JointState, "joint_states")
    timer = client.node.create_timer(0.01, lambda: states.publish(JointState(name=NAMES, position=HOME.tolist())))
    statuses = client.collect(TrajectoryStatus, "trajectory_status")
    publisher = client.publisher(SplineTrajectory, "spline_trajectory")
    client.wait(client._subscriptions[-1].get_publisher_count, "the node")
    motion = rest_to_rest(HOME, HOME + 0.1, 1.0)
    message = SplineTrajectory()
    write_spline(message, motion, NAMES)
    client.spin(0.3)
    with held_up(client):
        publisher.publish(message)
        publisher.publish(SplineTrajectory())
        client.spin(0.5)
    client.wait(lambda: statuses, "its status")
    client.spin(1.0)
    client.node.destroy_timer(timer)
    assert [(x.status, x.message) for x in statuses] == [(TrajectoryStatus.STOPPED, "stopped by an empty trajectory")]

# SPDX-License-Identifier: Apache-2.0
"""Measured input of the node: cycles have it while it is recent; what is missing, stale or wrong is reported."""

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from rclpy.time import Time
from sensor_msgs.msg import JointState
from setpoint_engines import unspun_node

START, MS = 1_700_000_000 * 10**9, 10**6


@pytest.mark.usefixtures("ros")
def test_measurements_are_taken_while_they_are_recent_and_reported_if_not() -> None:
    with unspun_node("/measured", robot_file="sea_planar_2r", use_sim_time="true") as node:
        stream, clock = node._stream, node.get_clock()
        measured, names = stream.measured, list(node.arm.robot.joint_names)

        def publish(k: int, q: list[float], stamp: int | None = None, **fields: list[float]) -> None:
            clock.set_ros_time_override(Time(nanoseconds=START + k * MS))
            message = JointState(name=names, position=q, velocity=fields.get("velocity", [0.0, 0.0]))
            time = START + (k if stamp is None else stamp) * MS
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, 10**9)
            measured._receive("joint_states", message)

        assert not measured.report()
        measured.need("test", links=True, motors=False)
        publish(0, [np.nan, 0.0])
        assert measured.report()["last left out"] == f"joint_states: position of {names[0]!r} is nan"
        assert "joint_states has not told joint_1, joint_2" in node.report(1.0).values["measured"]
        for k in range(1, 10):
            publish(k, [0.5, -0.2])
        assert "measured" not in measured.report()
        publish(10, [0.5, -0.2], stamp=-1000)
        assert "its stamp is 1.01 s old: synchronise the clocks" in measured.report()["last left out"]
        assert measured.report()["measurements left out"] == "2"
        for k in range(11, 500):
            clock.set_ros_time_override(Time(nanoseconds=START + k * MS))
            stream._now()
        assert "joint_states is 0.49 s old" in measured.report()["measured"]
        measured.need("test", links=False, motors=False)
        assert not measured._subscriptions and measured.missing == ""

# SPDX-License-Identifier: Apache-2.0
"""A planner in a process of its own: asks for the feedforward of whole trajectories, in some windows of time.

    python bench/planner.py ANSWERS.npz --windows SECONDS COUNT

takes turns between windows without calls, with a call a second, and with calls back to back, and saves when each call
began and ended, on the monotonic clock.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import time
from array import array

import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from trajectory_msgs.msg import JointTrajectoryPoint

from eom_dynamics import load_robot
from eom_dynamics.ros.interfaces import ComputeTrajectoryFeedforward
from eom_dynamics.trajectory import paper_motion

PAUSES = (math.inf, 1.0, 0.0)
"""From the start of a call to that of the next, s, in the windows one after the other."""

WAYPOINTS, DURATION, RATE = 200, 10.0, 1000.0

# The paper's motion at a pace that a planner would choose.
_SLOWER = 5.0


def request() -> ComputeTrajectoryFeedforward.Request:
    """Seven joints, 200 waypoints with velocities and accelerations, 10 s at 1 kHz."""
    robot = load_robot("iiwa")
    wanted = ComputeTrajectoryFeedforward.Request(sample_rate=RATE)
    wanted.trajectory.joint_names = list(robot.joint_names)
    for t in np.linspace(0.0, DURATION, WAYPOINTS):
        q, qd, qdd = (x / _SLOWER**k for k, x in enumerate(paper_motion(robot.n).derivatives(t / _SLOWER, 2)))
        point = JointTrajectoryPoint(positions=array("d", q), velocities=array("d", qd), accelerations=array("d", qdd))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(t * 1e9), 10**9)
        wanted.trajectory.points.append(point)
    return wanted


def main() -> None:
    """Call and save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("answers")
    parser.add_argument("--windows", nargs=2, type=float, required=True)
    options, ros_arguments = parser.parse_known_args()
    os.nice(5)  # as a user would who has one machine for all of it
    rclpy.init(args=ros_arguments)
    node = rclpy.create_node("planner")
    client = node.create_client(ComputeTrajectoryFeedforward, "eom_dynamics/trajectory_feedforward")
    assert client.wait_for_service(30.0), "the service is not there"
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    wanted = request()
    calls = []

    def call() -> None:
        began = time.monotonic()
        future = client.call_async(wanted)
        executor.spin_until_future_complete(future, 30.0)
        answer = future.result()
        calls.append((began, time.monotonic()))
        assert answer.success, answer.message
        assert len(answer.motor_effort) == 7 * (round(DURATION * RATE) + 1)

    for _ in range(3):  # discovery, and memory that is touched for the first time
        call()
    calls.clear()
    gc.disable()
    length, count = options.windows
    start = time.monotonic()
    for window in range(int(count)):
        end = start + (window + 1) * length
        pause = PAUSES[window % len(PAUSES)]
        while time.monotonic() < end:
            began = time.monotonic()
            if pause < math.inf:
                call()
            time.sleep(max(0.0, min(end, began + pause) - time.monotonic()))
    np.savez(options.answers, start=start, calls=np.array(calls))
    os._exit(0)


if __name__ == "__main__":
    main()

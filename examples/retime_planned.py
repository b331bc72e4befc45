# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 client that has a planned trajectory retimed: as fast along its path as the limits of the robot allow.

Usage: python examples/retime_planned.py, with the planning node running. Start it by
``ros2 run eom_dynamics planning_node --ros-args --params-file config/panda.yaml``, or in the environment of
``make build`` by ``.venv/bin/python -m eom_dynamics.ros.planning_node`` with the same arguments.
"""

import sys
import time

import numpy as np
import rclpy
from eom_dynamics.srv import ComputeTrajectoryFeedforward
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.signals import SignalHandlerOptions
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

NAMES = [f"fer_joint{i}" for i in range(1, 8)]
HOME = [0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]
TARGET = [0.6, -0.3, 0.3, -1.9, 0.2, 1.8, 1.2]
RATE = 500.0  # of the points of the answer, Hz: a controller interpolates between them
PATIENCE = 10.0  # s
ATTEMPTS = 3  # a node that has not met this process yet drops its answer


def planned() -> JointTrajectory:
    """Stand in for a planner: 20 points on a straight line in joint space, in 3 s."""
    trajectory = JointTrajectory(joint_names=NAMES)
    for share in np.linspace(0.0, 1.0, 20):
        q = (1 - share) * np.array(HOME) + share * np.array(TARGET)
        point = JointTrajectoryPoint(positions=q.tolist(), time_from_start=Duration(seconds=3.0 * share).to_msg())
        trajectory.points.append(point)
    return trajectory


def retimed(answer: ComputeTrajectoryFeedforward.Response) -> JointTrajectory:
    """Samples of the answer as a trajectory, with efforts as feedforward for the controller."""
    trajectory = JointTrajectory(joint_names=answer.joint_names)

    def rows(field: str) -> list[list[float]]:
        values: NDArray[np.float64] = np.reshape(getattr(answer, field), (len(answer.time), -1))
        return values.tolist()

    columns = (rows(field) for field in ("position", "velocity", "acceleration", "effort"))
    for t, q, qd, qdd, effort in zip(answer.time, *columns, strict=True):
        point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd, effort=effort)
        point.time_from_start = Duration(seconds=t).to_msg()
        trajectory.points.append(point)
    return trajectory


def main() -> int:
    """Ask the service, and print the durations."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # Ctrl-C is a KeyboardInterrupt
    node = rclpy.create_node("retime_planned")
    client = node.create_client(ComputeTrajectoryFeedforward, "eom_dynamics_planning/trajectory_feedforward")
    request = ComputeTrajectoryFeedforward.Request(trajectory=planned(), sample_rate=RATE)
    # Only positions define the path: derivatives of a time parameterization would bend it.
    request.timing, request.follow = request.FASTEST, request.POSITIONS
    answers: list[ComputeTrajectoryFeedforward.Response] = []
    for _ in range(ATTEMPTS):
        if not answers and client.wait_for_service(PATIENCE):
            future = client.call_async(request)
            # Accept it during a later attempt as well: a busy machine computes for longer than PATIENCE.
            future.add_done_callback(lambda done: answers.append(done.result()))
            until = time.monotonic() + PATIENCE
            while not answers and time.monotonic() < until:
                rclpy.spin_once(node, timeout_sec=1.0)
    answer = answers[0] if answers else None
    if answer is None or not answer.success:
        missing = "no answer of the planning node; start it as this file says, in the same domain and namespace"
        print(missing if answer is None else answer.message)
        return 1
    trajectory = retimed(answer)
    print(f"planned: 3.000 s\nretimed: {answer.time[-1]:.3f} s, {len(trajectory.points)} points within all limits")
    # Publish it to a joint trajectory controller, or send it as the goal of its action.
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)

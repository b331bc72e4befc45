# SPDX-License-Identifier: Apache-2.0
"""Send one setpoint at rest that you type, and show the command that the node answers.

Usage: python examples/type_setpoint.py POSITION…, one for each joint, in rad or m, with the node running. Start it by
``.venv/bin/python -m eom_dynamics.ros.dynamics_node --ros-args -p robot_file:=sea_planar_2r``.
"""

import sys
import time

import rclpy
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
from rclpy.utilities import remove_ros_args

PATIENCE = 60.0  # s, for the node, which compiles code for a new robot first
REPEATS = 5.0  # s, for another answer than the held position


def main(position: list[float]) -> None:
    """Send the setpoint once a node is there, and print the motor commands."""
    rclpy.init()
    node = rclpy.create_node("type_setpoint")
    answers: list[FeedforwardCommand] = []
    node.create_subscription(FeedforwardCommand, "feedforward", answers.append, 10)
    publisher = node.create_publisher(JointTrajectorySetpoint, "setpoint", 10)
    end = time.monotonic() + PATIENCE
    while not (publisher.get_subscription_count() and node.count_publishers("feedforward")):
        if time.monotonic() > end:
            sys.exit("no node takes setpoints: start one, in the same ROS_DOMAIN_ID and namespace")
        rclpy.spin_once(node, timeout_sec=0.1)
    still = [0.0] * len(position)
    rest = dict.fromkeys(("velocity", "acceleration", "jerk", "snap"), still)
    end = time.monotonic() + PATIENCE
    # While no source commands the arm, the node continues to send the held position.
    while not (fresh := [answer for answer in answers if not answer.held]):
        if time.monotonic() > end:
            sys.exit(f"{'the arm is held where it is' if answers else 'no answer'}: the log of the node says why")
        publisher.publish(JointTrajectorySetpoint(position=position, **rest))
        rclpy.spin_once(node, timeout_sec=0.1)
        if answers and end > time.monotonic() + REPEATS:
            end = time.monotonic() + REPEATS
    answer = fresh[0]
    rclpy.shutdown()
    for name, q, theta, effort in zip(
        answer.joint_names, position, answer.motor_position, answer.motor_effort, strict=True
    ):
        print(f"{name}: link at {q:g}, motor at {theta:.4f}, motor effort {effort:.3f}")


if __name__ == "__main__":
    words = remove_ros_args(sys.argv)[1:]
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        sys.exit(f"a position is no number: {error}")
    if not numbers:
        sys.exit(__doc__)
    main(numbers)

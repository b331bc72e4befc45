# SPDX-License-Identifier: Apache-2.0
"""Move the arm to a target that you type, and show the command at its end.

Usage: python examples/type_target.py POSITION…, one for each joint, in rad or m, after ``type_setpoint.py``, with the
node running.
"""

import sys
import time

import rclpy
from eom_dynamics.msg import FeedforwardCommand
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState

PATIENCE = 60.0  # s
SILENCE = 0.5  # s, without commands, after the motion


def main(position: list[float]) -> None:
    """Publish the target, and print the last command of the motion."""
    rclpy.init()
    node = rclpy.create_node("type_target")
    commands: list[FeedforwardCommand] = []
    node.create_subscription(FeedforwardCommand, "feedforward", commands.append, 10)
    publisher = node.create_publisher(JointState, "target", 10)
    end = time.monotonic() + PATIENCE
    while not (publisher.get_subscription_count() and node.count_publishers("feedforward")):
        if time.monotonic() > end:
            sys.exit("no node takes targets: start one, in the same ROS_DOMAIN_ID and namespace")
        rclpy.spin_once(node, timeout_sec=0.1)
    publisher.publish(JointState(position=position))
    count, last = 0, end
    while time.monotonic() < last + SILENCE:
        rclpy.spin_once(node, timeout_sec=0.1)
        if len(commands) > count:
            count, last = len(commands), time.monotonic()
    if not commands:
        sys.exit("the arm does not move: the log of the node says why")
    rclpy.shutdown()
    command = commands[-1]
    for name, q, theta, effort in zip(
        command.joint_names, position, command.motor_position, command.motor_effort, strict=True
    ):
        print(f"{name}: link at {q:g}, motor at {theta:.4f}, motor effort {effort:.3f}")


if __name__ == "__main__":
    try:
        numbers = [float(word) for word in remove_ros_args(sys.argv)[1:]]
    except ValueError as error:
        sys.exit(f"a position is no number: {error}")
    if not numbers:
        sys.exit(__doc__)
    main(numbers)

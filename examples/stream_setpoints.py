# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 client that streams setpoints to the node at 1 kHz and receives motor commands.

Usage: python examples/stream_setpoints.py [SECONDS], with the node running. Start it by
``ros2 launch eom_dynamics feedforward.launch.py``, or in the environment of ``make build`` by
``.venv/bin/python -m eom_dynamics.ros.dynamics_node --ros-args --params-file config/iiwa.yaml``.
"""

import sys

import rclpy
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
from rclpy.task import Future
from rclpy.utilities import remove_ros_args

from eom_dynamics.trajectory import paper_motion

RATE = 1000.0


def main(duration: float = 2.0) -> None:
    """Stream the motion of the paper, and print how many commands came back and the last of them."""
    rclpy.init()
    node = rclpy.create_node("stream_setpoints")
    motion, count, sent = paper_motion(), round(duration * RATE), 0
    commands: list[FeedforwardCommand] = []
    done = Future()

    def send() -> None:
        nonlocal sent
        if sent < count:
            q, qd, qdd, qddd, qdddd = (x.tolist() for x in motion.derivatives(sent / RATE))
            setpoint = JointTrajectorySetpoint(position=q, velocity=qd, acceleration=qdd, jerk=qddd, snap=qdddd)
            setpoint.header.stamp = node.get_clock().now().to_msg()
            publisher.publish(setpoint)
            sent += 1

    def receive(command: FeedforwardCommand) -> None:
        commands.append(command)
        if len(commands) == count:
            done.set_result(None)

    publisher = node.create_publisher(JointTrajectorySetpoint, "setpoint", 1000)
    node.create_subscription(FeedforwardCommand, "feedforward", receive, 1000)
    while not (publisher.get_subscription_count() and node.count_publishers("feedforward")):
        rclpy.spin_once(node, timeout_sec=0.1)  # until the node is there
    node.create_timer(1 / RATE, send)
    rclpy.spin_until_future_complete(node, done)

    last = commands[-1]
    print(f"{sent} setpoints sent, {len(commands)} commands received; the last one:")
    for joint, tau, theta in zip(last.joint_names, last.effort, last.motor_position, strict=True):
        print(f"  {joint:12} effort {tau:8.3f} N m, motor position {theta:8.4f} rad")
    rclpy.shutdown()


if __name__ == "__main__":
    main(*map(float, remove_ros_args(sys.argv)[1:2]))

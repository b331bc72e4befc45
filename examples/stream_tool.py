# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 client that moves the tool of the iiwa along a path by task setpoints, and receives motor commands.

Usage: python examples/stream_tool.py [SECONDS], with the node running, as for stream_setpoints.py.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import rclpy
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint, TaskSetpoint
from geometry_msgs.msg import Accel, Point, Quaternion, Twist, Vector3
from numpy.typing import NDArray
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time
from rclpy.utilities import remove_ros_args

import eom_dynamics as eom
from eom_dynamics.trajectory import through_poses

RATE = 250.0
START = np.array([0.1, 0.5, 0.2, -1.2, 0.3, 0.8, 0.1])  # rad
PATIENCE = 2.0  # s, for the node and the last commands
NAMES = ("twist", "acceleration", "jerk", "snap")


def task_setpoint(C: NDArray[np.float64], *body_twists: NDArray[np.float64]) -> TaskSetpoint:
    """Pose (4, 4), and body twist with three derivatives (6,) each, as a message."""
    x, y, z, w = eom.lie.quaternion(C[:3, :3]).tolist()
    message = TaskSetpoint()
    message.pose.position = Point(**dict(zip("xyz", C[:3, 3].tolist(), strict=True)))
    message.pose.orientation = Quaternion(x=x, y=y, z=z, w=w)
    # Messages have them along the axes of the base.
    levels = eom.lie.world_aligned_twists(C, *body_twists)
    for name, kind, level in zip(NAMES, (Twist, Accel, Accel, Accel), levels, strict=True):
        angular, linear = (Vector3(**dict(zip("xyz", half, strict=True))) for half in level.reshape(2, 3).tolist())
        setattr(message, name, kind(angular=angular, linear=linear))
    return message


def main(duration: float = 2.0) -> None:
    """Move the tool by 0.2 m and back, and print how many commands came back."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # Ctrl-C is a KeyboardInterrupt
    node = rclpy.create_node("stream_tool")
    joints = node.create_publisher(JointTrajectorySetpoint, "setpoint", 10)
    tool = node.create_publisher(TaskSetpoint, "task_setpoint", 1000)
    commands: list[FeedforwardCommand] = []
    since = 0

    def receive(command: FeedforwardCommand) -> None:
        # The stamp is that of its setpoint, unless the watchdog or a refusal holds the arm.
        if not command.held and command.header.stamp.sec * 10**9 + command.header.stamp.nanosec > since:
            commands.append(command)

    def restart() -> None:
        """Take no answers to what was published before."""
        nonlocal since
        commands.clear()
        since = node.get_clock().now().nanoseconds

    node.create_subscription(FeedforwardCommand, "feedforward", receive, 10_000)
    begin: float | None = time.monotonic()
    while not (tool.get_subscription_count() and node.count_publishers("feedforward")):
        rclpy.spin_once(node, timeout_sec=0.1)  # until the node is there
        if begin is not None and time.monotonic() > begin + PATIENCE:
            print("waiting for the node; start it as for stream_setpoints.py, in this domain and namespace", flush=True)
            begin = None

    def stamped(
        message: TaskSetpoint | JointTrajectorySetpoint, stamp: Time | None = None
    ) -> TaskSetpoint | JointTrajectorySetpoint:
        message.header.stamp = (stamp or node.get_clock().now()).to_msg()
        return message

    def repeat(publish: Callable[[], None], what: str) -> None:
        """Publish until a command comes back."""
        restart()
        for _ in range(100):
            publish()
            rclpy.spin_once(node, timeout_sec=0.1)
            if commands:
                return
        sys.exit(f"no command for {what}: see the log of the node")

    pose = eom.Kinematics(eom.load_robot("iiwa")).pose(START)
    there = pose @ eom.lie.exp([0.0, 0.2, 0.0, 0.2, 0.0, 0.0])
    path = through_poses([0.0, duration / 2, duration], [pose, there, pose])
    # Where the joints are: by a setpoint of the joints here, by joint_states where somebody measures them.
    still = dict.fromkeys(("velocity", "acceleration", "jerk", "snap"), [0.0] * 7)
    repeat(lambda: joints.publish(stamped(JointTrajectorySetpoint(position=START.tolist(), **still))), "the joints")
    # The node may still prepare the kinematics of the tool.
    repeat(lambda: tool.publish(stamped(task_setpoint(pose, *np.zeros((4, 6))))), "the tool")

    restart()
    count, sent, latest = round(duration * RATE), 0, time.monotonic()

    def send() -> None:
        nonlocal sent, latest
        if sent < count:
            sent, latest = sent + 1, time.monotonic()
            # By the time of the motion, also where this process does not hold the rate.
            stamp = Time(nanoseconds=since + round(sent / RATE * 1e9))
            tool.publish(stamped(task_setpoint(*path.derivatives(sent / RATE)), stamp))

    node.create_timer(1 / RATE, send)
    while len(commands) < count and (sent < count or time.monotonic() < latest + PATIENCE):
        rclpy.spin_once(node, timeout_sec=0.1)
    print(f"{sent} setpoints of the tool sent, {len(commands)} commands received")
    rclpy.shutdown()


if __name__ == "__main__":
    try:
        main(*map(float, remove_ros_args(sys.argv)[1:2]))
    except KeyboardInterrupt:
        sys.exit(130)

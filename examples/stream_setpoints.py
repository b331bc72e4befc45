# SPDX-License-Identifier: Apache-2.0
"""A ROS 2 client that streams setpoints to the node at 1 kHz and receives motor commands.

Usage: python examples/stream_setpoints.py [SECONDS], with the node running. Start it by
``ros2 launch eom_dynamics feedforward.launch.py``, or in the environment of ``make build`` by
``.venv/bin/python -m eom_dynamics.ros.dynamics_node --ros-args --params-file config/iiwa.yaml``.
"""

import sys
import time

import rclpy
from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint
from rclpy.signals import SignalHandlerOptions
from rclpy.time import Time
from rclpy.utilities import remove_ros_args

from eom_dynamics.trajectory import paper_motion

RATE = 1000.0
SLOWER = 1.7  # so that the motion is within the limits of the iiwa
DEPTH = 10_000  # of both topics: this process may stall
PATIENCE = 2.0  # s, for the node, the first and the last command


def main(duration: float = 2.0) -> None:
    """Stream the motion of the paper, slowed down; print how many commands came back and the last of them."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # Ctrl-C is a KeyboardInterrupt
    node = rclpy.create_node("stream_setpoints")
    motion, count, sent = paper_motion(), round(duration * RATE), 0
    commands: list[FeedforwardCommand] = []
    latest, start = 0.0, 0

    def publish(k: int) -> None:
        t = k / RATE
        states = enumerate(motion.derivatives(t / SLOWER))
        q, qd, qdd, qddd, qdddd = ((x / SLOWER**k).tolist() for k, x in states)
        setpoint = JointTrajectorySetpoint(position=q, velocity=qd, acceleration=qdd, jerk=qddd, snap=qdddd)
        # Stamped by the time of the motion, even if this process does not hold the rate.
        setpoint.header.stamp = Time(nanoseconds=start + round(t * 1e9)).to_msg()
        publisher.publish(setpoint)

    def send() -> None:
        nonlocal sent, latest
        if sent < count:
            sent += 1
            publish(sent)
            latest = time.monotonic()

    def receive(command: FeedforwardCommand) -> None:
        nonlocal latest
        # The stamp is the setpoint's, unless the watchdog or a refusal holds the arm; a first answer may be late.
        stamp = command.header.stamp.sec * 10**9 + command.header.stamp.nanosec
        if not command.held and stamp >= start + min(sent, 1):
            commands.append(command)
            latest = time.monotonic()

    publisher = node.create_publisher(JointTrajectorySetpoint, "setpoint", DEPTH)
    node.create_subscription(FeedforwardCommand, "feedforward", receive, DEPTH)
    begin: float | None = time.monotonic()
    while not (publisher.get_subscription_count() and node.count_publishers("feedforward")):
        rclpy.spin_once(node, timeout_sec=0.1)  # until the node is there
        if begin is not None and time.monotonic() > begin + PATIENCE:
            print("waiting for the node; start it as this file says, in the same domain and namespace", flush=True)
            begin = None
    met = time.monotonic()
    while not commands and time.monotonic() < met + PATIENCE:
        start = node.get_clock().now().nanoseconds
        publish(0)
        rclpy.spin_once(node, timeout_sec=0.5)  # until the node has discovered this process
    commands.clear()
    node.create_timer(1 / RATE, send)
    # The node publishes with a depth of 1, so that a command may be lost.
    while len(commands) < count and (sent < count or time.monotonic() < latest + PATIENCE):
        rclpy.spin_once(node, timeout_sec=0.1)

    few = ", fewer than half: see the log of the node" if len(commands) < 0.5 * sent else ""
    hint = f"{few}; the last one:" if commands else ": see the log of the node"
    print(f"{sent} setpoints sent, {len(commands)} commands received{hint}")
    for last in commands[-1:]:
        for joint, tau, theta in zip(last.joint_names, last.effort, last.motor_position, strict=True):
            print(f"  {joint:12} effort {tau:8.3f} N m, motor position {theta:8.4f} rad")
    rclpy.shutdown()
    if not commands:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main(*map(float, remove_ros_args(sys.argv)[1:2]))
    except ValueError as error:
        sys.exit(f"SECONDS is no number: {error}")
    except KeyboardInterrupt:
        sys.exit(130)

# SPDX-License-Identifier: Apache-2.0
"""Echo node: answers each setpoint with a command of the same size that holds numbers of the setpoint.

What remains of a round trip is the time of the middleware and of rclpy. Executor and quality of service are those of
``dynamics_node``.
"""

import contextlib
import sys

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile

from eom_dynamics.messages.fields import COMMAND_FIELDS, STATE_FIELDS
from eom_dynamics.ros.executors import make_executor
from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint

# A field of the setpoint for each one of the command.
_SOURCES = (*STATE_FIELDS, "position", "velocity")


def main():
    sys.setswitchinterval(1e-4)
    rclpy.init()
    node = Node("echo")
    answer = FeedforwardCommand()
    publisher = node.create_publisher(FeedforwardCommand, "feedforward", QoSProfile(depth=1000))

    def echo(message):
        answer.header = message.header
        answer.joint_names = answer.motor_names = message.joint_names
        for field, source in zip(COMMAND_FIELDS, _SOURCES, strict=True):
            setattr(answer, field, getattr(message, source))
        publisher.publish(answer)

    node.create_subscription(JointTrajectorySetpoint, "setpoint", echo, QoSProfile(depth=1000))
    executor = make_executor(events=True)
    executor.add_node(node)
    with contextlib.suppress(ExternalShutdownException):
        while rclpy.ok():
            executor.spin_once(timeout_sec=1.0)


if __name__ == "__main__":
    main()

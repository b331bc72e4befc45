# SPDX-License-Identifier: Apache-2.0
"""A node that only echoes: takes setpoints and answers each with its own numbers in a FeedforwardCommand.

It shows the cost of a stream through rclpy without dynamics: equal types and sizes of messages, the executor and
quality of service of the dynamics node, and one subscription and one publisher.
"""

import gc

import rclpy
from rclpy.task import Future

from eom_dynamics.ros.executors import make_executor
from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint


def main() -> None:
    """Echo until the context ends."""
    rclpy.init()
    node = rclpy.create_node("echo")
    motors = node.declare_parameter("motors_per_joint", 1).value
    publisher = node.create_publisher(FeedforwardCommand, "feedforward", 1)
    command = FeedforwardCommand()

    def echo(setpoint: JointTrajectorySetpoint) -> None:
        command.header = setpoint.header
        command.joint_names = setpoint.joint_names
        command.effort, command.effort_rate = setpoint.position, setpoint.velocity
        command.effort_acceleration = setpoint.acceleration
        command.motor_names = motors * setpoint.joint_names
        command.motor_position, command.motor_velocity = motors * setpoint.position, motors * setpoint.velocity
        command.motor_acceleration, command.motor_effort = motors * setpoint.acceleration, motors * setpoint.jerk
        publisher.publish(command)

    node.create_subscription(JointTrajectorySetpoint, "setpoint", echo, 1000)
    executor = make_executor()
    executor.add_node(node)
    gc.collect()
    gc.freeze()
    while rclpy.ok():
        executor.spin_until_future_complete(Future(), timeout_sec=0.1)


if __name__ == "__main__":
    main()

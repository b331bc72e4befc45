# SPDX-License-Identifier: Apache-2.0
"""A bridge from ``motor_setpoint`` to drives without ros2_control: position, velocity and torque as UDP packets.

Usage: python examples/motor_setpoint_bridge.py ADDRESS PORT MOTOR..., next to the dynamics node of the robot.

Replace ``send`` by the call of your drives. They run a position loop with velocity and torque as feedforward, and stop
by a timeout of their own: after the last setpoint, nothing is sent.
"""

import contextlib
import math
import socket
import struct
import sys

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState


class Bridge(Node):
    """Sends each setpoint on, motors in the given order, rad or m, rad/s or m/s, N m or N."""

    def __init__(self, address: str, port: int, motors: list[str]) -> None:
        super().__init__("motor_setpoint_bridge")
        self._socket, self._address = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), (address, port)
        self._motors = motors
        # A late process sends the latest setpoint, not those it has missed.
        self.create_subscription(JointState, "motor_setpoint", self._on_setpoint, QoSProfile(depth=1))

    def _on_setpoint(self, message: JointState) -> None:
        rows = dict(
            zip(message.name, zip(message.position, message.velocity, message.effort, strict=True), strict=True)
        )
        if missing := [name for name in self._motors if name not in rows]:
            self.get_logger().error(f"motor_setpoint has no {', '.join(missing)}", throttle_duration_sec=1.0)
        elif all(math.isfinite(x) for name in self._motors for x in rows[name]):
            self.send([x for name in self._motors for x in rows[name]])

    def send(self, values: list[float]) -> None:
        """Send position, velocity and torque of each motor."""
        self._socket.sendto(struct.pack(f"<{len(values)}d", *values), self._address)


def main() -> None:
    """Run until a signal."""
    rclpy.init()
    _, address, port, *motors = rclpy.utilities.remove_ros_args(sys.argv)
    with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(Bridge(address, int(port), motors))


if __name__ == "__main__":
    main()

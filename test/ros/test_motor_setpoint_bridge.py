# SPDX-License-Identifier: Apache-2.0
"""The example of a bridge sends what is on motor_setpoint, and nothing for other motors or NaN."""

import runpy
import socket
import struct

from paths import ROOT


def test_setpoints_become_packets(ros):
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState

    drives = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    drives.bind(("127.0.0.1", 0))
    drives.setblocking(False)
    kind = runpy.run_path(str(ROOT / "examples/motor_setpoint_bridge.py"))["Bridge"]
    bridge, executor = kind("127.0.0.1", drives.getsockname()[1], ["elbow", "shoulder"]), SingleThreadedExecutor()
    executor.add_node(bridge)
    bridge._on_setpoint(JointState(name=["wrist"], position=[0.0], velocity=[0.0], effort=[0.0]))
    row = {"velocity": [3.0, 4.0], "effort": [5.0, 6.0]}
    bridge._on_setpoint(JointState(name=["shoulder", "elbow"], position=[1.0, float("nan")], **row))
    publisher = bridge.create_publisher(JointState, "motor_setpoint", 1)
    for _ in range(200):
        publisher.publish(JointState(name=["shoulder", "elbow"], position=[1.0, 2.0], **row))
        executor.spin_once(timeout_sec=0.1)
        try:
            packet = drives.recv(1024)
        except BlockingIOError:
            continue
        break
    bridge.destroy_node()
    drives.close()
    assert struct.unpack("<6d", packet) == (2.0, 4.0, 6.0, 1.0, 3.0, 5.0)

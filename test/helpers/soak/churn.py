# SPDX-License-Identifier: Apache-2.0
"""Participants that come and go: each subscribes to commands, offers setpoints, and leaves; the last ones are killed.

python churn.py COUNT --ros-args -r __ns:=/arm
"""

import os
import signal
import sys
import time

import rclpy
from rclpy.context import Context

from eom_dynamics.ros.interfaces import FeedforwardCommand, JointTrajectorySetpoint

# Participants that are killed.
LEFT_BEHIND = 5


def main():
    count, arguments = int(sys.argv[1]), sys.argv[2:]
    kept = []
    for number in range(count):
        context = Context()
        rclpy.init(args=arguments, context=context)
        node = rclpy.create_node(f"passer_by_{number}", context=context)
        node.create_subscription(FeedforwardCommand, "feedforward", lambda message: None, 10)
        node.create_publisher(JointTrajectorySetpoint, "setpoint", 10)
        time.sleep(0.02)
        if number < count - LEFT_BEHIND:
            node.destroy_node()
            rclpy.shutdown(context=context)
        else:
            kept.append((context, node))
    print(count, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()

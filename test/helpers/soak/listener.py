# SPDX-License-Identifier: Apache-2.0
"""Subscriber of commands, as a logger or a drive would be; prints when it is connected, and at the first one."""

import contextlib

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile

from eom_dynamics.ros.interfaces import FeedforwardCommand


def main():
    rclpy.init()
    node = rclpy.create_node("listener")
    received = []

    def receive(message):
        if not received:
            print("receives", flush=True)
        received[:] = [message]

    subscription = node.create_subscription(FeedforwardCommand, "feedforward", receive, QoSProfile(depth=1000))
    with contextlib.suppress(ExternalShutdownException):
        while not subscription.get_publisher_count():
            rclpy.spin_once(node, timeout_sec=0.05)
        print("listens", flush=True)
        rclpy.spin(node)


if __name__ == "__main__":
    main()

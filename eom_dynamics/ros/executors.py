# SPDX-License-Identifier: Apache-2.0
"""Executor of a node."""

from __future__ import annotations

from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.logging import get_logger


def make_executor(*, events: bool) -> Executor:
    """Return the events executor, or rclpy's executor of one thread.

    rclpy before 7.1.4 has no events executor: a warning says so, and the other one takes its place.
    """
    if events:
        try:
            from rclpy.experimental.events_executor import EventsExecutor

            return EventsExecutor()
        except ImportError:
            get_logger("eom_dynamics").warning(
                "executor: this rclpy has no events executor, single_threaded is used; install rclpy 7.1.4 or later, "
                "or set the parameter executor to single_threaded"
            )
    return SingleThreadedExecutor()

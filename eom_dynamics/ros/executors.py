# SPDX-License-Identifier: Apache-2.0
"""Executor of a node, with spinning up to a deadline and timers in simulated time."""

from __future__ import annotations

import time

from rclpy.clock import ROSClock
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.timer import Timer


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


def spin_until(executor: Executor, deadline: float) -> None:
    """Process callbacks until ``deadline`` on the monotonic clock, s; at least one, if any is waiting.

    Without that one, queues would overflow where a node is late for one deadline after another.
    """
    while True:
        executor.spin_once(timeout_sec=max(deadline - time.monotonic(), 0.0))
        if time.monotonic() >= deadline:
            return


def keep_pace(node: Node, timer: Timer) -> None:
    """Keep a timer at one call per period of simulated time; its callback calls this first.

    If the clock advances, or a timer is reset, while the call of a due timer is queued, the events executor of
    rclpy 7.1.6 queues the call again, and each call postpones the next one by a period. One or more periods are then
    left out; in a simulation that waits for a command, that is forever. In real time nothing waits, while resets on a
    busy machine would have calls of other timers queued again without end.
    """
    clock = node.get_clock()
    simulated = isinstance(clock, ROSClock) and clock.ros_time_is_active
    if simulated and timer.time_until_next_call() > timer.timer_period_ns:
        timer.reset()

# SPDX-License-Identifier: Apache-2.0
"""The life of a process that is one node: from its arguments to a signal."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.node import Node
from rclpy.qos_overriding_options import InvalidQosOverridesError
from rclpy.signals import SignalHandlerOptions, install_signal_handlers
from rclpy.task import Future
from rclpy.utilities import try_shutdown

from ..terminal import prepare_streams, printable
from .stopping import StopSignals

AnyNode = TypeVar("AnyNode", bound=Node)

_SPIN_PERIOD = 1.0


def run(
    name: str,
    make: Callable[[StopSignals], AnyNode],
    begin: Callable[[AnyNode], None],
    *,
    end: Callable[[AnyNode], None] = lambda node: None,
    read_arguments: Callable[[list[str]], None],
    args: list[str] | None,
) -> int:
    """Run a node until SIGINT, SIGTERM or a shutdown of its context; returns the exit code.

    Args:
        name: starts the line on stderr, where the node cannot be made.
        make: the node, which has the parameter ``executor``.
        begin: what it does first, before it spins.
        end: what it does last, when it spins no more.
        read_arguments: answers or refuses those that are not of ROS 2.
        args: of the process; None for ``sys.argv``.
    """
    prepare_streams()
    # rclpy ends the context on a signal, and with it the spinning. It gets the signals only then, since before
    # they would make errors of whatever is under way; and Python's own handler would raise KeyboardInterrupt
    # in whatever line happens to run.
    stop = StopSignals()
    try:
        read_arguments(sys.argv if args is None else args)
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        node = make(stop)
    except (RuntimeError, ParameterException, InvalidQosOverridesError) as error:  # RuntimeError: of rclpy
        print(f"{name}: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return 1
    executor = EventsExecutor() if node.get_parameter("executor").value == "events" else SingleThreadedExecutor()
    executor.add_node(node)
    begin(node)
    install_signal_handlers()
    if not stop.came:
        spin(executor, node)
    end(node)
    try_shutdown()
    stop.ignore()
    return 0


def spin(executor: Executor, node: Node) -> None:
    """Spin until the context ends, whatever comes in."""
    while node.context.ok():
        try:
            # Not spin(): where rclpy is built for an old C library, as the wheels on PyPI are, the events
            # executor's wait without a deadline overflows and never sleeps.
            executor.spin_until_future_complete(Future(), timeout_sec=_SPIN_PERIOD)
        except ExternalShutdownException:
            return
        except Exception as error:
            if node.context.ok():
                place = traceback.extract_tb(error.__traceback__)[-1]
                node.get_logger().error(
                    f"a callback failed, in {place.name} at {place.filename}:{place.lineno}: "
                    f"{type(error).__name__}: {printable(str(error))}",
                    throttle_duration_sec=1.0,
                )

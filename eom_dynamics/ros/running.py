# SPDX-License-Identifier: Apache-2.0
"""Run a process with one node, from its arguments to the signal that ends it."""

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
from .command_line import Program, read_arguments
from .stopping import StopSignals

AnyNode = TypeVar("AnyNode", bound=Node)

_SPIN_PERIOD = 1.0

# For how long a thread that computes in Python may keep the stream waiting. At Python's own 5 ms, one setpoint in ten
# of a stream at 1 kHz is answered 10 to 30 ms late while a large robot is loaded.
_SWITCH_INTERVAL = 1e-4


def run(
    program: Program, make: Callable[[StopSignals], AnyNode], begin: Callable[[AnyNode], None], args: list[str] | None
) -> int:
    """Run a node until SIGINT, SIGTERM or a shutdown of its context; returns the exit code.

    Args:
        program: what ``--help`` says.
        make: makes the node. Where it has a parameter ``executor``, that selects the executor.
        begin: called once before the node spins.
        args: arguments of the process; None for ``sys.argv``.
    """
    prepare_streams()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    # rclpy ends the context on a signal, and with it the spinning. It gets the signals only then, since before
    # they would make errors of whatever is under way; and Python's own handler would raise KeyboardInterrupt
    # in whatever line happens to run.
    stop = StopSignals()
    try:
        read_arguments(program, sys.argv if args is None else args)
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
        node = make(stop)
    except (RuntimeError, ParameterException, InvalidQosOverridesError) as error:  # RuntimeError: of rclpy
        print(f"{program.node}: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return 1
    events = node.has_parameter("executor") and node.get_parameter("executor").value == "events"
    executor = EventsExecutor() if events else SingleThreadedExecutor()
    executor.add_node(node)
    begin(node)
    install_signal_handlers()
    if not stop.came:
        _spin(executor, node)
    try_shutdown()
    stop.ignore()
    return 0


def _spin(executor: Executor, node: Node) -> None:
    """Spin until the context ends, whatever arrives."""
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

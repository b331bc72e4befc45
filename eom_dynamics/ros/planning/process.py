# SPDX-License-Identifier: Apache-2.0
"""The process that serves a node's planning services; :mod:`.supervisor` starts it."""

from __future__ import annotations

import os
import signal
import threading
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown

from ...terminal import prepare_streams
from ..running import spin
from .link import READY, Identity, NodeState
from .services import PlanningServices
from .supervisor import STOP_SIGNALS, lower_priority, open_link
from .trajectory_topic import TrajectoryTopic

# How long it may take to end in good order once the node has, s.
_PATIENCE = 1.0


def main() -> int:
    """Serve until the node ends; returns the exit code."""
    prepare_streams()
    # It ends with the node. A signal to both, as of a terminal, must not end it first: the node would start another.
    # A handler and not SIG_IGN, which a compiler that it starts would inherit.
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    lower_priority()
    link, last = open_link()
    try:
        identity: Identity = link.recv()
    except (EOFError, OSError):  # it has ended already
        return 0
    ended = threading.Event()
    state = NodeState(link, last, lambda: _end(ended))
    try:
        rclpy.init(args=list(identity.arguments), signal_handler_options=SignalHandlerOptions.NO)
        node = _node(identity)
        services = PlanningServices(node, identity.names, state.arm)
        TrajectoryTopic(node, identity.trajectory, state.arm_and_serial, services.submit, link.send)
        link.send(READY)
    except Exception:
        if not ended.wait(_PATIENCE):
            raise
        # Its end has taken the context away from what was under way here.
        os._exit(0)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    spin(executor, node)
    # Without waiting for threads that may compute for minutes.
    os._exit(0)


def _node(identity: Identity) -> Node:
    """A node beside that of the services' names, and none of its parameters."""
    remapped = ["-r", f"/clock:={identity.clock}"] if identity.clock != "/clock" else []
    return Node(
        f"{identity.name}_planning",
        namespace=identity.namespace,
        # The arguments are those of the other node, whose names are remapped already.
        use_global_arguments=False,
        cli_args=["--ros-args", *remapped],
        parameter_overrides=[
            Parameter("use_sim_time", value=identity.use_sim_time),
            Parameter("start_type_description_service", value=False),
        ],
        start_parameter_services=False,
    )


def _end(ended: threading.Event) -> None:
    """End in good order, so that nothing of the middleware stays behind; or else all the same."""
    ended.set()
    threading.Thread(target=try_shutdown, daemon=True).start()
    time.sleep(_PATIENCE)
    os._exit(0)

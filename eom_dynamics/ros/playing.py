# SPDX-License-Identifier: Apache-2.0
"""Player process: read setpoints, play them to nodes, and write the recording."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.utilities import remove_ros_args, try_shutdown

from ..terminal import prepare_streams, printable
from ..tools.writing import FolderError, check_file
from .dynamics.realtime import SchedulingError
from .executors import make_executor
from .interfaces import JointTrajectorySetpoint
from .setpoint_file import PlayerError, Setpoints, read_setpoints

QOS = QoSProfile(depth=1000)
"""Of all topics of a player."""

ReportCounts: TypeAlias = Callable[[dict[str, int]], None]
"""Called with the numbers of setpoints sent and received so far."""


class Playing(Node):
    """A node that sends setpoints on ``setpoint``; a subclass subscribes to what it records."""

    def __init__(self, name: str, setpoints: Setpoints, report: ReportCounts) -> None:
        """Create the publisher; ``report`` is called periodically with the counts."""
        super().__init__(name)
        self._setpoints, self._report = setpoints, report
        self._message = JointTrajectorySetpoint(joint_names=setpoints.joint_names)
        self._publisher = self.create_publisher(JointTrajectorySetpoint, "setpoint", QOS)
        self._executor = make_executor(events=True)
        self._executor.add_node(self)

    def run(self, options: argparse.Namespace) -> dict[str, Any]:
        """Play all setpoints; returns the arrays of the recording.

        Raises:
            PlayerError: setpoints are not answered.
        """
        raise NotImplementedError

    def counts(self) -> dict[str, int]:
        """Numbers of setpoints by outcome, after playing: all sent and received."""
        return {"sent": self._setpoints.count, "received": self._setpoints.count}

    def close(self) -> None:
        """Destroy the node before shutdown, so that other nodes notice at once."""
        self._executor.remove_node(self)
        self.destroy_node()
        self._executor.shutdown()

    def _send(self, index: int, stamp: int) -> None:
        self._setpoints.fill(self._message, index, stamp)
        self._publisher.publish(self._message)


def run_player(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], Playing],
) -> int:
    """Play one file and write the recording, with counts as lines of JSON on stdout.

    Args:
        parser: of the arguments; its ``setpoints`` and ``recording`` are paths of .npz files to read and to write.
        arguments: of the process; None for ``sys.argv``.
        make: creates the player.

    Returns:
        Exit code: 0; 1 if the setpoints are not answered, or the recording cannot be written; 2 for wrong use, such as
        a recording that exists, without ``--force``; 130 after Ctrl-C.
    """
    prepare_streams()
    try:
        return _run(parser, sys.argv if arguments is None else arguments, make)
    except (KeyboardInterrupt, ExternalShutdownException):
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return 130


def _run(
    parser: argparse.ArgumentParser,
    arguments: list[str],
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], Playing],
) -> int:
    parser.add_argument("--force", action="store_true", help="overwrite a file of answers that exists")
    options = parser.parse_args(remove_ros_args(arguments)[1:])
    # NumPy would add the ending.
    recording = options.recording.with_name(f"{options.recording.name.removesuffix('.npz')}.npz")
    try:
        check_file(recording, force=options.force)
        setpoints = read_setpoints(options.setpoints)
    except (PlayerError, FolderError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return 2
    # The middleware prints some warnings on stdout; redirect them to stderr, so that stdout has the counts only.
    stdout = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def report(counts: dict[str, int]) -> None:
        print(json.dumps(counts), file=stdout, flush=True)

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as it is during imports
        signal.signal(signal.SIGINT, signal.default_int_handler)
    rclpy.init(args=arguments)
    player = make(setpoints, report, options)
    try:
        np.savez(recording, **player.run(options))
        report(player.counts())
    except (PlayerError, SchedulingError, OSError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return 1
    finally:
        player.close()
        try_shutdown()
    return 0


def positive(text: str) -> float:
    """Parse a positive number; raises argparse.ArgumentTypeError for anything else."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be greater than 0, is {text}")
    return value

# SPDX-License-Identifier: Apache-2.0
"""Process of a player: it reads setpoints, plays them to nodes, and writes what it has recorded."""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.utilities import remove_ros_args, try_shutdown

from ..terminal import prepare_streams, printable
from ..tools.writing import FolderError, check_file
from .dynamics.realtime import SchedulingError
from .setpoint_file import PlayerError, Setpoints, read_setpoints

ReportCounts: TypeAlias = Callable[[dict[str, int]], None]
"""Called with the numbers of setpoints sent and received so far."""


class Playing(Protocol):
    """A node that plays setpoints."""

    def counts(self) -> dict[str, int]:
        """Numbers of setpoints by outcome, after playing."""
        ...

    def close(self) -> None:
        """Destroy the node, before the context ends, so that other nodes know at once."""
        ...


AnyPlayer = TypeVar("AnyPlayer", bound=Playing)


def run_player(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], AnyPlayer],
    play: Callable[[AnyPlayer, argparse.Namespace], dict[str, Any]],
) -> int:
    """Play one file and write the recording, with counts as lines of JSON on stdout.

    Args:
        parser: of the arguments; its ``setpoints`` and ``recording`` are paths of .npz files to read and to write.
        arguments: of the process; None for ``sys.argv``.
        make: creates the player.
        play: plays; returns the arrays of the recording.

    Returns:
        Exit code: 0; 1 if the setpoints are not answered, or the recording cannot be written; 2 for wrong use, such as
        a recording that exists, without ``--force``; 130 after Ctrl-C.
    """
    prepare_streams()
    try:
        return _run(parser, sys.argv if arguments is None else arguments, make, play)
    except (KeyboardInterrupt, ExternalShutdownException):
        print(f"{parser.prog}: interrupted", file=sys.stderr)
        return 130


def _run(
    parser: argparse.ArgumentParser,
    arguments: list[str],
    make: Callable[[Setpoints, ReportCounts, argparse.Namespace], AnyPlayer],
    play: Callable[[AnyPlayer, argparse.Namespace], dict[str, Any]],
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
        np.savez(recording, **play(player, options))
        report(player.counts())
    except (PlayerError, SchedulingError, OSError) as error:
        print(f"{parser.prog}: {printable(str(error))}", file=sys.stderr)
        return 1
    finally:
        player.close()
        try_shutdown()
    return 0


def positive(text: str) -> float:
    """Read a positive number of an argument; raises argparse.ArgumentTypeError for others."""
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"must be greater than 0, is {text}")
    return value

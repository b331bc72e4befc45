# SPDX-License-Identifier: Apache-2.0
"""Record the topics of the nodes as an MCAP file that replay and report read, until Ctrl-C or a limit.

These are setpoints, trajectories, commands, joint and motor states, diagnostics and the robot's description of one
namespace. The file is complete after Ctrl-C; of a recorder that is killed outright, all but the last MiB can be read.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys

from ...exceptions import EomDynamicsError
from ...extras import require, require_ros
from ...spelling import shown
from .arguments import path, positive

SUMMARY = "record the topics of the nodes as an MCAP file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "-o", "--output", metavar="FILE.mcap", type=path, required=True, help="file to write; a new one"
    )
    parser.add_argument("--namespace", metavar="NS", default="/", help="of the topics; default: %(default)s")
    parser.add_argument("--duration", metavar="S", type=positive, help="end after this time")
    parser.add_argument("--size", metavar="MB", type=positive, help="end after messages of this size, uncompressed")


def run(options: argparse.Namespace) -> int:
    """Record: the recorder replaces this process and returns the exit code."""
    require("replay")
    require_ros()
    if options.output.suffix != ".mcap":
        raise EomDynamicsError(f"{options.output}: must end in .mcap; replay converts to other formats")
    if os.path.lexists(options.output):
        raise EomDynamicsError(f"{options.output}: exists; name another file")
    namespace = "/" + options.namespace.strip("/")
    if not re.fullmatch(r"/|(/[A-Za-z_]\w*)+", namespace, re.ASCII):
        raise EomDynamicsError(
            f"--namespace must be names of letters, digits and _, with / between them, is {shown(options.namespace)}"
        )
    arguments = [os.fspath(options.output)]
    for limit in ("duration", "size"):
        if (value := getattr(options, limit)) is not None:
            arguments += [f"--{limit}", repr(value)]
    # In place of this process, so that Ctrl-C reaches one process only; it waits until that one has started.
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execv(
        sys.executable,
        [sys.executable, "-m", "eom_dynamics.ros.recorder", *arguments, "--ros-args", "-r", f"__ns:={namespace}"],
    )

# SPDX-License-Identifier: Apache-2.0
"""Show a robot in the browser, and play a recording of it, until Ctrl-C.

Links are the meshes of the robot's URDF, or rods between its joints. A recording is a bag, or a .csv, .parquet or .npz
file as for identify, such as those that simulate, retime, excite and demo write.
"""

from __future__ import annotations

import argparse
import time
import webbrowser
from contextlib import suppress

from ...extras import require
from ..results import Result
from .arguments import (
    add_convention_arguments,
    add_motion_arguments,
    add_robot_arguments,
    conventions,
    load,
    path,
    robot_options,
)
from .console import complain

SUMMARY = "show a robot in the browser, and play a recording of it"

# Time between two updates of the scene, s.
_PERIOD = 1 / 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot_arguments(parser)
    parser.add_argument("recording", metavar="BAG", nargs="?", type=path, help="recording to play")
    parser.add_argument("--host", default="localhost", help="address to listen on; default: %(default)s")
    parser.add_argument("--port", metavar="N", type=_port, default=8080, help="0 for any; default: %(default)s")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_motion_arguments(parser)
    add_convention_arguments(parser)


def _port(text: str) -> int:
    if not (text.isdecimal() and len(text) <= 5 and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, is {text!r:.40}")
    return int(text)


def run(options: argparse.Namespace) -> Result:
    """Show the robot until Ctrl-C.

    Raises:
        EomDynamicsError: the robot or recording cannot be loaded, the port is in use, or a library is missing.
        OSError: a file cannot be read.
    """
    require("view")
    # After the check for the libraries that these import.
    from ..replay.sources import Sampling
    from ..view.motion import read_motion
    from ..view.scene import Viewer, shown_urdf, start_server

    robot, motion = load(options), None
    if options.recording is not None:
        sampling = Sampling(options.cutoff, options.rate, conventions(options))
        motion = read_motion(options.recording, robot, sampling, robot_options(options))
    urdf, lines = shown_urdf(options.robot, robot, dict(options.xacro))
    for line in (*lines, *(() if motion is None else motion.notes)):
        complain(options.program, line)
    server = start_server(options.host, options.port)
    # Ctrl-C is how it ends.
    with suppress(KeyboardInterrupt):
        viewer = Viewer(server, robot, urdf, motion)
        url = f"http://{options.host}:{server.get_port()}"
        print(f"viewer: {url} (Ctrl-C ends it)", flush=True)
        if not options.no_browser:
            webbrowser.open(url)
        last = time.monotonic()
        while True:
            time.sleep(_PERIOD)
            now = time.monotonic()
            viewer.advance(now - last)
            last = now
    server.stop()
    return Result()

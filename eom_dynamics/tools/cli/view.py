# SPDX-License-Identifier: Apache-2.0
"""Show a robot in the browser, and play a recording of it, until Ctrl-C.

Links are the meshes of the robot's URDF, or rods between its joints. A recording is a bag, or a .csv, .parquet or .npz
file as for identify, such as those that retime, excite and demo write.
"""

from __future__ import annotations

import argparse
import time
import webbrowser
from contextlib import suppress

from ...extras import require
from ..recording_options import Sampling
from ..results import Result
from ..robot_options import RobotOptions
from .arguments import add_number, add_robot_arguments, load
from .console import complain
from .options import add_options, options_of, path

_PERIOD = 1 / 30  # time between two updates of the scene, s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser)
    parser.add_argument("recording", metavar="BAG", nargs="?", type=path, help="recording to play")
    parser.add_argument("--host", default="localhost", help="address to listen on; default: %(default)s")
    add_number(parser, "--port", "N", 8080, "0 for any", "[0, 65535]", int)
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    add_options(parser, Sampling)


def run(options: argparse.Namespace) -> Result:
    require("view")
    from ..view import Viewer, read_played_motion, shown_urdf, start_server

    robot, motion = load(options), None
    if options.recording is not None:
        sampling = options_of(Sampling, options)
        motion = read_played_motion(options.recording, robot, sampling, options_of(RobotOptions, options))
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

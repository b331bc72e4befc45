# SPDX-License-Identifier: Apache-2.0
"""Launch files run for real, by the ros2 command."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import util
from typing import Any

from paths import ROOT

FOLDER = ROOT / "launch"
PATIENCE = 30.0


@contextmanager
def launched(file: str, nodes: int, **arguments: str) -> Iterator[None]:
    """Run a launch file, and at the end see that its nodes and launch leave without complaint."""
    command = ["ros2", "launch", "eom_dynamics", file, *map("{0[0]}:={0[1]}".format, arguments.items())]
    launch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield
    finally:
        launch.send_signal(signal.SIGINT)
        output, _ = launch.communicate(timeout=PATIENCE)
    assert output.count("process has finished cleanly") == nodes, output


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def declared_arguments(file: str) -> list[Any]:
    """The arguments that a launch file declares."""
    spec = util.spec_from_file_location(file.partition(".")[0], FOLDER / file)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description().get_launch_arguments()

# SPDX-License-Identifier: Apache-2.0
"""Nodes and a player as processes in a free ROS 2 domain on this machine only."""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from ..exceptions import EomDynamicsError
from ..terminal import printable

_PATIENCE, _REPORT_PERIOD = 15.0, 0.1  # time that a process may take to end, and between two reports, s

# Lines of a log that may give the reason of an exit; the middleware and Python's crash report end with others.
_TELLING = re.compile(
    r".*\[(ERROR|FATAL)\]|(eom_dynamics|player|simulated_robot|lockstep_player): |"
    r"Fatal Python error|([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Interrupt|Exit)\b"
)

_PR_SET_PDEATHSIG = 1  # of Linux: the signal that a process gets when its parent ends, even by SIGKILL
_prctl = ctypes.CDLL(None).prctl


class RunError(EomDynamicsError):
    """A process failed; the message is the line of its log that gives the reason."""


class Run(ExitStack):
    """Processes that end with the context, or with this process.

    SIGTERM and SIGHUP leave the context as SIGINT does; while a process is being started, they wait.

    Attributes:
        folder: temporary working folder of the processes, with their output.
        environment: environment variables of the processes.
    """

    def __init__(self) -> None:
        """Create the folder, and choose a ROS 2 domain."""
        super().__init__()
        self._starting, self._signal = False, 0
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
                self.callback(signal.signal, number, signal.signal(number, self._leave))
        self.folder = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-")))
        reach_out = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_NAMESPACE")
        self.environment = {name: value for name, value in os.environ.items() if name not in reach_out} | {
            "ROS_DOMAIN_ID": str(_free_domain()),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(self.folder),
            "PYTHONUNBUFFERED": "1",
        }
        self._nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, module: str, arguments: str) -> None:
        """Start a module as a process; ``name`` is for messages, ``arguments`` are separated by spaces.

        It has its own session, so that Ctrl-C reaches this process only, and a scratch folder, since Python puts the
        working folder first on its path.
        """
        self._starting = True
        output, errors = (self.folder / f"{name}.{ending}" for ending in ("out", "err"))
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments.split()],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=partial(_end_with, os.getpid()),
            )
        self.callback(_end, process)
        self._nodes[name] = process
        self._starting = False
        if self._signal:
            self._leave(self._signal)

    def play(self, report: Callable[[int, int], None], module: str, arguments: str) -> None:
        """Start a player and report the numbers of setpoints that it prints, sent and answered, until it ends.

        Raises RunError if a process fails.
        """
        self.start("player", module, arguments)
        player, ended = self._nodes.pop("player"), False
        while not ended:
            ended = player.poll() is not None
            for name, node in self._nodes.items():
                if not ended and node.poll() is not None:
                    raise RunError(f"{name} ended with exit code {node.returncode}: {self._last_words(name)}")
            for line in (self.folder / "player.out").read_text(encoding="utf-8").split("\n")[-2:-1]:
                counts = json.loads(line)
                report(counts["sent"], counts["received"])
            time.sleep(0.0 if ended else _REPORT_PERIOD)
        if player.returncode not in (0, 3):  # which the page shows: some setpoints were not answered
            nodes = "; ".join(f"{name}: {self._last_words(name)}" for name in self._nodes)
            raise RunError(f"{self._last_words('player')} ({nodes})")

    def _leave(self, number: int, _: object = None) -> None:
        self._signal = number
        if not self._starting:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    def _last_words(self, name: str) -> str:
        return printable(telling_line((self.folder / f"{name}.err").read_text(encoding="utf-8", errors="replace")))


def telling_line(text: str) -> str:
    """Return the line of a process's stderr that explains its end."""
    lines = [line.strip() for line in text.split("\n") if line.strip()] or ["its log is empty"]
    return next(filter(_TELLING.match, reversed(lines)), lines[-1])


def _free_domain() -> int:
    """Return a domain without participants on this machine: its first discovery port is free."""
    for domain in random.sample(range(1, 102), 101):  # their ports are below the ephemeral ports of Linux
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
            probe.bind(("", 7400 + 250 * domain + 10))
            return domain
    raise RunError("no ROS 2 domain is free on this machine: end other ROS 2 programs")


def _end_with(parent: int) -> None:
    """End this process with its parent, which may have ended already."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

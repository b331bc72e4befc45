# SPDX-License-Identifier: Apache-2.0
"""Run node and player, or other modules, as processes in a free ROS 2 domain on this machine only."""

from __future__ import annotations

import contextlib
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from ...exceptions import EomDynamicsError
from ...messages.fields import COMMAND_FIELDS
from ...robot.writers.parameters import robot_as_yaml
from ...terminal import printable
from .evaluate import Answers
from .plan import Plan

# Time until the first answer, for which the node may compile, and from the last setpoint to its answer, s.
_STARTUP, _GRACE = 60.0, 5.0

# Time that a process may take to end, and between two reports, s.
_PATIENCE, _REPORT_PERIOD = 15.0, 0.1

# Domains whose ports are below the ephemeral ports of Linux.
_DOMAINS = range(1, 102)

# Lines of a log that give the reason of an exit, most telling first; the middleware and Python's crash report end with
# others.
_TELLING = (
    r"\[(ERROR|FATAL)\]",
    r"^(eom_dynamics|player|simulated_robot|lockstep_player): ",
    r"^(Fatal Python error|([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Interrupt|Exit))\b",
)

# Environment variables that would connect the processes to others.
_REACH_OUT = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_NAMESPACE")

# Of Linux: the signal that a process gets when its parent ends, even by SIGKILL.
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


class RunError(EomDynamicsError):
    """A process failed; the message is the line of its log that gives the reason."""


def play(plan: Plan, report: Callable[[int, int], None]) -> Answers:
    """Play a plan to a node; ``report`` gets the numbers of setpoints sent and answered, ten times per second."""
    with exit_by_signals(), contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics-")))
        environment = environment_of(folder)
        (folder / "robot.yaml").write_text(robot_as_yaml(plan.robot).text, encoding="utf-8")
        np.savez(folder / "setpoints.npz", **plan.arrays())
        # Diagnostics name the backend; the default period is too long for a short run. Every command is recorded.
        values = ("diagnostic_period:=0.2", "qos_overrides./feedforward.publisher.depth:=1000")
        parameters = ("--params-file", "robot.yaml", *(word for value in values for word in ("-p", value)))
        limits = ("--rate", str(plan.rate), "--timeout", str(_STARTUP), "--grace", str(_GRACE))
        node, player = (
            stack.enter_context(Process(f"eom_dynamics.ros.{module}", arguments, folder, environment))
            for module, arguments in (
                ("dynamics_node", ("--ros-args", *parameters)),
                ("player", ("setpoints.npz", "answers.npz", *limits)),
            )
        )
        follow({"the node": node}, player, report)
        with np.load(folder / "answers.npz") as file:
            answers = {field: file[field] for field in COMMAND_FIELDS}
            return Answers(file["sent"], file["received"], answers, str(file["backend"]) or "not reported")


class Process(AbstractContextManager["Process"]):
    """A module run as a process, which ends with the context or with this process.

    It has its own session, so that Ctrl-C reaches this process only. Its output goes to files in ``folder``.
    """

    def __init__(self, module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        name = module.rpartition(".")[2]
        self._output, self._errors = folder / f"{name}.out", folder / f"{name}.err"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                # In a scratch folder, since Python puts the working directory first on its path.
                [sys.executable, "-m", module, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
                preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
            )

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process, None while it runs."""
        return self._process.poll()

    @property
    def counts(self) -> dict[str, int]:
        """The last line of JSON that it has printed so far; the middleware prints to stdout, too."""
        lines = self._output.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        found: dict[str, int] = json.loads(next((line for line in reversed(lines) if line.startswith("{")), "{}"))
        return found

    @property
    def last_words(self) -> str:
        """The line of its log that gives the reason for its end."""
        return printable(telling_line(self._errors.read_text(encoding="utf-8", errors="replace")))


def follow(nodes: Mapping[str, Process], player: Process, report: Callable[[int, int], None]) -> None:
    """Report a player's progress until it ends.

    Args:
        nodes: that the player needs, by their names in messages.
        player: prints lines of JSON with the counts ``sent`` and ``received``.
        report: called ten times per second with both.

    Raises:
        RunError: a process fails.
    """
    ended = False
    while not ended:
        ended = player.exit_code is not None
        for name, node in nodes.items():
            if not ended and node.exit_code is not None:
                raise RunError(f"{name} ended with exit code {node.exit_code}: {node.last_words}")
        if counts := player.counts:
            report(counts["sent"], counts["received"])
        time.sleep(0.0 if ended else _REPORT_PERIOD)
    if player.exit_code:
        words = "; ".join(f"{name}: {node.last_words}" for name, node in nodes.items())
        raise RunError(f"{player.last_words} ({words})")


def telling_line(text: str) -> str:
    """Return the line of a process's stderr that best explains its end: the last of the most specific kind."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for kind in _TELLING:
        if telling := [line for line in lines if re.search(kind, line)]:
            return telling[-1]
    return lines[-1] if lines else "its log is empty"


def environment_of(folder: Path) -> dict[str, str]:
    """Return the environment of the processes: a free domain, this machine only, and logs in the folder."""
    return {
        **{name: value for name, value in os.environ.items() if name not in _REACH_OUT},
        "ROS_DOMAIN_ID": str(_free_domain()),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(folder),
        "PYTHONUNBUFFERED": "1",
    }


def _free_domain() -> int:
    """Return a domain without participants on this machine: the discovery port of its first one is free."""
    for domain in random.sample(_DOMAINS, len(_DOMAINS)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.bind(("", 7400 + 250 * domain + 10))
            return domain
    raise RunError("no ROS 2 domain is free on this machine: end other ROS 2 programs")


@contextlib.contextmanager
def exit_by_signals() -> Iterator[None]:
    """Exit cleanly on SIGTERM and SIGHUP, as on SIGINT, so that the temporary folder is removed."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    handled = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]  # as under nohup
    before = {number: signal.signal(number, leave) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

# SPDX-License-Identifier: Apache-2.0
"""Run the node and the player as two processes, and return the player's recording.

Both use a free ROS 2 domain, restricted to this machine.
"""

from __future__ import annotations

import contextlib
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
from ...terminal import printable
from ..robot_options import RobotOptions
from .data import setpoints
from .evaluate import Recording
from .plan import Plan
from .robot_parameters import parameter_file

# Time that a process may take to end, s.
_PATIENCE = 15.0

# Time until the first answer of the node, s; the first run for a robot compiles its dynamics.
_STARTUP = 60.0

# Time that the player waits for answers after the last setpoint, s.
_GRACE = 5.0

_REPORT_PERIOD = 0.1

# Domains whose ports are below the ephemeral ports of Linux.
_DOMAINS = range(1, 102)

# Lines of a log that give the reason of an exit, most telling first; the middleware and Python's crash report end with
# others.
_TELLING = (
    r"\[(ERROR|FATAL)\]",
    r"^(eom_dynamics|player): ",
    r"^(Fatal Python error|([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Interrupt|Exit))\b",
)

# Environment variables that would connect the processes to others.
_REACH_OUT = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_NAMESPACE")


class RunError(EomDynamicsError):
    """The node or the player failed; the message is the line of its log that tells why."""


def play(plan: Plan, robot: str, options: RobotOptions, report: Callable[[int, int], None]) -> Recording:
    """Play a plan to a node.

    Args:
        plan: setpoints to play.
        robot: the robot that the node loads, as for :func:`eom_dynamics.load_robot`.
        options: part of the robot to load.
        report: called ten times per second with the numbers of setpoints sent and answered so far.

    Raises:
        RunError: the node or the player ended early.
        RobotDescriptionError: the node cannot load this part of the robot.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_exit_by_signals())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics_demo_")))
        environment = _environment(folder)
        file = parameter_file(robot, options, folder)
        np.savez(folder / "setpoints.npz", **setpoints(plan))
        # Diagnostics name the backend; the default period is too long for a short run. Every command is recorded.
        values = ("diagnostic_period:=0.2", "qos_overrides./feedforward.publisher.depth:=1000")
        parameters = ("--params-file", str(file), *(word for value in values for word in ("-p", value)))
        node = stack.enter_context(_Process("dynamics_node", ("--ros-args", *parameters), folder, environment))
        limits = ("--rate", str(plan.rate), "--timeout", str(_STARTUP), "--grace", str(_GRACE))
        player = stack.enter_context(_Process("player", ("setpoints.npz", "answers.npz", *limits), folder, environment))
        _follow(node, player, report)
        return _recording(folder / "answers.npz")


def _follow(node: _Process, player: _Process, report: Callable[[int, int], None]) -> None:
    """Report the player's progress until it ends.

    Raises:
        RunError: the node ended first, or the player failed.
    """
    while player.exit_code is None:
        if node.exit_code is not None:
            raise RunError(f"the node ended with exit code {node.exit_code}: {node.last_words}")
        _pass_on(player, report)
        time.sleep(_REPORT_PERIOD)
    if player.exit_code:
        raise RunError(f"{player.last_words} (the node: {node.last_words})")
    _pass_on(player, report)


def _pass_on(player: _Process, report: Callable[[int, int], None]) -> None:
    # The middleware prints to stdout too.
    counts = [json.loads(line) for line in player.output if line.startswith("{")]
    if counts:
        report(counts[-1]["sent"], counts[-1]["received"])


def _recording(file: Path) -> Recording:
    with np.load(file) as answers:
        return Recording(
            sent=answers["sent"],
            received=answers["received"],
            answers={field: answers[field] for field in COMMAND_FIELDS},
            backend=str(answers["backend"]) or "not reported",
        )


class _Process(AbstractContextManager["_Process"]):
    """A module of ``eom_dynamics.ros`` run as a process, which ends with the context or with this one: :mod:`.child`.

    It has its own session, so that Ctrl-C reaches this process only. Its output goes to files in ``folder``.
    """

    def __init__(self, module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._output, self._errors = folder / f"{module}.out", folder / f"{module}.err"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                # In a scratch folder, since Python puts the working directory first on its path.
                [sys.executable, "-m", f"{__package__}.child", module, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
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
    def output(self) -> list[str]:
        """The complete lines that it has printed so far."""
        return self._output.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]

    @property
    def last_words(self) -> str:
        """The line of its log that tells why it ended."""
        return printable(telling_line(self._errors.read_text(encoding="utf-8", errors="replace")))


def telling_line(text: str) -> str:
    """Return the line of a process's stderr that best tells why it ended: the last of the most telling kind found."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for kind in _TELLING:
        if telling := [line for line in lines if re.search(kind, line)]:
            return telling[-1]
    return lines[-1] if lines else "its log is empty"


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of the processes: a free domain, this machine only, and logs in the folder."""
    environment = {name: value for name, value in os.environ.items() if name not in _REACH_OUT}
    return {
        **environment,
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
def _exit_by_signals() -> Iterator[None]:
    """Exit in good order on SIGTERM and SIGHUP, as on SIGINT: the scratch folder is removed."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    handled = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]  # as under nohup
    before = {number: signal.signal(number, leave) for number in handled}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

# SPDX-License-Identifier: Apache-2.0
"""Start the node and the player as processes of their own, and bring home what the player recorded.

Both run in a ROS 2 domain that nobody else uses, on this machine only.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from types import TracebackType

import numpy as np

from ..exceptions import EomDynamicsError
from ..robot import packaged_robots
from ..stream.conversions import COMMAND_FIELDS
from ..terminal import printable
from .data import setpoints
from .evaluate import Recording
from .plan import Plan

# A process that has not ended this long after it was asked to, in s, is killed.
_PATIENCE = 10.0

# How long the node may take until it answers, in s: the first time it compiles the dynamics of its robot.
_STARTUP = 60.0

# How long the player waits after the last setpoint for answers that are still to come, in s.
_GRACE = 5.0

_REPORT_PERIOD = 0.1

# ROS 2 domains whose ports lie below those that Linux hands out by itself.
_DOMAINS = range(1, 102)

# What says why a process ended, the most telling first. The middleware, and Python's report of a crash, end in lines
# that say little.
_TELLING = tuple(
    map(
        re.compile,
        (
            r"\[(ERROR|FATAL)\]",
            r"^(eom_dynamics|player): ",
            r"^(Fatal Python error|([A-Za-z_]\w*\.)*[A-Z]\w*(Error|Exception|Interrupt|Exit))\b",
        ),
    )
)

# Settings of the caller that would let others in.
_REACH_OUT = ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER", "ROS_NAMESPACE")


class RunError(EomDynamicsError):
    """The node or the player did not do its part; the message is what it said last."""


def play(plan: Plan, robot: str, report: Callable[[int, int], None]) -> Recording:
    """Play a plan to a node.

    Args:
        plan: what to play.
        robot: the robot that the node loads: a packaged name, or the path of a parameter file.
        report: is called ten times a second with the numbers of setpoints sent and answered so far.

    Raises:
        RunError: the node or the player ended early.
    """
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(_Signals())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eom_dynamics_demo_")))
        file = stack.enter_context(_parameter_file(robot))
        environment = _environment(folder)
        np.savez(folder / "setpoints.npz", **setpoints(plan))
        # Diagnostics say what computes; often enough for a short run to hear it.
        # Nobody asks for plans here, and their process would start beside what is timed.
        settings = ("-p", "diagnostic_period:=0.2", "-p", "planning_services:=false")
        parameters = ("--params-file", str(file), *settings)
        node = stack.enter_context(_Process("dynamics_node", ("--ros-args", *parameters), folder, environment))
        limits = ("--rate", str(plan.rate), "--timeout", str(_STARTUP), "--grace", str(_GRACE))
        player = stack.enter_context(_Process("player", ("setpoints.npz", "answers.npz", *limits), folder, environment))
        _follow(node, player, signals, report)
        return _recording(folder / "answers.npz")


def _follow(node: _Process, player: _Process, signals: _Signals, report: Callable[[int, int], None]) -> None:
    """Report the player's progress until it has ended well.

    Raises:
        RunError: the node ended first, or the player failed.
    """
    while player.exit_code is None:
        signals.check()
        if node.exit_code is not None:
            raise RunError(f"the node ended with exit code {node.exit_code}: {node.last_words}")
        _pass_on(player, report)
        time.sleep(_REPORT_PERIOD)
    if player.exit_code:
        raise RunError(f"{player.last_words} (the node's last words: {node.last_words})")
    _pass_on(player, report)


def _pass_on(player: _Process, report: Callable[[int, int], None]) -> None:
    # The ROS 2 middleware writes to stdout too.
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
    """A module of ``eom_dynamics.ros`` as a process of its own, which ends with the context.

    It runs in a session of its own, so that Ctrl-C reaches the caller alone, who then ends it in good order. A caller
    that cannot, since it was killed, leaves it to see to its end itself: :mod:`.child`.
    What it prints goes to files in ``folder``.
    """

    def __init__(self, module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.name = module.replace("_", " ")
        self._output, self._errors = folder / f"{module}.out", folder / f"{module}.err"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                # In a folder with nothing in it: Python puts the working directory first on its path.
                [sys.executable, "-m", f"{__package__}.child", module, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        self._stdin = self._process.stdin

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._process.kill()
            self._process.wait()
            self._stdin.close()

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process, None while it runs."""
        return self._process.poll()

    @property
    def output(self) -> list[str]:
        """The complete lines that it has printed."""
        return self._output.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]

    @property
    def last_words(self) -> str:
        """What it said last of why it ended, on one line."""
        return printable(telling_line(self._errors.read_text(encoding="utf-8", errors="replace")))


def telling_line(text: str) -> str:
    """The line of a process's stderr that says best why it ended: of the most telling kind there is, the last one."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for kind in _TELLING:
        if telling := [line for line in lines if kind.search(line)]:
            return telling[-1]
    return lines[-1] if lines else "it said nothing"


def _environment(folder: Path) -> dict[str, str]:
    """The caller's environment, in a free domain, on this machine, and with logs that go with the folder."""
    environment = {name: value for name, value in os.environ.items() if name not in _REACH_OUT}
    return {
        **environment,
        "ROS_DOMAIN_ID": str(_free_domain()),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_LOG_DIR": str(folder),
        "PYTHONUNBUFFERED": "1",
    }


def _free_domain() -> int:
    """A domain in which nobody on this machine is: the discovery port of its first participant is free."""
    for domain in random.sample(_DOMAINS, len(_DOMAINS)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
            probe.bind(("", 7400 + 250 * domain + 10))
            return domain
    raise RunError("no ROS 2 domain is free on this machine: end other ROS 2 programs")


def _parameter_file(robot: str) -> AbstractContextManager[Path]:
    if robot in packaged_robots():
        return resources.as_file(resources.files("eom_dynamics") / "config" / f"{robot}.yaml")
    return contextlib.nullcontext(Path(robot).resolve())


class _Signals(AbstractContextManager["_Signals"]):
    """SIGINT, SIGTERM and SIGHUP, held back until :meth:`check` is called, or the context ends.

    An exception out of nowhere could come between the start of a process and the note that it is to be ended,
    or while others are being ended.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._before = {
            number: signal.signal(number, self._note)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) != signal.SIG_IGN  # as nohup has it for the last of them
        }

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if error is None:
            self.check()

    def check(self) -> None:
        """Raise what a signal that has come would have raised: KeyboardInterrupt or SystemExit."""
        if self._received == signal.SIGINT:
            raise KeyboardInterrupt
        if self._received is not None:
            sys.exit(128 + self._received)

    def _note(self, number: int, _: object) -> None:
        self._received = number

# SPDX-License-Identifier: Apache-2.0
"""Run modules of ``eom_dynamics.ros`` as processes in a free ROS 2 domain on this machine only."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from ...exceptions import EomDynamicsError
from ...terminal import printable

# Time that a process may take to end, and from SIGTERM to SIGKILL where its parent has gone, s.
_PATIENCE, _ORPHAN_PATIENCE = 15.0, 10.0

_REPORT_PERIOD = 0.1

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


class RunError(EomDynamicsError):
    """A process failed; the message is the line of its log that gives the reason."""


def follow(nodes: Mapping[str, Process], player: Process, report: Callable[[int, int], None]) -> None:
    """Report a player's progress until it ends.

    Args:
        nodes: that the player needs, by their names in messages.
        player: prints lines of JSON with the counts ``sent`` and ``received``.
        report: called ten times per second with both.
    """
    while player.exit_code is None:
        for name, node in nodes.items():
            if node.exit_code is not None:
                raise RunError(f"{name} ended with exit code {node.exit_code}: {node.last_words}")
        _pass_on(player, report)
        time.sleep(_REPORT_PERIOD)
    if player.exit_code:
        words = "; ".join(f"{name}: {node.last_words}" for name, node in nodes.items())
        raise RunError(f"{player.last_words} ({words})")
    _pass_on(player, report)


def _pass_on(player: Process, report: Callable[[int, int], None]) -> None:
    # The middleware prints to stdout too.
    counts = [json.loads(line) for line in player.output if line.startswith("{")]
    if counts:
        report(counts[-1]["sent"], counts[-1]["received"])


class Process(AbstractContextManager["Process"]):
    """A module's ``main`` run as a process, which ends with the context or with this process: :func:`child`.

    It has its own session, so that Ctrl-C reaches this process only. Its output goes to files in ``folder``.
    """

    def __init__(self, module: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        name = module.rpartition(".")[2]
        self._output, self._errors = folder / f"{name}.out", folder / f"{name}.err"
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                # In a scratch folder, since Python puts the working directory first on its path.
                child_command(module, *arguments),
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
        """The line of its log that gives the reason for its end."""
        return printable(telling_line(self._errors.read_text(encoding="utf-8", errors="replace")))


def telling_line(text: str) -> str:
    """Return the line of a process's stderr that best explains its end: the last of the most specific kind."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for kind in _TELLING:
        if telling := [line for line in lines if re.search(kind, line)]:
            return telling[-1]
    return lines[-1] if lines else "its log is empty"


def environment_of(folder: Path) -> dict[str, str]:
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


def child_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module's ``main`` by :func:`child`."""
    return [sys.executable, "-m", __name__, module, *arguments]


def child() -> int:
    """Run a module as a child process that does not outlive its parent, and return its exit code.

    Its stdin is a pipe whose other end the parent holds and never writes to. The child ends when the pipe closes: when
    the parent closes it, or ends, even by SIGKILL.
    """
    module, *arguments = sys.argv[1:]
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
    sys.argv = [module, *arguments]
    return int(importlib.import_module(module).main())


def _end_with_parent() -> None:
    # sys.stdin would hold a lock that the interpreter needs at exit.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_ORPHAN_PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(child())

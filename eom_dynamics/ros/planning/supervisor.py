# SPDX-License-Identifier: Apache-2.0
"""Keeps the process of the planning services running as long as the node does. Nothing here ever waits in the node."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from ...robot import Robot
from .link import READY, Identity, LastNumber, Update

# The path of this process, not what Python makes of the working folder: there may be a source folder in it.
_CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[3]); from {module} import main; sys.exit(main())"

# A process that ended is started again at once, one that ends again and again after up to this long, s.
_LONGEST_DELAY = 30.0

# After this long without an end, s, the next one counts as the first.
_LONG_LIFE = 60.0

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What ends the node, which ends the process; they are blocked in that from its start on."""

# Of glibc: keep the megabytes of an answer for the next one, which else would be mapped and cleared page by page anew.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(256 * 2**20)}

_NICENESS = 10

# How long the process may take to end in good order, s.
_PATIENCE = 2.0


class Supervisor:
    """The process of the planning services, seen from the node.

    A thread starts it, writes updates to it, and starts it again where it ended. It ends with the node, however that
    ends: it reads from a socket whose other end only the node's process holds.
    """

    def __init__(
        self,
        identity: Identity,
        warn: Callable[[str], None],
        take: Callable[[Any], None],
        *,
        module: str = f"{__package__}.process",
        delays: Sequence[float] = (0.0, 1.0),
    ) -> None:
        """Start the process.

        Args:
            identity: of the node.
            warn: takes a line for the log; called in a thread of its own, as is the next.
            take: takes what the process says, other than that it is ready.
            module: whose function ``main`` the process runs.
            delays: how long to wait before the first and the second restart, s; from then on twice as long each time.
        """
        self._identity, self._warn, self._take = identity, warn, take
        self._module, self._delays = module, delays
        self._update = Update(0, "unconfigured", 0, None)
        self._shared = tempfile.TemporaryFile()  # noqa: SIM115  as long as the process may start again
        self._shared.truncate(LastNumber.SIZE)
        self._last = LastNumber(self._shared.fileno())
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = False
        self._ready = False
        self._restarts = 0
        self._end = ""
        # Written to where something is new: the thread waits for this and for the process together.
        self._bell, self._ring = socket.socketpair()
        self._ring.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="planning services", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why the services are not there, after they were or should have been; empty where they are, or start."""
        return "" if self._ready or not self._end else f"the planning services {self._end}; they start again"

    @property
    def serial(self) -> int:
        """The serial number of the robot that was told last."""
        return self._update.serial

    @property
    def status(self) -> str:
        """One or a few words for diagnostics."""
        told = "ready" if self._ready else "starting"
        return f"{told}; restarted {self._restarts} times, last: {self._end}" if self._restarts else told

    def tell(self, state: str, robot: Robot | None) -> None:
        """Say what state the node is in, and what its robot is."""
        if self._closing:
            return
        before = self._update
        self._update = Update(before.number + 1, state, before.serial + (robot is not before.robot), robot)
        self._last.value = self._update.number
        self._wake()

    def close(self) -> None:
        """End the process, and wait until it has."""
        self._closing = True
        self._wake()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive() and self._process:  # it does not even read
            self._process.kill()
            self._thread.join()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # then it is woken anyway
            self._ring.send(b"!")

    def _run(self) -> None:
        # The process inherits this: a signal to both, as of a terminal, must not end it while it still imports.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        delay = iter(self._delays)
        pause = 0.0
        while True:
            started = time.monotonic()
            try:
                code = self._run_once()
            except OSError as error:  # no process could be started
                self._end = f"could not be started: {error}"
            else:
                self._end = f"ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
            if self._closing:
                return
            if time.monotonic() - started > _LONG_LIFE:
                delay, pause = iter(self._delays), 0.0
            pause = next(delay, min(max(2 * pause, 0.1), _LONGEST_DELAY))
            after = f" in {pause:g} s" if pause else ""
            self._warn(f"the planning services {self._end}; they start again{after}")
            if self._rest(pause):
                return
            self._restarts += 1

    def _run_once(self) -> int:
        """Start the process and serve it until one of both ends; its exit code."""
        ours, theirs = socket.socketpair()
        with Connection(ours.detach()) as link:
            with theirs:
                code = _CODE.format(module=self._module)
                process = self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        code,
                        str(theirs.fileno()),
                        str(self._shared.fileno()),
                        json.dumps(sys.path),
                    ],
                    pass_fds=[theirs.fileno(), self._shared.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=_MEMORY | os.environ,
                )
            with contextlib.suppress(EOFError, OSError):  # it has ended
                self._serve(link)
        self._ready = False
        try:
            return process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def _serve(self, link: Connection) -> None:
        link.send(self._identity)
        sent = None
        while not self._closing:
            if self._update is not sent:
                sent = self._update
                link.send(sent)
            for end in wait([link, self._bell]):
                if end is link:
                    said = link.recv()
                    if said == READY:
                        self._ready = True
                    else:
                        self._take(said)
                else:
                    self._bell.recv(4096)

    def _rest(self, seconds: float) -> bool:
        """Wait; returns whether the node has ended meanwhile."""
        end = time.monotonic() + seconds
        while not self._closing and (left := end - time.monotonic()) > 0:
            if wait([self._bell], left):
                self._bell.recv(4096)
        return self._closing


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def open_link() -> tuple[Connection, LastNumber]:
    """The process's end of the link, and of the shared memory, from its command line."""
    return Connection(int(sys.argv[1])), LastNumber(int(sys.argv[2]))


def lower_priority() -> None:
    """Let the stream go first wherever both could run, and leave it a core of its own where there are several.

    Each thread has a priority of its own in Linux, also those that libraries of linear algebra have started already.
    """
    cores = os.sched_getaffinity(0)
    for thread in map(int, os.listdir("/proc/self/task")):
        os.setpriority(os.PRIO_PROCESS, thread, _NICENESS)
        if len(cores) > 1:
            os.sched_setaffinity(thread, cores - {min(cores)})

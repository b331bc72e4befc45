# SPDX-License-Identifier: Apache-2.0
"""Worker process that fits and checks trajectories; in the node, a fit would delay the stream."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

from ...exceptions import TrajectoryError
from ..planning.jobs import PlannedMotion, PlanningJob
from ..planning.serving import serve
from ..running import give_way

# Longest time without an answer, s; then the process counts as hanging. The fastest motion through thousands of points
# takes minutes.
LONGEST_JOB = 300.0

# Time between looks whether a plan is still needed, s.
_LOOK = 0.1

# A fork of a process with the threads of the middleware may deadlock.
_PROCESSES = multiprocessing.get_context("spawn")


class PlannerProcess:
    """The process and its restarts. Methods are called by one thread; :meth:`close` by any."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Any = None
        self._closed = False

    def compute(self, job: PlanningJob, is_wanted: Callable[[], bool] = lambda: True) -> PlannedMotion:
        """Plan a trajectory.

        Args:
            is_wanted: returns whether the plan is still needed, for a long job.

        Raises:
            TrajectoryError: the trajectory is refused, or the process has ended or hangs; then another one is started.
        """
        self._start()
        limit = time.monotonic() + LONGEST_JOB
        try:
            self._connection.send(job)
            while not self._connection.poll(_LOOK):
                if not is_wanted() or time.monotonic() > limit:
                    raise TimeoutError
            answer = self._connection.recv()
            if isinstance(answer, PlannedMotion):
                return answer
            raise TrajectoryError(answer)
        except TimeoutError:
            fault = f"did not answer for {LONGEST_JOB:g} s"
        except (EOFError, OSError):
            fault = "has ended"
        self._kill()
        if is_wanted():
            self._start()
        raise TrajectoryError(f"the planner process {fault} and is started again: send the trajectory again")

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()

    def _start(self) -> None:
        """Start the process, unless it runs."""
        if self._closed:
            raise TrajectoryError("the node ends")
        if self._process is not None and self._process.is_alive():
            return
        self._connection, theirs = _PROCESSES.Pipe()
        process = _PROCESSES.Process(target=serve, args=(theirs,), name="planner", daemon=True)
        # In another thread: the process inherits priority, processors and blocked signals of the thread.
        thread = threading.Thread(target=_start_beside, args=(process,))
        thread.start()
        thread.join()
        theirs.close()
        self._process = process
        if self._closed:
            self._kill()


def _start_beside(process: Any) -> None:
    """Start a process that gives way and does not receive the SIGINT of a terminal."""
    give_way([threading.get_native_id()])
    resource_tracker.ensure_running()  # before, since it unblocks signals
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    process.start()

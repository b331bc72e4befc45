# SPDX-License-Identifier: Apache-2.0
"""Worker process that fits and checks trajectories; in the node, a fit would delay the stream."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any

from ...exceptions import TrajectoryError
from ..planning import serving
from ..planning.jobs import PlannedMotion, PlanningJob
from ..running import give_way

# Longest time without an answer, s; then the process counts as hanging. The fastest motion through thousands of points
# takes minutes.
LONGEST_JOB = 300.0

# Time between checks whether a plan is still needed, s.
_CHECK_PERIOD = 0.1


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
            TrajectoryError: the trajectory is refused, or the process has ended or hangs; then it is started again.
        """
        self._start()
        limit = time.monotonic() + LONGEST_JOB
        try:
            self._connection.send(job)
            while not self._connection.poll(_CHECK_PERIOD):
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
            self._process.wait()

    def _start(self) -> None:
        """Start the process, unless it runs."""
        if self._closed:
            raise TrajectoryError("the node ends")
        if self._process is not None and self._process.poll() is None:
            return
        self._connection, theirs = Pipe()
        with theirs:
            # Not by multiprocessing, which imports the main module of the node before the process watches the node.
            self._process = subprocess.Popen(
                [sys.executable, "-m", serving.__name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
            )
        give_way([self._process.pid])
        if self._closed:
            self._kill()

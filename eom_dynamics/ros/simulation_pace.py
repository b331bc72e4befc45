# SPDX-License-Identifier: Apache-2.0
"""Pace, watchdog and statistics of the simulated robot."""

from __future__ import annotations

from collections import deque
from enum import Enum
from statistics import median

from .diagnostics import Level, StatusReport

# Largest delay behind the clock before steps are dropped, s.
_LARGEST_BACKLOG = 0.1

# Longest simulated time per call, so that other callbacks run in between, s.
_ONE_GO = 0.02


class Pace:
    """Number of steps due.

    After a stall the simulation catches up. Of a long stall, or of a clock that jumps ahead, the time beyond 0.1 s is
    dropped.

    Attributes:
        steps: number of steps taken.
        late: number of those that were taken together with an earlier one, to catch up.
        lost: number of dropped steps.
    """

    def __init__(self, period: float) -> None:
        """Set the step size, s."""
        self._period = period
        self._most_at_once = max(1, round(_ONE_GO / period))
        self._backlog = max(self._most_at_once, round(_LARGEST_BACKLOG / period))
        self._start: float | None = None
        self._now = 0.0
        self._since_start = 0
        self.steps = self.late = self.lost = 0

    def due(self, now: float) -> int:
        """Return how many steps to take at clock time ``now``, s. A clock that goes back restarts the count."""
        if self._start is None or now < self._now:
            self._start, self._since_start = now, 0
        self._now = now
        # Allow for rounding.
        behind = int((now - self._start) / self._period + 1e-6) - self._since_start
        if behind > self._backlog:
            self.lost += behind - self._backlog
            self._since_start += behind - self._backlog
            behind = self._backlog
        count = min(behind, self._most_at_once)
        self._since_start += count
        self.steps += count
        self.late += max(count - 1, 0)
        return count

    @property
    def lag(self) -> float:
        """Delay of the simulation behind the clock at the last :meth:`due`, s."""
        return 0.0 if self._start is None else self._now - self._start - self._since_start * self._period


# Pause of commands that ends a stop, if there is no timeout, s.
_PAUSE = 1.0


class CommandPhase(Enum):
    """State of the simulated robot, with its text in diagnostics."""

    WAITING = "holding the initial position: waiting for commands"
    FOLLOWING = "following commands"
    LOST = "no commands"
    STOPPED = "stopped"


class CommandWatchdog:
    """Command timeout; after a stop, commands are refused until they have paused.

    Attributes:
        phase: current state.
    """

    def __init__(self, timeout: float) -> None:
        """Set the command timeout, s; 0 for none."""
        self._timeout = timeout
        self._last = 0.0
        self.phase = CommandPhase.WAITING

    def command(self, now: float) -> bool:
        """Register a command at time ``now``, s; return whether to follow it."""
        self._last = now
        if self.phase is not CommandPhase.STOPPED:
            self.phase = CommandPhase.FOLLOWING
        return self.phase is CommandPhase.FOLLOWING

    def missed(self, now: float) -> bool:
        """Return true once when commands time out. A clock that goes back restarts the timeout."""
        self._last = min(self._last, now)
        pause = now - self._last
        if self.phase is CommandPhase.FOLLOWING and self._timeout and pause > self._timeout:
            self.phase = CommandPhase.LOST
            return True
        if self.phase is CommandPhase.STOPPED and pause > (self._timeout or _PAUSE):
            self.phase = CommandPhase.WAITING
        return False

    def stop(self, now: float) -> None:
        """Ignore commands until they have paused for the timeout."""
        self._last = now
        self.phase = CommandPhase.STOPPED


_KEPT_TIMES = 10_000


class SimulatedRobotStatistics:
    """Counts commands and steps.

    Attributes:
        received, refused: number of commands, and of invalid ones.
        last_refusal: why the last refused command was refused.
        stops: how often the simulation diverged.
        timeouts: number of command timeouts.
        step_times: computation times of the steps of the period, ns.
    """

    def __init__(self) -> None:
        self.received = self.refused = self.stops = self.timeouts = 0
        self.last_refusal = ""
        self._before = (0, 0, 0, 0, 0)
        self.step_times: deque[int] = deque(maxlen=_KEPT_TIMES)

    def report(self, seconds: float, pace: Pace, phase: CommandPhase) -> StatusReport:
        """Return the status of the last ``seconds``, and start the next period."""
        counts = (self.received, self.refused, pace.steps, pace.late, pace.lost)
        received, refused, steps, late, lost = (a - b for a, b in zip(counts, self._before, strict=True))
        self._before = counts
        times, self.step_times = self.step_times, deque(maxlen=_KEPT_TIMES)
        values = {
            "phase": phase.name.lower(),
            "commands": str(self.received),
            "commands refused": str(self.refused),
            "last refusal": self.last_refusal,
            "command rate (Hz)": f"{received / seconds:.1f}",
            "timeouts": str(self.timeouts),
            "stops": str(self.stops),
            "steps": str(pace.steps),
            "steps late": str(pace.late),
            "steps lost": str(pace.lost),
            "step rate (Hz)": f"{steps / seconds:.1f}",
            "step time median (us)": f"{median(times) * 1e-3:.1f}" if times else "",
            "step time max (us)": f"{max(times) * 1e-3:.1f}" if times else "",
        }
        level, message = Level.WARN, phase.value
        if phase is CommandPhase.STOPPED:
            level, message = Level.ERROR, "stopped: the simulation diverged; pause the commands to continue"
        elif lost:
            message = f"slower than real time: {lost} of {steps + lost} steps dropped"
        elif refused:
            level = Level.ERROR if refused == received else Level.WARN
            message = f"{refused} of {received} commands refused, the last: {self.last_refusal}"
        elif phase is CommandPhase.LOST:
            message = "command timeout: on_timeout is in effect"
        elif late > 0.5 * steps > 0:
            message = f"{late} of {steps} steps were late"
        else:
            level = Level.OK
        return StatusReport(level, message, values)

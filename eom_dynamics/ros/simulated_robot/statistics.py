# SPDX-License-Identifier: Apache-2.0
"""Statistics of the simulation: counts since startup, and values of the last period."""

from __future__ import annotations

from collections import deque
from statistics import median

from ..diagnostics import Level, StatusReport
from .pace import Pace
from .watchdog import CommandPhase

_KEPT_TIMES = 10_000


class SimulatedRobotStatistics:
    """Counts commands and steps.

    Attributes:
        received, refused: number of commands, and of invalid ones.
        last_refusal: why the last refused command was refused.
        stops: how often the simulation diverged.
        timeouts: number of command timeouts.
    """

    def __init__(self) -> None:
        self.received = self.refused = self.stops = self.timeouts = 0
        self.last_refusal = ""
        self._before = (0, 0, 0, 0, 0)
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)

    def add_step(self, nanoseconds: int) -> None:
        """Add the computation time of one step."""
        self._times.append(nanoseconds)

    def refuse(self, reason: str) -> None:
        """Count a refused command."""
        self.refused += 1
        self.last_refusal = reason

    def report(self, seconds: float, pace: Pace, phase: CommandPhase) -> StatusReport:
        """Return the status of the last ``seconds``, and start the next period."""
        counts = (self.received, self.refused, pace.steps, pace.late, pace.lost)
        received, refused, steps, late, lost = (a - b for a, b in zip(counts, self._before, strict=True))
        self._before = counts
        times, self._times = self._times, deque(maxlen=_KEPT_TIMES)
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
        if phase is CommandPhase.STOPPED:
            return StatusReport(Level.ERROR, "stopped: the simulation diverged; pause the commands to continue", values)
        if lost:
            return StatusReport(Level.WARN, f"slower than real time: {lost} of {steps + lost} steps dropped", values)
        if refused:
            level = Level.ERROR if refused == received else Level.WARN
            return StatusReport(
                level, f"{refused} of {received} commands refused, the last: {self.last_refusal}", values
            )
        if phase is CommandPhase.LOST:
            return StatusReport(Level.WARN, "command timeout: on_timeout is in effect", values)
        if late > 0.5 * steps > 0:
            return StatusReport(Level.WARN, f"{late} of {steps} steps were late", values)
        return StatusReport(Level.OK, phase.value, values)

# SPDX-License-Identifier: Apache-2.0
"""Statistics of the stream: counts since the start, and values of the last period."""

from __future__ import annotations

from collections import deque
from statistics import median

from ..diagnostics import Level, Report

STATUS_NAME = "eom_dynamics: feedforward"
"""Name of the diagnostic status of the node."""

# Bounds the memory of a long period: the median is then that of the last ten seconds at 1 kHz.
_KEPT_TIMES = 10_000

# Above this share of the time spent on setpoints, they queue up.
_BUSY = 0.8


class StreamStatistics:
    """Counts setpoints by outcome.

    Attributes:
        received: setpoints that arrived.
        published: setpoints that were answered.
        refused: setpoints that could not be used.
        held: those of them that were answered with the last good command.
        ignored: setpoints that arrived while the node was not active.
        exceeding: commands that exceed limits of the motors.
        last_refusal: why the last one was refused.
    """

    def __init__(self) -> None:
        self.received = self.published = self.refused = self.held = self.ignored = self.exceeding = 0
        self.last_refusal = ""
        self._worst, self._worst_excess = 0.0, ""
        self._before = (0, 0, 0, 0)
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)
        self._busy = self._longest = 0

    def add_time(self, nanoseconds: int) -> None:
        """Add the time that the answer to one setpoint took."""
        self._times.append(nanoseconds)
        self._busy += nanoseconds
        if nanoseconds > self._longest:
            self._longest = nanoseconds

    def refuse(self, reason: str) -> None:
        """Count a refused setpoint."""
        self.refused += 1
        self.last_refusal = reason

    def exceed(self, ratio: float, excess: str) -> None:
        """Count a command that exceeds limits.

        Args:
            ratio: how many times a limit, at worst.
            excess: that excess in words.
        """
        self.exceeding += 1
        if ratio > self._worst:
            self._worst, self._worst_excess = ratio, excess

    def report(self, seconds: float) -> Report:
        """Figures since the last report, ``seconds`` ago, as they stand in the active state; starts the next period."""
        counts = (self.received, self.refused, self.ignored, self.exceeding)
        received, refused, ignored, exceeding = (now - before for now, before in zip(counts, self._before, strict=True))
        load = self._busy * 1e-9 / seconds
        values = {
            "received": str(self.received),
            "published": str(self.published),
            "refused": str(self.refused),
            "ignored while not active": str(self.ignored),
            "last refusal": self.last_refusal,
            "held": str(self.held),
            "over limits": str(self.exceeding),
            "worst excess": self._worst_excess,
            "rate (Hz)": f"{received / seconds:.1f}",
            "compute time median (us)": f"{median(self._times) * 1e-3:.1f}" if self._times else "",
            "compute time max (us)": f"{self._longest * 1e-3:.1f}" if self._times else "",
            "load (%)": f"{100 * load:.1f}",
        }
        excess, self._worst, self._worst_excess = self._worst_excess, 0.0, ""
        self._before = counts
        self._times.clear()
        self._busy = self._longest = 0
        if refused:
            level = Level.ERROR if refused == received else Level.WARN
            return Report(level, f"{refused} of {received} setpoints refused, the last: {self.last_refusal}", values)
        if ignored:
            return Report(Level.WARN, f"{ignored} setpoints ignored: the node is not active", values)
        if exceeding:
            return Report(Level.WARN, f"{exceeding} of {received} commands exceed limits, the worst: {excess}", values)
        if load > _BUSY:
            return Report(Level.WARN, f"busy for {100 * load:.0f} % of the time: setpoints queue up", values)
        return Report(Level.OK, "streaming" if received else "waiting for setpoints", values)

# SPDX-License-Identifier: Apache-2.0
"""Statistics of the stream, and warnings about setpoints and their commands at a limited rate."""

from __future__ import annotations

from collections import deque
from statistics import median

from ...control.control_loop import EXCEEDS, SUSPECT
from ...control.setpoint_loop import SetpointLoop
from ...elastic.limit_violations import summary
from ...terminal import printable
from ..diagnostics import Level, StatusReport
from ..robot_node import RobotNode

STATUS_NAME = "feedforward"
"""Name of the diagnostic status, after the node's name."""

WAITING = "waiting for setpoints"
"""Message of the status while nothing comes."""

# Bounds the memory of a long period; ten seconds at 1 kHz.
_KEPT_TIMES = 10_000

# Largest fraction of time spent on setpoints before they queue up.
_BUSY = 0.8


class StreamStatistics:
    """Counts setpoints by outcome, since startup and in the last period, and logs the reasons for refusals.

    Attributes:
        received, published, refused: setpoints received, answered with a command, and invalid; including setpoints of
            trajectories and targets, counted by ``led``.
        held: invalid setpoints answered with the last valid command.
        ignored, expired: setpoints received while the node was not active, and dropped since they were too old.
        exceeding: commands that exceed limits.
        last_refusal: why the last refused setpoint was refused.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self.received = self.published = self.refused = self.held = self.ignored = self.exceeding = self.expired = 0
        self.led = 0
        self.last_refusal = ""
        self._worst, self._worst_violation = 0.0, ""
        self._before = (0, 0, 0, 0, 0)
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)
        self._busy = self._longest = 0

    def add_time(self, nanoseconds: int) -> None:
        """Add the computation time of one setpoint."""
        self._times.append(nanoseconds)
        self._busy += nanoseconds
        if nanoseconds > self._longest:
            self._longest = nanoseconds

    def refuse(self, reason: str, detail: str = "") -> None:
        """Count and log a refused setpoint; ``detail`` is the traceback of an internal error."""
        self.refused += 1
        self.last_refusal = reason
        self._node.warn("setpoint refused", "\n".join(filter(None, [reason, detail])))

    def expire(self, age: int, lifespan: int) -> None:
        """Count and log a setpoint that was dropped because its age exceeds the lifespan, both in ns."""
        self.received += 1
        self.expired += 1
        at_most = f"must be at most {lifespan * 1e-9:g} s"
        at_most += ": clocks differ, or a process waits on a busy machine"
        what = f"{age * 1e-9:.3g} s old" if age > 0 else f"stamped {age * -1e-9:.3g} s ahead of the node's clock"
        self._node.warn("setpoint dropped", f"it is {what}, {at_most}")

    def remark(self, loop: SetpointLoop, remarks: int) -> None:
        """Log warnings about an accepted setpoint, in bits: EXCEEDS, SUSPECT."""
        if remarks & EXCEEDS:
            self.exceed(loop)
        if remarks & SUSPECT:
            self._node.warn("setpoint in doubt", printable(loop.suspicion()))

    def exceed(self, loop: SetpointLoop) -> None:
        """Count the last command if it exceeds limits, and log its worst violation, or all of them."""
        if not (found := loop.violations(1)):
            return
        (worst,) = found
        self.exceeding += 1
        if worst.ratio > self._worst:
            self._worst, self._worst_violation = worst.ratio, str(worst)
        self._node.warn(
            "command exceeds limits", printable(str(worst)), in_full=lambda: printable(summary(loop.violations()))
        )

    def report(self, seconds: float) -> StatusReport:
        """Return the status of the last ``seconds`` in the active state, and start the next period."""
        counts = (self.received, self.refused, self.ignored, self.exceeding, self.expired)
        received, refused, ignored, exceeding, expired = (a - b for a, b in zip(counts, self._before, strict=True))
        load, times = self._busy * 1e-9 / seconds, self._times
        values = {
            "received": self.received - self.led,
            "published": self.published,
            "refused": self.refused,
            "ignored while not active": self.ignored,
            "dropped as too old": self.expired,
            "last refusal": self.last_refusal,
            "held": self.held,
            "over limits": self.exceeding,
            "worst violation": self._worst_violation,
            "rate (Hz)": f"{received / seconds:.1f}",
            "compute time median (us)": f"{median(times) * 1e-3:.1f}" if times else "",
            "compute time max (us)": f"{self._longest * 1e-3:.1f}" if times else "",
            "load (%)": f"{100 * load:.1f}",
        }
        worst, self._worst, self._worst_violation = self._worst_violation, 0.0, ""
        self._before = counts
        self._times.clear()
        self._busy = self._longest = 0
        level = Level.WARN
        if refused:
            level = Level.ERROR if refused == received else Level.WARN
            message = f"{refused} of {received} setpoints refused, the last: {self.last_refusal}"
        elif expired:
            message = f"{expired} of {received} setpoints dropped: too old"
        elif ignored:
            message = f"{ignored} setpoints ignored: the node is not active"
        elif exceeding:
            message = f"{exceeding} commands exceed limits, the worst: {worst}"
        elif load > _BUSY:
            message = f"busy for {100 * load:.0f} % of the time: setpoints queue up"
        else:
            level, message = Level.OK, "streaming" if received else WAITING
        return StatusReport(level, message, {key: str(value) for key, value in values.items()})

# SPDX-License-Identifier: Apache-2.0
"""Plausibility checks of a setpoint stream: stamps, jumps and consistency."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ..arrays import Array
from ..elastic import ElasticArm, LimitCheck
from ..exceptions import DoubtfulSetpointError
from .consistency import ConsistencyCheck
from .jumps import JumpCheck
from .stamps import StampCheck

DOUBT_POLICIES = ("ignore", "warn", "refuse")
"""What to do with a doubtful setpoint: no check; answer and report it; refuse it."""


class DoubtSettings(NamedTuple):
    """Parameters of the checks.

    Attributes:
        stamps, jumps, consistency: one of DOUBT_POLICIES each.
        tolerance, window, order: of :class:`.ConsistencyCheck`.
    """

    stamps: str = "ignore"
    jumps: str = "ignore"
    consistency: str = "ignore"
    tolerance: float = 0.1
    window: int = 50
    order: int = 4

    @property
    def any(self) -> bool:
        """Whether anything is checked."""
        return {self.stamps, self.jumps, self.consistency} != {"ignore"}


class Doubts:
    """Plausibility checks of successive setpoints; a window's verdict holds until the next window is complete.

    Attributes:
        counts: doubtful setpoints by check; ``without stamp`` counts those whose jumps and consistency are not known.
        last: what was found last.
        limited: whether any joint has limits by which jumps are found.
    """

    def __init__(self, arm: ElasticArm, settings: DoubtSettings) -> None:
        """Prepare for an arm."""
        names = arm.robot.joint_names
        self._settings = settings
        self.counts: Counter[str] = Counter()
        self._stamps = StampCheck()
        self._jumps = JumpCheck(names, LimitCheck(arm).rate_limits)
        self._consistency = ConsistencyCheck(names, settings.tolerance, settings.window, settings.order)
        self._answered: tuple[int, Array] | None = None
        self.last = ""
        self.limited = self._jumps.limited

    def judge(self, stamp: int, state: Array) -> str:
        """Check a setpoint.

        Args:
            stamp: ns; 0 for none.
            state: q … qdddd (5, n).

        Returns:
            What is to be reported; empty for nothing.

        Raises:
            DoubtfulSetpointError: it is to be refused.
        """
        settings = self._settings
        found: list[tuple[str, str, str]] = []
        if settings.stamps != "ignore" and (text := self._stamps.judge(stamp)):
            found.append(("stamps", settings.stamps, text))
        if not stamp:
            if settings.jumps != "ignore" or settings.consistency != "ignore":
                self.counts["without stamp"] += 1
                self.last = "setpoints without stamps, whose jumps and consistency are not known"
        else:
            if settings.jumps != "ignore" and self._answered is not None:
                then, before = self._answered
                if text := self._jumps.judge((stamp - then) * 1e-9, before, state):
                    found.append(("jumps", settings.jumps, text))
            if settings.consistency != "ignore":
                self._consistency.add(stamp, state)
                if self._consistency.doubt:
                    found.append(("consistency", settings.consistency, self._consistency.doubt))
        for check, policy, text in found:
            self.counts[check] += 1
            self.last = text
            if policy == "refuse":
                raise DoubtfulSetpointError(f"in doubt: {text}")
        return "; ".join(text for _, _, text in found)

    def answered(self, stamp: int, state: Array) -> None:
        """Record an answered setpoint, from which the next one must not jump."""
        self._answered = (stamp, state) if stamp else None

    def moved(self, state: Array) -> None:
        """Record a command without a setpoint, from which the next setpoint must not jump."""
        if self._answered is not None:
            self._answered = self._answered[0], state

    def restart(self) -> None:
        """Forget all setpoints: a new stream begins."""
        self._stamps = StampCheck()
        self._consistency.restart()
        self._consistency.doubt = ""
        self._answered = None

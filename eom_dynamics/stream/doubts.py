# SPDX-License-Identifier: Apache-2.0
"""Plausibility checks of a setpoint stream: stamps, jumps and consistency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import Array
from ..elastic import ElasticArm, LimitCheck
from ..exceptions import DoubtfulSetpointError
from ..messages.fields import STATE_FIELDS
from ..messages.setpoint_to_command import LONGEST_GAP
from .consistency import ConsistencyCheck

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
        # Stamp of the setpoint judged last; those of trajectories are not judged.
        self._judged: int | None = None
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
        settings, self._judged = self._settings, stamp
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
            if settings.consistency != "ignore" and (text := self._consistency.judge(stamp, state)):
                found.append(("consistency", settings.consistency, text))
        for check, policy, text in found:
            self.counts[check] += 1
            self.last = text
            if policy == "refuse":
                if check == "consistency":  # until a window is consistent again
                    self._consistency.add(stamp, state)
                raise DoubtfulSetpointError(f"in doubt: {text}")
        return "; ".join(text for _, _, text in found)

    def answered(self, stamp: int, state: Array) -> None:
        """Record an answered setpoint, with which the next ones are compared."""
        self._answered = (stamp, state) if stamp else None
        if stamp and stamp == self._judged:
            self._stamps.answered(stamp)
            if self._settings.consistency != "ignore":
                self._consistency.add(stamp, state)

    def moved(self, state: Array) -> None:
        """Record a command without a setpoint, from which the next setpoint must not jump."""
        if self._answered is not None:
            self._answered = self._answered[0], state

    def restart(self) -> None:
        """Forget all setpoints: a new stream begins."""
        self._stamps = StampCheck()
        self._consistency.restart()
        self._answered = self._judged = None


class StampCheck:
    """Compares each stamp with that of the last answered setpoint.

    Where it goes back, it may also advance from one that went back before, so that a restarted clock counts once.
    Setpoints without stamp (0) are not compared.
    """

    def __init__(self) -> None:
        self._answered = self._back = 0

    def answered(self, stamp: int) -> None:
        """Record the stamp of an answered setpoint, ns."""
        self._answered, self._back = stamp, 0

    def judge(self, stamp: int) -> str:
        """Return what is wrong with a stamp, ns; empty if it advances."""
        before = self._answered
        if not (stamp and before) or stamp > before:
            return ""
        back, self._back = self._back, stamp
        if back and stamp > back:
            return ""
        if stamp == before:
            return "stamp repeated: the setpoint before has the same"
        return f"stamp goes back by {(before - stamp) * 1e-9:.3g} s: several publishers, or setpoints out of order"


JITTER = 1e-3
"""Added to the time between two stamps, s, which a planner may take from its clock."""


class JumpCheck:
    """Compares each setpoint with the last answered one.

    By the mean value theorem, a motion with |x_{k+1}| <= L changes x_k by at most L dt in the time dt. More is a step,
    although each setpoint may be within limits. The time counts up to :data:`.LONGEST_GAP`: drives hold the last
    command, and a step after a pause is one nevertheless.
    """

    def __init__(self, names: Sequence[str], limits: Array) -> None:
        """Set names of n joints and their limits of velocity, acceleration and jerk (3, n), infinite for none."""
        self._names, self._limits = names, limits
        self.limited = bool(np.isfinite(limits).any())

    def judge(self, dt: float, before: Array, state: Array) -> str:
        """Return which joint jumps; empty if none does.

        Args:
            dt: time between the stamps, s.
            before: state (5, n) of the last answered setpoint.
            state: this one (5, n).
        """
        orders = len(self._limits)
        most = self._limits * (min(max(dt, 0.0), LONGEST_GAP) + JITTER)
        with np.errstate(all="ignore"):  # differences of any numbers, and limits of zero or infinity
            steps = np.abs(state[:orders] - before[:orders])
            ratios = np.where(steps > most, steps / most, 0.0)
        if not ratios.any():
            return ""
        k, joint = map(int, np.unravel_index(np.argmax(ratios), steps.shape))
        return (
            f"{STATE_FIELDS[k]} of {self._names[joint]} jumps by {steps[k, joint]:.3g} within {dt:.3g} s, the limit of "
            f"{STATE_FIELDS[k + 1]} allows {most[k, joint]:.3g}: start from the commanded state, or deactivate and "
            "activate the node"
        )

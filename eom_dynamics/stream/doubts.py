# SPDX-License-Identifier: Apache-2.0
"""Plausibility checks of a setpoint stream: stamps, jumps and consistency of fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..elastic import ElasticArm, LimitCheck
from ..exceptions import DoubtfulSetpointError
from ..messages.fields import STATE_FIELDS
from ..messages.setpoint_to_command import LONGEST_GAP

# Mean change from setpoint to setpoint below which a field rests, relative to its size or 1: single precision resolves
# it only just.
AT_REST = 1e-6

_DEGREES = 180.0 / np.pi

# What factors mean, and how close they must be.
_MEANINGS = (
    (_DEGREES, "degrees instead of radians"),
    (1.0 / _DEGREES, "degrees instead of radians before"),
    (1e3, "millimetres, or milliseconds"),
    (1e-3, "millimetres, or milliseconds, before"),
    (-1.0, "opposite sign"),
)
_CLOSE = 0.02
_STAMPS = "do stamps advance with the motion?"
_SCALED = f"scaled; or {_STAMPS}"


class ConsistencyCheck:
    """Compares changes of each field with the integral of the next one, over windows of setpoints.

    With D = x_k(t_i) - x_k(t_{i-1}) and the trapezoidal rule S = (t_i - t_{i-1}) (x_{k+1}(t_i) + x_{k+1}(t_{i-1})) / 2,
    a joint is inconsistent if

        sum (D - S)² > tolerance² max(sum D², sum S²)

    over a window. A motion of angular frequency w, sampled every dt, has a relative error of (w dt)² / 12.

    Attributes:
        doubt: what is wrong with the last complete window; empty if it is consistent.
    """

    def __init__(self, names: Sequence[str], tolerance: float = 0.1, window: int = 50, order: int = 4) -> None:
        """Check the first ``order`` derivatives, 1 … 4, of n joints, in windows of that many steps."""
        self._names, self._tolerance, self._window, self._order = names, tolerance, window, order
        self._times = np.zeros(window + 1, dtype=np.int64)
        self._states = np.zeros((window + 1, len(STATE_FIELDS), len(names)))
        self.restart()

    def restart(self) -> None:
        """Begin a window with the next setpoint, without a verdict."""
        self._count, self.doubt, self._verdict = 0, "", ""

    def judge(self, stamp: int, state: Array) -> str:
        """What :attr:`doubt` would be with a state (5, n) at a stamp, ns, in the window."""
        if not self._completes(stamp):
            return self.doubt
        self._times[-1], self._states[-1] = stamp, state
        self._verdict = self.diagnosis(self._times, self._states)
        return self._verdict

    def add(self, stamp: int, state: Array) -> None:
        """Add what was judged last; a new window begins where stamps jump or do not advance."""
        if self._completes(stamp):
            self.doubt = self._verdict
            # The last setpoint of a window is the first of the next one.
            self._count = 0
        elif not self._follows(stamp):
            self._count = 0
        self._times[self._count], self._states[self._count] = stamp, state
        self._count += 1

    def _follows(self, stamp: int) -> bool:
        return self._count > 0 and bool(0 < stamp - self._times[self._count - 1] <= LONGEST_GAP * 1e9)

    def _completes(self, stamp: int) -> bool:
        """Whether a setpoint with this stamp, ns, is the last one of the window."""
        return self._count == self._window and self._follows(stamp)

    def diagnosis(self, times: NDArray[np.int64], states: Array) -> str:
        """What is wrong with a window of stamps (N,), ns, and states (N, 5, n); empty if it is consistent."""
        # In a unit in which no number is larger than 1, so that no square overflows.
        unit = 1.0 / max(1.0, float(np.max(np.abs(states))))
        x, dt = unit * states, np.diff(times) * 1e-9
        change = np.diff(x[:, : self._order], axis=0)
        integral = 0.5 * dt[:, None, None] * (x[1:] + x[:-1])
        following = integral[:, 1 : self._order + 1]
        sizes = np.maximum(_squares(change), _squares(following))
        resting = len(dt) * (AT_REST * np.maximum(unit, np.max(np.abs(x[:, : self._order]), axis=0))) ** 2
        wrong = (_squares(change - following) > self._tolerance**2 * sizes) & (sizes > resting)
        if not wrong.any():
            return ""
        # Of the lowest derivative, since a wrong one spoils the next; there, the worst joint.
        k = int(np.argmax(wrong.any(axis=1)))
        misses = np.where(wrong[k], _squares(change - following)[k] / np.where(wrong[k], sizes[k], 1.0), 0.0)
        joint = int(np.argmax(misses))
        cause = self._cause(k, joint, dt, change[:, k, joint], integral)
        more = int(np.sum(wrong.any(axis=0))) - 1
        others = f" (and {more} more joint{'s' if more > 1 else ''})" if more else ""
        return f"{STATE_FIELDS[k + 1]} of {self._names[joint]}{others} {cause}, over {len(dt)} setpoints"

    def _cause(self, k: int, joint: int, dt: Array, change: Array, integral: Array) -> str:
        """Say in which way the derivative of field k of a joint is wrong."""
        own, before = integral[:, k + 1, joint], STATE_FIELDS[k]
        for other, name in enumerate(self._names):
            if other != joint and self._fits(change, integral[:, k + 1, other]):
                return f"is not the rate of {before}, which is in the place of {name}: joints swapped"
        for other, field in enumerate(STATE_FIELDS):
            if other != k + 1 and self._fits(change, integral[:, other, joint]):
                return f"is not the rate of {before}, which is in {field}: fields swapped"
        size = float(change @ change)
        factor = float(change @ own) / size if size > 0 else 0.0
        if factor and self._fits(own, factor * change):
            meaning = next((text for f, text in _MEANINGS if abs(factor / f - 1.0) < _CLOSE), _SCALED)
            return f"is {factor:.4g} times the rate of {before}: {meaning}"
        mean = own / dt
        square = float(mean @ mean)
        step = float(mean @ change) / square if square > 0 else 0.0
        if step > 0 and self._fits(change, step * mean):
            return f"is the rate of {before} for steps of {step:.3g} s, which stamps do not have: {_STAMPS}"
        miss = np.sqrt(float(np.sum((change - own) ** 2)) / max(size, float(own @ own)))
        return f"is not the rate of {before}: it differs by {100 * miss:.0f} %"

    def _fits(self, x: Array, y: Array) -> bool:
        return float(np.sum((x - y) ** 2)) <= self._tolerance**2 * max(float(x @ x), float(y @ y))


def _squares(x: Array) -> Array:
    """Sums over the window."""
    return np.einsum("i...,i...->...", x, x)


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

# SPDX-License-Identifier: Apache-2.0
"""Plausibility checks of successive setpoints."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.control.settings import FIELD_AT_REST, LONGEST_GAP, RESUMING, STAMP_JITTER

# Of consistency: relative difference, setpoints, and derivatives compared.
TOLERANCE, WINDOW, ORDERS = 0.1, 50, 4


class Settings(NamedTuple):
    """What to do with a suspect setpoint: ignore, warn or refuse; and the distance at unknown times."""

    stamps: str = "ignore"
    jumps: str = "ignore"
    distance: float = 0.1


class Finding(NamedTuple):
    """What was found last, see eom::Finding: numbers of check, field and joint, how many joints, and measures."""

    check: int = 0
    field: int = 0
    joint: int = 0
    joints: int = 0
    time: float = 0.0
    step: float = 0.0
    allowed: float = 0.0
    difference: float = 0.0
    factor: float = 0.0


class Checks:
    """Checks by limits of velocity, acceleration and jerk (3, n).

    Attributes:
        counts: findings by check.
        finding: the last one.
    """

    def __init__(self, limits: Array, settings: Settings) -> None:
        self.settings, self._limits = settings, limits
        self.counts: Counter[str] = Counter()
        self.finding = Finding()
        self.restart()

    def restart(self) -> None:
        self._stamp = self._back = self._answered = 0
        self._jumped: tuple[int, Array, Finding] | None = None
        self._state: Array | None = None
        self._rests = False
        self._window: list[tuple[int, Array]] = []
        self._verdict = Finding()

    def judge(self, stamp: int, since: int, state: Array, *, held: bool = False) -> str:
        """Count what is wrong with a setpoint with a stamp, ns, 0 for none; the check that refuses it, or nothing.

        Where the arm is held, the position is near; where the stamp goes back, another time has passed since, ns.
        """
        settings = self.settings
        found = self._back_in_time(stamp) if settings.stamps != "ignore" else None
        if found and self._count("stamps", settings.stamps, found):
            return "stamps"
        if not stamp and settings.jumps != "ignore":
            self._count("without stamp", "warn", Finding(4))
        found = None
        if settings.jumps != "ignore" and self._state is not None:
            found = self._jump(stamp, since, state, held)
            self._jumped = (stamp, state, found) if found and not self._is_shifted(stamp, state) else self._jumped
            found = found or self._on_from_a_jump(stamp, state)
        if found and self._count("jumps", settings.jumps, found):
            return "jumps"
        if stamp:
            found = self._inconsistent(stamp, state) if self._completes(stamp) else self._verdict
            if found.check:
                self._count("consistency", "warn", found)
        return ""

    def answered(self, stamp: int, state: Array) -> None:
        """Record a setpoint that is followed."""
        self._answered, self._state, self._rests, self._jumped = stamp, state, False, None
        if stamp:
            self._stamp, self._back = stamp, 0
            self._add(stamp, state)

    def moved(self, state: Array) -> None:
        """Record a command without a setpoint, or where the arm is."""
        self._state, self._rests, self._jumped = state, True, None

    def _count(self, check: str, policy: str, found: Finding) -> bool:
        self.counts[check] += 1
        self.finding = found
        return policy == "refuse"

    def _back_in_time(self, stamp: int) -> Finding | None:
        """A stamp that repeats or goes back; it may advance from one that went back, as of a clock that was set."""
        if not (stamp and self._stamp) or stamp > self._stamp:
            return None
        back, self._back = self._back, stamp
        return None if back and stamp > back else Finding(1, time=1e-9 * (self._stamp - stamp))

    def _jump(self, stamp: int, since: int, state: Array, held: bool) -> Finding | None:
        """A change beyond the limit of the next derivative, or of a position from where the last one leads, or by more
        than a distance where the time is unknown.
        """
        assert self._state is not None
        known, longest = bool(stamp and self._answered), RESUMING if held or self._rests else LONGEST_GAP * 1e-9
        dt = 1e-9 * (stamp - self._answered if stamp > self._answered else since) if known else longest
        time = min(dt, longest) + STAMP_JITTER
        step, rate = state[:3] - self._state[:3], self._state[1]
        leads = known and 0 < stamp - self._answered <= LONGEST_GAP
        with np.errstate(all="ignore"):
            away = step[0] - rate * dt if leads else step[0]
            reach = (
                np.full_like(rate, self.settings.distance)
                if not known
                else self._limits[1] * time**2 / 2 + np.abs(rate) * (STAMP_JITTER if leads else time)
            )
            step, most = np.abs([*step, away]), np.vstack([self._limits * time, reach])
            ratio = np.where(step > most, step / most, 0.0)
        ratio[[0] if held or not known else []] = 0.0
        ratio[[3] if held else []] = 0.0
        k, i = divmod(int(np.argmax(ratio)), ratio.shape[1])
        return Finding(2 if known or k < 3 else 5, k % 3, i, 0, dt, step[k, i], most[k, i]) if ratio[k, i] > 0 else None

    def _is_shifted(self, stamp: int, state: Array) -> bool:
        """Whether a stamp that is off by up to LONGEST_GAP explains a jump, as of a publisher that was delayed."""
        assert self._state is not None
        with np.errstate(all="ignore"):
            dt, rate, step = 1e-9 * (stamp - self._answered), (self._state[1] + state[1]) / 2, state[0] - self._state[0]
            change, square = sum(rate * step), sum(rate * rate)  # one after the other, as the loop adds
            time = change / square if square > 0 else dt
            most = abs(dt) + abs(time - dt)
            explained = np.abs(step - rate * time) <= self._limits[1] * most * most / 2
        return bool(abs(time - dt) <= 1e-9 * LONGEST_GAP and explained.all())

    def _on_from_a_jump(self, stamp: int, state: Array) -> Finding | None:
        """The jump from which a state leads on rather than from the last one that is followed."""
        if self._jumped is None or self._rests or not self._answered or not 0 < self._jumped[0] < stamp:
            return None
        lasts = (self._jumped[:2], (self._answered, self._state))
        away, here = (np.max(np.abs(state[0] - x[0] - x[1] * (1e-9 * (stamp - at)))) for at, x in lasts)
        return self._jumped[2] if away < here else None

    def _follows(self, stamp: int) -> bool:
        return bool(self._window) and 0 < stamp - self._window[-1][0] <= LONGEST_GAP

    def _completes(self, stamp: int) -> bool:
        return len(self._window) == WINDOW and self._follows(stamp)

    def _add(self, stamp: int, state: Array) -> None:
        """Add to the window; the last setpoint of one is the first of the next."""
        complete = self._completes(stamp)
        if complete:
            self._verdict = self._inconsistent(stamp, state)
        if complete or not self._follows(stamp):
            self._window = []
        self._window.append((stamp, state))

    def _inconsistent(self, stamp: int, state: Array) -> Finding:
        """Compare changes D of fields with integrals S of the next ones.

        Wrong is sum (D - S)² > tolerance² max(sum D², sum S²).
        """
        stamps, states = zip(*self._window, (stamp, state), strict=True)
        dt, x, allowed = 1e-9 * np.diff(stamps)[:, np.newaxis, np.newaxis], np.array(states), TOLERANCE**2
        unit = max(1.0, float(np.max(np.abs(x))))
        x /= unit  # so that no square overflows
        D, S = np.diff(x[:, :ORDERS], axis=0), 0.5 * dt * (x[1:, 1:] + x[:-1, 1:])[:, :ORDERS]
        changes, integrals, differences = (np.sum(y**2, axis=0) for y in (D, S, D - S))
        size = np.maximum(changes, integrals)
        rest = FIELD_AT_REST * np.maximum(1.0 / unit, np.max(np.abs(x[:, :ORDERS]), axis=0))
        wrong = (differences > allowed * size) & (size > len(dt) * rest**2)
        if not wrong.any():
            return Finding()
        # The worst joint of the lowest derivative that is wrong, since that spoils the next ones.
        k = int(np.argmax(wrong.any(axis=1)))
        miss = np.where(wrong[k], differences[k] / np.where(wrong[k], size[k], 1.0), 0.0)
        i = int(np.argmax(miss))
        factor = float(D[:, k, i] @ S[:, k, i] / changes[k, i]) if changes[k, i] else 0.0
        rest_of = float(np.sum((S[:, k, i] - factor * D[:, k, i]) ** 2))
        fits = rest_of <= allowed * max(integrals[k, i], factor**2 * changes[k, i])
        joints = int(np.sum(wrong.any(axis=0)))
        return Finding(3, k + 1, i, joints, difference=float(np.sqrt(miss[i])), factor=factor if fits else 0.0)

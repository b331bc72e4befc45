# SPDX-License-Identifier: Apache-2.0
"""Motions from a command to rest, and how far motions exceed limits."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly

from eom_dynamics import ElasticArm, StateError
from eom_dynamics.arrays import Array
from eom_dynamics.control.online_trajectory import braking
from eom_dynamics.control.setpoint_to_command import EvaluatedCommand
from eom_dynamics.control.settings import (
    BRAKING_SLACK,
    LONGER_STOPS,
    SHORTER_STOPS,
    SHORTEST_STOP,
    STOP_GROWTH,
    STOP_HASTE,
    STOP_PLACES,
    STOP_SAMPLES,
    STOP_SHRINKAGE,
)
from eom_dynamics.elastic import BaseMotion, LimitCheck
from eom_dynamics.elastic.limits import TOLERANCE
from eom_dynamics.elastic.motor_programs import SHAFT

Beside = tuple[tuple[Array, ...], tuple[Array, ...], BaseMotion | None]  # wrench, stiffness and base of a flow


class Flow(NamedTuple):
    """What is commanded: q … qdddd (5, n); W, Wd, Wdd or (); k, kd, kdd or (); the motion of the base or None."""

    state: Array
    wrench: tuple[Array, ...] = ()
    stiffness: tuple[Array, ...] = ()
    base: BaseMotion | None = None

    @classmethod
    def of(cls, command: EvaluatedCommand) -> "Flow":
        return cls(command.state, command.wrench, command.stiffness, command.base)

    def beside(self) -> Beside:
        """Wrench and stiffness at rest, and the motion of the base."""
        wrench, stiffness = (tuple(x * (k == 0) for k, x in enumerate(rows)) for rows in self[1:3])
        return wrench, stiffness, self.base


def to_rest(x: ArrayLike, T: float) -> Callable[[ArrayLike], Array]:
    """X and its m derivatives (m + 1, ...) at times of the motion from these to rest at T s, of degree 2m."""
    x = np.array(x, dtype=float)
    m = len(x) - 1
    rate = BPoly.from_derivatives([0.0, T], np.stack([x[1:], np.zeros_like(x[1:])]))
    parts = [rate.antiderivative(), *(rate.derivative(k) for k in range(m))]

    def at(s: ArrayLike) -> Array:
        rows = np.stack([part(np.minimum(s, T)) for part in parts])
        rows[0] += x[0]
        rows[1:] *= np.reshape(np.less(s, T), (*np.shape(s), *[1] * (x.ndim - 1)))
        return rows

    return at


def rest_after(x: ArrayLike, T: float) -> Array:
    """Where a stop of T s ends."""
    return to_rest(x, T)(T)[0]


class Company:
    """Wrench, stiffness and base of a flow, which come to rest in T s, for motions that have none of their own."""

    def __init__(self, flow: Flow, T: float) -> None:
        self._wrench, self._stiffness = (to_rest(np.stack(x), T) if x else None for x in flow[1:3])
        self._base = [to_rest(np.stack(rows), T) for rows in flow.base] if flow.base else None

    def at(self, s: float) -> Beside:
        wrench, stiffness = (tuple(x(s)) if x else () for x in (self._wrench, self._stiffness))
        return wrench, stiffness, BaseMotion(*(x(s) for x in self._base)) if self._base else None


def brakes(arm: ElasticArm, state: Array, time: float) -> Array:
    """Accelerations (n,) with which joints can brake; where unknown, the present ones and what stops them in a time."""
    v, a = state[1:3]
    most = braking(arm)
    return np.where(np.isfinite(most), most, np.maximum(np.where(v > 0, -a, a), 0.0) + np.abs(v) / time)


def can_stop(arm: ElasticArm, state: Array, time: float) -> bool:
    """Whether each joint within its range can stop there: v² <= 2 A room; unknown A stops it in a time, s."""
    q, v = state[:2]
    lower, upper = LimitCheck(arm).ends["q"]
    room = np.where(v > 0, upper - q, q - lower)
    with np.errstate(invalid="ignore"):
        overruns = v**2 > 2 * BRAKING_SLACK * brakes(arm, state, time) * room
    return not np.any(overruns & (room >= 0))


class JointStop:
    """A joint that comes to rest from x … xdddd (5,) within T s, or sooner where it would leave its range.

    As late as possible, but in no less than a time ``least``, or at once in place of the shortest stops.
    """

    def __init__(self, x: Array, T: float, lower: float, upper: float, least: float, noisy: bool) -> None:
        self._x, self._noisy, self.duration = x, noisy, T
        inside, ends = lower <= x[0] <= upper, (min(lower, x[0]), max(upper, x[0]))
        self.at = self._to_rest(T)
        while not (fits := self._stays(*ends)) and inside and self.duration > max(least, SHORTEST_STOP):
            self.duration *= STOP_SHRINKAGE
            self.at = self._to_rest(self.duration)
        if inside and self.duration <= SHORTEST_STOP and not (fits and self.duration == T):
            self.duration = 0.0
            self.at = lambda s: x * ((np.arange(5) == 0) | (s <= 0))

    def _to_rest(self, T: float) -> Callable[[float], Array]:
        """The motion in T s, in which jerk and snap are noise where they would move it further than the others."""
        x, ways = self._x.copy(), [T / 2, T**2 * 3 / 28, T**3 / 84, T**4 / 1680]
        way = np.abs(x[1:] * ways)
        if self._noisy and way[2:].sum() > way[:2].sum():
            x[3:] = 0.0
        self._way = x[1:] * ways
        return to_rest(x, T)

    def _stays(self, lower: float, upper: float) -> bool:
        """Whether it stays within a range: by the way of each derivative, which is monotonic, or at some places."""
        low, high = (self._x[0] + end(self._way, 0.0).sum() for end in (np.minimum, np.maximum))
        if lower <= low and high <= upper:
            return True
        T = self.duration
        q, rate = np.transpose([self.at(s)[:2] for s in np.linspace(0.0, T, STOP_PLACES + 1)])
        later = q + rate * T / (2 * STOP_PLACES)  # where it may turn before the next place
        return bool(lower <= min(*q, *later) and max(*q, *later) <= upper)


class Stop:
    """A stop of at most T s from a flow, and of ``wanted`` s: joints, wrench, stiffness and base."""

    def __init__(self, arm: ElasticArm, flow: Flow, T: float, wanted: float, noisy: bool) -> None:
        state = flow.state
        v, A = np.abs(state[1]), brakes(arm, state, wanted)
        least = STOP_HASTE * np.divide(v, A, out=np.zeros_like(v), where=v > 0)
        rows = zip(state.T, *LimitCheck(arm).ends["q"], least, strict=True)
        self._joints = [JointStop(x, T, lower, upper, t, noisy) for x, lower, upper, t in rows]
        moving = [joint.duration for joint, x in zip(self._joints, state.T, strict=True) if x[1:].any()]
        self.duration = T = max(moving, default=0.0) or T
        self._company = Company(flow, T)

    def at(self, s: float) -> Flow:
        """What is commanded at a time, s."""
        return Flow(np.transpose([joint.at(s) for joint in self._joints]), *self._company.at(s))

    def at_share(self, share: float) -> Flow:
        """What is commanded after a share of its duration."""
        return self.at(share * self.duration)


class Ranges:
    """Limits of an arm, which the start of a motion widens."""

    def __init__(self, arm: ElasticArm) -> None:
        self._arm = arm
        limits = LimitCheck(arm)
        most = limits.largest["motor_voltage"] * (1 + TOLERANCE)
        self.lower, self.upper = np.append(limits.rows[0], -most), np.append(limits.rows[1], most)

    def row(self, flow: Flow, payload: Sequence[Array]) -> Array | None:
        """State, efforts, motors and voltages of a flow with a payload and its rates; None where motors cannot."""
        arm = self._arm
        state, wrench, stiffness, base = flow
        options = {"wrench": wrench, "commanded_stiffness": stiffness, "base": base, "payload": tuple(payload)}
        with np.errstate(all="ignore"):
            try:
                command = arm.feedforward(*state, **{name: value for name, value in options.items() if value})
            except StateError:
                return None
            values = np.concatenate((*state, *command))
            return self.of(values) if np.isfinite(values).all() else None

    def of(self, values: Array) -> Array:
        """The same of a state with its efforts and motors."""
        m = len(self._arm.motor_names)
        shaft = self._arm.functions("drive", values[-3 * m : -2 * m], values[-m:])
        return np.concatenate((values, np.nan_to_num(shaft[SHAFT.index("voltage")])))

    def widen(self, row: Array) -> None:
        self.lower, self.upper = np.minimum(self.lower, row), np.maximum(self.upper, row)

    def beyond(self, rows: Array, margin: float = 0.0, least: float = 0.0) -> float:
        """Largest excess of rows, relative to half of each range, less a margin but of positions."""
        with np.errstate(all="ignore"):
            half = 0.5 * (self.upper - self.lower)
            bounded = np.isfinite(half) & (half > 0)
            narrower = margin * bounded * (np.arange(len(half)) >= self._arm.robot.n)
            found = np.maximum(rows - self.upper, self.lower - rows) / np.where(bounded, half, 1.0) + narrower
            return max(float(np.max(np.nan_to_num(found, neginf=-1.0))), least)


Carried = Callable[[float], Sequence[Array]]  # payload with its rates, or (), at times of a motion, s


def excess(arm: ElasticArm, motion: Callable[[float], Flow], duration: float, samples: int, payload: Carried) -> float:
    """Largest excess of a motion over limits that its start meets; infinite where motors cannot realise it."""
    ranges = Ranges(arm)
    rows = [ranges.row(motion(share), payload(share * duration)) for share in np.linspace(0.0, 1.0, samples + 1)]
    if any(row is None for row in rows):
        return np.inf
    ranges.widen(rows[0])
    return ranges.beyond(np.array(rows))


def choose_stop(arm: ElasticArm, flow: Flow, payload: Carried, wanted: float, *, noisy: bool) -> tuple[Stop, float]:
    """The first stop within limits, of the wanted duration, then of longer and of shorter ones, or the best; excess.

    Of a flow of setpoints, jerk and snap may be noise.
    """
    best, least = Stop(arm, flow, wanted, wanted, noisy), np.inf
    for power in (*range(LONGER_STOPS + 1), *range(-1, -SHORTER_STOPS - 1, -1)):
        stop = Stop(arm, flow, wanted * STOP_GROWTH**power, wanted, noisy)
        if (beyond := excess(arm, stop.at_share, stop.duration, STOP_SAMPLES, payload)) < least:
            best, least = stop, beyond
        if least <= TOLERANCE:
            break
    return best, least

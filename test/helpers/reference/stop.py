# SPDX-License-Identifier: Apache-2.0
"""Motions from a command to rest, and how far motions exceed limits."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BPoly

from eom_dynamics import ElasticArm, StateError
from eom_dynamics.arrays import Array
from eom_dynamics.control.setpoint_to_command import EvaluatedCommand
from eom_dynamics.control.settings import LONGER_STOPS, SHORTER_STOPS, STOP_GROWTH, STOP_SAMPLES
from eom_dynamics.elastic import BaseMotion, LimitCheck
from eom_dynamics.elastic.bounds import TOLERANCE
from eom_dynamics.elastic.motor_programs import SHAFT


class Flow(NamedTuple):
    """What is commanded: q … qdddd (5, n); W, Wd, Wdd or (); k, kd, kdd or (); the motion of the base or None."""

    state: Array
    wrench: tuple[Array, ...] = ()
    stiffness: tuple[Array, ...] = ()
    base: BaseMotion | None = None

    @classmethod
    def of(cls, command: EvaluatedCommand) -> "Flow":
        return cls(command.state, command.wrench, command.stiffness, command.base)


def to_rest(x: ArrayLike, T: float) -> Callable[[ArrayLike], Array]:
    """X and its m derivatives (m + 1, ...) at times of the motion from these to rest at T s, of degree 2m."""
    x = np.array(x, dtype=float)
    m = len(x) - 1
    rate = BPoly.from_derivatives([0.0, T], np.stack([x[1:], np.zeros_like(x[1:])]))
    parts = [rate.antiderivative(), *(rate.derivative(k) for k in range(m))]

    def at(s: ArrayLike) -> Array:
        rows = np.stack([part(np.minimum(s, T)) for part in parts])
        rows[0] += x[0]
        rows[1:] *= np.less(s, T).reshape(*np.shape(s), *[1] * (x.ndim - 1))
        return rows

    return at


def rest_after(x: ArrayLike, T: float) -> Array:
    """Where a stop of T s ends."""
    return to_rest(x, T)(T)[0]


class Stop:
    """A stop of ``duration`` s from a flow: joints, wrench, stiffness and base."""

    def __init__(self, flow: Flow, duration: float) -> None:
        T, state = duration, flow.state
        self.duration = T
        # Where jerk and snap would move a joint further than velocity and acceleration, they are noise.
        size = np.abs(state)
        noise = T**2 * (size[3] / 84 + T * size[4] / 1680) > size[1] / 2 + T * 3 * size[2] / 28
        self._state = to_rest(np.where(noise & (np.arange(5) >= 3)[:, np.newaxis], 0.0, state), T)
        self._wrench, self._stiffness = (to_rest(np.stack(x), T) if x else None for x in flow[1:3])
        self._base = [to_rest(np.stack(rows), T) for rows in flow.base] if flow.base else None

    def at(self, s: float) -> Flow:
        """What is commanded at a time, s."""
        wrench, stiffness = (tuple(x(s)) if x else () for x in (self._wrench, self._stiffness))
        return Flow(self._state(s), wrench, stiffness, BaseMotion(*(x(s) for x in self._base)) if self._base else None)

    def at_share(self, share: float) -> Flow:
        """What is commanded after a share of its duration."""
        return self.at(share * self.duration)


class Ranges:
    """Limits of an arm, which the start of a motion widens."""

    def __init__(self, arm: ElasticArm) -> None:
        self._arm = arm
        limits = LimitCheck(arm)
        most = limits.voltage * (1 + TOLERANCE)
        self.lower, self.upper = np.append(limits.lower, -most), np.append(limits.upper, most)

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


def choose_stop(arm: ElasticArm, flow: Flow, payload: Carried, wanted: float) -> tuple[Stop, float]:
    """The first stop within limits, of the wanted duration, then of longer and of shorter ones, or the best; excess."""
    best, least = Stop(flow, wanted), np.inf
    for power in (*range(LONGER_STOPS + 1), *range(-1, -SHORTER_STOPS - 1, -1)):
        stop = Stop(flow, wanted * STOP_GROWTH**power)
        if (beyond := excess(arm, stop.at_share, stop.duration, STOP_SAMPLES, payload)) < least:
            best, least = stop, beyond
        if least <= TOLERANCE:
            break
    return best, least

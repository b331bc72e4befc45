# SPDX-License-Identifier: Apache-2.0
"""Whether an arm can do a trajectory: each limit, where and by how much it is exceeded, how much slower would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..actuators import ElasticArm
from ..exceptions import TrajectoryError
from ..robot.model import Limits
from ..states import STATE_NAMES, joint_states
from .quantities import Bounds, Load, bounds, quantities
from .scaling import TOLERANCE, least_scaling
from .trajectory import Samples, Scaled, Trajectory, sample, sample_times

Array = NDArray[np.float64]

# More than a scaling is computed to, so that times which are rounded to nanoseconds after it exceed no limit.
_ROOM = 1e-7

# Samples of the slowed trajectory peak between those that the scaling is from, by less each time.
_ROUNDS = 5

# A trajectory that is slowed down is looked at at so many times at most.
_MOST = 500_000


class Peak(NamedTuple):
    """The sample at which a joint or motor is closest to a limit, or farthest beyond it.

    Attributes:
        quantity: one of :data:`.UNITS`.
        name: of the joint, or of the motor where the quantity is a motor's.
        unit: of value and limit.
        value: with its sign.
        limit: that it comes closest to, with the sign of the value (a position's as it is); infinite without one.
        ratio: of the value to the limit; 1 is at the limit. Of a position, of the distance from the middle of its
            range to half of the range; where that has one end alone, 0 within and infinite beyond.
        time: s.
        sample: its number.
    """

    quantity: str
    name: str
    unit: str
    value: float
    limit: float
    ratio: float
    time: float
    sample: int

    @property
    def exceeded(self) -> bool:
        """Whether the value is beyond the limit, by more than rounding."""
        return self.ratio > 1 + TOLERANCE

    @property
    def excess(self) -> float:
        """How far beyond the limit, in the unit of the value; 0 within."""
        return abs(self.value - self.limit) if self.exceeded else 0.0

    def __str__(self) -> str:
        text = f"{self.name}: {self.quantity} {self.value:.6g} {self.unit} at {self.time:.3f} s"
        return f"{text}, limit {self.limit:.6g} {self.unit}" if np.isfinite(self.limit) else text


@dataclass(frozen=True, eq=False)
class Verdict:
    """What a trajectory asks of an arm.

    Attributes:
        peaks: of all quantities and joints or motors, with or without a limit; none where a value is not known, as a
            current without the torque constant.
    """

    peaks: tuple[Peak, ...]
    _arm: ElasticArm
    _load: Load
    _limits: Bounds
    _slowed: Callable[[float], Load] | None

    @cached_property
    def exceeded(self) -> tuple[Peak, ...]:
        """The limits that are exceeded, the worst first."""
        return tuple(sorted((peak for peak in self.peaks if peak.exceeded), key=lambda peak: -peak.ratio))

    @property
    def ok(self) -> bool:
        """Whether every limit is met."""
        return not self.exceeded

    @cached_property
    def time_scaling(self) -> float | None:
        """The least s >= 1 such that the trajectory meets all limits when it is run s times as slowly.

        None where no slowing can do that: a position is out of its range, or gravity alone asks for too much. See
        :func:`.least_scaling`; computed when first asked for. A trajectory slowed down by it meets all limits when it
        is checked again, at the same rate: its samples, other points of the path, are looked at here as well, save
        where a wrench or stiffness is given sample by sample.
        """
        if any(peak.exceeded and peak.quantity == "position" for peak in self.peaks):
            return None
        if not self.exceeded:
            return 1.0
        s = least_scaling(self._arm, self._load, self._limits)
        for _ in range(_ROUNDS):
            if s is None or self._slowed is None:
                break
            s *= 1 + _ROOM
            more = least_scaling(self._arm, self._slowed(s), self._limits)
            if more == 1:
                break
            s = s * more if more else None
        return s


def check(
    arm: ElasticArm,
    trajectory: Trajectory | Samples,
    *,
    rate: float | None = None,
    samples: Samples | None = None,
    limits: Mapping[str, Limits] | None = None,
    wrench: Sequence[ArrayLike] = (),
    stiffness: Sequence[ArrayLike] = (),
) -> Verdict:
    """Compare all that a trajectory asks of joints and motors with their limits, at samples of it.

    What happens between samples is not seen; at 1 kHz a peak of a motion with 5 Hz may be 0.01 % higher there.

    Args:
        arm: the arm.
        trajectory: a trajectory from its start to its end, sampled at ``rate``; or its samples.
        rate: Hz; not for samples.
        samples: those of the trajectory at that rate, where they are there already.
        limits: by name of joint, in place of those in the robot's file. Those of motors are the arm's.
        wrench: at the tools, with its time derivatives, each constant or with a leading axis of samples; as the motion
            is slowed down, it is.
        stiffness: commanded, with its time derivatives, alike.

    Raises:
        TrajectoryError: the trajectory cannot be sampled, has other joints, or limits are of a joint that there is not.
        StateError: a state, wrench or stiffness is of the wrong shape or not finite, or a stiffness out of range.
    """
    samples = samples or _samples(arm, trajectory, rate)
    own = bounds(arm, limits)
    load = Load.of(arm, samples[1:], wrench, stiffness)
    E, e = arm.robot.coupling
    peaks = list(_position_peaks(own, samples.q @ E.T + e, samples.t))
    for quantity, values in quantities(arm, load).items():
        peaks += _peaks(quantity, own, values, samples.t)
    given = zip((*wrench, *stiffness), (*load.wrench, *load.stiffness), strict=True)
    constant = all(np.ndim(value) < rows.ndim for value, rows in given)
    if isinstance(trajectory, Samples) or rate is None or not constant:
        return Verdict(tuple(peaks), arm, load, own, None)

    def slowed(s: float) -> Load:
        slower = Scaled(trajectory, s)
        t = sample_times(slower, min(rate, _MOST / (slower.end - slower.start)))
        states = slower.derivatives(t, len(STATE_NAMES) - 1)
        # A constant wrench may have derivatives, which slow down with the motion.
        load = Load.of(arm, tuple(x * s**k for k, x in enumerate(states)), wrench, stiffness)
        return load.at(np.arange(len(t)), np.array(s))

    return Verdict(tuple(peaks), arm, load, own, slowed)


def _samples(arm: ElasticArm, trajectory: Trajectory | Samples, rate: float | None) -> Samples:
    if not isinstance(trajectory, Samples):
        if rate is None:
            raise TrajectoryError("give the rate in Hz at which the trajectory is to be looked at")
        if trajectory.n != arm.robot.n:
            raise TrajectoryError(f"the trajectory moves {trajectory.n} joints, {arm.robot.name} has {arm.robot.n}")
        return sample(trajectory, rate)
    if rate is not None:
        raise TrajectoryError("a rate goes with a trajectory, samples have their times")
    states = joint_states(arm.robot.n, *trajectory[1:])
    t = np.asarray(trajectory.t, dtype=float)
    if t.ndim != 1 or not len(t) or states[0].shape != (len(t), arm.robot.n):
        raise TrajectoryError(
            f"{STATE_NAMES[0]} must have shape ({len(np.atleast_1d(t))}, {arm.robot.n}), one row a time"
        )
    return Samples(t, *states)


def _peaks(quantity: str, limits: Bounds, values: Array, t: Array) -> list[Peak]:
    names, units, largest = limits.names[quantity], limits.units[quantity], limits.largest[quantity]
    sizes = np.abs(values)
    known = np.flatnonzero(~np.any(np.isnan(sizes), axis=0))
    worst = np.argmax(np.nan_to_num(sizes), axis=0)
    result = []
    for i in known:
        row = int(worst[i])
        value = float(values[row, i])
        limit = float(np.copysign(largest[i], value))
        result.append(
            Peak(quantity, names[i], units[i], value, limit, abs(value) / float(largest[i]), float(t[row]), row)
        )
    return result


def _position_peaks(limits: Bounds, q: Array, t: Array) -> list[Peak]:
    result = []
    for i, name in enumerate(limits.names["position"]):
        lower, upper = limits.lower[i], limits.upper[i]
        beyond = np.maximum(q[:, i] - upper, lower - q[:, i])
        row = int(np.argmax(beyond)) if np.isfinite(max(lower, -upper)) else int(np.argmax(np.abs(q[:, i])))
        value = float(q[row, i])
        limit = float(upper if value - upper >= lower - value else lower)
        if np.isfinite(lower) and np.isfinite(upper):
            half = (upper - lower) / 2
            ratio = float(1 + beyond[row] / half) if half > 0 else float(np.inf if beyond[row] > 0 else 1.0)
        else:
            ratio = np.inf if beyond[row] > 0 else 0.0
        result.append(Peak("position", name, limits.units["position"][i], value, limit, ratio, float(t[row]), row))
    return result

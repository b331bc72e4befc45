# SPDX-License-Identifier: Apache-2.0
"""Check of trajectories against the limits of joints and motors, and the time scaling that meets them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import joint_states
from ..arrays import STATE_NAMES, Array
from ..elastic import ElasticArm, Feedforward
from ..elastic.elastic_arm import require_arm
from ..elastic.limit_violations import IN_DEGREES, TURN, beyond, nearest_end, range_ratio, summary
from ..elastic.limits import TOLERANCE, GivenLimits, LimitCheck, arm_limits
from ..exceptions import TrajectoryError
from .quantities import (
    SLOWEST,
    Load,
    SampledLoad,
    Selection,
    by_halves,
    effort_rms,
    fastest_time_scaling,
    least_time_scaling,
    meets_rms,
    quantities,
)
from .trajectory import Samples, Scaled, Trajectory, check_times

_MARGIN = 1e-7  # relative margin of a time scaling, for times that are rounded to nanoseconds
_ITERATIONS = 5  # iterations of the time scaling: samples of the slowed trajectory have other peaks
_MOST = 100_000  # samples of a slowed trajectory, at most, for a response of the planning node
_SHOWN = 3  # violations listed in one line


class Peak(NamedTuple):
    """Largest value of a quantity of a joint or motor, relative to its limit.

    Attributes:
        quantity: one of :data:`.UNITS`, or ``effort_rms``, the root mean square of all samples, of motors with a limit.
        name: name of the joint or motor.
        unit: unit of value and limit.
        value: the value, with its sign.
        limit: the nearest limit, for magnitudes with the sign of the value; infinite without a limit.
        ratio: value over limit. For a position, the distance from the middle of its range over half the range; if the
            range has only one end, 0 within and infinite beyond.
        t: s.
        sample: index of the sample.
    """

    quantity: str
    name: str
    unit: str
    value: float
    limit: float
    ratio: float
    t: float
    sample: int

    @property
    def exceeded(self) -> bool:
        """True if the value exceeds the limit beyond rounding."""
        return self.ratio > 1 + TOLERANCE

    @property
    def violation(self) -> float:
        """Distance of the value beyond the limit, in its unit; 0 within."""
        return abs(self.value - self.limit) if self.exceeded else 0.0

    def __str__(self) -> str:
        text = f"{self.name}: {self.quantity} {self.value:.6g} {self.unit} at {self.t:.3f} s"
        return f"{text}, limit {self.limit:.6g} {self.unit}" if np.isfinite(self.limit) else text


@dataclass(frozen=True, eq=False)
class Verdict:
    """Result of a check of limits.

    Attributes:
        peaks: of all quantities of joints and motors except unknown ones, such as currents without a torque constant.
    """

    peaks: tuple[Peak, ...]
    _arm: ElasticArm
    _load: SampledLoad
    _limits: LimitCheck
    _slowed: Callable[[float], SampledLoad] | None

    @cached_property
    def exceeded(self) -> tuple[Peak, ...]:
        """Peaks that violate their limit, the worst first."""
        return tuple(sorted((peak for peak in self.peaks if peak.exceeded), key=lambda peak: -peak.ratio))

    @property
    def ok(self) -> bool:
        """True if every limit is met."""
        return not self.exceeded

    @property
    def in_degrees(self) -> str:
        """Worst position of a rotary joint more than a turn beyond its limit, with the reason; "" if there is none."""
        far = (x for x in self.exceeded if x.quantity == "position" and x.unit == "rad" and x.violation > TURN)
        return next((f"{peak}, {IN_DEGREES}" for peak in far), "")

    def __str__(self) -> str:
        """One line: the worst violations, and the time scaling that meets all limits; empty if they are met."""
        if self.ok:
            return ""
        if self.in_degrees:
            return self.in_degrees
        s = self.time_scaling
        remedy = f"{s:.3g} times the duration meets all limits" if s else "slowing down does not help"
        return f"{summary(self.exceeded, _SHOWN)}; {remedy}"

    @cached_property
    def time_scaling(self) -> float | None:
        """Least s >= 1 such that the trajectory, slowed down by the factor s, meets all limits.

        None if no s does: a position is out of its range, or gravity alone exceeds an effort limit. Computed at first
        access, see :func:`.least_time_scaling`. The slowed trajectory passes another check at the same rate, at other
        points of the path; this does not hold if a wrench or stiffness is given for each sample.
        """
        if any(peak.exceeded and peak.quantity == "position" for peak in self.peaks):
            return None
        if not self.exceeded:
            return 1.0
        s = least_time_scaling(self._arm, self._load, self._limits)
        for _ in range(_ITERATIONS):
            if s is None or self._slowed is None:
                break
            s *= 1 + _MARGIN
            more = least_time_scaling(self._arm, self._slowed(s), self._limits)
            if more == 1:
                break
            s = s * more if more else None
        return None if s is None else self._least_for_rms(s)

    def _least_for_rms(self, s: float) -> float | None:
        """Least time scaling from s on that meets the limits of RMS efforts, by halves."""
        if not self._limits.of_rms.any():
            return s

        def is_met(s: float) -> bool:
            load, factor = (self._load, np.array(s)) if self._slowed is None else (self._slowed(s), None)
            return meets_rms(self._arm, load, self._limits, factor)

        low = high = s
        while not is_met(high):
            if high > SLOWEST:
                return None
            low, high = high, 2 * high
        return by_halves(high, low, is_met)

    @cached_property
    def margin(self) -> float | None:
        """Least s <= 1 such that the trajectory with s times its duration meets all limits; None if it does not at 1.

        1 means that a limit is used up, 0.8 that the motion may take 80 % of its time, 1e-4 that no limit is near.
        Computed at first access, at the same samples of the path, see :func:`.fastest_time_scaling`.
        """
        return fastest_time_scaling(self._arm, self._load, self._limits) if self.ok else None


def check(
    arm: ElasticArm,
    trajectory: Trajectory | Samples,
    *,
    rate: float | None = None,
    samples: Samples | None = None,
    limits: GivenLimits | None = None,
    wrench: Sequence[ArrayLike] = (),
    commanded_stiffness: Sequence[ArrayLike] = (),
) -> Verdict:
    """Check samples of a trajectory against the limits of joints and motors.

    Values between samples are not checked: at 1 kHz, a peak of a motion of 5 Hz may be 0.01 % higher there. A piece of
    a spline has :data:`.PER_PIECE` samples at least, however short it is.

    Args:
        arm: the arm.
        trajectory: a trajectory, which is sampled from start to end at ``rate``; or samples.
        rate: sample rate, Hz; not with samples.
        samples: samples of the trajectory at that rate, if available.
        limits: by joint name, instead of the limits in the robot file: :class:`.Limits`, or single limits by name,
            as ``{"velocity": 1.0}``. Limits of motors are from the arm.
        wrench: wrench at the tools and its time derivatives, each constant or with a leading axis of samples; slowed
            down with the motion.
        commanded_stiffness: commanded stiffness and its time derivatives, in the same form.

    Raises:
        TrajectoryError: the trajectory cannot be sampled, has the wrong number of joints, or a joint with limits is
            unknown.
        StateError: a state, wrench or stiffness has the wrong shape or is not finite, or a stiffness is out of range.
    """
    require_arm(arm)
    t, states_at = _sampled(arm, trajectory, rate) if samples is None else (samples.t, _rows_of(samples))
    return verdict_of(arm, trajectory, SampledLoad(arm, t, states_at, wrench, commanded_stiffness), rate, limits)


def verdict_of(
    arm: ElasticArm,
    trajectory: Trajectory | Samples,
    load: SampledLoad,
    rate: float | None,
    limits: GivenLimits | None = None,
    compute: Callable[[Array, Load], Feedforward | None] = lambda t, load: None,
) -> Verdict:
    """Check a load that is sampled on a trajectory; other arguments as for :func:`check`.

    ``compute`` returns the feedforward for times and load of each part, or None; its exceptions end the check.
    """
    largest_of, worst = arm_limits(arm, limits), dict[str, Array]()
    E, e = arm.robot.coupling
    for part, values in load.parts():
        command = compute(load.t[part], values)
        named = {"position": values.states[0] @ E.T + e} | quantities(arm, values, command=command)
        for quantity, x in named.items():
            peak = _worst(quantity, largest_of, x, load.t[part], part.start)
            if (before := worst.get(quantity)) is not None:
                # The first of equal sizes; unknown if a sample is unknown.
                peak = np.where((peak[0] > before[0]) | np.isnan(peak[0]), peak, before)
            worst[quantity] = peak
    peaks = [peak for quantity, values in worst.items() for peak in _peaks(quantity, largest_of, values)]
    if len(load.t) > 1 and largest_of.of_rms.any():
        peaks += _rms_peaks(largest_of, effort_rms(arm, load), load.t)
    if isinstance(trajectory, Samples) or rate is None or not load.is_constant:
        return Verdict(tuple(peaks), arm, load, largest_of, None)

    def slowed(s: float) -> SampledLoad:
        slower = Scaled(trajectory, s)
        duration = slower.end - slower.start
        finest = rate if rate * duration <= _MOST else _MOST / duration
        t = slower.start + s * (check_times(trajectory, finest * s) - slower.start)
        # A constant wrench may have derivatives, which are slowed down with the motion.
        constant = load.at(slice(1), np.array(s))
        wrench, stiffness = ([x[0] for x in rows] for rows in constant[1:])
        return SampledLoad(arm, t, _states_of(slower, t), wrench, stiffness)

    return Verdict(tuple(peaks), arm, load, largest_of, slowed)


def _sampled(
    arm: ElasticArm, trajectory: Trajectory | Samples, rate: float | None
) -> tuple[Array, Callable[[Selection], Sequence[Array]]]:
    """Times to check a trajectory at, and a function that returns the states there."""
    if not isinstance(trajectory, Samples):
        if rate is None:
            raise TrajectoryError("a trajectory requires a sample rate in Hz")
        if trajectory.n != arm.robot.n:
            raise TrajectoryError(f"the trajectory has {trajectory.n} joints, {arm.robot.name} has {arm.robot.n}")
        t = check_times(trajectory, rate)
        return t, _states_of(trajectory, t)
    if rate is not None:
        raise TrajectoryError("samples have times and require no rate")
    states = joint_states(arm.robot.n, *trajectory[1:])
    t = np.asarray(trajectory.t, dtype=float)
    if t.ndim != 1 or not len(t) or states[0].shape != (len(t), arm.robot.n):
        raise TrajectoryError(
            f"{STATE_NAMES[0]} must have shape ({len(np.atleast_1d(t))}, {arm.robot.n}), one row for each time"
        )
    return t, _rows_of(Samples(t, *states))


def _states_of(trajectory: Trajectory, t: Array) -> Callable[[Selection], Sequence[Array]]:
    return lambda selection: trajectory.derivatives(t[selection], len(STATE_NAMES) - 1)


def _rows_of(samples: Samples) -> Callable[[Selection], Sequence[Array]]:
    return lambda selection: [x[selection] for x in samples[1:]]


def _worst(quantity: str, limits: LimitCheck, values: Array, t: Array, first: int) -> Array:
    """Size, value, time and sample (4, names) of the largest values in a part; samples count from ``first``."""
    sizes = np.abs(values)
    if quantity == "position":
        both = np.maximum(limits.lower, -limits.upper) > -np.inf
        sizes = np.where(both, beyond(values, limits.lower, limits.upper), sizes)
    rows, columns = np.argmax(sizes, axis=0), np.arange(values.shape[1])  # of NaN, the first
    return np.array([sizes[rows, columns], values[rows, columns], t[rows], first + rows])


def _peaks(quantity: str, limits: LimitCheck, worst: Array) -> Iterator[Peak]:
    """Yield the peaks of a quantity, from :func:`_worst`; none for joints or motors with an unknown value."""
    names, units = limits.names[quantity], limits.units[quantity]
    if quantity == "position":
        ends = list(zip(limits.lower.tolist(), limits.upper.tolist(), strict=True))
    else:
        ends = [(-largest, largest) for largest in limits.largest[quantity].tolist()]
    for name, unit, (lower, upper), (_, value, t, sample) in zip(names, units, ends, worst.T.tolist(), strict=True):
        if quantity == "position":
            limit = nearest_end(value, lower, upper)
            ratio = range_ratio(max(value - upper, lower - value), lower, upper)
        else:
            limit = math.copysign(upper, value)
            # A quotient loses fewer digits than the distance from the limit.
            ratio = abs(value) / upper if upper else range_ratio(abs(value), 0.0, 0.0)
        if not math.isnan(value):
            yield Peak(quantity, name, unit, value, limit, ratio, t, int(sample))


def _rms_peaks(limits: LimitCheck, values: Array, t: Array) -> list[Peak]:
    rows = zip(limits.names["effort_rms"], limits.units["effort_rms"], values, limits.effort_rms, strict=True)
    return [
        Peak("effort_rms", name, unit, float(value), float(most), float(value / most), float(t[-1]), len(t) - 1)
        for name, unit, value, most in rows
        if np.isfinite(most)
    ]

# SPDX-License-Identifier: Apache-2.0
"""Limited quantities of joints and motors along a motion, and the least uniform time scaling that meets their limits.

Slowed down by the factor s, the k-th derivative of q decreases by s^k. Efforts are not a power of s: gravity remains,
as in tau(s) = g + (tau - g)/s² without a wrench, and spring deflections, friction and gear losses have other powers.
They may even increase with s if inertial forces support part of the weight. Therefore, all quantities are computed for
each s.

Few samples are critical. The search starts with the worst samples at the present s. The minimum s for these alone is a
lower bound, and is checked with all samples; samples that then violate a limit are added until there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arguments import sequence
from ..arrays import SHAFT_UNITS, STATE_NAMES, WRENCH_NAMES, Array
from ..codegen.functions import shared_array
from ..elastic import ElasticArm, Feedforward
from ..elastic.limits import RATES, TOLERANCE, LimitCheck, arm_limits
from ..elastic.motor_programs import STIFFNESS_NAMES
from ..exceptions import StiffnessError

_OF_SHAFTS = tuple(f"motor_{name}" for name in SHAFT_UNITS)
_PART = 4096  # samples that are computed together: their working memory fits in the cache of a core

Selection: TypeAlias = slice | NDArray[np.intp]
"""Indices of samples, or a range of them."""


class Load(NamedTuple):
    """Samples of a motion, the tool wrench and the commanded stiffness: the arguments of an arm's feedforward.

    States are q … qdddd, each (N, n); wrench and stiffness (N, n) have their time derivatives, with a leading axis of N
    samples.
    """

    states: tuple[Array, ...]
    wrench: tuple[Array, ...] = ()
    stiffness: tuple[Array, ...] = ()

    def slowed(self, s: Array) -> Load:
        """The load slowed down by s, a number or one number per sample: k-th derivatives divided by s^k."""
        return Load(
            *(tuple(x / np.reshape(s, (-1, *[1] * (x.ndim - 1))) ** k for k, x in enumerate(arrays)) for arrays in self)
        )


class SampledLoad:
    """Load at all samples of a motion, computed part by part: memory does not grow with quantities and derivatives.

    Attributes:
        t: times of the samples (N,), s.
        is_constant: True if wrench and stiffness are equal at all samples.
    """

    def __init__(
        self,
        arm: ElasticArm,
        t: Array,
        states_at: Callable[[Selection], Sequence[Array]],
        wrench: Sequence[ArrayLike] = (),
        stiffness: Sequence[ArrayLike] = (),
    ) -> None:
        """Sample a motion at times (N,), s; ``states_at`` returns q … qdddd of selected samples.

        Wrench and stiffness are constant, or have a leading axis of N samples. Raises StateError for wrong shapes.
        """
        self.t, self._states_at = t, states_at
        self._wrench = _all_rows(wrench, "wrench", WRENCH_NAMES, (len(t), *arm.robot.wrench_shape))
        self._stiffness = _all_rows(stiffness, "stiffness", STIFFNESS_NAMES, (len(t), arm.robot.n))
        rows = zip((*wrench, *stiffness), (*self._wrench, *self._stiffness), strict=True)
        self.is_constant = all(np.ndim(value) < whole.ndim for value, whole in rows)
        if len(t) <= _PART:  # a single part, which is used many times
            states = tuple(states_at(slice(None)))
            self._states_at = lambda samples: [x[samples] for x in states]

    def at(self, samples: Selection, s: Array | None = None) -> Load:
        """Load at selected samples, slowed down by s, as :meth:`Load.slowed`."""
        load = Load(
            tuple(self._states_at(samples)),
            tuple(x[samples] for x in self._wrench),
            tuple(x[samples] for x in self._stiffness),
        )
        return load if s is None else load.slowed(s)

    def parts(self, s: Array | None = None, overlap: int = 0) -> Iterator[tuple[slice, Load]]:
        """Yield the load of consecutive samples; a part repeats the last ``overlap`` samples of the one before."""
        for first in range(0, len(self.t), _PART):
            part = slice(max(first - overlap, 0), first + _PART)
            yield part, self.at(part, s)


def derivatives_for_limits(arm: ElasticArm, limits: LimitCheck) -> int:
    """Highest derivative of q, 2 to 4, that the limited quantities depend on."""
    if not _links_suffice(arm, limits):
        return len(STATE_NAMES) - 1
    return 3 if limits.limited("jerk", "effort_rate") else 2


def quantities(
    arm: ElasticArm, load: Load, limits: LimitCheck | None = None, command: Feedforward | None = None
) -> dict[str, Array]:
    """Values of quantities except the position, each (N, number of names); NaN if a motor's constant is unknown.

    The load has at least the derivatives of :func:`derivatives_for_limits`. With limits, only limited quantities are
    computed, if the others take time. ``command`` is the feedforward of the load, if known.
    """
    rates = zip(RATES, load.states[1:4], strict=False)
    of_joints = {name: all_joints(arm, x) for name, x in rates}
    if limits is not None and not load.stiffness and _links_suffice(arm, limits):
        if not limits.limited("effort", "effort_rate"):
            return of_joints
        efforts = joint_efforts(arm, load.states, load.wrench, rate=limits.limited("effort_rate"))
        return of_joints | dict(zip(("effort", "effort_rate"), efforts, strict=False))
    if command is None:
        command = arm.feedforward(*load.states, wrench=load.wrench, commanded_stiffness=load.stiffness)
    of_joints |= {"effort": command.tau, "effort_rate": command.taud}
    if limits is not None and not limits.of_motors:
        return of_joints
    sums = arm_limits(arm).motor_sums if limits is None else limits.motor_sums
    of_joints["motor_effort"] = command.motor_effort @ sums.T
    if limits is not None and not limits.limited(*_OF_SHAFTS):
        return of_joints
    drive = arm.drive(command)
    return of_joints | {
        "motor_speed": drive.velocity,
        "motor_torque": drive.torque,
        "motor_current": drive.current,
        "motor_voltage": drive.voltage,
    }


def joint_efforts(
    arm: ElasticArm, states: Sequence[Array], wrench: Sequence[Array] = (), *, rate: bool
) -> tuple[Array, ...]:
    """Joint efforts, and their time derivatives if ``rate``."""
    if arm.rotors is not None:
        return tuple(arm.feedforward(*states, wrench=wrench)[:3])
    if rate:
        return arm.efforts(*states, wrench=wrench)
    return (arm.dynamics.effort(*states[:3], wrench=wrench),)


def effort_rms(arm: ElasticArm, samples: SampledLoad, s: Array | None = None) -> Array:
    """Root mean square of the effort of each motor over at least two samples, slowed down by s.

    On the link side of the gears (m,), N m or N.
    """
    total = np.zeros(len(arm.motor_joint))
    for part, load in samples.parts(s, overlap=1):
        effort = arm.feedforward(*load.states, wrench=load.wrench, commanded_stiffness=load.stiffness).motor_effort
        total += np.diff(samples.t[part]) @ (effort[1:] ** 2 + effort[:-1] ** 2)
    return np.sqrt(total / (2 * (samples.t[-1] - samples.t[0])))


def meets_rms(arm: ElasticArm, samples: SampledLoad, limits: LimitCheck, s: Array | None = None) -> bool:
    """Return whether all motors meet their limits of the RMS effort; arguments as for :func:`effort_rms`."""
    if not limits.of_rms.any():
        return True
    return bool(np.all(effort_rms(arm, samples, s) <= (1 + TOLERANCE) * limits.effort_rms))


def _links_suffice(arm: ElasticArm, limits: LimitCheck) -> bool:
    """Return whether only links have limits, and the springs can follow any motion."""
    springs = arm.functions
    return not limits.of_motors and arm.rotors is None and springs.is_linear and not np.any(arm.variable)


def all_joints(arm: ElasticArm, x: Array) -> Array:
    """Rates of all joints, mimic joints included, from the rates of the independent joints (N, n)."""
    if len(arm.robot.joints) == arm.robot.n:
        return x
    return x @ arm.robot.coupling[0].T


def _all_rows(
    values: Sequence[ArrayLike], name: str, names: Sequence[str], shape: tuple[int, ...]
) -> tuple[Array, ...]:
    rows = zip(
        sequence(values, name, f"{', '.join(names)}, or the first of them", most=len(names)), names, strict=False
    )
    arrays = [shared_array(x, f"{name} {derivative}", shape[1:], shape[:1], finite=False) for x, derivative in rows]
    return tuple(np.broadcast_to(x, shape) for x in arrays)


SLOWEST = 1e4
"""Largest time scaling in the search."""

# The search takes steps of 1 % within octaves, and refines the step four times by a factor of 64.
_STEPS_AN_OCTAVE = 70
_REFINEMENTS = 4
_PARTS = 64


def least_time_scaling(arm: ElasticArm, load: SampledLoad, limits: LimitCheck) -> float | None:
    """Minimum s >= 1 that meets all limits except position limits; None if there is no s up to :data:`SLOWEST`.

    If several ranges of s meet the limits, the lowest range is used; a range narrower than 1 % may be missed.
    """
    s = _least_for_motion(arm, load, limits)
    deciding: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
    while True:
        largest, worst = _largest(arm, load, limits, s)
        over = largest > 1 + TOLERANCE
        if not np.any(over):
            return s
        more = np.union1d(deciding, worst[over])
        if len(more) == len(deciding):
            return s  # at the limit, rounding errors of few and all samples differ
        deciding = more
        least = _least_for(arm, load, limits, deciding, s)
        if least is None:
            return None
        s = least


def fastest_time_scaling(arm: ElasticArm, load: SampledLoad, limits: LimitCheck) -> float:
    """Least s <= 1 that meets all limits, at least 1/:data:`SLOWEST`, for a motion that meets them at s = 1.

    If a smaller s meets limits that a larger one violates, the bisection may return either.
    """

    def is_met(s: float) -> bool:
        try:
            largest, _ = _largest(arm, load, limits, s)
        except StiffnessError:  # a spring of a pair would be slack
            return False
        return bool(np.max(largest) <= 1 + TOLERANCE) and meets_rms(arm, load, limits, np.array(s))

    good, bad = 1.0, 0.5
    while is_met(bad):
        if bad < 1 / SLOWEST:
            return 1 / SLOWEST
        good, bad = bad, bad / 2
    return by_halves(good, bad, is_met)


def by_halves(good: float, bad: float, is_met: Callable[[float], bool]) -> float:
    """Bisection: least time scaling that is met, between ``good``, which is met, and ``bad``, which is not."""
    while good - bad > 1e-9 * good:
        middle = 0.5 * (good + bad)
        good, bad = (middle, bad) if is_met(middle) else (good, middle)
    return good


def _largest(arm: ElasticArm, load: SampledLoad, limits: LimitCheck, s: float) -> tuple[Array, NDArray[np.intp]]:
    """Largest ratio of each column of :func:`ratios` over all samples at a scaling, and its sample."""
    largest, worst = np.zeros(0), np.zeros(0, dtype=np.intp)
    for part, slower in load.parts(np.array(s)):
        sizes = ratios(quantities(arm, slower, limits), limits)
        peaks, rows = np.max(sizes, axis=0), part.start + np.argmax(sizes, axis=0)
        if part.start == 0:
            largest, worst = peaks, rows
        else:
            worst = np.where(peaks > largest, rows, worst)
            largest = np.maximum(largest, peaks)
    return largest, worst


def _least_for_motion(arm: ElasticArm, load: SampledLoad, limits: LimitCheck) -> float:
    """Least s for velocity, acceleration and jerk of the joints, which are powers of it."""
    least = 1.0
    limited = [(k, x) for k, x in enumerate(RATES, start=1) if limits.limited(x)]
    for _, part in load.parts() if limited else ():
        for k, name in limited:
            ratio = np.max(np.abs(all_joints(arm, part.states[k])) / limits.largest[name])
            if ratio > 1 + TOLERANCE:
                least = max(least, float(ratio ** (1 / k)))
    return least


def ratios(values: dict[str, Array], limits: LimitCheck) -> Array:
    """Ratios of magnitudes to limits (N, all names of all quantities); zero if limit or value is unknown."""
    columns = [np.abs(values[name]) / limits.largest[name] for name in limits.quantities]
    if not columns:
        return np.zeros((len(values["velocity"]), 1))
    whole = np.concatenate(columns, axis=1)
    whole[np.isnan(whole)] = 0.0
    return whole


def _least_for(
    arm: ElasticArm, load: SampledLoad, limits: LimitCheck, samples: NDArray[np.intp], s: float
) -> float | None:
    """Minimum scaling above s for some samples; s violates limits."""
    while s < SLOWEST:
        tried = s * 2.0 ** (np.arange(_STEPS_AN_OCTAVE + 1) / _STEPS_AN_OCTAVE)
        good = _good(arm, load, limits, samples, tried)
        if good is None:
            s = float(tried[-1])
            continue
        for _ in range(_REFINEMENTS):
            if good == 0:
                break
            tried = np.linspace(tried[good - 1], tried[good], _PARTS + 1)
            good = _good(arm, load, limits, samples, tried) or _PARTS
        return float(tried[good])
    return None


def _good(
    arm: ElasticArm, load: SampledLoad, limits: LimitCheck, samples: NDArray[np.intp], tried: Array
) -> int | None:
    """Index of the first scaling that meets all limits for some samples."""
    slower = load.at(np.tile(samples, len(tried)), np.repeat(tried, len(samples)))
    worst = ratios(quantities(arm, slower, limits), limits).reshape(len(tried), -1).max(axis=1)
    good = np.flatnonzero(worst <= 1 + TOLERANCE)
    return int(good[0]) if len(good) else None

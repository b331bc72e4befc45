# SPDX-License-Identifier: Apache-2.0
"""What the answers of the node are worth: counts, times, and deviations from two independent ways.

The first way is numerical differentiation: the received tau, differentiated once and twice, must be the
received taud and taudd. The second is the library's closed form of the equations of motion, in this process: of efforts
it says the number, of motors what their springs and rotors must come to, :mod:`.motor_side`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..equations import equations_of_motion
from ..stream.conversions import EFFORT_FIELDS, MOTOR_FIELDS
from .differences import REACH, differentiate, rounding
from .motor_side import motor_effort, motor_load, spring_residuals
from .plan import Plan

Array = NDArray[np.float64]

# The node may sum in another order than the closed form does: rounding, some hundred operations deep.
_CLOSED_FORM_TOLERANCE = 1e-10

CLOSED_FORM_SAMPLES = 250
"""Answers that are held against the closed form, at most: it takes a millisecond for each."""

# The error of the differences is estimated at these samples only; elsewhere it may be larger.
_DIFFERENCE_SAMPLES = 25
_SAFETY = 10.0

# An effort comes out of some hundred operations, each of which rounds: in double precision it is known to this
# many times its resolution.
_EFFORT_ROUNDING = 16.0


@dataclass(frozen=True)
class Recording:
    """What one run brought back; row i belongs to setpoint i, and is NaN where no answer came.

    Attributes:
        sent, received: times (N,) in s on one clock, at which setpoints left and answers arrived.
        answers: the quantities of FeedforwardCommand, those of joints (N, n), those of motors (N, m).
        backend: what computed in the node.
    """

    sent: Array
    received: Array
    answers: dict[str, Array]
    backend: str


@dataclass(frozen=True)
class Deviation:
    """A largest deviation, relative to the largest value of the quantity, and what is allowed.

    Attributes:
        name: what deviates from what.
        value: largest deviation; NaN where nothing could be compared.
        tolerance: the largest one that passes.
    """

    name: str
    value: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the deviation is known and within the tolerance."""
        return bool(self.value <= self.tolerance)


@dataclass(frozen=True)
class Evaluation:
    """The numbers of one run.

    Attributes:
        sent, received: numbers of setpoints and of their answers.
        rate: setpoints a second that were really sent, Hz.
        late: setpoints that were sent more than one period after their time.
        round_trip: times (received,) from sending to answer, s, in the order of sending.
        differentiation: deviation of taud and of taudd from the received tau, differentiated.
        closed_form: deviation of all quantities from the library's closed form, of motors by the laws of springs.
        numerical: the received tau (N, n), differentiated once and twice.
    """

    sent: int
    received: int
    rate: float
    late: int
    round_trip: Array
    differentiation: tuple[Deviation, Deviation]
    closed_form: Deviation
    numerical: tuple[Array, Array]

    @property
    def lost(self) -> int:
        """Setpoints without an answer."""
        return self.sent - self.received

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """All deviations."""
        return (*self.differentiation, self.closed_form)

    def percentile(self, percent: float) -> float:
        """Round trip that ``percent`` of the answers do not exceed, s; NaN without answers."""
        return float(np.percentile(self.round_trip, percent)) if len(self.round_trip) else float("nan")

    @property
    def failures(self) -> list[str]:
        """What is lost or off, a line each; empty if the run passed."""
        lines = [f"{self.lost} of {self.sent} setpoints were not answered"] if self.lost else []
        for deviation in self.deviations:
            if np.isnan(deviation.value):
                lines.append(f"{deviation.name}: nothing to compare, too few answers came")
            elif not deviation.passed:
                lines.append(f"{deviation.name}: off by {deviation.value:.1e}, tolerance {deviation.tolerance:.1e}")
        return lines


def evaluate(plan: Plan, recording: Recording) -> Evaluation:
    """Count, time and compare what a run brought back."""
    arrived = ~np.isnan(recording.received)
    step = 1 / plan.rate
    numerical = tuple(differentiate(recording.answers["effort"], step, k) for k in (1, 2))
    tolerances = _difference_tolerances(plan)
    differentiation = tuple(
        Deviation(f"{name} against numerical derivative", _relative(value, recording.answers[key]), tolerance)
        for name, key, value, tolerance in zip(
            ("taud", "taudd"), ("effort_rate", "effort_acceleration"), numerical, tolerances, strict=True
        )
    )
    elapsed = recording.sent[-1] - recording.sent[0]
    return Evaluation(
        sent=plan.count,
        received=int(arrived.sum()),
        rate=(plan.count - 1) / elapsed,
        late=int(np.sum(recording.sent - recording.sent[0] - plan.t > step)),
        round_trip=(recording.received - recording.sent)[arrived],
        differentiation=(differentiation[0], differentiation[1]),
        closed_form=Deviation(
            "all quantities against closed form", _off_closed_form(plan, recording), _CLOSED_FORM_TOLERANCE
        ),
        numerical=(numerical[0], numerical[1]),
    )


class Efforts(NamedTuple):
    """What a motion takes, N m or N.

    Attributes:
        tau, taud, taudd: on the links (n,), and time derivatives.
        rotor: on rotors that follow the links (m,), in the complete model of rotors; in the reduced one zero.
    """

    tau: Array
    taud: Array
    taudd: Array
    rotor: Array


def closed_form(plan: Plan, t: float) -> Efforts:
    """The efforts by the closed form at time ``t``."""
    arm, robot = plan.arm, plan.robot
    states = plan.motion.derivatives(t)
    if arm.rotors is not None:
        robot = arm.rotors.dynamics.robot
        states = tuple(np.concatenate([x, arm.gear_ratio * arm.motors_following(x)]) for x in states)
    wrench = [W.reshape(plan.robot.wrench_shape) for W in plan.wrench.derivatives(t, order=2)]
    efforts = equations_of_motion(robot, *states[:-1], wrench=wrench).efforts(states[-1])
    tau, taud, taudd = (x[: plan.robot.n] for x in efforts)
    rotor = np.zeros(len(arm.motor_joint)) if arm.rotors is None else arm.gear_ratio * efforts[0][plan.robot.n :]
    return Efforts(tau, taud, taudd, rotor)


def _relative(expected: Array, values: Array) -> float:
    """Largest deviation over the largest value; NaN where there is nothing to compare."""
    return _share(values - expected, expected)


def _share(difference: Array, scale: Array) -> float:
    """Largest difference over the largest of the scale; NaN where there is nothing to compare."""
    if np.isnan(difference).all():
        return float("nan")
    largest = np.nanmax(np.abs(scale))
    return float(np.nanmax(np.abs(difference)) / (largest if largest > 0 else 1.0))


def _off_closed_form(plan: Plan, recording: Recording) -> float:
    """The largest deviation of any quantity, relative to its largest value."""
    arm, rows = plan.arm, _spread(plan.count, CLOSED_FORM_SAMPLES)
    answers = {name: values[rows] for name, values in recording.answers.items()}
    if np.isnan(answers["motor_effort"]).all():
        return float("nan")
    *efforts, rotor = (np.array(x) for x in zip(*(closed_form(plan, t) for t in plan.t[rows]), strict=True))
    off = [_relative(x, answers[name]) for x, name in zip(efforts, EFFORT_FIELDS, strict=True)]
    links = plan.motion.derivatives(plan.t[rows], order=2)
    motors = [answers[name] for name in MOTOR_FIELDS[:3]]
    for residual, scale in spring_residuals(arm, links, motors, efforts):
        off.append(_share(residual, scale))
    position, velocity, acceleration = motors
    # The rotors' motion beyond that of the links: all of it in the reduced model.
    beyond = acceleration if arm.rotors is None else acceleration - arm.motors_following(links[2])
    load = motor_load(arm, links[0], position, efforts[0])
    effort = motor_effort(arm, load, rotor + arm.motor_inertia * beyond, velocity)
    return float(np.max([*off, _relative(effort, answers["motor_effort"])]))


def _difference_tolerances(plan: Plan) -> tuple[float, float]:
    """What numerical differentiation itself may be off by, relative to the largest taud and taudd.

    Differences of order 8 are better than those of order 6, so that what lies between the two bounds their
    truncation error; to it comes the rounding of the efforts, which differences magnify. Both are taken from the
    closed form, and not from what was received, so that bad answers cannot widen the tolerance.
    """
    step = 1 / plan.rate
    offsets = step * np.arange(-REACH, REACH + 1)
    windows = [
        np.array([closed_form(plan, t + offset).tau for offset in offsets])
        for t in plan.t[_spread(plan.count, _DIFFERENCE_SAMPLES)]
    ]
    magnitude = float(np.max(np.abs(windows)))

    def tolerance(derivative: int) -> float:
        eighth, sixth = (
            np.array([differentiate(window, step, derivative, order)[REACH] for window in windows]) for order in (8, 6)
        )
        error = np.max(np.abs(eighth - sixth)) + _EFFORT_ROUNDING * rounding(step, derivative, magnitude)
        return float(_SAFETY * error / np.max(np.abs(eighth)))

    return tolerance(1), tolerance(2)


def _spread(count: int, samples: int) -> NDArray[np.int_]:
    """Up to ``samples`` of ``count`` indices, evenly spread, first and last among them."""
    return np.unique(np.linspace(0, count - 1, samples).round().astype(int))

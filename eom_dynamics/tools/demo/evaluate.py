# SPDX-License-Identifier: Apache-2.0
"""Checks of the node's answers: counts, times, and deviations from two independent computations.

The first is numerical differentiation: the received tau, differentiated once and twice, must equal the received taud
and taudd. The second is the closed form of the equations of motion, evaluated in this process: efforts must equal it,
and motor motion and motor effort must agree with it by the laws of springs and rotors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.ndimage import correlate1d

from ...arrays import Array
from ...equations import equations_of_motion
from ...messages.fields import EFFORT_FIELDS, MOTOR_FIELDS
from .plan import Plan

CLOSED_FORM_SAMPLES = 250
"""Largest number of answers compared with the closed form, which takes a millisecond each."""

REMEDY = "run again while the machine is idle, or with a lower --rate"
"""What to do where setpoints are late or lost."""

REACH = 4
"""Samples on each side that a central difference needs."""

# By derivative and order, at 0, +1, +2, … steps; those at -1, -2, … mirror them. B. Fornberg, "Generation of finite
# difference formulas on arbitrarily spaced grids", Mathematics of Computation 51 (1988), table 1.
_COEFFICIENTS: dict[tuple[int, int], tuple[float, ...]] = {
    (1, 6): (0, 3 / 4, -3 / 20, 1 / 60, 0),
    (1, 8): (0, 4 / 5, -1 / 5, 4 / 105, -1 / 280),
    (2, 6): (-49 / 18, 3 / 2, -3 / 20, 1 / 90, 0),
    (2, 8): (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}

# Rounding of some hundred operations, which the node performs in another order than the closed form.
_CLOSED_FORM_TOLERANCE = 1e-10

# Tolerance of numerical differentiation over the estimate of its error, and rounding of an effort in units of double
# precision: it is the result of some hundred operations.
_SAFETY, _EFFORT_ROUNDING = 10.0, 16.0


@dataclass(frozen=True)
class Answers:
    """The answers of one run; row i belongs to setpoint i, and is NaN without an answer.

    Attributes:
        sent, received: times (N,) on one clock at which setpoints were sent and answers received, s.
        answers: fields of FeedforwardCommand, (N, n) for joints and (N, m) for motors.
        backend: of the dynamics in the node.
    """

    sent: Array
    received: Array
    answers: dict[str, Array]
    backend: str


class LargestDeviation(NamedTuple):
    """Largest deviation relative to the largest value of a quantity, NaN if unknown, and the largest that passes."""

    name: str
    value: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the deviation is known and within the tolerance."""
        return bool(self.value <= self.tolerance)


class RunChecks(NamedTuple):
    """Results of the checks of one run.

    Attributes:
        sent, received, late: numbers of setpoints, of answers, and of setpoints sent more than one period late.
        rate: actual rate of setpoints, Hz.
        round_trip: times (received,) from setpoint to answer, s, in the order of sending.
        differentiation: deviations of taud and taudd from numerical differentiation of the received tau.
        closed_form: deviation of all quantities from the closed form.
        numerical: the received tau (N, n), differentiated once and twice.
    """

    sent: int
    received: int
    late: int
    rate: float
    round_trip: Array
    differentiation: Sequence[LargestDeviation]
    closed_form: LargestDeviation
    numerical: Sequence[Array]

    @property
    def lost(self) -> int:
        """Setpoints without an answer."""
        return self.sent - self.received

    @property
    def deviations(self) -> tuple[LargestDeviation, ...]:
        """All deviations."""
        return (*self.differentiation, self.closed_form)

    def percentile(self, percent: float) -> float:
        """Return a percentile of the round trip, s; NaN without answers."""
        return float(np.percentile(self.round_trip, percent)) if len(self.round_trip) else float("nan")

    @property
    def failures(self) -> list[str]:
        """Failed checks, one line each."""
        remedy = f": {REMEDY}" if self.received else ""
        lines = [f"{self.lost} of {self.sent} setpoints were not answered{remedy}"] if self.lost else []
        for x in (x for x in self.deviations if not x.passed):
            off = f"off by {x.value:.1e}, tolerance {x.tolerance:.1e}"
            lines.append(f"{x.name}: {'too few answers to compare' if np.isnan(x.value) else off}")
        return lines


def evaluate(plan: Plan, recording: Answers) -> RunChecks:
    """Check the answers of a run."""
    arrived = ~np.isnan(recording.received)
    step = 1 / plan.rate
    numerical = [differentiate(recording.answers["effort"], step, k) for k in (1, 2)]
    fields = zip(("taud", "taudd"), EFFORT_FIELDS[1:], numerical, _difference_tolerances(plan), strict=True)
    return RunChecks(
        sent=plan.count,
        received=int(arrived.sum()),
        rate=(plan.count - 1) / (recording.sent[-1] - recording.sent[0]),
        late=int(np.sum(recording.sent - recording.sent[0] - plan.t > step)),
        round_trip=(recording.received - recording.sent)[arrived],
        differentiation=[
            LargestDeviation(f"{name} against numerical derivative", _relative(recording.answers[field] - x, x), most)
            for name, field, x, most in fields
        ],
        closed_form=LargestDeviation(
            "all quantities against closed form", _off_closed_form(plan, recording), _CLOSED_FORM_TOLERANCE
        ),
        numerical=numerical,
    )


def differentiate(samples: Array, step: float, derivative: int, order: int = 8) -> Array:
    """Differentiate samples (N, n), ``step`` s apart, once or twice with an error of order 6 or 8.

    The result (N, n) is NaN in the first and last :data:`REACH` rows, and where it depends on a NaN.
    """
    weights = _stencil(derivative, order)
    found: Array = correlate1d(samples, weights, axis=0, mode="constant", cval=np.nan) / step**derivative
    return found


def _stencil(derivative: int, order: int) -> Array:
    half = np.array(_COEFFICIENTS[derivative, order])
    return np.r_[(-1) ** derivative * half[:0:-1], half]


def _difference_tolerances(plan: Plan) -> list[float]:
    """Return bounds on the error of numerical differentiation, relative to the largest taud and taudd.

    The disagreement of differences of order 6 and 8 bounds the truncation error of the latter; the rounding of efforts,
    which differences amplify, is added. Both are evaluated on efforts computed here, so that wrong answers cannot widen
    the tolerance.
    """
    step = 1 / plan.rate
    tau = plan.command(step * np.arange(-REACH, plan.count + REACH)).tau
    tolerances = []
    for k in (1, 2):
        eighth, sixth = (differentiate(tau, step, k, order)[REACH:-REACH] for order in (8, 6))
        rounding = np.sum(np.abs(_stencil(k, 8))) * np.finfo(float).eps * np.max(np.abs(tau)) / step**k
        error = np.max(np.abs(eighth - sixth)) + _EFFORT_ROUNDING * rounding
        tolerances.append(float(_SAFETY * error / np.max(np.abs(eighth))))
    return tolerances


def closed_form(plan: Plan, t: float) -> tuple[Array, ...]:
    """tau, taud, taudd (n,) at time ``t`` by the closed form of the equations of motion, and efforts (m,) of rotors.

    Those are of rotors that move with their links, in the complete rotor model; zero in the reduced one.
    """
    arm, robot = plan.arm, plan.robot
    states = plan.motion.derivatives(t)
    if arm.rotors is not None:
        robot = arm.rotors.dynamics.robot
        states = tuple(np.concatenate([x, arm.gear_ratio * arm.motors_following(x)]) for x in states)
    efforts = equations_of_motion(robot, *states[:-1], wrench=plan.wrenches(t)).efforts(states[-1])
    rotor = np.zeros(len(arm.motor_joint)) if arm.rotors is None else arm.gear_ratio * efforts[0][plan.robot.n :]
    return *(x[: plan.robot.n] for x in efforts), rotor


def _off_closed_form(plan: Plan, recording: Answers) -> float:
    """Return the largest deviation of any quantity from the closed form, relative to its largest value.

    Efforts are compared directly. Motor motion is inserted into the spring laws, which must return these efforts and
    the nominal stiffness; motor efforts must be those of rotors, springs, gears and friction in this motion.
    """
    arm, rows = plan.arm, np.unique(np.linspace(0, plan.count - 1, CLOSED_FORM_SAMPLES).round().astype(int))
    answers = {name: values[rows] for name, values in recording.answers.items()}
    if np.isnan(answers["motor_effort"]).all():
        return float("nan")
    *efforts, rotor = (np.array(x) for x in zip(*(closed_form(plan, t) for t in plan.t[rows]), strict=True))
    off = [_relative(answers[name] - x, x) for x, name in zip(efforts, EFFORT_FIELDS, strict=True)]

    links = plan.motion.derivatives(plan.t[rows], order=2)
    position, velocity, acceleration = (answers[name] for name in MOTOR_FIELDS[:3])
    joint_side = [x.copy() for x in (position, velocity, acceleration)]
    if arm.transmission:
        joints, transmission = arm.transmission
        places = np.searchsorted(arm.motor_joint, joints)
        for x in joint_side:
            x[:, places] = transmission.joints(x[:, places])
    deltas = [x - link[:, arm.motor_joint] for x, link in zip(joint_side, links, strict=True)]
    springs, stiffness = arm.spring_set.effort_jets(deltas)
    # NaN where a deflection does not determine the effort: at rigid joints, and taudd of damped springs.
    off += [_relative(x - effort, effort) for x, effort in zip(springs, efforts, strict=True)]
    rigid, paired = arm.rigid[arm.motor_joint], arm.paired
    off += [_relative(delta[:, rigid], x) for delta, x in zip(deltas, links, strict=True)]
    for order, k in enumerate(stiffness):
        nominal = arm.stiffness[paired]
        scale = nominal * np.nanmax(np.abs(deltas[order])) / np.nanmax(np.abs(deltas[0]))
        off.append(_relative(k[:, paired] - (0.0 if order else nominal), scale))

    # Acceleration of the rotors relative to their links; in the reduced model, the absolute one.
    beyond = acceleration if arm.rotors is None else acceleration - arm.motors_following(links[2])
    # Efforts of the springs at the motors; rigid joints transmit those on the links.
    load = np.where(rigid, efforts[0][:, arm.motor_joint], arm.spring_set.loads(*deltas[:2]))
    if arm.transmission:
        load[:, places] = transmission.motor_effort(load[:, places])
    effort = rotor + arm.motor_inertia * beyond + arm.gear.load(load, velocity) + arm.friction.effort(velocity)
    off.append(_relative(answers["motor_effort"] - effort, effort))
    return float(np.nanmax(off))


def _relative(difference: Array, scale: Array) -> float:
    """Return the largest difference over the largest entry of the scale; NaN if there is nothing to compare."""
    if np.isnan(difference).all():
        return float("nan")
    largest = np.nanmax(np.abs(scale))
    return float(np.nanmax(np.abs(difference)) / (largest if largest > 0 else 1.0))

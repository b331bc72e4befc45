# SPDX-License-Identifier: Apache-2.0
"""Identification of a whole elastic arm, links, springs and motors, from both sides of its springs.

Links are identified from spring efforts, springs from these efforts and deflections, motors from their other efforts.
Each is a separate linear (or nearly linear) problem if spring efforts were measured. Otherwise, motors and springs are
fitted together, and the identified springs give the efforts of the links.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import fdtri

from ...actuators.springs import CubicSpring, LinearSpring
from ...arguments import all_finite
from ...arrays import Array
from ...robot import Joint, Robot
from ..links.fit import Fit, fit, identified_robot
from ..links.parameters import Options
from ..links.regressor import transmission_matrix
from ..links.verification import EffortErrors
from ..recording import ArmRecording, IdentificationError, Recording, joined_motions
from ..sampling import LowPass, cutoff_of, rate_of
from .curve_fit import SIGNIFICANT
from .motor import MotorFit, MotorModel, fit_motor, with_motors
from .options import MOTOR_TERMS, ElasticOptions, check_elastic, coupled_springs, laws
from .springs import SpringFit, spring_of_joint, with_springs

# Laws that :func:`.fit_motor` finds from deflections and motor efforts alone.
_WITHOUT_SENSOR = {"linear": False, "cubic": True}

_REST = 1e-3  # motor motion within encoder noise, rad or m

_LEVEL = 0.01  # of the test whether a motor explains its efforts


@dataclass(frozen=True, eq=False)
class Elasticity:
    """Identified springs and motors, by joint name.

    Joints that are not identifiable are absent; notes name unidentifiable parameters, a line each.
    """

    springs: dict[str, SpringFit]
    motors: dict[str, MotorFit]
    notes: tuple[str, ...]

    def without(self, springs: Collection[str], motors: Collection[str]) -> Elasticity:
        """These results without the springs, and without the motors, of the named joints."""
        left = {name: fit for name, fit in self.springs.items() if name not in springs}
        return Elasticity(left, {name: fit for name, fit in self.motors.items() if name not in motors}, self.notes)

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with these springs and motors."""
        return with_motors(with_springs(robot, self.springs), self.motors)


@dataclass(frozen=True, eq=False)
class ArmFit:
    """An identified elastic arm.

    Attributes:
        robot: with all that was identified.
        links: inertias of the bodies.
        springs, motors: of the joints.
        notes: unidentifiable parameters of springs and motors, a line each.
    """

    robot: Robot
    links: Fit
    springs: tuple[SpringFit, ...]
    motors: tuple[MotorFit, ...]
    notes: tuple[str, ...] = ()


def identify_arm(
    robot: Robot,
    training: ArmRecording | Sequence[ArmRecording],
    validation: ArmRecording | Sequence[ArmRecording] = (),
    options: ElasticOptions | None = None,
    *,
    links: Options | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> ArmFit:
    """Identify masses and inertias, springs, rotors, motor friction and gear loss.

    Args:
        robot: as its file describes it; springs keep their law.
        training, validation: recordings, the second to judge the links by.
        options: of springs and motors.
        links: of the links; by default inertias and offsets.
        progress: called with the name of the step and the fraction of it that is done.

    Raises:
        RobotDescriptionError: a joint has no spring with a motor of its own.
        IdentificationError: a joint is not identifiable from the recording.
    """
    training, validation = ((x,) if isinstance(x, ArmRecording) else tuple(x) for x in (training, validation))
    elasticity = identify_elasticity(robot, training, options, progress=progress)
    if lacking := [name for name in robot.joint_names if name not in elasticity.motors]:
        raise IdentificationError(next(line for line in elasticity.notes if line.startswith(f"{lacking[0]}: ")))

    def of_links(parts: Sequence[ArmRecording], name: str) -> list[Recording]:
        return [with_spring_efforts(robot, elasticity, part).links(robot, name) for part in parts]

    links = links or Options(side="joint", terms=("offset",))
    arm_fit = fit(robot, of_links(training, "training"), of_links(validation, "validation"), links, progress=progress)
    springs, motors = tuple(elasticity.springs.values()), tuple(elasticity.motors.values())
    return ArmFit(elasticity.applied_to(identified_robot(arm_fit)), arm_fit, springs, motors, elasticity.notes)


def identify_elasticity(
    robot: Robot,
    training: Sequence[ArmRecording],
    options: ElasticOptions | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
) -> Elasticity:
    """Identify springs and motors, joint by joint; notes give the reason for joints that cannot be identified.

    Args:
        robot: as its file describes it.
        training: recordings of the same step.
        options: parameters to identify.
        progress: called with the name of the step and the fraction of it that is done.

    Raises:
        RobotDescriptionError: a joint has no spring with a motor of its own.
        IdentificationError: nothing of any joint can be identified.
    """
    options = options or ElasticOptions()
    check_elastic(robot, options)
    if not training:
        raise IdentificationError("there is no recording of both sides of the springs to train on")
    whole, report = joined_motions(training), progress or (lambda step, done: None)
    terms = options.terms(robot)
    springs, motors, notes = dict[str, SpringFit](), dict[str, MotorFit](), list[str]()
    shared, T = coupled_springs(robot), transmission_matrix(robot)
    for k, joint in enumerate(robot.independent_joints):
        if joint.name in shared:
            continue
        report("springs and motors", k / robot.n)
        columns = _Columns.of(whole, k, T)
        try:
            spring, motor, doubt = _identify_joint(joint, columns, options, terms)
        except IdentificationError as error:
            notes.append(f"{joint.name}: {error}")
            continue
        notes += [f"{joint.name}: {doubt}"] if doubt else []
        springs |= {} if spring is None else {joint.name: spring}
        motors |= {} if motor is None else {joint.name: motor}
        for part, part_fit in (("spring", spring), ("motor", motor)):
            notes += [f"{joint.name}, {part}: {line}" for line in (() if part_fit is None else part_fit.undetermined)]
    if not (springs or motors):
        raise IdentificationError(notes[0])
    if shared:
        notes.append(f"springs and motors of {', '.join(shared)}, which share a spring, are those of the file")
    return Elasticity(springs, motors, tuple(notes))


def with_spring_efforts(robot: Robot, elasticity: Elasticity, recording: ArmRecording) -> ArmRecording:
    """Replace unmeasured link efforts of a recording by efforts of the identified springs.

    Errors of the springs are common to all samples: relative to the efforts, they count as errors of a scale.
    """
    tau, scale = recording.tau.copy(), np.zeros(robot.n)
    for k, name in enumerate(robot.joint_names):
        if not measured(tau[:, k]) and name in elasticity.springs:
            delta = recording.theta[:, k] - recording.q[:, k]
            tau[:, k] = elasticity.springs[name].spring.load(delta)
            scale[k] = elasticity.springs[name].scale_deviation(delta)
    return replace(recording, tau=tau, scale_deviation=scale)


def measured(values: Array) -> bool:
    """Return whether a signal (N,) was measured: all-zero efforts were not."""
    return all_finite(values) and bool(np.any(values))


@dataclass(frozen=True, eq=False)
class _Columns:
    """Signals of one joint, and of the motor in its position (N,); None if not recorded.

    Without a transmission, the joint's side of the transmission is the motor, and the motor's load the spring's effort.

    Attributes:
        theta: motor.
        behind: motors on the joint's side of the transmission, T theta.
        tau: spring.
        load: spring efforts at the motor, T' tau.
        is_coupled: whether a transmission drives the joint with others.
    """

    t: Array
    q: Array
    theta: Array
    behind: Array
    tau: Array | None
    load: Array | None
    effort: Array | None
    current: Array | None
    starts: tuple[int, ...]
    is_coupled: bool

    @classmethod
    def of(cls, whole: ArmRecording, k: int, T: Array | None) -> _Columns:
        columns = [None if x is None else x[:, k] for x in (whole.tau, whole.motor_effort, whole.current)]
        tau, effort, current = (None if x is None or not measured(x) else x for x in columns)
        theta, behind, load = whole.theta[:, k], whole.theta[:, k], tau
        coupled = T is not None and bool(np.any(T[k] != np.eye(len(T))[k]))
        if T is not None and coupled:
            motors, joints = np.flatnonzero(T[k]), np.flatnonzero(T[:, k])
            behind = whole.theta[:, motors] @ T[k, motors]
            efforts = whole.tau[:, joints]
            load = efforts @ T[joints, k] if all(measured(x) for x in efforts.T) else None
        return cls(whole.t, whole.q[:, k], theta, behind, tau, load, effort, current, whole.starts, coupled)


def _identify_joint(
    joint: Joint, x: _Columns, options: ElasticOptions, terms: tuple[str, ...]
) -> tuple[SpringFit | None, MotorFit | None, str]:
    """Spring (None if not requested), motor (None if it does not explain its efforts), and the reason of the latter.

    Raises:
        IdentificationError: neither is identifiable.
    """
    law, current = options.law(joint), x.current if "torque_constant" in terms else None
    if not np.ptp(x.theta) > _REST:
        raise IdentificationError("the motor does not move; its spring and friction stay as in the file")
    if np.array_equal(x.behind, x.q) and not joint.spring.is_rigid:
        raise IdentificationError("the position of the link was not recorded; its spring and motor stay as in the file")
    if x.effort is None and current is None:
        raise IdentificationError(
            "the effort of the motor is missing or zero throughout, or not finite, and there is no current"
        )
    known = None if "rotor_inertia" in terms else float(joint.rotor_inertia)
    model = MotorModel([x for x in terms if x in MOTOR_TERMS], known, hardening=_WITHOUT_SENSOR.get(law, False))
    motor_fit = partial(_fit_motor, joint, x, model)
    spring, tau = None, x.load
    if tau is None:
        if x.is_coupled:
            raise IdentificationError(
                "efforts of the springs of joints that share motors were not recorded; the motor stays as in the file"
            )
        if x.effort is None:
            raise IdentificationError(
                "current and deflection alone leave the unit of effort unknown; record efforts of the spring or motor"
            )
        if law not in _WITHOUT_SENSOR:
            raise IdentificationError(
                f"the effort of the spring was not recorded; without it, only {' and '.join(_WITHOUT_SENSOR)} springs "
                f"can be identified, this spring is {law}"
            )
        motor = motor_fit(deflection=x.theta - x.q, effort=x.effort)
        spring = _spring_of(motor, law)
        tau = spring.spring.load(x.theta - x.q, np.zeros_like(x.q))
    else:
        if x.tau is not None and law in laws():
            spring = spring_of_joint(x.t, x.behind, x.q, x.tau, law, starts=x.starts)
        motor = motor_fit(tau=tau, **({"current": current} if x.effort is None else {"effort": x.effort}))
    if doubt := _doubt(motor):
        if x.tau is None or spring is None:
            raise IdentificationError(doubt)
        return spring, None, doubt
    if x.effort is not None and current is not None:
        by_current = motor_fit(tau=tau, current=current)
        motor = replace(
            motor,
            torque_constant=by_current.torque_constant,
            parameters=motor.parameters | {"torque_per_current": by_current.parameters["torque_per_current"]},
            undetermined=(*motor.undetermined, *(x for x in by_current.undetermined if x.startswith("torque"))),
        )
    return spring, motor, ""


def _doubt(motor: MotorFit) -> str:
    """Reason to reject a motor: its parameters explain no more of its efforts than chance, at 1 %."""
    parameters, free = len(motor.parameters), max(motor.samples - len(motor.parameters), 1)
    explained = max(1 / max(motor.relative, 1e-6) ** 2 - 1, 0.0) * free / parameters
    critical = float(fdtri(parameters, free, 1 - _LEVEL))
    if explained > critical:
        return ""
    return (
        f"the motor stays as in the file: residuals are {motor.relative:.0%} of the spread of its efforts, F is "
        f"{explained:.2g}, {critical:.2g} at 1 %; check their signs, unit, and order of joints"
    )


def _fit_motor(joint: Joint, x: _Columns, model: MotorModel, **signals: Any) -> MotorFit:
    """Fit a motor; the rotor of the file stays if the data do not distinguish the rotor from zero."""
    fitted = partial(fit_motor, x.t, x.theta, gear_ratio=joint.gear_ratio, starts=x.starts, **signals)
    motor = fitted(model=model)
    (value, deviation), of_file = motor.rotor_inertia, float(joint.rotor_inertia)
    if model.rotor_inertia is not None or not of_file or value > SIGNIFICANT * deviation:
        return motor
    kept = fitted(model=replace(model, rotor_inertia=of_file))
    if joint.spring.is_rigid and motor.samples * ((kept.residual / motor.residual) ** 2 - 1) > SIGNIFICANT**2:
        line = "rotor_inertia: the efforts of the joint include those of its rotor, which becomes part of the link"
        return replace(motor, undetermined=(line, *motor.undetermined))
    known = f"{value:.3g} ± {deviation:.2g} is not distinguishable from zero"
    line = f"rotor_inertia: {known if np.isfinite(deviation) else 'no effect on these data'}; file value kept"
    return replace(kept, undetermined=(f"{line}, {of_file:.3g}", *kept.undetermined))


def _spring_of(motor: MotorFit, law: str) -> SpringFit:
    """The spring that a fit of a motor with deflections found."""
    parameters = {str(name): motor.parameters[name] for name in ("stiffness", "cubic") if name in motor.parameters}
    stiffness = parameters["stiffness"][0]
    if not stiffness > 0:
        raise IdentificationError("motor efforts do not rise with the deflection; check signs and units")
    spring = LinearSpring(stiffness) if law == "linear" else CubicSpring(stiffness, parameters["cubic"][0])
    lines = ("damping: the effort of the spring was not recorded; it is part of the motor's friction",)
    figures = motor.residual, motor.relative, motor.samples
    return SpringFit(spring, law, parameters, None, *figures, lines, motor.spring_covariance)


@dataclass(frozen=True, eq=False)
class ElasticScore:
    """Prediction errors of the efforts of springs and motors; NaN if not recorded or not identified."""

    springs: EffortErrors
    motors: EffortErrors


def elastic_score(robot: Robot, elasticity: Elasticity, recordings: Sequence[ArmRecording]) -> ElasticScore:
    """Score given and identified springs and motors, for each motion separately.

        springs:  tau - f(delta, deltad),        motors:  u - (B thetadd + load(tau, v) + friction(v)),

    filtered as for the fit of the motors, without offsets, which a file does not have.
    """
    known = [with_spring_efforts(robot, elasticity, x) for x in recordings]
    joints = zip(robot.independent_joints, elasticity.applied_to(robot).independent_joints, strict=True)
    T = transmission_matrix(robot)
    errors = {side: np.full((3, robot.n), np.nan) for side in ("springs", "motors")}
    for k, (before, after) in enumerate(joints):
        parts = [_residuals(before, after, k, T, *pair, elasticity) for pair in zip(recordings, known, strict=True)]
        for side, rows in errors.items():
            if residuals := [part[side] for part in parts if side in part]:
                described, identified, efforts = (np.concatenate(x) for x in zip(*residuals, strict=True))
                rows[:, k] = np.sqrt(np.mean(described**2)), np.sqrt(np.mean(identified**2)), np.std(efforts)
    springs, motors = (EffortErrors(before=x[0], after=x[1], spread=x[2]) for x in errors.values())
    return ElasticScore(springs, motors)


def low_pass_of(elasticity: Elasticity, name: str, part: ArmRecording, k: int, reaches: int) -> LowPass | None:
    """Filter of a joint's motor, or without one by the noise of its position; None for less than ``reaches`` of it."""
    motor, period = elasticity.motors.get(name), (part.t[-1] - part.t[0]) / (len(part.t) - 1)
    low_pass = LowPass(period, cutoff_of(period, part.theta[:, k], 2) if motor is None else motor.cutoff)
    return low_pass if len(part.t) > reaches * low_pass.reach + 16 else None


def _residuals(
    before: Joint,
    after: Joint,
    k: int,
    T: Array | None,
    sensed: ArmRecording,
    recorded: ArmRecording,
    elasticity: Elasticity,
) -> dict[str, tuple[Array, Array, Array]]:
    """Residuals before and after, and the efforts, of each side that was recorded."""
    motor, spring = elasticity.motors.get(before.name), elasticity.springs.get(before.name)
    if motor is None and spring is None:
        return {}
    if (low_pass := low_pass_of(elasticity, before.name, recorded, k, 8)) is None:
        return {}
    period = low_pass.period
    x, load = _Columns.of(sensed, k, T), _Columns.of(recorded, k, T).load
    delta, velocity, residuals_of = x.behind - x.q, rate_of(x.theta, period), {}
    if spring is not None and x.tau is not None:
        rate, value = rate_of(delta, period), low_pass(x.tau[2:-2])
        loads = [
            np.full_like(value, np.nan) if joint.spring.is_rigid else low_pass(joint.spring.load(delta[2:-2], rate))
            for joint in (before, after)
        ]
        residuals_of["springs"] = (value - loads[0], value - loads[1], value)
    if motor is not None and x.effort is not None and load is not None:
        acceleration, v, effort = rate_of(velocity, period), low_pass(velocity[2:-2]), x.effort[4:-4]
        rest, load, acceleration = low_pass(effort - load[4:-4]), low_pass(load[4:-4]), low_pass(acceleration)
        inner = low_pass.inner(len(rest))
        rest, acceleration = rest[inner], acceleration[inner]
        residuals = [
            rest
            - joint.rotor_inertia * acceleration
            - low_pass(joint.actuator.friction.effort(v) + joint.actuator.gear.load(load, v) - load)
            for joint in (before, after)
        ]
        residuals_of["motors"] = (residuals[0], residuals[1], low_pass(low_pass(effort)))
    return residuals_of

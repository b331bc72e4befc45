# SPDX-License-Identifier: Apache-2.0
"""Identification of a whole elastic arm, links, springs and motors, from both sides of its springs.

Links from the efforts of the springs, springs from those and from deflections, motors from what is left of their
efforts. Each is a linear (or nearly linear) problem of its own, since the effort of the spring was measured. Where it
was not, motors and springs are fitted together, and the efforts of the links are those of the identified springs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..actuators.springs import CubicSpring, LinearSpring
from ..arrays import Array
from ..elastic import ElasticArm
from ..robot import Joint, Robot
from .both_sides import ArmRecording, joined
from .elastic_options import KEEP, SPRING_TERMS, ElasticOptions, check_elastic
from .elastic_robot import with_motors, with_springs
from .exceptions import IdentificationError
from .fit import Fit, fit, identified_robot
from .motor import TERMS as MOTOR_TERMS
from .motor import GearFit, MotorFit, MotorModel, fit_gear_ratio, fit_motor
from .options import Options
from .recording import Recording
from .resonance import ResonanceFit, fit_resonance
from .springs import SpringFit, fit_springs

# Laws that are lines.
_LINES = ("linear", "damped")

# Laws that :func:`.fit_motor` finds from deflections and motor efforts alone.
_WITHOUT_SENSOR = {"linear": False, "cubic": True}

# Motion of a motor, rad or m, that is attributed to encoder noise.
_REST = 1e-3

# Misfit of a resonance beyond which standard deviations are too small, and beyond which results are unreliable.
_DOUBTFUL, _MISFIT = 2.0, 10.0


@dataclass(frozen=True, eq=False)
class Elasticity:
    """Identified springs and motors, by joint name; joints that are not identifiable are absent.

    Attributes:
        springs, motors: of the joints.
        gears: of joints whose gear ratio was to be identified.
        notes: what is not identifiable from the data, a line each.
    """

    springs: dict[str, SpringFit]
    motors: dict[str, MotorFit]
    gears: dict[str, GearFit]
    notes: tuple[str, ...]

    def without(self, springs: Collection[str], motors: Collection[str]) -> Elasticity:
        """These results without the springs, and without the motors and gears, of the named joints."""
        return Elasticity(
            {name: fit for name, fit in self.springs.items() if name not in springs},
            {name: fit for name, fit in self.motors.items() if name not in motors},
            {name: gear for name, gear in self.gears.items() if name not in motors},
            self.notes,
        )

    def applied_to(self, robot: Robot) -> Robot:
        """The robot with these springs, motors and gears."""
        ratios = {name: gear.ratio[0] for name, gear in self.gears.items()}
        geared = [replace(joint, gear_ratio=ratios.get(joint.name, joint.gear_ratio)) for joint in robot.joints]
        return with_motors(with_springs(replace(robot, joints=tuple(geared)), self.springs), self.motors)


@dataclass(frozen=True, eq=False)
class ArmFit:
    """An identified elastic arm.

    Attributes:
        robot: with all that was identified.
        links: inertias of the bodies.
        springs, motors: of the joints.
        notes: what of springs and motors is not identifiable from the data, a line each.
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
    recordings = [
        [with_spring_efforts(robot, elasticity, part).links(robot, name) for part in parts]
        for name, parts in (("training", training), ("validation", validation))
    ]
    own = links or Options(side="joint", terms=("offset",))
    found = fit(robot, recordings[0], recordings[1], own, progress=progress)
    return ArmFit(
        elasticity.applied_to(identified_robot(found)),
        found,
        tuple(elasticity.springs.values()),
        tuple(elasticity.motors.values()),
        elasticity.notes,
    )


def identify_elasticity(
    robot: Robot,
    training: Sequence[ArmRecording],
    options: ElasticOptions | None = None,
    *,
    progress: Callable[[str, float], None] | None = None,
) -> Elasticity:
    """Identify springs and motors, joint by joint; notes name joints where that is impossible, and why.

    Args:
        robot: as its file describes it.
        training: recordings of the same step.
        options: what is identified.
        progress: called with the name of the step and the fraction of it that is done.

    Raises:
        RobotDescriptionError: a joint has no spring with a motor of its own.
        IdentificationError: nothing of any joint can be identified.
    """
    options = options or ElasticOptions()
    check_elastic(robot, options)
    if not training:
        raise IdentificationError("there is no recording of both sides of the springs to train on")
    whole, report = joined(training), progress or (lambda step, done: None)
    terms = options.terms(robot)
    springs: dict[str, SpringFit] = {}
    motors: dict[str, MotorFit] = {}
    gears: dict[str, GearFit] = {}
    notes: list[str] = []
    for k, joint in enumerate(robot.independent_joints):
        report("springs and motors", k / robot.n)
        columns = _Columns.of(whole, k)
        try:
            if "gear_ratio" in terms:
                gears[joint.name], columns = _gear(joint, columns, options.law(joint))
                joint = replace(joint, gear_ratio=gears[joint.name].ratio[0])
            spring, motor = _identify_joint(joint, columns, options, terms)
        except IdentificationError as error:
            notes.append(f"{joint.name}: {error}")
            continue
        springs |= {} if spring is None else {joint.name: spring}
        motors[joint.name] = motor
        notes += [f"{joint.name}, spring: {line}" for line in (() if spring is None else spring.undetermined)]
        notes += [f"{joint.name}, motor: {line}" for line in motor.undetermined]
        notes += [f"{joint.name}, gear: {line}" for line in (gears[joint.name].undetermined if gears else ())]
    if not motors:
        raise IdentificationError(notes[0])
    return Elasticity(springs, motors, {name: gears[name] for name in motors if name in gears}, tuple(notes))


def with_spring_efforts(robot: Robot, elasticity: Elasticity, recording: ArmRecording) -> ArmRecording:
    """The recording with efforts of identified springs in place of unmeasured link efforts."""
    tau = recording.tau.copy()
    for k, name in enumerate(robot.joint_names):
        if not measured(tau[:, k]) and name in elasticity.springs:
            delta = recording.theta[:, k] - recording.q[:, k]
            tau[:, k] = elasticity.springs[name].spring.load(delta)
    return replace(recording, tau=tau)


def identify_resonance(
    robot: Robot, motors: Recording, options: ElasticOptions | None = None
) -> tuple[ResonanceFit, tuple[str, ...]]:
    """Identify springs and rotors of all joints from the motor side alone, by :func:`.fit_resonance`.

    The mass matrix and the stiffness of gravity are those of the file at the mean position; the links of an arm of one
    joint are identified, too.

    Args:
        robot: as its file describes it.
        motors: positions and efforts of the motors, on the link side of the gears.
        options: what is identified: Coulomb friction, if it is among the motor terms.

    Returns:
        What was found, and notes, a line each.

    Raises:
        RobotDescriptionError: a joint has no motor of its own.
        IdentificationError: the recording does not show the resonance.
    """
    options = options or ElasticOptions()
    check_elastic(robot, options)
    motions = sorted(motors.cleaned().motions(), key=len)
    if not motions:
        raise IdentificationError(f"{motors.name}: has too few samples")
    motion = motions[-1]
    notes = [f"{motors.name}: only the longest of {len(motions)} motions is used"] if len(motions) > 1 else []
    for k, name in enumerate(robot.joint_names):
        if not measured(motion.tau[:, k]):
            raise IdentificationError(f"{motors.name}: efforts of the motor of {name} are missing or zero throughout")
        if not np.ptp(motion.q[:, k]) > 0:
            raise IdentificationError(
                f"{motors.name}: the motor of {name} does not move; record its positions as measured, with noise"
            )
    period = motion.period
    t = motion.t[0] + period * np.arange(len(motion))
    if np.max(np.abs(motion.t - t)) > 0.5 * period:
        raise IdentificationError(f"{motors.name}: times must be even to identify a resonance; resample")
    arm = ElasticArm(robot)
    mean = np.mean(motion.q, axis=0)
    zero, q = np.zeros(robot.n), mean
    stiffness = np.where(arm.stiffness > 0, arm.stiffness, np.inf)
    for _ in range(3):
        q = mean - arm.dynamics.effort(q, zero, zero) / stiffness
    one = robot.n == 1
    terms = options.terms(robot)
    joints = robot.independent_joints
    found = fit_resonance(
        t,
        motion.q,
        motion.tau,
        inertia=None if one else arm.dynamics.mass_matrix(q),
        gravity=arm.dynamics.inverse_dynamics_derivatives(q, zero, zero)[0],
        coulomb="coulomb" in terms,
        smoothing_velocity=np.array([float(joint.actuator.friction.smoothing_velocity) for joint in joints]),
    )
    if found.misfit > _MISFIT:
        raise IdentificationError(
            f"{motors.name}: the linear model of motors, springs and links does not explain it, misfit "
            f"{found.misfit:.3g} times the noise; record a chirp or multisine around a position that is held"
        )
    if not found.identifiable.any():
        raise IdentificationError(f"{motors.name}: the stiffness of no joint is identifiable; excite the resonances")
    notes += [
        f"{name}: its stiffness is not identifiable from the resonance; its spring and rotor stay as in the file"
        for name, identifiable in zip(robot.joint_names, found.identifiable, strict=True)
        if not identifiable
    ]
    if found.misfit > _DOUBTFUL:
        notes.append(f"misfit {found.misfit:.3g}: standard deviations are too small; the model is incomplete")
    if not one:
        notes.append("link inertias and gravity at the mean position are those of the file")
    return found, (*notes, *found.undetermined)


def measured(values: Array) -> bool:
    """Whether a signal (N,) was measured: all-zero efforts were not."""
    return bool(np.isfinite(values).all() and np.any(values))


@dataclass(frozen=True, eq=False)
class _Columns:
    """Signals of one joint (N,); None where they were not recorded."""

    t: Array
    q: Array
    theta: Array
    tau: Array | None
    effort: Array | None
    current: Array | None
    starts: tuple[int, ...]

    @classmethod
    def of(cls, whole: ArmRecording, k: int) -> _Columns:
        columns = [None if x is None else x[:, k] for x in (whole.tau, whole.motor_effort, whole.current)]
        tau, effort, current = (None if x is None or not measured(x) else x for x in columns)
        return cls(whole.t, whole.q[:, k], whole.theta[:, k], tau, effort, current, whole.starts)


def _gear(joint: Joint, x: _Columns, law: str) -> tuple[GearFit, _Columns]:
    """Gear ratio, and the signals with it in place of that of the file.

    Raises:
        IdentificationError: the effort of the spring was not recorded, or the joint does not move.
    """
    if x.tau is None:
        raise IdentificationError("gear_ratio: not identifiable, since the effort of the spring was not recorded")
    found = fit_gear_ratio(joint.gear_ratio * x.theta, x.q, x.tau, hardening=law not in _LINES)
    factor = found.ratio[0] / joint.gear_ratio
    if not factor > 0:
        raise IdentificationError(f"gear_ratio: {found.ratio[0]:.4g} and that of the file differ in sign; check signs")
    return found, replace(x, theta=x.theta / factor, effort=None if x.effort is None else factor * x.effort)


def _identify_joint(
    joint: Joint, x: _Columns, options: ElasticOptions, terms: tuple[str, ...]
) -> tuple[SpringFit | None, MotorFit]:
    """Spring, None if it was not to be identified, and motor.

    Raises:
        IdentificationError: they are not identifiable from the data.
    """
    law, current = options.law(joint), x.current if "torque_constant" in terms else None
    if not np.ptp(x.theta) > _REST:
        raise IdentificationError("the motor does not move; its spring and friction stay as in the file")
    if np.array_equal(x.theta, x.q):
        raise IdentificationError("the position of the link was not recorded; its spring and motor stay as in the file")
    if x.effort is None and current is None:
        raise IdentificationError("the effort of the motor is missing or zero throughout, and there is no current")
    motor_fit = partial(
        fit_motor,
        x.t,
        x.theta,
        model=MotorModel(
            tuple(term for term in terms if term in MOTOR_TERMS),
            None if "rotor_inertia" in terms else float(joint.rotor_inertia),
            hardening=_WITHOUT_SENSOR.get(law, False),
        ),
        starts=x.starts,
    )
    spring = None
    if x.tau is None:
        if x.effort is None:
            raise IdentificationError(
                "current and deflection alone leave the unit of effort unknown; record efforts of the spring or motor"
            )
        if law not in _WITHOUT_SENSOR:
            raise IdentificationError(
                f"the effort of the spring was not recorded; only {' and '.join(_WITHOUT_SENSOR)} springs are "
                f"identified without it, this one is {law}"
            )
        motor = motor_fit(deflection=x.theta - x.q, effort=x.effort)
        spring = _spring_of(motor, law)
        tau = spring.spring.load(x.theta - x.q, np.zeros_like(x.q))
    else:
        tau = x.tau
        if law != KEEP:
            switches = {term: term in options.spring_terms for term in SPRING_TERMS}
            try:
                (spring,) = fit_springs(x.t, x.theta, x.q, tau, law, starts=x.starts, points=options.points, **switches)
            except IdentificationError as error:
                raise IdentificationError(str(error).removeprefix("joint 0: ")) from None
        given = {"effort": x.effort} if x.effort is not None else {"current": current}
        motor = motor_fit(tau=tau, gear_ratio=joint.gear_ratio, **given)
    if x.effort is not None and current is not None:
        by_current = motor_fit(tau=tau, current=current, gear_ratio=joint.gear_ratio)
        motor = replace(
            motor,
            torque_constant=by_current.torque_constant,
            parameters=motor.parameters | {"torque_per_current": by_current.parameters["torque_per_current"]},
            undetermined=(*motor.undetermined, *(x for x in by_current.undetermined if x.startswith("torque"))),
        )
    return spring, motor


def _spring_of(motor: MotorFit, law: str) -> SpringFit:
    """The spring that a fit of a motor with deflections found."""
    parameters = {str(name): motor.parameters[name] for name in ("stiffness", "cubic") if name in motor.parameters}
    stiffness = parameters["stiffness"][0]
    if not stiffness > 0:
        raise IdentificationError("motor efforts do not rise with the deflection; check signs and units")
    spring = LinearSpring(stiffness) if law == "linear" else CubicSpring(stiffness, parameters["cubic"][0])
    lines = (
        "damping and hysteresis: the effort of the spring was not recorded; they are part of the motor's friction",
    )
    return SpringFit(spring, law, parameters, (0.0, np.inf), None, motor.residual, motor.relative, motor.samples, lines)

# SPDX-License-Identifier: Apache-2.0
"""Motor feedforward for export: springs, transmissions, gears and friction of a robot as data.

The function computes what :meth:`eom_dynamics.ElasticArm.feedforward` does, in the reduced rotor model: the inverse
dynamics by the robot's program, then deflections by functions of :mod:`.spring_code`, then :func:`motor_equations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..actuators import Actuator
from ..actuators.springs import Spring
from ..arrays import Array
from ..codegen.program import Sizes
from ..elastic.elastic_arm import STIFFNESS_NAMES, Feedforward
from ..elastic.spring_set import SpringSet
from ..exceptions import RobotDescriptionError
from ..robot import Robot
from ..states import EFFORT_NAMES
from .spring_code import SPRING_CODE

FEEDFORWARD = "feedforward"
"""Name of the function."""

MOTOR_NAMES = tuple(name for name in Feedforward._fields if name not in EFFORT_NAMES)
"""Its outputs of motors."""

DEFLECTION = "deflection"
"""Its input of damped springs."""

# Motion of a motor: its name, that of the link, and that of the deflection.
_MOTION = tuple(zip(MOTOR_NAMES[:3], ("q", "qd", "qdd"), ("delta", "deltad", "deltadd"), strict=True))


@dataclass(frozen=True, eq=False)
class ExportedSpring:
    """A spring with the indices of its joints and motors: one joint, or those that it couples."""

    spring: Spring
    joints: tuple[int, ...]
    motors: tuple[int, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the inputs that it takes beside efforts."""
        if self.spring.is_variable:
            return STIFFNESS_NAMES
        return (DEFLECTION,) if self.spring.is_damped else ()


@dataclass(frozen=True, eq=False)
class MotorFeedforward:
    """The function of a robot, with n joints and m motors.

    Attributes:
        name: a C identifier.
        inputs, outputs: names and lengths of the vectors, in order.
        springs: all springs.
        motor_joint: (m,) joint of each motor.
        motor_names: (m,) names of the motors.
        motion_weights, load_weights: (m, m) motor motion and efforts behind the gears from those at the springs;
            identity without a transmission.
        inertia: (m,) rotor inertias, kg m² or kg, on the link side of the gear.
        actuators: (m,) friction and gears.
    """

    name: str
    inputs: Sizes
    outputs: Sizes
    springs: tuple[ExportedSpring, ...]
    motor_joint: tuple[int, ...]
    motor_names: tuple[str, ...]
    motion_weights: Array
    load_weights: Array
    inertia: Array
    actuators: tuple[Actuator, ...]

    @property
    def motor_inputs(self) -> list[str]:
        """Names of the vectors from which motor motion and efforts follow."""
        commands = [name for name in (*STIFFNESS_NAMES, DEFLECTION) if name in self.inputs]
        return [*(link for _, link, _ in _MOTION), *commands, *EFFORT_NAMES]

    @property
    def size(self) -> Sizes:
        """Lengths of all vectors by name."""
        return {**self.inputs, **self.outputs}

    @property
    def templates(self) -> list[str]:
        """Names of the templates of all functions, each after those that it uses."""
        names: dict[str, None] = {}
        for place in self.springs:
            names |= dict.fromkeys((*SPRING_CODE[place.spring.kind].uses, place.spring.kind))
        if not all(actuator.gear.is_lossless for actuator in self.actuators):
            names["gear"] = None
        if not all(actuator.friction.is_none for actuator in self.actuators):
            names["friction"] = None
        return list(names)


def require_feedforward(robot: Robot) -> None:
    """Check that the function of a robot can be exported.

    Raises:
        RobotDescriptionError: the rotor model is complete, or a kind of spring has no code.
    """
    if robot.rotor_model != "reduced":
        raise RobotDescriptionError(
            f"{robot.name}: rotor_model must be reduced for code of {FEEDFORWARD}, is {robot.rotor_model}; change it, "
            "or export other functions"
        )
    for joint in robot.independent_joints:
        if joint.spring.kind not in SPRING_CODE:
            raise RobotDescriptionError(
                f"{joint.name}: elasticity of type {joint.spring.kind} has no code for {FEEDFORWARD}; export other "
                "functions"
            )


def motor_feedforward(robot: Robot, name: str, inputs: Sizes, outputs: Sizes) -> MotorFeedforward:
    """The function of a robot that passes :func:`require_feedforward`.

    Args:
        robot: the robot.
        name: a C identifier.
        inputs, outputs: those of the inverse dynamics, which it calls.
    """
    joints = robot.independent_joints
    group, coupled = robot.coupled_stiffness or ((), None)
    springs = [joint.spring for joint in joints]
    spring_set = SpringSet(robot.joint_names, springs, robot.coupled_stiffness)
    motor_joint = spring_set.motor_joint
    n, m = robot.n, len(motor_joint)
    placed = [
        ExportedSpring(spring, (joint,), tuple(np.flatnonzero(motor_joint == joint).tolist()))
        for joint, spring in enumerate(springs)
        if joint not in group
    ]
    if coupled is not None:
        placed.append(ExportedSpring(coupled, tuple(group), tuple(np.searchsorted(motor_joint, group).tolist())))
    motion, load = np.eye(m), np.eye(m)
    if robot.transmission is not None:
        members, transmission = robot.transmission
        block = np.ix_(*(np.searchsorted(motor_joint, members),) * 2)
        motion[block], load[block] = transmission.inverse, transmission.matrix.T
    commands = dict.fromkeys(STIFFNESS_NAMES, n) if np.any(spring_set.variable) else {}
    state = {DEFLECTION: n} if np.any(spring_set.damped) else {}
    return MotorFeedforward(
        name=name,
        inputs={**inputs, **commands, **state},
        outputs={**outputs, **dict.fromkeys(MOTOR_NAMES, m)},
        springs=tuple(placed),
        motor_joint=tuple(motor_joint.tolist()),
        motor_names=spring_set.motor_names,
        motion_weights=motion,
        load_weights=load,
        inertia=np.asarray(robot.rotor_inertia)[motor_joint],
        actuators=tuple(joints[i].actuator for i in motor_joint),
    )


def motor_equations(feedforward: MotorFeedforward, entry: Callable[[str, int], str]) -> list[str]:
    """Assignments of motor motion and efforts, in the syntax that C and MATLAB have in common.

    Args:
        feedforward: the function.
        entry: function that returns the expression of an entry of a vector: of q, qd, qdd and outputs; and of delta,
            deltad, deltadd and effort, the deflection at each motor and the effort there.
    """
    motors, lines = range(len(feedforward.motor_joint)), []
    for name, link, deflection in _MOTION:
        springs = [f"{entry(link, joint)} + {entry(deflection, i)}" for i, joint in enumerate(feedforward.motor_joint)]
        lines += [f"{entry(name, i)} = {weighted(feedforward.motion_weights[i], springs)};" for i in motors]
    efforts = [entry("effort", i) for i in motors]
    _, velocity, acceleration, effort = MOTOR_NAMES
    for i in motors:
        rotor = f"{number(feedforward.inertia[i])} * {entry(acceleration, i)}"
        lines.append(f"{entry(effort, i)} = {rotor} + {motor_load(feedforward, i, efforts, entry(velocity, i))};")
    return lines


def motor_load(feedforward: MotorFeedforward, motor: int, efforts: Sequence[str], speed: str) -> str:
    """Sum of the efforts of springs, gear loss and friction on a motor, in the syntax of C and MATLAB.

    Args:
        feedforward: the function.
        motor: index of the motor.
        efforts: expressions of the efforts of the springs at all motors.
        speed: expression of the motor's velocity.
    """
    actuator = feedforward.actuators[motor]
    gear, friction = actuator.gear, actuator.friction
    load = weighted(feedforward.load_weights[motor], efforts)
    if not gear.is_lossless:
        load = _call("gear", load, speed, gear.efficiency, gear.smoothing_power)
    if friction.is_none:
        return load
    dry = friction.coulomb, friction.static, friction.stribeck_velocity, friction.smoothing_velocity
    return f"{load} + {_call('friction', speed, friction.viscous, *dry)}"


def number(value: float | Array) -> str:
    """A number with all of its digits."""
    return repr(float(value))


def _call(function: str, *arguments: str | float | Array) -> str:
    return f"eom_{function}({', '.join(x if isinstance(x, str) else number(x) for x in arguments)})"


def weighted(weights: Array, expressions: Sequence[str]) -> str:
    """Weighted sum of sums; zeros are left out."""
    terms = [(float(w), x) for w, x in zip(weights, expressions, strict=True) if w]
    if len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1]
    return " + ".join(f"{number(w)} * ({x})" for w, x in terms)

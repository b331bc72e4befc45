# SPDX-License-Identifier: Apache-2.0
"""A robot as a C++ type: sizes, names, constants, and calls of its functions in C."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from ..actuators.springs import DampedSpring
from ..arrays import Array
from ..codegen.emit_c import filled
from ..elastic import LimitCheck
from ..elastic.bounds import bounds
from ..robot import Robot
from ..states import EFFORT_NAMES, STATE_NAMES
from .c_text import call, wrapped
from .motors import MOTOR_NAMES, MotorFeedforward
from .plant import EFFORTS, PLANT, SPRING_EFFORTS
from .precision import in_single_precision
from .project import Project
from .stored_values import arm_of
from .templates import template

# Fields of SpringEfforts for the outputs of the function of springs.
_SPRING_FIELDS = dict(zip(EFFORTS, ("tau", "taud", "k", "kd"), strict=True))

# Quantities with limits, in the order of the template.
_LIMITED = ("q", "qd", "qdd", "qddd", "tau", "taud", "motor_velocity", "motor_effort")


def type_name(project: Project) -> str:
    """Name of the type: that of the robot in capitalised words, which no keyword has.

    Names in capitals alone, which macros have, keep only those that words begin with, and names of types in the
    template get a suffix.
    """
    parts = project.name.split("_")
    if project.name.isupper():
        parts = [part.capitalize() for part in parts]
    name = "".join(part[:1].upper() + part[1:] for part in parts)
    return f"{name}Robot" if name in _member_types() else name


@cache
def _member_types() -> frozenset[str]:
    """Names that types and template parameters have in the templates of the type."""
    texts = map(template, ("cpp/robot.hpp.in", "cpp/robot_constants.hpp.in", "cpp/robot_plant.hpp.in"))
    return frozenset(name for text in texts for name in re.findall(r"\b(?:class|struct|using) (\w+)", text))


def comment(project: Project) -> str:
    """Notice of a project as a C++ comment, which a backslash at the end of a line would continue."""
    lines = (f"// {line}".rstrip() for line in project.notice())
    return "\n".join(f"{line} //" if line.endswith("\\") else line for line in lines)


def robot_header(project: Project, feedforward: MotorFeedforward) -> str:
    """Text of the header."""
    robot = project.robot
    inverse_dynamics = project.programs["inverse_dynamics"]
    nominal = np.zeros(robot.n)
    for place in feedforward.springs:
        if place.spring.is_variable:
            nominal[list(place.joints)] = place.spring.rest_stiffness
    text = filled(
        template("cpp/robot.hpp.in"),
        notice=comment(project),
        guard=f"EOM_ROBOTS_{project.name.upper()}_HPP",
        library=project.library,
        type=type_name(project),
        joints=str(robot.n),
        motors=str(len(feedforward.motor_names)),
        tools=str(len(robot.tools)),
        name=literal(robot.name),
        joint_names=_listed(map(literal, robot.joint_names)),
        motor_names=_listed(map(literal, feedforward.motor_names)),
        motor_joint=_listed(map(str, feedforward.motor_joint)),
        commanded=_boolean(any(place.spring.is_variable for place in feedforward.springs)),
        damped=_boolean(any(place.spring.is_damped for place in feedforward.springs)),
        nominal=numbers(nominal),
        constants=_constants(robot, feedforward),
        functions=_plant(project),
        has_plant=_boolean(bool(project.plant)),
        inverse_dynamics=_call(inverse_dynamics.name, inverse_dynamics.inputs, inverse_dynamics.outputs),
        feedforward=_call(feedforward.name, feedforward.inputs, feedforward.outputs),
    )
    return in_single_precision(text) if project.precision == "single" else text


def _constants(robot: Robot, feedforward: MotorFeedforward) -> str:
    """Limits, drives, dampers and transmission."""
    arm = arm_of(robot)
    check, n, m = LimitCheck(arm), robot.n, len(feedforward.motor_names)
    names = (*STATE_NAMES, *EFFORT_NAMES, *MOTOR_NAMES)
    ends = np.cumsum([m if name in MOTOR_NAMES else n for name in names])[:-1]
    lower, upper = (dict(zip(names, np.split(x, ends), strict=True)) for x in (check.lower, check.upper))
    motor = arm.motor
    most = np.fmin(motor.torque_limit, motor.current_limit * np.nan_to_num(motor.torque_constant, nan=np.inf))
    back_emf = np.where(np.isnan(motor.back_emf_constant), motor.torque_constant, motor.back_emf_constant)
    drives = np.broadcast_arrays(
        arm.gear_ratio, motor.torque_constant, motor.resistance, back_emf, most, motor.voltage_limit
    )
    dampers = np.zeros((2, n))
    for place in feedforward.springs:
        if isinstance(place.spring, DampedSpring):
            dampers[:, place.joints[0]] = place.spring.constant, place.spring.damping
    return filled(
        template("cpp/robot_constants.hpp.in"),
        rigid=_listed(map(_boolean, arm.rigid)),
        lower=_fields(lower),
        upper=_fields(upper),
        largest_effort=numbers(bounds(arm).largest["effort"]),
        drives=_listed("{" + ", ".join(map(_number, row)) + "}" for row in np.transpose(drives).tolist()),
        damped_stiffness=numbers(dampers[0]),
        damping=numbers(dampers[1]),
        transmission=_boolean(robot.transmission is not None),
        joint_sides=numbers(np.linalg.inv(feedforward.motion_weights)),
        load_weights=numbers(feedforward.load_weights),
    )


def _fields(rows: Mapping[str, Array]) -> str:
    return "\n".join(f"        {{{numbers(rows[name])}}}, // {name}" for name in _LIMITED)


def _plant(project: Project) -> str:
    """Functions of springs and plant, if the project has them."""
    if not project.plant:
        return ""
    springs, plant = project.plant[SPRING_EFFORTS], project.plant[PLANT]
    efforts = [f"y.{_SPRING_FIELDS[name]}.data()" for name in springs.outputs]
    accelerations = ["tau_m.data()" if name == "tau_m" else f"x.{name}.data()" for name in plant.inputs]
    return filled(
        template("cpp/robot_plant.hpp.in"),
        spring_efforts=call(springs.name, [*(f"x.{name}.data()" for name in springs.inputs), *efforts], indent=8) + ";",
        rest="" if "k" in springs.inputs else "        y.k = {};\n        y.kd = {};\n",
        mass_matrix=project.programs["mass_matrix"].name,
        plant=call(plant.name, [*accelerations, "qdd.data()", "thetadd.data()"], indent=8) + ";",
    )


def literal(name: str) -> str:
    """A name as a string literal in ASCII: other bytes of its UTF-8 as octal numbers, which have a fixed length."""
    plain = {*range(32, 127)} - {ord(x) for x in '"\\?'}
    return '"' + "".join(chr(x) if x in plain else f"\\{x:03o}" for x in name.encode()) + '"'


def numbers(values: ArrayLike) -> str:
    """Numbers as the inside of a braced list; infinity and NaN by names of the template."""
    return _listed(_number(float(x)) for x in np.ravel(values))


def _number(value: float) -> str:
    if np.isnan(value):
        return "nan"
    return ("-" if value < 0 else "") + "infinity" if np.isinf(value) else repr(value)


def _listed(items: Iterable[str]) -> str:
    return wrapped(", ".join(x.replace(" ", "\N{NO-BREAK SPACE}") for x in items), " " * 8).replace(
        "\N{NO-BREAK SPACE}", " "
    )


def _boolean(value: bool | np.bool_) -> str:
    return "true" if value else "false"


def _call(function: str, inputs: Iterable[str], outputs: Iterable[str]) -> str:
    arguments = [*(f"x.{name}.data()" for name in inputs), *(f"y.{name}.data()" for name in outputs)]
    return call(function, arguments, indent=8) + ";"

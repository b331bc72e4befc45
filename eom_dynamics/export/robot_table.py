# SPDX-License-Identifier: Apache-2.0
"""Robot table in C++ (names, numbers, kernels) for a separately compiled loop: eom/robot_table.hpp."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.c_functions import filled
from ..codegen.programs import WITH_PAYLOAD
from ..control.online_trajectory import RAMP, inertia_and_frequency, limits_of_joints, smoothing_for
from ..control.robot_table import limits_of, matrices_of
from ..robot.model import DRIVE_INTERPOLATIONS
from .c_project import wrapped
from .functions import FEEDFORWARD, OBSERVER, OF_DRIVES, ON_BASE, PLANT, links_of
from .project import Project
from .templates import template

# Functions with the same name in eom::Kernels.
_KERNELS = (
    *(FEEDFORWARD, FEEDFORWARD + WITH_PAYLOAD, ON_BASE, ON_BASE + WITH_PAYLOAD, "motors", "drive", "filtered"),
    *("presliding", *OF_DRIVES, "tool_kinematics", *OBSERVER, PLANT),
)


def robot_table(project: Project) -> str:
    """Source of the table of a robot's functions, and of the interface of its library."""
    robot, side = project.robot, project.side
    names = {"joint": robot.joint_names, "motor": side.motor_names, "tool": [tool.name for tool in robot.tools]}
    lines = [_array("const char *", f"{kind}_names", map(literal, listed)) for kind, listed in names.items()]
    lines.append(_array("std::size_t", "motor_joint", map(str, side.motor_joint)))
    lines.append(_array("bool", "rigid", map(_boolean, side.rigid)))
    members = [f"transmission = {_boolean(robot.transmission is not None)};"]
    for name, value in _scalars(project).items():
        members.append(f"{name} = {_number(value)};")
    for name, values in _vectors(project).items():
        array = name.replace(".", "_")
        lines.append(_array("double", array, map(_number, np.ravel(values).tolist())))
        members.append(f"{name} = {array};")
    for kernel, name in _kernels(project).items():
        function = project.functions[name]
        sides = {"inputs": function.inputs, "outputs": function.outputs}
        for end, listed in sides.items():
            lines.append(_array("Vector", f"{kernel}_{end}", (f"Vector::{vector}" for vector in listed)))
            lines.append(f"static_assert({kernel}_{end}.size() <= eom::MOST_VECTORS);")
        arguments = [f"{end[0]}[{k}]" for end, listed in sides.items() for k in range(len(listed))]
        call = f"[](const double *const *i, double *const *o) {{ {function.name}({', '.join(arguments)}); }}"
        members.append(f"kernels.{kernel} = {{{call}, {kernel}_inputs, {kernel}_outputs}};")
    return filled(
        template("robot_table.cpp.in"),
        notice=cpp_comment(project),
        library=project.library,
        constants="\n".join(lines),
        members="\n".join(f"    x.{member}" for member in members),
        name=literal(robot.name),
        commanded=_boolean(side.variable.any()),
    )


def _kernels(project: Project) -> dict[str, str]:
    """Functions of a project by kernel name."""
    renamed = {links_of(project.robot): "inverse_dynamics", "efforts_on_base": "inverse_dynamics_on_base"}
    renamed |= {name + WITH_PAYLOAD: kernel + WITH_PAYLOAD for name, kernel in renamed.items()}
    kernels = {kernel: name for name, kernel in renamed.items()} | {name: name for name in _KERNELS}
    return {kernel: name for kernel, name in kernels.items() if name in project.functions}


def _scalars(project: Project) -> Mapping[str, float]:
    robot = project.robot
    _, frequency = inertia_and_frequency(project.arm)
    return {
        "command_period": robot.command_period,
        "mean_age": DRIVE_INTERPOLATIONS[robot.drive_interpolation],
        "drive_delay": robot.drive_delay,
        "drive_feedback_delay": robot.drive_feedback_delay.position,
        "ramp": 1 / max(frequency, 1 / RAMP),
        "smoothing": smoothing_for(frequency),
    }


def _vectors(project: Project) -> Mapping[str, ArrayLike]:
    arm = project.arm
    inertia, _ = inertia_and_frequency(arm)
    return {
        "nominal_stiffness": project.side.nominal_stiffness,
        **limits_of(arm),
        **matrices_of(arm),
        "motion": np.stack(limits_of_joints(arm), axis=1),
        "inertia": inertia,
    }


def _array(kind: str, name: str, items: Iterable[str]) -> str:
    """A constant array."""
    entries = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in items]
    text = f"constexpr std::array<{kind}, {len(entries)}> {name}{{{', '.join(entries)}}};"
    return wrapped(text, "    ").replace("\N{NO-BREAK SPACE}", " ")


def cpp_comment(project: Project) -> str:
    """Notice of a project as a C++ comment, safe against backslashes at line ends."""
    return re.sub(r"\\$", r"\\ //", project.notice_as("// "), flags=re.MULTILINE)


def literal(name: str) -> str:
    """ASCII string literal of a name: other UTF-8 bytes become octal escapes, which have a fixed length."""
    plain = {*range(32, 127)} - {ord(x) for x in '"\\?'}
    return '"' + "".join(chr(x) if x in plain else f"\\{x:03o}" for x in name.encode()) + '"'


def allowed_in_cpp(name: str) -> bool:
    """True for a name that is a valid UTF-8 string in C++: without NUL and unpaired surrogates."""
    return not any(x == "\0" or "\ud800" <= x <= "\udfff" for x in name)


def _number(value: float) -> str:
    if np.isinf(value):
        return ("-" if value < 0 else "") + "infinity"
    return repr(float(value))


def _boolean(value: bool | np.bool_) -> str:
    return "true" if value else "false"

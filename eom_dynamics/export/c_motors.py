# SPDX-License-Identifier: Apache-2.0
"""Header of the motor side in C and CUDA: functions of the springs, and ``eom_motors``, which calls them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..codegen.emit_c import filled
from .c_text import comment, prototype, wrapped
from .motors import MOTOR_NAMES, ExportedSpring, MotorFeedforward, motor_equations, number
from .project import Project, plain
from .spring_code import SPRING_CODE
from .templates import template

# Relative step of a root after which, by third order, only rounding is left of the error.
_LAST_STEP = {"double": "1e-7", "single": "1e-3"}

# Vectors of deflections, which C has as members of one structure.
_MEMBERS = ("delta", "deltad", "deltadd", "effort")


class Dialect(NamedTuple):
    """What differs between languages.

    Attributes:
        inline: specifiers of functions.
        header: end of the name of the header.
    """

    inline: str
    header: str


C = Dialect("static inline", "_motors.h")
CUDA = Dialect("static __device__ inline", "_motors.cuh")


def motors_header(project: Project, feedforward: MotorFeedforward, dialect: Dialect) -> str:
    """Text of the header."""
    arrays, calls = [], []
    for k, place in enumerate(feedforward.springs):
        declared, call = _spring(place, k)
        arrays += declared
        joints = ", ".join(plain(project.robot.joint_names[joint]) for joint in place.joints)
        calls += [f"/* {joints} */", call]
    body = [
        *arrays,
        f"eom_deflection s[{len(feedforward.motor_joint)}];",
        *calls,
        *motor_equations(feedforward, _entry),
    ]
    return filled(
        template("motors.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_MOTORS_H",
        inline=dialect.inline,
        functions=filled(
            "\n".join(template(f"motors/{name}.h.in") for name in feedforward.templates),
            last_step=_LAST_STEP[project.precision],
        ),
        prototype=_prototype(feedforward),
        body="\n".join(wrapped(f"    {line}", "        ") for line in body),
    )


def _prototype(feedforward: MotorFeedforward) -> str:
    size = feedforward.size
    inputs = [f"const double {name}[{size[name]}]" for name in feedforward.motor_inputs]
    return prototype(
        "eom_motors", [*inputs, *(f"double {name}[{size[name]}]" for name in MOTOR_NAMES)], returns="EOM_INLINE void"
    )


def spring_arguments(place: ExportedSpring, k: int) -> tuple[list[str], list[str]]:
    """Declarations of constant arrays, and the constants of the k-th spring as arguments."""
    arrays: list[str] = []
    arguments: list[str] = []
    for j, constant in enumerate(SPRING_CODE[place.spring.kind].constants(place.spring)):
        if np.ndim(constant) == 0:
            arguments.append(number(constant))
            continue
        if not arrays:
            arguments.append(str(len(constant)))
        arguments.append(f"constants_{k}_{j}")
        values = ", ".join(map(repr, np.ravel(constant).tolist()))
        arrays.append(f"static const double {arguments[-1]}[{np.size(constant)}] = {{{values}}};")
    return arrays, arguments


def _spring(place: ExportedSpring, k: int) -> tuple[list[str], str]:
    """Declarations of constant arrays, and the call of the function of the k-th spring."""
    arrays, arguments = spring_arguments(place, k)
    function = f"eom_{place.spring.kind}"
    if len(place.joints) > 1:
        count, *constants = arguments
        places = (("joints", place.joints), ("motors", place.motors))
        arrays += [
            f"static const int {name}_{k}[{count}] = {{{', '.join(map(str, indices))}}};" for name, indices in places
        ]
        arguments = [count, f"joints_{k}", f"motors_{k}", *constants, "tau", "taud", "taudd", "s"]
        return arrays, f"{function}({', '.join(arguments)});"
    inputs = [_entry(name, place.joints[0]) for name in ("tau", "taud", "taudd", *place.reads)]
    return arrays, f"{function}({', '.join([*inputs, *arguments, f'&s[{place.motors[0]}]'])});"


def _entry(name: str, index: int) -> str:
    return f"s[{index}].{name}" if name in _MEMBERS else f"{name}[{index}]"

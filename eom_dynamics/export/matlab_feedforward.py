# SPDX-License-Identifier: Apache-2.0
"""Motor feedforward in MATLAB: after the inverse dynamics, with the functions of the springs in the same file."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..elastic.elastic_arm import STIFFNESS_NAMES
from ..states import EFFORT_NAMES
from .motors import MOTOR_NAMES, ExportedSpring, MotorFeedforward, motor_equations, number
from .project import Project
from .spring_code import SPRING_CODE
from .templates import template

_DEFLECTIONS = ("delta", "deltad", "deltadd", "effort")
_WIDTH = 120


def feedforward_defaults(feedforward: MotorFeedforward) -> dict[str, str]:
    """Expressions of arguments that may be omitted: nominal stiffness that does not change."""
    if STIFFNESS_NAMES[0] not in feedforward.inputs:
        return {}
    n = feedforward.inputs[STIFFNESS_NAMES[0]]
    nominal = np.zeros((n, 1))
    for place in feedforward.springs:
        if place.spring.is_variable:
            nominal[list(place.joints)] = place.spring.rest_stiffness
    return dict.fromkeys(STIFFNESS_NAMES, f"zeros({n}, 1)") | {STIFFNESS_NAMES[0]: _matrix(nominal)}


def feedforward_body(project: Project, feedforward: MotorFeedforward) -> list[str]:
    """Statements from checked arguments and the number of states N to outputs."""
    program = project.programs["inverse_dynamics"]
    m = len(feedforward.motor_joint)
    return [
        "if size(q, 2) == 1, q = repmat(q, 1, N); end",
        f"[{', '.join(program.outputs)}] = {program.name}({', '.join(program.inputs)});",
        *(f"{name} = zeros({m}, N);" for name in (*_DEFLECTIONS, *MOTOR_NAMES)),
        *(_continued(_spring(place)) for place in feedforward.springs),
        *(_continued(line) for line in motor_equations(feedforward, _entry)),
    ]


def feedforward_functions(feedforward: MotorFeedforward) -> str:
    """Functions of springs, gears and friction, which follow that of the robot."""
    return "\n".join(template(f"motors/{name}.m.in") for name in feedforward.templates)


def _spring(place: ExportedSpring) -> str:
    results = ", ".join(_rows(name, place.motors) for name in _DEFLECTIONS)
    constants = [_matrix(constant) for constant in SPRING_CODE[place.spring.kind].constants(place.spring)]
    arguments = [*(_rows(name, place.joints) for name in (*EFFORT_NAMES, *place.reads)), *constants]
    return f"[{results}] = eom_{place.spring.kind}({', '.join(arguments)});"


def _rows(name: str, indices: Sequence[int]) -> str:
    rows = " ".join(str(index + 1) for index in indices)
    return f"{name}([{rows}], :)" if len(indices) > 1 else f"{name}({rows}, :)"


def _entry(name: str, index: int) -> str:
    return _rows(name, (index,))


def _matrix(value: Array) -> str:
    """A number, or a row, or a matrix."""
    if np.ndim(value) == 0:
        return number(value)
    return f"[{'; '.join(' '.join(map(repr, row)) for row in np.atleast_2d(value).tolist())}]"


def _continued(line: str) -> str:
    """A statement wrapped by continuation dots."""
    return " ...\n    ".join(textwrap.wrap(line, _WIDTH - 8, break_long_words=False, break_on_hyphens=False))

# SPDX-License-Identifier: Apache-2.0
"""Motor feedforward in C: for one state and for batches, after the inverse dynamics."""

from __future__ import annotations

from ..codegen.program import Program
from .c_motors import C, motors_header
from .c_text import batch_prototype, call, comment, state_prototype
from .motors import MOTOR_NAMES, MotorFeedforward
from .project import Project


def feedforward_files(project: Project, feedforward: MotorFeedforward) -> dict[str, str]:
    """Texts of its files by name."""
    program = project.programs["inverse_dynamics"]
    return {
        f"{project.library}{C.header}": motors_header(project, feedforward, C),
        f"{feedforward.name}.c": _source(project, state_prototype(feedforward), _state(feedforward, program)),
        f"{feedforward.name}_batch.c": _source(project, batch_prototype(feedforward), _batch(feedforward, program)),
    }


def _source(project: Project, prototype: str, body: list[str]) -> str:
    includes = [f'#include "{project.library}.h"', f'#include "{project.library}{C.header}"']
    return "\n".join([comment(project.notice()), *includes, "", prototype, "{", *body, "}\n"])


def _state(feedforward: MotorFeedforward, program: Program) -> list[str]:
    return [
        call(program.name, [*program.inputs, *program.outputs], indent=4) + ";",
        call("eom_motors", [*feedforward.motor_inputs, *MOTOR_NAMES], indent=4) + ";",
    ]


def _batch(feedforward: MotorFeedforward, program: Program) -> list[str]:
    size = feedforward.size
    places = [f"{name} + i * {size[name]}" for name in (*feedforward.motor_inputs, *MOTOR_NAMES)]
    return [
        call(f"{program.name}_batch", ["count", *program.inputs, *program.outputs], indent=4) + ";",
        "    for (size_t i = 0; i < count; ++i)",
        call("eom_motors", places, indent=8) + ";",
    ]

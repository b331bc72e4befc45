# SPDX-License-Identifier: Apache-2.0
"""Motor feedforward in CUDA: the kernel of the inverse dynamics, then one of the motor side, in the same stream."""

from __future__ import annotations

from ..codegen.emit_c import filled
from .c_motors import CUDA, motors_header
from .c_text import call, comment, wrapped
from .cuda_text import entry, host_prototype, kernel_prototype
from .motors import MOTOR_NAMES, MotorFeedforward
from .project import Project
from .templates import template


def feedforward_files(project: Project, feedforward: MotorFeedforward) -> dict[str, str]:
    """Texts of its files by name."""
    return {
        f"{project.library}{CUDA.header}": motors_header(project, feedforward, CUDA),
        f"{feedforward.name}.cu": _source(project, feedforward),
    }


def _source(project: Project, feedforward: MotorFeedforward) -> str:
    program, size = project.programs["inverse_dynamics"], feedforward.size
    inputs, outputs = feedforward.motor_inputs, list(MOTOR_NAMES)
    # A thread copies its state, of which entries lie far apart, to arrays that the compiler keeps in registers.
    body = [
        f"const double own_{name}[] = {{{', '.join(entry(name, k) for k in range(size[name]))}}};" for name in inputs
    ]
    body += [f"double own_{name}[{size[name]}];" for name in outputs]
    body.append(f"eom_motors({', '.join(f'own_{name}' for name in (*inputs, *outputs))});")
    body += [f"{entry(name, k)} = own_{name}[{k}];" for name in outputs for k in range(size[name])]
    return filled(
        template("feedforward.cu.in"),
        notice=comment(project.notice()),
        library=project.library,
        kernel=kernel_prototype(inputs, outputs),
        body="\n".join(wrapped(f"        {line}", "            ") for line in body),
        function=host_prototype(feedforward),
        links=call(
            f"const cudaError_t error = {program.name}_cuda",
            ["count", *program.inputs, *program.outputs, "stream"],
            indent=4,
        ),
        motors=call("kernel<<<blocks, THREADS, 0, stream>>>", ["count", *inputs, *outputs], indent=4),
    )

# SPDX-License-Identifier: Apache-2.0
"""Export as a CUDA library for batches: kernels, a header for the host, CMake files, and a test with timing.

Entry j of state i of a vector is at ``j * count + i``, so that the threads of a warp, one for each state, access
consecutive numbers. CUDA's sines and cosines are accurate to two ulp for any angle.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.c_functions import REALS, filled, functions_source
from ..codegen.program import Program
from ..codegen.straight_line import straight_line
from .c_project import call, checks_head, comment, constants, expressions, function_comment, sincos_calls
from .functions import Function, Steps
from .project import Project, template
from .stored_values import StoredValues


def cuda_files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the library by name."""
    library = f"{project.library}_cuda"
    texts = {
        f"{library}.h": _header(project),
        f"test_{library}.cu": filled(template("test_dynamics.cu.in"), **checks_head(project, stored, _check)),
        "CMakeLists.txt": filled(
            template("cuda_CMakeLists.txt.in"),
            notice=project.notice_as("# "),
            library=library,
            sources="\n".join(f"  {function.name}.cu" for function in project.functions.values()),
        ),
    }
    for function in project.functions.values():
        texts[f"{function.name}.cu"] = (
            _steps(project, function) if isinstance(function, Steps) else _source(project, function)
        )
    return texts


def _header(project: Project) -> str:
    declarations = [
        f"{comment(function_comment(project, name))}\n{_host_prototype(function)};\n"
        for name, function in project.functions.items()
    ]
    return filled(
        template("dynamics_cuda.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_CUDA_H",
        constants=constants(project),
        declarations="\n".join(declarations),
    )


def _source(project: Project, program: Program) -> str:
    inputs, outputs = (
        [x.replace("[0 * count + i]", "[i]") for x in expressions(vectors, "{name}[{index} * count + i]")]
        for vectors in (program.inputs, program.outputs)
    )
    syntax = REALS["device"].syntax
    lines, results = straight_line(program, inputs, syntax)
    pointers = [f"const double *__restrict__ {name}" for name in program.inputs]
    pointers += [f"double *__restrict__ {name}" for name in program.outputs]
    body = [
        *sincos_calls(program, inputs, "sincos", syntax),
        *(line.strip() for line in lines),
        *(f"{output} = {result};" for output, result in zip(outputs, results, strict=True)),
    ]
    return filled(
        template("dynamics.cu.in"),
        notice=comment(project.notice()),
        library=project.library,
        functions=functions_source(program, "device"),
        kernel=call("__global__ void __launch_bounds__(THREADS) kernel", ["size_t count", *pointers]),
        body="\n".join(f"        {line}" for line in body),
        function=_host_prototype(program),
        arguments=", ".join(["count", *program.inputs, *program.outputs]),
    )


def _steps(project: Project, function: Steps) -> str:
    """Function that launches the kernels of its programs in the same stream."""
    lines = ["    cudaError_t error = cudaSuccess;"]
    for step in function.programs:
        arguments = ["count", *step.inputs, *step.outputs, "stream"]
        lines += ["    if (error == cudaSuccess)", call(f"error = {step.name}_cuda", arguments, indent=8) + ";"]
    head = [comment(project.notice()), f'#include "{project.library}_cuda.h"', ""]
    return "\n".join([*head, f'extern "C" {_host_prototype(function)}', "{", *lines, "    return error;", "}\n"])


def _check(function: Function, stored: Mapping[str, str]) -> str:
    arguments = [f"{name}.data" for name in (*function.inputs, *function.outputs)]
    return "\n".join(
        [
            f"static void check_{function.name}()",
            "{",
            *(f"    const Vector {name}(stored_{stored[name]}[0], {size});" for name, size in function.inputs.items()),
            *(f"    const Vector {name}({size});" for name, size in function.outputs.items()),
            f"    const auto run = [&] {{ require({function.name}_cuda(COUNT, {', '.join(arguments)}, 0)); }};",
            f'    measure("{function.name}", run);',
            *(
                f'    compare("{function.name}", "{name}", {name}.values().data(), 1, COUNT, '
                f"stored_{stored[name]}[0], {size});"
                for name, size in function.outputs.items()
            ),
            "}\n",
        ]
    )


def _host_prototype(function: Function) -> str:
    """Prototype of the function that launches a kernel, without semicolon."""
    inputs = [f"const double *{name}" for name in function.inputs]
    outputs = [f"double *{name}" for name in function.outputs]
    return call(f"cudaError_t {function.name}_cuda", ["size_t count", *inputs, *outputs, "cudaStream_t stream"])

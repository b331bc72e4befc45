# SPDX-License-Identifier: Apache-2.0
"""Export as a CUDA library for batches: kernels, a header for the host, CMake files, and a test with timing.

Entry j of state i of a vector is at ``j * count + i``, so that the threads of a warp, one for each state, access
consecutive numbers. Sines and cosines are CUDA's, which are accurate to two ulp for any angle.
"""

from __future__ import annotations

from ..codegen.emit_c import filled
from ..codegen.program import Program
from ..codegen.straight_line import straight_line
from .c_text import checks_head, comment, constants, function_comment, sincos_calls, sincos_names
from .cuda_feedforward import feedforward_files
from .cuda_text import entry, host_prototype, kernel_prototype
from .project import Function, Project
from .stored_values import StoredValues
from .templates import template


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the library by name."""
    library = f"{project.library}_cuda"
    texts = {
        f"{library}.h": _header(project),
        f"test_{library}.cu": _test(project, stored),
        "CMakeLists.txt": _cmake(project),
    }
    for program in project.programs.values():
        texts[f"{program.name}.cu"] = _source(project, program)
    if project.feedforward is not None:
        texts |= feedforward_files(project, project.feedforward)
    return {name: text.encode("ascii") for name, text in texts.items()}


def _header(project: Project) -> str:
    declarations = []
    for name, function in project.functions.items():
        declarations.append(comment(function_comment(project, name)))
        declarations.append(host_prototype(function) + ";\n")
    return filled(
        template("dynamics_cuda.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_CUDA_H",
        constants=constants(project),
        declarations="\n".join(declarations),
    )


def _source(project: Project, program: Program) -> str:
    inputs = [entry(name, k) for name, size in program.inputs.items() for k in range(size)]
    outputs = [entry(name, k) for name, size in program.outputs.items() for k in range(size)]
    lines, results = straight_line(program, inputs, sincos_names(program), define="const double {name} = {value};")
    body = [
        *sincos_calls(program, inputs, "sincos"),
        *lines,
        *(f"{output} = {result};" for output, result in zip(outputs, results, strict=True)),
    ]
    return filled(
        template("dynamics.cu.in"),
        notice=comment(project.notice()),
        library=project.library,
        kernel=kernel_prototype(list(program.inputs), list(program.outputs)),
        body="\n".join(f"        {line}" for line in body),
        function=host_prototype(program),
        arguments=", ".join(["count", *program.inputs, *program.outputs]),
    )


def _test(project: Project, stored: StoredValues) -> str:
    return filled(
        template("test_dynamics.cu.in"),
        **checks_head(project.functions.values(), project, stored),
        checks="\n".join(_check(function) for function in project.functions.values()),
    )


def _check(function: Function) -> str:
    arguments = [f"{name}.data" for name in (*function.inputs, *function.outputs)]
    return "\n".join(
        [
            f"static void check_{function.name}()",
            "{",
            *(f"    const Vector {name}(stored_{name}[0], {size});" for name, size in function.inputs.items()),
            *(f"    const Vector {name}({size});" for name, size in function.outputs.items()),
            f"    const auto run = [&] {{ require({function.name}_cuda(COUNT, {', '.join(arguments)}, 0)); }};",
            f'    measure("{function.name}", run);',
            *(
                f'    compare("{function.name}", "{name}", {name}, stored_{name}[0], {size});'
                for name, size in function.outputs.items()
            ),
            "}\n",
        ]
    )


def _cmake(project: Project) -> str:
    return filled(
        template("cuda_CMakeLists.txt.in"),
        notice="\n".join(f"# {line}".rstrip() for line in project.notice()),
        library=f"{project.library}_cuda",
        sources="\n".join(f"  {function.name}.cu" for function in project.functions.values()),
    )

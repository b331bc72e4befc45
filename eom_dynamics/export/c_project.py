# SPDX-License-Identifier: Apache-2.0
"""Export as a standalone C99 library: functions for one state and for batches, a header, CMake files and a test."""

from __future__ import annotations

from ..codegen.emit_c import batch_source, filled, scalar_sincos
from ..codegen.program import Program
from ..codegen.straight_line import angles, straight_line, used_inputs
from .c_text import checks_head, comment, constants, entries, function_comment, prototype, sincos_calls, sincos_names
from .project import Project
from .stored_values import StoredValues
from .templates import template


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the library by name."""
    library = project.library
    texts = {
        f"{library}.h": _header(project),
        f"{library}_sincos.h": _sincos_header(project),
        f"test_{library}.c": _test(project, stored),
        "CMakeLists.txt": _cmake(project),
    }
    for program in project.programs.values():
        texts[f"{program.name}.c"] = _state_source(project, program)
        texts[f"{program.name}_batch.c"] = _batch_source(project, program)
    return {name: text.encode("ascii") for name, text in texts.items()}


def _header(project: Project) -> str:
    declarations = []
    for function, program in project.programs.items():
        declarations += [
            comment(function_comment(project, function)),
            _state_prototype(program) + ";\n",
            f"/* {program.name} for count states. */",
            _batch_prototype(program) + ";\n",
        ]
    return filled(
        template("dynamics.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_H",
        constants=constants(project),
        joints=f"{project.name.upper()}_JOINTS",
        declarations="\n".join(declarations),
    )


def _sincos_header(project: Project) -> str:
    return filled(
        template("dynamics_sincos.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_SINCOS_H",
        sincos=scalar_sincos(),
    )


def _state_source(project: Project, program: Program) -> str:
    inputs = entries(program, "{name}[{index}]")
    lines, results = straight_line(program, inputs, sincos_names(program), define="    const double {name} = {value};")
    outputs = [f"{name}[{k}]" for name, size in program.outputs.items() for k in range(size)]
    return "\n".join(
        [
            comment(project.notice()),
            f'#include "{project.library}.h"',
            *_sincos_include(project, program),
            _state_prototype(program),
            "{",
            *(f"    (void){name};" for name in _unused(program)),
            *(f"    {line}" for line in sincos_calls(program, inputs, "eom_sincos_any")),
            *lines,
            *(f"    {output} = {result};" for output, result in zip(outputs, results, strict=True)),
            "}\n",
        ]
    )


def _batch_source(project: Project, program: Program) -> str:
    inputs, outputs = list(program.inputs), list(program.outputs)
    sizes = [str(size) for size in program.inputs.values()]
    one_state = [f"{name} + i * {size}" for name, size in {**program.inputs, **program.outputs}.items()]
    return "\n".join(
        [
            comment(project.notice()),
            f'#include "{project.library}.h"',
            "",
            "/* With GCC and Clang, over the vector lanes of the processor. */",
            "#if defined(__GNUC__)",
            "#include <stdint.h>",
            *_sincos_include(project, program),
            batch_source(program, "static void eom_batch"),
            _batch_prototype(program),
            "{",
            f"    const double *const in[] = {{{', '.join(inputs)}}};",
            f"    static const size_t stride[] = {{{', '.join(sizes)}}};",
            f"    double *const out[] = {{{', '.join(outputs)}}};",
            "    eom_batch(count, in, stride, out);",
            "}",
            "#else",
            _batch_prototype(program),
            "{",
            "    for (size_t i = 0; i < count; ++i)",
            f"        {program.name}({', '.join(one_state)});",
            "}",
            "#endif\n",
        ]
    )


def _sincos_include(project: Project, program: Program) -> list[str]:
    # Compilers warn about static functions that are not used.
    return [f'#include "{project.library}_sincos.h"', ""] if angles(program) else []


def _test(project: Project, stored: StoredValues) -> str:
    return filled(
        template("test_dynamics.c.in"),
        **checks_head(project, stored),
        checks="\n".join(_check(program) for program in project.programs.values()),
    )


def _check(program: Program) -> str:
    arrays = {**program.inputs, **program.outputs}
    declared = [f"    static double {name}[COUNT][{size}];" for name, size in arrays.items()]
    copied = [f"        memcpy({name}[i], stored_{name}[i % STATES], sizeof {name}[i]);" for name in program.inputs]
    rows, starts = (", ".join(f"{name}{index}" for name in arrays) for index in ("[i]", "[0]"))
    one, many = (
        [
            f'    compare("{program.name}{suffix}", "{name}", {name}[0], stored_{name}[0], {size});'
            for name, size in program.outputs.items()
        ]
        for suffix in ("", "_batch")
    )
    return "\n".join(
        [
            f"static void check_{program.name}(void)",
            "{",
            *declared,
            "    for (size_t i = 0; i < COUNT; ++i) {",
            *copied,
            f"        {program.name}({rows});",
            "    }",
            *one,
            *(f"    clear({name}[0], sizeof {name} / sizeof(double));" for name in program.outputs),
            f"    {program.name}_batch(COUNT, {starts});",
            *many,
            "}\n",
        ]
    )


def _cmake(project: Project) -> str:
    sources = [f"{program.name}{kind}.c" for program in project.programs.values() for kind in ("", "_batch")]
    return filled(
        template("c_CMakeLists.txt.in"),
        notice="\n".join(f"# {line}".rstrip() for line in project.notice()),
        library=project.library,
        option=project.library.upper(),
        sources="\n".join(f"  {source}" for source in sources),
    )


def _state_prototype(program: Program) -> str:
    inputs = [f"const double {name}[{size}]" for name, size in program.inputs.items()]
    return prototype(program.name, [*inputs, *(f"double {name}[{size}]" for name, size in program.outputs.items())])


def _batch_prototype(program: Program) -> str:
    inputs = [f"const double *{name}" for name in program.inputs]
    return prototype(
        f"{program.name}_batch", ["size_t count", *inputs, *(f"double *{name}" for name in program.outputs)]
    )


def _unused(program: Program) -> list[str]:
    """Inputs of which the program reads no entry."""
    used = used_inputs(program)
    unused, at = [], 0
    for name, size in program.inputs.items():
        if not used.intersection(range(at, at + size)):
            unused.append(name)
        at += size
    return unused

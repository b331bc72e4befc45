# SPDX-License-Identifier: Apache-2.0
"""Export as a standalone C99 library: functions for one state and for batches, a header, CMake files and a test."""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.emit_c import batch_source, c_syntax, filled, functions_source, scalar_sincos, used_functions
from ..codegen.expressions import Op
from ..codegen.program import Program
from ..codegen.straight_line import straight_line, used_inputs
from .c_text import (
    batch_prototype,
    call,
    checks_head,
    comment,
    constants,
    entries,
    function_comment,
    real,
    sincos_calls,
    state_prototype,
    wrapped,
)
from .functions import Function, Steps
from .project import Project
from .stored_values import StoredValues
from .templates import template

# math.h is a library of its own on Unix.
_MATH = """
if(UNIX)
  target_link_libraries({library} PRIVATE m)
endif()"""


def files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the library by name."""
    texts = sources(project)
    for function in project.functions.values():
        texts[f"{function.name}_batch.c"] = _source(project, _batch(project, function))
    texts["CMakeLists.txt"] = _cmake(project)
    checks = checks_head(project, stored, _check)
    texts[f"test_{project.library}.c"] = filled(template("test_dynamics.c.in"), scalar=real(project), **checks)
    return texts


def sources(project: Project) -> dict[str, str]:
    """Headers and the functions for one state by name."""
    library = project.library
    texts = {f"{library}.h": _header(project), f"{library}_math.h": _math_header(project)}
    for function in project.functions.values():
        texts[f"{function.name}.c"] = _source(project, _state(project, function))
    return texts


def _header(project: Project) -> str:
    declarations = []
    for name, function in project.functions.items():
        declarations += [
            comment(function_comment(project, name)),
            state_prototype(function, real(project)) + ";\n",
            f"/* {function.name} for count states. */",
            batch_prototype(function, real(project)) + ";\n",
        ]
    return filled(
        template("dynamics.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_H",
        constants=constants(project),
        properties=comment(line for text in _properties(project) for line in wrapped(text, "").split("\n")),
        declarations="\n".join(declarations),
    )


def _properties(project: Project) -> list[str]:
    """Properties of the functions for the header: a text for each paragraph, with empty ones between them."""
    single = project.precision == "single"
    lanes = "" if single else " With GCC and Clang, it uses the vector lanes of the processor."
    if single:
        calls = "call math.h (link with -lm), so that their time depends on the state."
    else:
        library = "no library but sqrt of math.h" if _calls_math(project) else "no library"
        roots = any(program.uses(Op.ROOT) for program in project.programs.values())
        exceptions = f"for angles beyond 2^20 rad{' and iterations of springs' if roots else ''}"
        calls = f"call {library}, and take the same time for every state, except {exceptions}."
    return [
        f"All functions are reentrant, do not allocate memory, and {calls} "
        "Outputs must not overlap inputs or each other.",
        "",
        "Each function has a variant for batches, ..._batch, with packed states: q of state i is at "
        f"q + i * {project.name.upper()}_JOINTS.{lanes}",
    ]


def _math_header(project: Project) -> str:
    single = project.precision == "single"
    return filled(
        template("dynamics_math_single.h.in" if single else "dynamics_math.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_MATH_H",
        sincos="" if single else scalar_sincos(),
    )


def _source(project: Project, lines: list[str]) -> str:
    return "\n".join([comment(project.notice()), f'#include "{project.library}.h"', *lines, ""])


def _math(project: Project, program: Program) -> list[str]:
    """Lines that include what the arithmetic of a program takes."""
    # Compilers warn about static functions that are not used.
    return [*(["#define EOM_SINCOS"] if program.angles else []), f'#include "{project.library}_math.h"', ""]


def _state(project: Project, function: Function) -> list[str]:
    """Definition of the function for one state."""
    prototype = state_prototype(function, real(project))
    if isinstance(function, Steps):
        return [
            "",
            prototype,
            "{",
            *(call(step.name, [*step.inputs, *step.outputs], indent=4) + ";" for step in function.programs),
            "}",
        ]
    suffix = "single" if project.precision == "single" else "one"
    inputs, syntax = entries(function, "{name}[{index}]"), c_syntax(suffix)
    lines, results = straight_line(function, inputs, syntax)
    outputs = [f"{name}[{k}]" for name, size in function.outputs.items() for k in range(size)]
    return [
        *_math(project, function),
        functions_source(function, suffix),
        prototype,
        "{",
        *(f"    (void){name};" for name in _unread_inputs(function)),
        *(f"    {line}" for line in sincos_calls(function, inputs, "eom_sincos_any", syntax, real(project))),
        *lines,
        *(f"    {output} = {result};" for output, result in zip(outputs, results, strict=True)),
        "}",
    ]


def _batch(project: Project, function: Function) -> list[str]:
    """Definition of the function for batches."""
    prototype = batch_prototype(function, real(project))
    if isinstance(function, Steps):
        steps = [(f"{x.name}_batch", ["count", *x.inputs, *x.outputs]) for x in function.programs]
        return ["", prototype, "{", *(call(*step, indent=4) + ";" for step in steps), "}"]
    one_state = [f"{name} + i * {size}" for name, size in {**function.inputs, **function.outputs}.items()]
    loop = [
        prototype,
        "{",
        "    for (size_t i = 0; i < count; ++i)",
        call(function.name, one_state, indent=8) + ";",
        "}",
    ]
    if project.precision == "single":
        return ["", *loop]
    return [
        "",
        "/* With GCC and Clang, over the vector lanes of the processor. */",
        "#if defined(__GNUC__)",
        *_math(project, function),
        batch_source(function, "static void eom_batch"),
        prototype,
        "{",
        f"    const double *const in[] = {{{', '.join(function.inputs)}}};",
        f"    static const size_t stride[] = {{{', '.join(map(str, function.inputs.values()))}}};",
        f"    double *const out[] = {{{', '.join(function.outputs)}}};",
        "    eom_batch(count, in, stride, out);",
        "}",
        "#else",
        *loop,
        "#endif",
    ]


def _check(function: Function, stored: Mapping[str, str]) -> str:
    arrays = {**function.inputs, **function.outputs}
    declared = [f"    static scalar {name}[COUNT][{size}];" for name, size in arrays.items()]
    copied = [
        f"        take({name}[i], stored_{stored[name]}[i % STATES], {size});" for name, size in function.inputs.items()
    ]
    rows, starts = (", ".join(f"{name}{index}" for name in arrays) for index in ("[i]", "[0]"))
    one, many = (
        [
            f'    compare("{function.name}{suffix}", "{name}", {name}[0], stored_{stored[name]}[0], {size});'
            for name, size in function.outputs.items()
        ]
        for suffix in ("", "_batch")
    )
    batch = [
        *(f"    clear({name}[0], sizeof {name} / sizeof(scalar));" for name in function.outputs),
        f"    {function.name}_batch(COUNT, {starts});",
        *many,
    ]
    return "\n".join(
        [
            f"static void check_{function.name}(void)",
            "{",
            *declared,
            "    for (size_t i = 0; i < COUNT; ++i) {",
            *copied,
            f"        {function.name}({rows});",
            "    }",
            *one,
            *batch,
            "}\n",
        ]
    )


def _cmake(project: Project) -> str:
    sources = [f"{function.name}{kind}.c" for function in project.functions.values() for kind in ("", "_batch")]
    return filled(
        template("c_CMakeLists.txt.in"),
        notice=project.notice_as("# "),
        library=project.library,
        option=project.library.upper(),
        sources="\n".join(f"  {source}" for source in sources),
        libraries=_MATH.format(library=project.library) if _calls_math(project) else "",
    )


def _calls_math(project: Project) -> bool:
    return project.precision == "single" or any("sqrt" in used_functions(x) for x in project.programs.values())


def _unread_inputs(program: Program) -> list[str]:
    """Inputs of which the program reads no entry."""
    used = used_inputs(program)
    unread, at = [], 0
    for name, size in program.inputs.items():
        if not used.intersection(range(at, at + size)):
            unread.append(name)
        at += size
    return unread

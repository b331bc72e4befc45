# SPDX-License-Identifier: Apache-2.0
"""Export as a standalone C99 library: functions for one state and for batches, a header, CMake files and a test."""

from __future__ import annotations

from ..codegen.emit_c import batch_source, filled, scalar_sincos
from ..codegen.program import Program
from ..codegen.straight_line import angles, straight_line, used_inputs
from .c_feedforward import feedforward_files
from .c_plant import plant_files
from .c_text import (
    batch_prototype,
    checks_head,
    comment,
    constants,
    entries,
    function_comment,
    sincos_calls,
    sincos_names,
    state_prototype,
    wrapped,
)
from .plant import PlantFunction
from .precision import in_single_precision
from .project import Function, Project
from .stored_values import StoredValues
from .templates import template

# math.h is a library of its own on Unix.
_MATH = """
if(UNIX)
  target_link_libraries({library} PRIVATE m)
endif()"""


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the library by name."""
    library = project.library
    texts = {
        f"{library}.h": _header(project),
        f"{library}_sincos.h": _sincos_header(project),
    }
    for program in project.programs.values():
        texts[f"{program.name}.c"] = _state_source(project, program)
        texts[f"{program.name}_batch.c"] = _batch_source(project, program)
    if project.feedforward is not None:
        texts |= feedforward_files(project, project.feedforward)
        if project.plant:
            texts |= plant_files(project, project.feedforward)
    if project.precision == "single":
        texts = {name: in_single_precision(text) for name, text in texts.items()}
    texts["CMakeLists.txt"] = _cmake(project)
    texts[f"test_{library}.c"] = _test(project, stored)
    return {name: text.encode("ascii") for name, text in texts.items()}


def _header(project: Project) -> str:
    declarations = []
    for name, function in project.functions.items():
        declarations += [
            comment(function_comment(project, name)),
            state_prototype(function) + ";\n",
            f"/* {function.name} for count states. */",
            batch_prototype(function) + ";\n",
        ]
    for name, function in project.plant.items():
        declarations += [comment(function_comment(project, name)), state_prototype(function) + ";\n"]
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
    time = "take the same time for every state, except for angles beyond 2^20 rad, which take longer."
    if single:
        time = "call math.h (link with -lm), so that their time depends on the state."
    lanes = "" if single else " With GCC and Clang, it uses the vector lanes of the processor."
    batched = "Each function but those of springs and plant" if project.plant else "Each function"
    texts = [
        f"All functions are reentrant, do not allocate memory, {'and' if single else 'call no library, and'} {time} "
        "Outputs must not overlap inputs or each other.",
        f"{batched} has a variant for batches, ..._batch, with packed states: q of state i is at "
        f"q + i * {project.name.upper()}_JOINTS.{lanes}",
    ]
    if project.feedforward is not None and not single:
        *names, last = [project.feedforward.name, *(function.name for function in project.plant.values())]
        if names:
            exceptions = (
                f"The exceptions are {', '.join(names)} and {last}: they call math.h (link with -lm), and their"
            )
        else:
            exceptions = f"The exception is {last}: it calls math.h (link with -lm), and its"
        texts.append(f"{exceptions} time depends on the state.")
    return [line for text in texts for line in ("", text)][1:]


def _sincos_header(project: Project) -> str:
    single = project.precision == "single"
    return filled(
        template("dynamics_sincos_single.h.in" if single else "dynamics_sincos.h.in"),
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
            state_prototype(program),
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
    head = [comment(project.notice()), f'#include "{project.library}.h"', ""]
    loop = [
        batch_prototype(program),
        "{",
        "    for (size_t i = 0; i < count; ++i)",
        f"        {program.name}({', '.join(one_state)});",
        "}",
    ]
    if project.precision == "single":
        return "\n".join([*head, *loop, ""])
    return "\n".join(
        [
            *head,
            "/* With GCC and Clang, over the vector lanes of the processor. */",
            "#if defined(__GNUC__)",
            "#include <stdint.h>",
            *_sincos_include(project, program),
            batch_source(program, "static void eom_batch"),
            batch_prototype(program),
            "{",
            f"    const double *const in[] = {{{', '.join(inputs)}}};",
            f"    static const size_t stride[] = {{{', '.join(sizes)}}};",
            f"    double *const out[] = {{{', '.join(outputs)}}};",
            "    eom_batch(count, in, stride, out);",
            "}",
            "#else",
            *loop,
            "#endif\n",
        ]
    )


def _sincos_include(project: Project, program: Program) -> list[str]:
    # Compilers warn about static functions that are not used.
    return [f'#include "{project.library}_sincos.h"', ""] if angles(program) else []


def _test(project: Project, stored: StoredValues) -> str:
    return filled(
        template("test_dynamics.c.in"),
        **checks_head(project.c_functions.values(), project, stored),
        scalar="float" if project.precision == "single" else "double",
        checks="\n".join(_check(function) for function in project.c_functions.values()),
    )


def _check(function: Function) -> str:
    arrays = {**function.inputs, **function.outputs}
    declared = [f"    static scalar {name}[COUNT][{size}];" for name, size in arrays.items()]
    copied = [f"        take({name}[i], stored_{name}[i % STATES], {size});" for name, size in function.inputs.items()]
    rows, starts = (", ".join(f"{name}{index}" for name in arrays) for index in ("[i]", "[0]"))
    one, many = (
        [
            f'    compare("{function.name}{suffix}", "{name}", {name}[0], stored_{name}[0], {size});'
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
            *([] if isinstance(function, PlantFunction) else batch),
            "}\n",
        ]
    )


def _cmake(project: Project) -> str:
    sources = [f"{function.name}{kind}.c" for function in project.functions.values() for kind in ("", "_batch")]
    sources += [f"{function.name}.c" for function in project.plant.values()]
    return filled(
        template("c_CMakeLists.txt.in"),
        notice="\n".join(f"# {line}".rstrip() for line in project.notice()),
        library=project.library,
        option=project.library.upper(),
        sources="\n".join(f"  {source}" for source in sources),
        libraries=_MATH.format(library=project.library) if _calls_math(project) else "",
    )


def _calls_math(project: Project) -> bool:
    return project.feedforward is not None or project.precision == "single"


def _unused(program: Program) -> list[str]:
    """Inputs of which the program reads no entry."""
    used = used_inputs(program)
    unused, at = [], 0
    for name, size in program.inputs.items():
        if not used.intersection(range(at, at + size)):
            unused.append(name)
        at += size
    return unused

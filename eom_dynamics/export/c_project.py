# SPDX-License-Identifier: Apache-2.0
"""Export as a library of C99, for one state and for batches, or of CUDA kernels for batches.

Each library has functions, a header, CMake files and a test; the CUDA test also measures time.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..arrays import Array
from ..codegen.c_functions import REALS, filled, functions_source, scalar_sincos, used_functions
from ..codegen.emit_c import batch_source
from ..codegen.expressions import Op
from ..codegen.program import Program, Sizes
from ..codegen.straight_line import Syntax, straight_line
from .functions import Function, Steps
from .project import SUMMARIES, Project, in_ascii, matrix_size, table, template
from .stored_values import TOLERANCE, StoredValues

_WIDTH = 120


def _comment(lines: Iterable[str]) -> str:
    """Lines as a C comment."""
    return "/* " + "\n".join(f" * {line}".rstrip() for line in lines)[3:] + " */\n"


def _constants(project: Project) -> str:
    """Constants: number of joints, and index of each joint."""
    prefix = project.name.upper()
    lines = [f"    {prefix}_JOINTS = {project.robot.n},"]
    for k, (name, joint) in enumerate(zip(project.joints, project.robot.independent_joints, strict=True)):
        lines.append(f"    {prefix}_INDEX_{name} = {k}, /* {in_ascii(joint.name)} */")
    head = "/* The number of joints, and the index of each in all joint vectors. */"
    return "\n".join([head, "enum {", *lines, "};\n"])


def _function_comment(project: Project, name: str) -> list[str]:
    """Comment of a function: summary, cost, a line for each argument, and notes."""
    function = project.functions[name]
    rows = [(key, "in", f"[{size}]", project.meaning(key)) for key, size in function.inputs.items()]
    for key, size in function.outputs.items():
        meaning = project.meaning(key) + (", row-major" if matrix_size(key, project.robot.n) else "")
        rows.append((key, "out", f"[{size}]", meaning))
    lines = [" ".join([SUMMARIES[name], *_cost(function)]), "", *("  " + line for line in table(rows))]
    notes = project.notes(name)
    return [*lines, "", *(line for note in notes for line in wrapped(note, "").split("\n"))] if notes else lines


def _cost(function: Function) -> list[str]:
    if not isinstance(function, Program):
        return []
    if not function.costs()["total"]:
        return ["No operations but factors of results."]
    pairs = len(function.angles)
    angles = f" and {pairs} pair{'s' * (pairs != 1)} of sine and cosine" if pairs else ""
    return [f"{function.operations} operations{angles} a state."]


def wrapped(text: str, indent: str) -> str:
    """Text wrapped between words, with indented continuation lines."""
    return "\n".join(
        textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )


def _sincos_calls(program: Program, inputs: Sequence[str], function: str, syntax: Syntax) -> list[str]:
    """Lines that declare and compute the sines s0, s1, ... and cosines c0, c1, ... of a program's angles.

    Args:
        inputs: expressions of the entries of all inputs.
        function: name of a function of an angle and pointers to its sine and cosine.
    """
    if not program.angles:
        return []
    lines = ["double " + ", ".join(f"s{k}, c{k}" for k in range(len(program.angles))) + ";"]
    for k, angle in enumerate(program.angles):
        lines.append(f"{function}({syntax.angle(angle, inputs)}, &s{k}, &c{k});")
    return lines


def _checks_head(
    project: Project, stored: StoredValues, check: Callable[[Function, Mapping[str, str]], str]
) -> dict[str, str]:
    """Shared template fields of the tests in C and CUDA; ``check`` returns the text for a function."""
    arrays, names = stored.named(project.functions)
    return {
        "notice": _comment(project.notice()),
        "library": project.library,
        "states": str(stored.count),
        "tolerance": repr(TOLERANCE),
        "stored": _constant_arrays(arrays),
        "comparison": template("test_comparison.c.in"),
        "checks": "\n".join(check(function, names[key]) for key, function in project.functions.items()),
        "calls": "\n".join(f"    check_{function.name}();" for function in project.functions.values()),
    }


def _expressions(vectors: Sizes, form: str = "{name}[{index}]") -> list[str]:
    """Expressions of vector entries, from a format with the fields name and index."""
    return [form.format(name=name, index=k) for name, size in vectors.items() for k in range(size)]


def _constant_arrays(arrays: Mapping[str, Array]) -> str:
    """Arrays (STATES, size) as constants ``stored_<name>``."""
    return "\n".join(
        f"static const double stored_{name}[STATES][{values.shape[1]}] = {{\n"
        + ",\n".join(
            wrapped("    {" + ", ".join("NAN" if x != x else repr(x) for x in row) + "}", "     ")
            for row in values.tolist()
        )
        + "\n};"
        for name, values in arrays.items()
    )


def call(start: str, arguments: Sequence[str], *, indent: int = 0) -> str:
    """Start of a line with arguments in parentheses, wrapped between them and indented."""
    tied = ", ".join(argument.replace(" ", "\N{NO-BREAK SPACE}") for argument in arguments)
    text = f"{' ' * indent}{start}({tied})"
    return wrapped(text, " " * (indent + 4)).replace("\N{NO-BREAK SPACE}", " ")


def _state_prototype(function: Function) -> str:
    """Prototype of a function in C for one state, without semicolon."""
    inputs = [f"const double {name}[{size}]" for name, size in function.inputs.items()]
    outputs = [f"double {name}[{size}]" for name, size in function.outputs.items()]
    return call(f"void {function.name}", [*inputs, *outputs])


def _batch_prototype(function: Function) -> str:
    """Prototype of a function in C for a batch, without semicolon."""
    inputs = [f"const double *{name}" for name in function.inputs]
    outputs = [f"double *{name}" for name in function.outputs]
    return call(f"void {function.name}_batch", ["size_t count", *inputs, *outputs])


# math.h is a separate library on Unix.
_MATH = """
if(UNIX)
  target_link_libraries({library} PRIVATE m)
endif()"""


def c_files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the C library by name."""
    texts = sources(project)
    for function in project.functions.values():
        texts[f"{function.name}_batch.c"] = _source(project, _batch(project, function))
    names = [f"{function.name}{kind}.c" for function in project.functions.values() for kind in ("", "_batch")]
    texts["CMakeLists.txt"] = filled(
        template("c_CMakeLists.txt.in"),
        notice=project.notice_as("# "),
        library=project.library,
        option=project.library.upper(),
        sources="\n".join(f"  {name}" for name in names),
        libraries=_MATH.format(library=project.library) if _calls_math(project) else "",
    )
    checks = _checks_head(project, stored, _check)
    texts[f"test_{project.library}.c"] = filled(template("test_dynamics.c.in"), **checks)
    return texts


def sources(project: Project) -> dict[str, str]:
    """Headers and functions for one state, by name."""
    library = project.library
    texts = {f"{library}.h": _header(project), f"{library}_math.h": _math_header(project)}
    for function in project.functions.values():
        texts[f"{function.name}.c"] = _source(project, _state(project, function))
    return texts


def _header(project: Project) -> str:
    declarations = []
    for name, function in project.functions.items():
        declarations += [
            _comment(_function_comment(project, name)),
            _state_prototype(function) + ";\n",
            f"/* {function.name} for count states. */",
            _batch_prototype(function) + ";\n",
        ]
    return filled(
        template("dynamics.h.in"),
        notice=_comment(project.notice()),
        guard=f"{project.library.upper()}_H",
        constants=_constants(project),
        properties=_comment(line for text in _properties(project) for line in wrapped(text, "").split("\n")),
        declarations="\n".join(declarations),
    )


def _properties(project: Project) -> list[str]:
    """Properties of the functions for the header: a text for each paragraph, with empty texts between."""
    library = "no library but sqrt of math.h" if _calls_math(project) else "no library"
    roots = any(program.uses(Op.ROOT) for program in project.programs.values())
    exceptions = f"for angles beyond 2^20 rad{' and iterations of springs' if roots else ''}"
    return [
        f"All functions are reentrant, do not allocate memory, and call {library}, and take the same time for every "
        f"state, except {exceptions}. Outputs must not overlap inputs or each other.",
        "",
        "Each function has a variant for batches, ..._batch, with packed states: q of state i is at "
        f"q + i * {project.name.upper()}_JOINTS. With GCC and Clang, it uses the vector lanes of the processor.",
    ]


def _math_header(project: Project) -> str:
    return filled(
        template("dynamics_math.h.in"),
        notice=_comment(project.notice()),
        guard=f"{project.library.upper()}_MATH_H",
        sincos=scalar_sincos(),
    )


def _source(project: Project, lines: list[str]) -> str:
    return "\n".join([_comment(project.notice()), f'#include "{project.library}.h"', *lines, ""])


def _math(project: Project, program: Program) -> list[str]:
    """Include lines for the arithmetic of a program."""
    # Compilers warn about unused static functions.
    return [*(["#define EOM_SINCOS"] if program.angles else []), f'#include "{project.library}_math.h"', ""]


def _state(project: Project, function: Function) -> list[str]:
    prototype = _state_prototype(function)
    if isinstance(function, Steps):
        return [
            "",
            prototype,
            "{",
            *(call(step.name, [*step.inputs, *step.outputs], indent=4) + ";" for step in function.programs),
            "}",
        ]
    inputs, syntax = _expressions(function.inputs), REALS["one"].syntax
    lines, results = straight_line(function, inputs, syntax)
    read = {inputs[node.constant].partition("[")[0] for node in function.nodes if node.op is Op.INPUT}
    return [
        *_math(project, function),
        functions_source(function, "one"),
        prototype,
        "{",
        *(f"    (void){name};" for name in function.inputs if name not in read),
        *(f"    {line}" for line in _sincos_calls(function, inputs, "eom_sincos_any", syntax)),
        *lines,
        *(f"    {output} = {result};" for output, result in zip(_expressions(function.outputs), results, strict=True)),
        "}",
    ]


def _batch(project: Project, function: Function) -> list[str]:
    prototype = _batch_prototype(function)
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
    declared = [f"    static double {name}[COUNT][{size}];" for name, size in arrays.items()]
    copied = [
        f"        take({name}[i], stored_{stored[name]}[i % STATES], {size});" for name, size in function.inputs.items()
    ]
    rows, starts = (", ".join(f"{name}{index}" for name in arrays) for index in ("[i]", "[0]"))
    single, batched = (
        [
            f'    compare("{function.name}{suffix}", "{name}", {name}[0], {size}, 1, stored_{stored[name]}[0], {size});'
            for name, size in function.outputs.items()
        ]
        for suffix in ("", "_batch")
    )
    batch = [
        *(f"    clear({name}[0], sizeof {name} / sizeof(double));" for name in function.outputs),
        f"    {function.name}_batch(COUNT, {starts});",
        *batched,
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
            *single,
            *batch,
            "}\n",
        ]
    )


def _calls_math(project: Project) -> bool:
    return any("sqrt" in used_functions(x) for x in project.programs.values())


def cuda_files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the CUDA library by name.

    Entry j of state i of a vector is at ``j * count + i``, so that the threads of a warp, one for each state, access
    consecutive numbers. CUDA's sines and cosines are accurate to two ulp for any angle.
    """
    library = f"{project.library}_cuda"
    texts = {
        f"{library}.h": _cuda_header(project),
        f"test_{library}.cu": filled(template("test_dynamics.cu.in"), **_checks_head(project, stored, _cuda_check)),
        "CMakeLists.txt": filled(
            template("cuda_CMakeLists.txt.in"),
            notice=project.notice_as("# "),
            library=library,
            sources="\n".join(f"  {function.name}.cu" for function in project.functions.values()),
        ),
    }
    for function in project.functions.values():
        texts[f"{function.name}.cu"] = (
            _cuda_steps(project, function) if isinstance(function, Steps) else _cuda_source(project, function)
        )
    return texts


def _cuda_header(project: Project) -> str:
    declarations = [
        f"{_comment(_function_comment(project, name))}\n{_host_prototype(function)};\n"
        for name, function in project.functions.items()
    ]
    return filled(
        template("dynamics_cuda.h.in"),
        notice=_comment(project.notice()),
        guard=f"{project.library.upper()}_CUDA_H",
        constants=_constants(project),
        declarations="\n".join(declarations),
    )


def _cuda_source(project: Project, program: Program) -> str:
    inputs, outputs = (
        [x.replace("[0 * count + i]", "[i]") for x in _expressions(vectors, "{name}[{index} * count + i]")]
        for vectors in (program.inputs, program.outputs)
    )
    syntax = REALS["device"].syntax
    lines, results = straight_line(program, inputs, syntax)
    pointers = [f"const double *__restrict__ {name}" for name in program.inputs]
    pointers += [f"double *__restrict__ {name}" for name in program.outputs]
    body = [
        *_sincos_calls(program, inputs, "sincos", syntax),
        *(line.strip() for line in lines),
        *(f"{output} = {result};" for output, result in zip(outputs, results, strict=True)),
    ]
    return filled(
        template("dynamics.cu.in"),
        notice=_comment(project.notice()),
        library=project.library,
        functions=functions_source(program, "device"),
        kernel=call("__global__ void __launch_bounds__(THREADS) kernel", ["size_t count", *pointers]),
        body="\n".join(f"        {line}" for line in body),
        function=_host_prototype(program),
        arguments=", ".join(["count", *program.inputs, *program.outputs]),
    )


def _cuda_steps(project: Project, function: Steps) -> str:
    """Function that launches the kernels of its programs in the same stream."""
    lines = ["    cudaError_t error = cudaSuccess;"]
    for step in function.programs:
        arguments = ["count", *step.inputs, *step.outputs, "stream"]
        lines += ["    if (error == cudaSuccess)", call(f"error = {step.name}_cuda", arguments, indent=8) + ";"]
    head = [_comment(project.notice()), f'#include "{project.library}_cuda.h"', ""]
    return "\n".join([*head, f'extern "C" {_host_prototype(function)}', "{", *lines, "    return error;", "}\n"])


def _cuda_check(function: Function, stored: Mapping[str, str]) -> str:
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

# SPDX-License-Identifier: Apache-2.0
"""Text shared by exported C and CUDA code."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..arrays import Array
from ..codegen.program import Program
from ..codegen.straight_line import Syntax
from .functions import Function
from .project import SUMMARIES, Project, matrix_size, plain, table
from .stored_values import StoredValues

WIDTH = 120


def comment(lines: Iterable[str]) -> str:
    """Lines as a C comment."""
    return "/* " + "\n".join(f" * {line}".rstrip() for line in lines)[3:] + " */\n"


def constants(project: Project) -> str:
    """Constants of the number of joints and of the index of each."""
    prefix = project.name.upper()
    lines = [f"    {prefix}_JOINTS = {project.robot.n},"]
    for k, (name, joint) in enumerate(zip(project.joints, project.robot.independent_joints, strict=True)):
        lines.append(f"    {prefix}_INDEX_{name} = {k}, /* {plain(joint.name)} */")
    head = "/* The number of joints, and the index of each in all joint vectors. */"
    return "\n".join([head, "enum {", *lines, "};\n"])


def function_comment(project: Project, name: str) -> list[str]:
    """Summary and cost of a function, a line for each argument, and notes."""
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
    """Text wrapped between words, with all lines but the first indented."""
    return "\n".join(
        textwrap.wrap(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )


def real(project: Project) -> str:
    """C type of floating-point numbers in a project."""
    return "float" if project.precision == "single" else "double"


def sincos_calls(
    program: Program, inputs: Sequence[str], function: str, syntax: Syntax, number: str = "double"
) -> list[str]:
    """Lines that declare and compute the sines s0, s1, ... and cosines c0, c1, ... of a program's angles.

    Args:
        program: the program.
        inputs: expressions of the entries of all inputs.
        function: name of a function of an angle and pointers to its sine and cosine.
        syntax: that of the language.
        number: type of the numbers.
    """
    if not program.angles:
        return []
    lines = [f"{number} " + ", ".join(f"s{k}, c{k}" for k in range(len(program.angles))) + ";"]
    for k, angle in enumerate(program.angles):
        lines.append(f"{function}({syntax.angle(angle, inputs)}, &s{k}, &c{k});")
    return lines


def checks_head(
    project: Project, stored: StoredValues, check: Callable[[Function, Mapping[str, str]], str]
) -> dict[str, str]:
    """Fields that the templates of the tests in C and CUDA share; ``check`` gives the text for a function."""
    arrays, names = stored.named(project.functions)
    return {
        "notice": comment(project.notice()),
        "library": project.library,
        "states": str(stored.count),
        "tolerance": repr(stored.relative_tolerance),
        "stored": constant_arrays(arrays, rows="STATES"),
        "checks": "\n".join(check(function, names[key]) for key, function in project.functions.items()),
        "calls": "\n".join(f"    check_{function.name}();" for function in project.functions.values()),
    }


def entries(program: Program, form: str) -> list[str]:
    """Expressions of the entries of all inputs, from a format with the fields name and index."""
    return [form.format(name=name, index=k) for name, size in program.inputs.items() for k in range(size)]


def constant_arrays(arrays: Mapping[str, Array], rows: str = "") -> str:
    """Arrays (rows, size) as constants ``stored_<name>``.

    Args:
        arrays: by name.
        rows: expression of the number of rows; by default that of each.
    """
    return "\n".join(
        f"static const double stored_{name}[{rows or len(values)}][{values.shape[1]}] = {{\n{_rows(values)}\n}};"
        for name, values in arrays.items()
    )


def _rows(values: Array) -> str:
    rows = [["NAN" if x != x else repr(x) for x in row] for row in values.tolist()]
    return ",\n".join(wrapped("    {" + ", ".join(row) + "}", "     ") for row in rows)


def call(start: str, arguments: Sequence[str], *, indent: int = 0) -> str:
    """Start of a line with arguments in parentheses, wrapped between them and indented."""
    tied = ", ".join(argument.replace(" ", "\N{NO-BREAK SPACE}") for argument in arguments)
    text = f"{' ' * indent}{start}({tied})"
    return wrapped(text, " " * (indent + 4)).replace("\N{NO-BREAK SPACE}", " ")


def state_prototype(function: Function, number: str) -> str:
    """Prototype of a function in C for one state, without semicolon, over a type of numbers."""
    inputs = [f"const {number} {name}[{size}]" for name, size in function.inputs.items()]
    outputs = [f"{number} {name}[{size}]" for name, size in function.outputs.items()]
    return call(f"void {function.name}", [*inputs, *outputs])


def batch_prototype(function: Function, number: str) -> str:
    """Prototype of a function in C for a batch, without semicolon, over a type of numbers."""
    inputs = [f"const {number} *{name}" for name in function.inputs]
    outputs = [f"{number} *{name}" for name in function.outputs]
    return call(f"void {function.name}_batch", ["size_t count", *inputs, *outputs])

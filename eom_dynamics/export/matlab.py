# SPDX-License-Identifier: Apache-2.0
"""Export as MATLAB and GNU Octave functions, for one state or a batch with one state in each column."""

from __future__ import annotations

import textwrap

from ..arrays import Array
from ..codegen.emit_c import filled
from ..codegen.program import Program
from ..codegen.straight_line import angles, straight_line
from ..states import WRENCH_NAMES
from .matlab_feedforward import feedforward_body, feedforward_defaults, feedforward_functions
from .motors import FEEDFORWARD, MotorFeedforward
from .project import SUMMARIES, Function, Project, matrix_size, table
from .stored_values import TOLERANCE, StoredValues
from .templates import template

_WIDTH = 120


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the functions and of the test by name."""
    texts = {
        f"{program.name}.m": _function(project, name, _straight_line(project, program))
        for name, program in project.programs.items()
    }
    if project.feedforward is not None:
        body, functions = feedforward_body(project, project.feedforward), feedforward_functions(project.feedforward)
        texts[f"{project.feedforward.name}.m"] = f"{_function(project, FEEDFORWARD, body)}\n{functions}"
    texts[f"test_{project.library}.m"] = _test(project, stored)
    return {name: text.encode("ascii") for name, text in texts.items()}


def _straight_line(project: Project, program: Program) -> list[str]:
    """Statements from checked arguments and the number of states N to outputs."""
    inputs = [f"{name}{k + 1}" for name, size in program.inputs.items() for k in range(size)]
    outputs = [f"{name}({k + 1}, :)" for name, size in program.outputs.items() for k in range(size)]
    lines, results = straight_line(
        program,
        inputs,
        [(f"s{k}", f"c{k}") for k in range(len(angles(program)))],
        define="{name} = {value};",
        times=".*",
    )
    turned = [angle.text(inputs, ".*") for angle in angles(program)]
    n = project.robot.n
    return [
        *(f"{name}{k + 1} = {name}({k + 1}, :);" for name, size in program.inputs.items() for k in range(size)),
        *(f"s{k} = sin({angle}); c{k} = cos({angle});" for k, angle in enumerate(turned)),
        *lines,
        *(f"{name} = zeros({size}, N);" for name, size in program.outputs.items()),
        *(f"{output} = {result};" for output, result in zip(outputs, results, strict=True)),
        # MATLAB reshapes in column-major order, but the entries of matrices are in row-major order.
        *(
            f"{name} = permute(reshape({name}, {matrix_size(name, n)}, [], N), [2 1 3]);"
            for name in program.outputs
            if matrix_size(name, n)
        ),
    ]


def _function(project: Project, name: str, statements: list[str]) -> str:
    """A function with its help, checks of its arguments, and statements that compute the outputs."""
    function, n = project.functions[name], project.robot.n
    names = list(function.inputs)
    rows = [(key, f"({size}, N)", project.meaning(key)) for key, size in function.inputs.items()]
    for key, size in function.outputs.items():
        side = matrix_size(key, n)
        rows.append((key, f"({side}, {side}, N)" if side else f"({size}, N)", project.meaning(key)))
    defaults = {key: f"zeros({6 * len(project.robot.tools)}, 1)" for key in names if key in WRENCH_NAMES}
    usage = [
        "Each column is a state. An argument with one column holds for all N states.",
        "Omitted wrenches are zero.",
    ]
    if isinstance(function, MotorFeedforward):
        commands = feedforward_defaults(function)
        defaults |= commands
        usage += ["Omitted stiffness is nominal and constant."] * bool(commands)
    body = [
        *(f"if nargin < {k + 1}, {key} = {defaults[key]}; end" for k, key in enumerate(names) if key in defaults),
        *(f"assert(size({key}, 1) == {size}, '{key} must have {size} rows')" for key, size in function.inputs.items()),
        "N = max([" + ", ".join(f"size({key}, 2)" for key in names) + "]);",
        *statements,
    ]
    notes = [line for note in project.notes(name) for line in textwrap.wrap(note, _WIDTH - 4)]
    signature = f"[{', '.join(function.outputs)}] = {function.name}({', '.join(names)})"
    return "\n".join(
        [
            f"function {signature}",
            f"%{function.name.upper()}  {SUMMARIES[name]}",
            f"%   {signature}",
            "%",
            *(f"%   {line}" for line in table(rows)),
            "%",
            *(f"%   {line}" for line in (*usage, *notes)),
            "%",
            *(f"%   {line}".rstrip() for line in project.notice()),
            "",
            *body,
            "end\n",
        ]
    )


def _test(project: Project, stored: StoredValues) -> str:
    inputs = dict.fromkeys(name for function in project.functions.values() for name in function.inputs)
    outputs = dict.fromkeys(name for function in project.functions.values() for name in function.outputs)
    arrays = {name: stored.inputs[name] for name in inputs} | {name: stored.outputs[name] for name in outputs}
    return filled(
        template("test_dynamics.m.in"),
        notice="\n".join(f"% {line}".rstrip() for line in project.notice()),
        library=project.library,
        tolerance=repr(TOLERANCE),
        stored="\n".join(f"stored.{name} = [\n{_rows(values)}]';" for name, values in arrays.items()),
        checks="\n".join(_check(project, function) for function in project.functions.values()),
    )


def _check(project: Project, function: Function) -> str:
    n = project.robot.n
    columns, first = (", ".join(f"stored.{name}({span})" for name in function.inputs) for span in (":, :", ":, k"))
    outputs = ", ".join(function.outputs)
    lines = [f"[{outputs}] = {function.name}({columns});"]
    for name in function.outputs:
        size = function.outputs[name]
        rows = f"reshape(permute({name}, [2 1 3]), {size}, [])" if matrix_size(name, n) else name
        lines.append(f"failures = failures + compare('{function.name}', '{name}', {rows}, stored.{name});")
    lines.append("k = size(stored.q, 2);")
    lines.append(f"[{', '.join(f'{name}_alone' for name in function.outputs)}] = {function.name}({first});")
    for name in function.outputs:
        span = "(:, :, k)" if matrix_size(name, n) else "(:, k)"
        lines.append(
            f"failures = failures + compare('{function.name}, one state', '{name}', {name}_alone, {name}{span});"
        )
    return "\n".join(lines) + "\n"


def _rows(values: Array) -> str:
    """Rows of a matrix, wrapped by continuation dots."""
    lines = []
    for row in values.tolist():
        broken = textwrap.wrap(" ".join(map(repr, row)), _WIDTH - 6, break_long_words=False, break_on_hyphens=False)
        lines.append("  " + " ...\n    ".join(broken))
    return ";\n".join(lines)

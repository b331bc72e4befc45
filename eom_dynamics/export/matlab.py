# SPDX-License-Identifier: Apache-2.0
"""Export as MATLAB and GNU Octave functions, for one state or a batch with one state in each column."""

from __future__ import annotations

import textwrap

from ..arrays import Array
from ..codegen.emit_c import filled
from ..codegen.program import Program
from ..codegen.straight_line import angles, straight_line
from ..states import WRENCH_NAMES
from .project import SUMMARIES, Project, is_matrix, table
from .stored_values import TOLERANCE, StoredValues
from .templates import template

_WIDTH = 120


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the functions and of the test by name."""
    texts = {f"{program.name}.m": _function(project, function) for function, program in project.programs.items()}
    texts[f"test_{project.library}.m"] = _test(project, stored)
    return {name: text.encode("ascii") for name, text in texts.items()}


def _function(project: Project, function: str) -> str:
    program = project.programs[function]
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
    names = list(program.inputs)
    rows = [(name, f"({size}, N)", project.meaning(name)) for name, size in program.inputs.items()]
    n = project.robot.n
    for name, size in program.outputs.items():
        rows.append((name, f"({n}, {n}, N)" if is_matrix(name) else f"({size}, N)", project.meaning(name)))
    body = [
        *(
            f"if nargin < {k + 1}, {name} = zeros({6 * len(project.robot.tools)}, 1); end"
            for k, name in enumerate(names)
            if name in WRENCH_NAMES
        ),
        *(
            f"assert(size({name}, 1) == {size}, '{name} must have {size} rows')"
            for name, size in program.inputs.items()
        ),
        "N = max([" + ", ".join(f"size({name}, 2)" for name in names) + "]);",
        *(f"{name}{k + 1} = {name}({k + 1}, :);" for name, size in program.inputs.items() for k in range(size)),
        *(f"s{k} = sin({angle}); c{k} = cos({angle});" for k, angle in enumerate(turned)),
        *lines,
        *(f"{name} = zeros({size}, N);" for name, size in program.outputs.items()),
        *(f"{output} = {result};" for output, result in zip(outputs, results, strict=True)),
        # MATLAB reshapes in column-major order, but the entries of matrices are in row-major order.
        *(f"{name} = permute(reshape({name}, {n}, {n}, N), [2 1 3]);" for name in program.outputs if is_matrix(name)),
    ]
    signature = f"[{', '.join(program.outputs)}] = {program.name}({', '.join(names)})"
    return "\n".join(
        [
            f"function {signature}",
            f"%{program.name.upper()}  {SUMMARIES[function]}",
            f"%   {signature}",
            "%",
            *(f"%   {line}" for line in table(rows)),
            "%",
            "%   Each column is a state. An argument with one column holds for all N states.",
            "%   Omitted wrenches are zero.",
            "%",
            *(f"%   {line}".rstrip() for line in project.notice()),
            "",
            *body,
            "end\n",
        ]
    )


def _test(project: Project, stored: StoredValues) -> str:
    inputs = dict.fromkeys(name for program in project.programs.values() for name in program.inputs)
    arrays = {name: stored.inputs[name] for name in inputs} | dict(stored.outputs)
    return filled(
        template("test_dynamics.m.in"),
        notice="\n".join(f"% {line}".rstrip() for line in project.notice()),
        library=project.library,
        tolerance=repr(TOLERANCE),
        stored="\n".join(f"stored.{name} = [\n{_rows(values)}]';" for name, values in arrays.items()),
        checks="\n".join(_check(project, program) for program in project.programs.values()),
    )


def _check(project: Project, program: Program) -> str:
    n = project.robot.n
    columns, first = (", ".join(f"stored.{name}({span})" for name in program.inputs) for span in (":, :", ":, k"))
    outputs = ", ".join(program.outputs)
    lines = [f"[{outputs}] = {program.name}({columns});"]
    for name in program.outputs:
        rows = f"reshape(permute({name}, [2 1 3]), {n * n}, [])" if is_matrix(name) else name
        lines.append(f"failures = failures + compare('{program.name}', '{name}', {rows}, stored.{name});")
    lines.append("k = size(stored.q, 2);")
    lines.append(f"[{', '.join(f'{name}_alone' for name in program.outputs)}] = {program.name}({first});")
    for name in program.outputs:
        span = "(:, :, k)" if is_matrix(name) else "(:, k)"
        lines.append(
            f"failures = failures + compare('{program.name}, one state', '{name}', {name}_alone, {name}{span});"
        )
    return "\n".join(lines) + "\n"


def _rows(values: Array) -> str:
    """Rows of a matrix, wrapped by continuation dots."""
    lines = []
    for row in values.tolist():
        broken = textwrap.wrap(" ".join(map(repr, row)), _WIDTH - 6, break_long_words=False, break_on_hyphens=False)
        lines.append("  " + " ...\n    ".join(broken))
    return ";\n".join(lines)

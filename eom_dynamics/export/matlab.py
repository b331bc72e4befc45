# SPDX-License-Identifier: Apache-2.0
"""Export as MATLAB and GNU Octave functions, for one state or a batch with one state in each column."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from ..arrays import WRENCH_NAMES, Array
from ..codegen.c_functions import filled
from ..codegen.expressions import Op
from ..codegen.program import MonotoneFunction, Program
from ..codegen.straight_line import Syntax, straight_line
from ..elastic.motor_programs import STIFFNESS_NAMES
from .functions import Function, Steps
from .project import SUMMARIES, Project, matrix_size, table, template
from .stored_values import TOLERANCE, StoredValues

_MATLAB = Syntax("{name} = {value};", times=".*", nan="NaN", infinity="Inf")
_WIDTH = 120


def matlab_files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the functions and of the test by name."""
    texts = {f"{function.name}.m": _function(project, name, function) for name, function in project.functions.items()}
    texts[f"test_{project.library}.m"] = _test(project, stored)
    return texts


def _statements(project: Project, function: Function) -> list[str]:
    """Statements from checked arguments and the number of states N to outputs."""
    if isinstance(function, Steps):
        # Every step computes all N states.
        calls = [f"[{', '.join(x.outputs)}] = {x.name}({', '.join(x.inputs)});" for x in function.programs]
        return ["if size(q, 2) == 1, q = repmat(q, 1, N); end", *calls]
    inputs = [f"{name}{k + 1}" for name, size in function.inputs.items() for k in range(size)]
    outputs = [f"{name}({k + 1}, :)" for name, size in function.outputs.items() for k in range(size)]
    lines, results = straight_line(function, inputs, _MATLAB)
    turned = [_MATLAB.angle(angle, inputs) for angle in function.angles]
    n = project.robot.n
    return [
        *(f"{name}{k + 1} = {name}({k + 1}, :);" for name, size in function.inputs.items() for k in range(size)),
        *(f"s{k} = sin({angle}); c{k} = cos({angle});" for k, angle in enumerate(turned)),
        *lines,
        *(f"{name} = zeros({size}, N);" for name, size in function.outputs.items()),
        *(f"{output} = {result};" for output, result in zip(outputs, results, strict=True)),
        # MATLAB reshapes in column-major order, but the entries of matrices are in row-major order.
        *(
            f"{name} = permute(reshape({name}, {matrix_size(name, n)}, [], N), [2 1 3]);"
            for name in function.outputs
            if matrix_size(name, n)
        ),
    ]


def _local_functions(program: Program) -> list[str]:
    """Local functions of a program's file: selection, tables and roots; MATLAB has the other functions."""
    roots = program.constants(Op.ROOT)
    selecting = any(part.uses(Op.SELECT) for part in (program, *(root.program for root in roots)))
    texts = [template("select.m.in")] if selecting else []
    for k, values in enumerate(program.constants(Op.INDEX, Op.LOOKUP)):
        array = " ...\n    ".join(_wrapped(" ".join(map(_MATLAB.constant, values))))
        texts.append(filled(template("table.m.in"), k=str(k), table=array))
    return [*texts, *(_root(root, k) for k, root in enumerate(roots))]


def _root(root: MonotoneFunction, k: int) -> str:
    parameters = [f"p{i}" for i in range(root.program.inputs["p"])]
    lines, results = straight_line(root.program, ["x", *parameters], _MATLAB)
    names = ("value", "slope", "curvature")
    return filled(
        template("root.m.in"),
        k=str(k),
        arguments="".join(f", {name}" for name in parameters),
        body="\n".join([*lines, *(f"{name} = {result};" for name, result in zip(names, results, strict=True))]),
    )


def _function(project: Project, name: str, function: Function) -> str:
    """Function text with help, argument checks, and statements that compute the outputs."""
    n, names = project.robot.n, list(function.inputs)
    rows = [(key, f"({size}, N)", project.meaning(key)) for key, size in function.inputs.items()]
    for key, size in function.outputs.items():
        side = matrix_size(key, n)
        rows.append((key, f"({side}, {side}, N)" if side else f"({size}, N)", project.meaning(key)))
    defaults = {key: f"zeros({6 * len(project.robot.tools)}, 1)" for key in names if key in WRENCH_NAMES}
    usage = ["Each column is a state. A single column applies to all N states.", "Omitted wrenches are zero."]
    if isinstance(function, Steps) and STIFFNESS_NAMES[0] in names:
        nominal = project.side.nominal_stiffness.tolist()
        defaults |= dict.fromkeys(STIFFNESS_NAMES, f"zeros({n}, 1)") | {"k": f"[{'; '.join(map(repr, nominal))}]"}
        usage.append("Omitted stiffness is nominal and constant.")
    body = [
        *(f"if nargin < {k + 1}, {key} = {defaults[key]}; end" for k, key in enumerate(names) if key in defaults),
        *(f"assert(size({key}, 1) == {size}, '{key} must have {size} rows')" for key, size in function.inputs.items()),
        "N = max([" + ", ".join(f"size({key}, 2)" for key in names) + "]);",
        *_statements(project, function),
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
            project.notice_as("%   "),
            "",
            *body,
            "end\n",
            *(_local_functions(function) if isinstance(function, Program) else ()),
        ]
    )


def _test(project: Project, stored: StoredValues) -> str:
    arrays, names = stored.named(project.functions)
    return filled(
        template("test_dynamics.m.in"),
        notice=project.notice_as("% "),
        library=project.library,
        tolerance=repr(TOLERANCE),
        stored="\n".join(f"stored.{name} = [\n{_rows(values)}]';" for name, values in arrays.items()),
        checks="\n".join(_check(project, function, names[key]) for key, function in project.functions.items()),
    )


def _check(project: Project, function: Function, stored: Mapping[str, str]) -> str:
    n = project.robot.n
    columns, first = (
        ", ".join(f"stored.{stored[name]}({span})" for name in function.inputs) for span in (":, :", ":, k")
    )
    outputs = ", ".join(function.outputs)
    lines = [f"[{outputs}] = {function.name}({columns});"]
    for name in function.outputs:
        size = function.outputs[name]
        rows = f"reshape(permute({name}, [2 1 3]), {size}, [])" if matrix_size(name, n) else name
        lines.append(f"failures = failures + compare('{function.name}', '{name}', {rows}, stored.{stored[name]});")
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
    rows = [[_MATLAB.constant(x) for x in row] for row in values.tolist()]
    return ";\n".join("  " + " ...\n    ".join(_wrapped(" ".join(row))) for row in rows)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH - 6, break_long_words=False, break_on_hyphens=False)

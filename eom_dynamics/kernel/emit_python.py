# SPDX-License-Identifier: Apache-2.0
"""Programs as Python functions, over numbers, NumPy arrays or the symbols of another library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..lie import sincos
from .expressions import Op
from .program import Program


def python_function(program: Program) -> Callable[[Sequence[Any]], list[Any]]:
    """A function from the list of all input entries to the list of all output entries.

    The entries are scalars of any type that adds, multiplies and has a sine and cosine; arrays of one shape
    make a batch.
    """
    lines = ["def evaluate(x):"]
    for index, node in enumerate(program.nodes):
        left, right = f"v{node.left}", f"v{node.right}"
        text = {
            Op.INPUT: f"x[{node.left}]",
            Op.SIN: f"sincos({left})[0]",
            Op.COS: f"sincos({left})[1]",
            Op.ADD: f"{left} + {right}",
            Op.SUB: f"{left} - {right}",
            Op.MUL: f"{left} * {right}",
            Op.SCALE: f"{left} * {node.right!r}",
            Op.SHIFT: f"{left} + {node.right!r}",
        }[node.op]
        lines.append(f"    v{index} = {text}")
    results = [
        repr(result.factor) if result.node is None else f"{result.factor!r} * v{result.node}"
        for result in program.results
    ]
    lines.append(f"    return [{', '.join(results)}]")
    namespace: dict[str, Any] = {"sincos": sincos}
    exec(compile("\n".join(lines), f"<{program.name}>", "exec"), namespace)
    function: Callable[[Sequence[Any]], list[Any]] = namespace["evaluate"]
    return function

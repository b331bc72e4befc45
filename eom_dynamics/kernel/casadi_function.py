# SPDX-License-Identifier: Apache-2.0
"""Programs as functions of CasADi."""

from __future__ import annotations

import importlib
from typing import Any

from ..exceptions import KernelError
from .emit_python import python_function
from .program import Program


def casadi_function(program: Program) -> Any:
    """The program as a ``casadi.Function`` of its name, with its inputs and outputs by name, as columns.

    Raises:
        KernelError: CasADi is not installed.
    """
    try:
        casadi: Any = importlib.import_module("casadi")
    except ImportError:
        raise KernelError("CasADi is not installed; run: pip install casadi") from None
    symbols = [casadi.SX.sym(key, size) for key, size in program.inputs.items()]
    results = iter(python_function(program)([x for symbol in symbols for x in casadi.vertsplit(symbol)]))
    values = [casadi.vertcat(*(next(results) for _ in range(size))) for size in program.outputs.values()]
    return casadi.Function(program.name, symbols, values, list(program.inputs), list(program.outputs))

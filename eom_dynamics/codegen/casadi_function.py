# SPDX-License-Identifier: Apache-2.0
"""Programs as CasADi functions."""

from __future__ import annotations

import importlib
from typing import Any

from ..exceptions import KernelError
from ..extras import MissingLibraryError, require
from .emit_python import python_function
from .program import Program


def casadi_function(program: Program) -> Any:
    """The program as a ``casadi.Function`` with named inputs and outputs, which are columns."""
    try:
        require("casadi")
    except MissingLibraryError as error:
        raise KernelError(str(error)) from None
    casadi: Any = importlib.import_module("casadi")
    symbols = [casadi.SX.sym(key, size) for key, size in program.inputs.items()]
    results = iter(python_function(program)([x for symbol in symbols for x in casadi.vertsplit(symbol)]))
    values = [casadi.vertcat(*(next(results) for _ in range(size))) for size in program.outputs.values()]
    return casadi.Function(program.name, symbols, values, list(program.inputs), list(program.outputs))

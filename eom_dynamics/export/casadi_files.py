# SPDX-License-Identifier: Apache-2.0
"""Export as serialized CasADi functions for Python, C++, MATLAB and Octave."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

from ..codegen.casadi_function import casadi_function
from .functions import Steps
from .project import Project
from .stored_values import StoredValues


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the functions by name, for ``casadi.Function.load``."""
    contents = {}
    with tempfile.TemporaryDirectory(prefix="eom_dynamics-") as folder:
        for function in project.functions.values():
            path = Path(folder, f"{function.name}.casadi")
            (_steps(function) if isinstance(function, Steps) else casadi_function(function)).save(str(path))
            contents[path.name] = path.read_bytes()
    return contents


def _steps(function: Steps) -> Any:
    """Programs one after the other as a ``casadi.Function``."""
    casadi: Any = importlib.import_module("casadi")
    inputs = {name: casadi.SX.sym(name, size) for name, size in function.inputs.items()}
    values = dict(inputs)
    for program in function.programs:
        found = casadi_function(program)(**{name: values[name] for name in program.inputs})
        values |= {name: found[name] for name in program.outputs}
    outputs = {name: values[name] for name in function.outputs}
    return casadi.Function(function.name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs))

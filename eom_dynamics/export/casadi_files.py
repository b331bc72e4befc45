# SPDX-License-Identifier: Apache-2.0
"""Export as serialized CasADi functions, which can be loaded in Python, C++, MATLAB and Octave."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..codegen.casadi_function import casadi_function
from .project import Project
from .stored_values import StoredValues


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the programs by name, for ``casadi.Function.load``; the motor feedforward is none of them.

    Raises:
        KernelError: CasADi is not installed.
    """
    contents = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in project.programs.values():
            path = Path(folder) / f"{program.name}.casadi"
            casadi_function(program).save(str(path))
            contents[path.name] = path.read_bytes()
    return contents

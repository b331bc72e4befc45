# SPDX-License-Identifier: Apache-2.0
"""Programs as serialized functions of CasADi, which its interfaces for Python, C++, MATLAB and Octave load."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..casadi_function import casadi_function
from .project import Project
from .stored_values import StoredValues


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """A file for each function, for ``casadi.Function.load``.

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

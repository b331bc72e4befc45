# SPDX-License-Identifier: Apache-2.0
"""Languages of exported code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from . import c_project, casadi_files, cpp_project, cuda_project, matlab, ros2_control
from .project import Project
from .stored_values import StoredValues

LANGUAGES: Mapping[str, Callable[[Project, StoredValues], dict[str, bytes]]] = MappingProxyType(
    {
        "c": c_project.files,
        "cpp": cpp_project.files,
        "matlab": matlab.files,
        "casadi": casadi_files.files,
        "cuda": cuda_project.files,
        "ros2_control": ros2_control.files,
    }
)
"""Functions that return the files of a language by name, by language."""

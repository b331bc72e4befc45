# SPDX-License-Identifier: Apache-2.0
"""A robot's dynamics as code that stands alone: C, CUDA, MATLAB and CasADi, with tests by stored values."""

from .languages import LANGUAGES
from .project import Project, project
from .readme import readme
from .stored_values import ExportError, StoredValues, stored_values

__all__ = [
    "LANGUAGES",
    "ExportError",
    "Project",
    "StoredValues",
    "project",
    "readme",
    "stored_values",
]

# SPDX-License-Identifier: Apache-2.0
"""Export of a robot's dynamics as standalone C, CUDA, MATLAB and CasADi code, with tests against stored values."""

from .files import project_files
from .languages import LANGUAGES
from .motors import FEEDFORWARD
from .plant import PLANT
from .precision import PRECISIONS
from .project import FUNCTIONS, STRAIGHT_LINE, Project, UnavailableError, project
from .readme import readme
from .stored_values import ExportError, StoredValues, stored_values

__all__ = [
    "FEEDFORWARD",
    "FUNCTIONS",
    "LANGUAGES",
    "PLANT",
    "PRECISIONS",
    "STRAIGHT_LINE",
    "ExportError",
    "Project",
    "StoredValues",
    "UnavailableError",
    "project",
    "project_files",
    "readme",
    "stored_values",
]

# SPDX-License-Identifier: Apache-2.0
"""Export of a robot's functions as standalone C, CUDA, MATLAB and CasADi code with tests, and for ROS 2."""

from .compiled_loop import LoopLibrary, UnavailableError, loop_library
from .functions import FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD, FUNCTIONS, ON_BASE, PLANT, STRAIGHT_LINE
from .languages import LANGUAGES, Capability, capabilities, project_files, readme
from .project import Project, project
from .stored_values import StoredValues, stored_values

__all__ = [
    "FEEDFORWARD",
    "FEEDFORWARD_WITH_PAYLOAD",
    "FUNCTIONS",
    "LANGUAGES",
    "ON_BASE",
    "PLANT",
    "STRAIGHT_LINE",
    "Capability",
    "LoopLibrary",
    "Project",
    "StoredValues",
    "UnavailableError",
    "capabilities",
    "loop_library",
    "project",
    "project_files",
    "readme",
    "stored_values",
]

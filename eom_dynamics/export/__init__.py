# SPDX-License-Identifier: Apache-2.0
"""Export of a robot's functions as C, C++, CUDA, MATLAB and CasADi code that stands alone, with tests."""

from .compiled_loop import LoopLibrary, loop_library
from .functions import FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD, FUNCTIONS, ON_BASE, PLANT, STRAIGHT_LINE
from .languages import LANGUAGES, Capability, UnavailableError, capabilities, project_files, readme
from .project import PRECISIONS, Project, project
from .ros2_control import generic_files
from .stored_values import StoredValues, stored_values

__all__ = [
    "FEEDFORWARD",
    "FEEDFORWARD_WITH_PAYLOAD",
    "FUNCTIONS",
    "LANGUAGES",
    "ON_BASE",
    "PLANT",
    "PRECISIONS",
    "STRAIGHT_LINE",
    "Capability",
    "LoopLibrary",
    "Project",
    "StoredValues",
    "UnavailableError",
    "capabilities",
    "generic_files",
    "loop_library",
    "project",
    "project_files",
    "readme",
    "stored_values",
]

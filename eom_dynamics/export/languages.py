# SPDX-License-Identifier: Apache-2.0
"""Languages of exported code, and the functions available in each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..codegen.backends import require_numeric_robot
from ..elastic.motor_side import MotorSide
from ..exceptions import EomDynamicsError
from ..extras import missing
from ..robot import Robot
from . import c_project, casadi_files, cpp_project, cuda_project, matlab, ros2_control
from .functions import FEEDFORWARD, FUNCTIONS, why_not
from .project import PRECISIONS, Project
from .stored_values import StoredValues


class UnavailableError(EomDynamicsError):
    """The functions of a project are not available in this language."""


class Language(NamedTuple):
    """A language of exported code.

    Attributes:
        files: function of a project and its stored values that returns the files by name.
        names: function that says whether the language can have a name; None if it can have all.
        needs: function without which there is nothing to export, or None.
        precisions: those of its numbers.
        extra: extra that installs the library that it takes here, or None.
    """

    files: Callable[[Project, StoredValues], dict[str, bytes]]
    names: Callable[[str], bool] | None = None
    needs: str | None = None
    precisions: tuple[str, ...] = PRECISIONS[:1]
    extra: str | None = None


LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        "c": Language(c_project.files, precisions=PRECISIONS),
        "cpp": Language(cpp_project.files, cpp_project.can_be_written, FEEDFORWARD, PRECISIONS),
        "matlab": Language(matlab.files),
        "casadi": Language(casadi_files.files, extra="casadi"),
        "cuda": Language(cuda_project.files),
        "ros2_control": Language(ros2_control.files, ros2_control.can_be_written, FEEDFORWARD),
    }
)
"""Languages by name."""


class Capability(NamedTuple):
    """Functions that can be exported in a language.

    Attributes:
        functions: names of the functions that can be.
        missing: for each other function, the reason.
    """

    functions: tuple[str, ...]
    missing: Mapping[str, str]


def capabilities(robot: object) -> Mapping[str, Capability]:
    """Functions of a robot that can be exported in each language, and why others cannot.

    Args:
        robot: a :class:`.Robot`; of anything else, such as closed loops or a floating base, nothing can be exported.

    Returns:
        By language, see :data:`LANGUAGES`; functions are those of :data:`.FUNCTIONS`.
    """
    if not isinstance(robot, Robot):
        reason = (
            f"only a Robot can be exported, with a fixed or moving base and without loops; not {type(robot).__name__}"
        )
        return {name: Capability((), dict.fromkeys(FUNCTIONS, reason)) for name in LANGUAGES}
    require_numeric_robot(robot)
    side = MotorSide.of(robot)
    reasons = {function: why_not(robot, side, function) for function in FUNCTIONS}
    found = {}
    for name, language in LANGUAGES.items():
        of_language = why_not_here(name) or _unwritable(robot, name)
        if language.needs is not None:
            of_language = of_language or reasons[language.needs]
        absent = {function: text for function in FUNCTIONS if (text := of_language or reasons[function])}
        found[name] = Capability(tuple(function for function in FUNCTIONS if function not in absent), absent)
    return found


def unavailable(project: Project, language: str) -> str | None:
    """Reason why a language cannot express a project, on any installation; None if it can."""
    known = LANGUAGES[language]
    if known.needs is not None and known.needs not in project.functions:
        return f"{language} needs the function {known.needs}; export it too"
    if project.precision not in known.precisions:
        return f"{language} has double precision only"
    return _unwritable(project.robot, language)


def _unwritable(robot: Robot, language: str) -> str | None:
    allowed = LANGUAGES[language].names
    for name in (robot.name, *robot.joint_names):
        if allowed is not None and not allowed(name):
            return f"{language} cannot have the name {name!r}: rename it without such characters"
    return None


def why_not_here(language: str) -> str | None:
    """Reason why this installation cannot write a language; None if it can."""
    extra = LANGUAGES[language].extra
    return None if extra is None else missing(extra)

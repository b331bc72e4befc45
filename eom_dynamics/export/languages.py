# SPDX-License-Identifier: Apache-2.0
"""Languages of exported code, their available functions, and project files with a README."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ..codegen.backends import require_numeric_robot
from ..codegen.c_functions import filled
from ..codegen.program import Program
from ..codegen.straight_line import casadi_function
from ..elastic.motor_side import MotorSide
from ..exceptions import missing
from ..robot import Robot
from . import c_project, dynamics_solver, matlab, ros2_control
from .compiled_loop import UnavailableError
from .functions import FEEDFORWARD, FRICTION, FUNCTIONS, Function, Steps, function_unavailable
from .project import SUMMARIES, Project, refused_names, template
from .stored_values import StoredValues, stored_values


def _casadi_files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Serialized functions by file name, for ``casadi.Function.load`` in Python, C++, MATLAB and Octave."""
    contents = {}
    with tempfile.TemporaryDirectory(prefix="eom_dynamics-") as folder:
        for function in project.functions.values():
            path = Path(folder, f"{function.name}.casadi")
            (_casadi_steps(function) if isinstance(function, Steps) else casadi_function(function)).save(str(path))
            contents[path.name] = path.read_bytes()
    return contents


def _casadi_steps(function: Steps) -> Any:
    casadi: Any = importlib.import_module("casadi")
    inputs = {name: casadi.SX.sym(name, size) for name, size in function.inputs.items()}
    values = dict(inputs)
    for program in function.programs:
        results = casadi_function(program)(**{name: values[name] for name in program.inputs})
        values |= {name: results[name] for name in program.outputs}
    outputs = {name: values[name] for name in function.outputs}
    return casadi.Function(function.name, list(inputs.values()), list(outputs.values()), list(inputs), list(outputs))


class Language(NamedTuple):
    """A language of exported code.

    Attributes:
        write: maps a project and its stored values to file contents by name.
        refusal: returns the reason why the language cannot express a robot, or None.
        required: functions that every export requires.
        extra: extra that installs the required library, or None.
    """

    write: Callable[[Project, StoredValues], Mapping[str, str | bytes]]
    refusal: Callable[[Robot], str | None] = lambda _: None
    required: tuple[str, ...] = ()
    extra: str | None = None

    def files(self, project: Project, stored: StoredValues) -> dict[str, bytes]:
        """File contents of a project by path."""
        written = self.write(project, stored).items()
        return {path: x if isinstance(x, bytes) else x.encode("ascii") for path, x in written}


LANGUAGES: Mapping[str, Language] = MappingProxyType(
    {
        "c": Language(c_project.c_files),
        "matlab": Language(matlab.matlab_files),
        "casadi": Language(_casadi_files, extra="casadi"),
        "cuda": Language(c_project.cuda_files),
        "ros2_control": Language(ros2_control.package_files, ros2_control.refusal, (FEEDFORWARD,)),
        "inverse_dynamics_solver": Language(dynamics_solver.solver_files, refused_names, (FEEDFORWARD, FRICTION)),
    }
)
"""Languages by name."""


class Capability(NamedTuple):
    """Functions that can be exported in a language.

    Attributes:
        functions: names of exportable functions.
        missing: reason for each other function.
    """

    functions: tuple[str, ...]
    missing: Mapping[str, str]


def capabilities(robot: object) -> Mapping[str, Capability]:
    """Exportable functions of a robot in each language, and reasons for the others.

    Args:
        robot: a :class:`.Robot`; nothing can be exported of other objects, such as closed loops or a floating base.

    Returns:
        Capabilities by language, see :data:`LANGUAGES`; functions as in :data:`.FUNCTIONS`.
    """
    if not isinstance(robot, Robot):
        reason = (
            f"only a Robot can be exported, with a fixed or moving base and without loops; not {type(robot).__name__}"
        )
        return {name: Capability((), dict.fromkeys(FUNCTIONS, reason)) for name in LANGUAGES}
    require_numeric_robot(robot)
    side = MotorSide.of(robot)
    reasons = {function: function_unavailable(robot, side, function) for function in FUNCTIONS}
    by_language = {}
    for name, language in LANGUAGES.items():
        of_language = library_missing(name) or language.refusal(robot)
        of_language = of_language or next((text for x in language.required if (text := reasons[x])), None)
        absent = {function: text for function in FUNCTIONS if (text := of_language or reasons[function])}
        by_language[name] = Capability(tuple(function for function in FUNCTIONS if function not in absent), absent)
    return by_language


def language_unavailable(project: Project, language: str) -> str | None:
    """Reason why a language cannot express a project, on any installation; None if it can."""
    known = LANGUAGES[language]
    for function in known.required:
        if function not in project.functions:
            return f"{language} needs the function {function}; export it too"
    return known.refusal(project.robot)


def library_missing(language: str) -> str | None:
    """Reason why this installation cannot write a language; None if it can."""
    extra = LANGUAGES[language].extra
    return None if extra is None else missing(extra)


def project_files(project: Project, languages: Sequence[str] | None = None) -> tuple[dict[str, bytes], dict[str, str]]:
    """Generate the code of a project.

    Args:
        project: a robot's programs.
        languages: keys of :data:`LANGUAGES`; None for all languages available here.

    Returns:
        File contents by path, and reasons by name of languages that cannot be generated here.

    Raises:
        UnavailableError: a language of ``languages`` cannot be generated here, or for this project.
    """
    wanted = list(dict.fromkeys(LANGUAGES if languages is None else languages))
    unable = {x: reason for x in wanted if (reason := language_unavailable(project, x))}
    missing = {x: reason for x in wanted if x not in unable and (reason := library_missing(x))}
    generated = [x for x in wanted if x not in unable | missing]
    if languages is not None and len(generated) < len(wanted):
        raise UnavailableError(next(iter((unable | missing).values())))
    stored = stored_values(project)
    files = {
        f"{language}/{name}": content
        for language in generated
        for name, content in LANGUAGES[language].files(project, stored).items()
    }
    return {"README.md": readme(project, generated), **files}, missing


def readme(project: Project, languages: Sequence[str]) -> bytes:
    """README in Markdown for these languages."""
    functions = [
        f"- `{function.name}`: {SUMMARIES[name]}\n"
        f"  {', '.join(function.inputs)} → {', '.join(function.outputs)}; {_cost(function)}"
        for name, function in project.functions.items()
    ]
    first = next(iter(project.programs.values()))
    parts = [
        f"# Dynamics of {project.name}\n",
        project.notice_as("    ") + "\n",
        "## Functions\n",
        "\n".join(functions) + "\n",
    ]
    for language in languages:
        parts.append(
            filled(
                template(f"readme_{language}.md.in"),
                library=project.library,
                name=ros2_control.file_name(project),
                solver=dynamics_solver.solver_name(project),
                option=project.library.upper(),
                function=first.name,
                inputs=", ".join(first.inputs),
                outputs=", ".join(first.outputs),
            )
        )
    return "\n".join(parts).encode()


def _cost(function: Function) -> str:
    if isinstance(function, Program):
        total = function.costs()["total"]
        return f"{total} operations a state" if total else "no operations but factors of results"
    return f"{' then '.join(f'`{step.name}`' for step in function.programs)}"

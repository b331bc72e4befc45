# SPDX-License-Identifier: Apache-2.0
"""Write a robot's dynamics as self-contained C, C++, MATLAB, CasADi and CUDA code, with tests by stored values."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...exceptions import EomDynamicsError, RobotDescriptionError
from ...export import (
    FEEDFORWARD,
    FUNCTIONS,
    LANGUAGES,
    PLANT,
    PRECISIONS,
    STRAIGHT_LINE,
    ExportError,
    Project,
    project,
    project_files,
)
from ...export.motors import require_feedforward
from ...robot import Robot
from ...terminal import printable
from ..text_tables import columns, operation_counts
from ..writing import check_folder, write_folder
from .arguments import path
from .console import complain
from .robot_arguments import add_robot_arguments, load

SUMMARY = "write a robot's dynamics as C, C++, MATLAB, CasADi and CUDA code"

# Languages with a choice of the precision.
_WITH_PRECISION = ("c", "cpp")

# Languages that are nothing without the motor feedforward.
_WITH_FEEDFORWARD = ("cpp", "ros2_control")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    add_robot_arguments(parser)
    parser.add_argument("-o", "--output", metavar="DIR", type=path, required=True, help="folder for the code")
    parser.add_argument(
        "--language",
        action="append",
        choices=LANGUAGES,
        help="may be repeated; default: all, without CasADi where it is not installed",
    )
    parser.add_argument(
        "--functions",
        type=_functions,
        metavar="NAME,…",
        help=f"some of {','.join(FUNCTIONS)}; default: all that the robot has, for ros2_control "
        f"alone those that it calls. {FEEDFORWARD}, motion and efforts of "
        "the motors of elastic joints, is not available for CasADi and for the complete rotor model; inverse_dynamics, "
        f"which it calls, is written too. {PLANT}, for simulation and feedback, is in C and C++ alone, and is written "
        "with the functions that it calls",
    )
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=PRECISIONS[0],
        help=f"of the numbers in the languages {', '.join(_WITH_PRECISION)}, the only ones that may be requested with "
        "single; default: %(default)s",
    )
    parser.add_argument("--force", action="store_true", help="write into a folder that is not empty")


def run(options: argparse.Namespace) -> int:
    """Write the code and list it; returns the exit code, 1 if the code fails its own test.

    Raises:
        EomDynamicsError: the robot cannot be used, the folder is not empty or cannot be written, CasADi is requested
            and missing, or a requested function is not available for the robot or for a requested language.
        OSError: the folder cannot be read.
    """
    check_folder(options.output, force=options.force)
    if FEEDFORWARD in (options.functions or ()) and "casadi" in (options.language or ()):
        raise EomDynamicsError(f"{FEEDFORWARD} is not available for CasADi; leave out one of them")
    languages = options.language
    if options.precision == "single":
        languages = languages or list(_WITH_PRECISION)
        for language in set(languages) - set(_WITH_PRECISION):
            raise EomDynamicsError(f"{language} has double precision only; leave it out, or use --precision double")
    exported = _project(options, load(options))
    try:
        try:
            files, skipped = project_files(exported, languages)
        except RobotDescriptionError as error:
            exported = _without_plant(exported, options, error)
            files, skipped = project_files(exported, languages)
    except ExportError as error:
        complain(options.program, str(error))
        return 1
    write_folder(options.output, files, force=options.force)
    for language, reason in skipped.items():
        complain(options.program, f"no {language}: {reason}")
    print("\n".join([*_operations(exported), "", *_sizes(files, options.output)]))
    return 0


def _project(options: argparse.Namespace, robot: Robot) -> Project:
    """Requested functions of the robot, by default all that it has."""
    if options.functions is not None:
        return project(robot, options.functions, precision=options.precision)
    if set(options.language or LANGUAGES) == {"casadi"}:
        return project(robot, STRAIGHT_LINE)
    # The controller calls no others, and stored values of all of them take long for a robot of many joints.
    alone = set(options.language or ()) == {"ros2_control"}
    functions, missing = [FEEDFORWARD, PLANT] if alone else list(FUNCTIONS), []
    for name in (PLANT, FEEDFORWARD):
        try:
            exported = project(robot, functions, precision=options.precision)
            break
        except RobotDescriptionError as error:
            if name == FEEDFORWARD and not set(_WITH_FEEDFORWARD).isdisjoint(options.language or ()):
                raise
            functions.remove(name)
            # Without a feedforward there is no plant either, for the same reason.
            if name == FEEDFORWARD or _has_feedforward(robot):
                missing.append(f"no {name}: {error}")
    else:
        exported = project(robot, functions, precision=options.precision)
    for line in missing:
        complain(options.program, line)
    return exported


def _without_plant(exported: Project, options: argparse.Namespace, error: RobotDescriptionError) -> Project:
    """Return the project without the plant, which needs accelerations that a singular mass matrix does not give."""
    functions = list(exported.functions)
    if options.functions is not None or not functions:
        others = ", ".join(name for name in FUNCTIONS if name != PLANT)
        raise RobotDescriptionError(f"{error}; functions that can be exported: {others}") from None
    complain(options.program, f"no {PLANT}: {error}")
    return project(exported.robot, functions, precision=options.precision)


def _has_feedforward(robot: Robot) -> bool:
    try:
        require_feedforward(robot)
    except RobotDescriptionError:
        return False
    return True


def _operations(exported: Project) -> list[str]:
    return operation_counts({program.name: program.costs() for program in exported.programs.values()})


def _sizes(files: dict[str, bytes], folder: Path) -> list[str]:
    """Return a table of the folders and files that were written."""
    sizes: dict[str, list[int]] = {}
    for name, content in files.items():
        sizes.setdefault(name.partition("/")[0], []).append(len(content))
    rows = [
        (printable(str(folder / name)), str(len(each)), f"{sum(each) / 1000:,.0f} kB") for name, each in sizes.items()
    ]
    return columns([("", "files", "size"), *rows], right_from=1)


def _functions(text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in FUNCTIONS:
            raise argparse.ArgumentTypeError(f"must be some of {','.join(FUNCTIONS)}, has {name!r}")
    return names

# SPDX-License-Identifier: Apache-2.0
"""Write a robot's dynamics as self-contained C, MATLAB, CasADi and CUDA code, with tests by stored values."""

from __future__ import annotations

import argparse
from pathlib import Path

from ...exceptions import EomDynamicsError, RobotDescriptionError
from ...export import FEEDFORWARD, FUNCTIONS, LANGUAGES, STRAIGHT_LINE, ExportError, Project, project, project_files
from ...robot import Robot
from ...terminal import printable
from ..text_tables import columns, operation_counts
from ..writing import check_folder, write_folder
from .arguments import path
from .console import complain
from .robot_arguments import add_robot_arguments, load

SUMMARY = "write a robot's dynamics as C, MATLAB, CasADi and CUDA code"


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
        help=f"some of {','.join(FUNCTIONS)}; default: all that the robot has. {FEEDFORWARD}, motion and efforts of "
        "the motors of elastic joints, is not available for CasADi and for the complete rotor model; inverse_dynamics, "
        "which it calls, is written too",
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
    exported = _project(options, load(options))
    try:
        files, skipped = project_files(exported, options.language)
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
        return project(robot, options.functions)
    if set(options.language or LANGUAGES) == {"casadi"}:
        return project(robot, STRAIGHT_LINE)
    try:
        return project(robot, FUNCTIONS)
    except RobotDescriptionError as error:
        complain(options.program, f"no {FEEDFORWARD}: {error}")
        return project(robot, STRAIGHT_LINE)


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

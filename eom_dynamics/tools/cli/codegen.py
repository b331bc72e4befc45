# SPDX-License-Identifier: Apache-2.0
"""Write a robot's dynamics as C, MATLAB, CasADi and CUDA code with stored tests, and as packages for ROS 2.

With --language loop, compile its kernels to a library for the ros2_control controller and its simulated robot, and
print the path. Without -o, it is in the cache: a robot that has not changed is not compiled again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ...export import (
    FEEDFORWARD,
    FUNCTIONS,
    LANGUAGES,
    ON_BASE,
    PLANT,
    Project,
    capabilities,
    loop_library,
    project,
    project_files,
)
from ...export.functions import OBSERVER
from ...robot import Robot
from ..options import add_output_file, add_robot_arguments, comma_separated, load, one_of, path
from ..results import Result, ResultSection, TextTable, operation_counts
from ..writing import check_folder, write_file, write_folder

LOOP = "loop"

# Only on request: programs of a floating base are as long as all others together, and observers need one around theirs.
_ON_REQUEST = tuple(name for name in FUNCTIONS if "on_base" in name or name in OBSERVER)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser)
    what = (
        f"folder to write; with --language {LOOP} optional, a library, .so, such as for a computer without a compiler"
    )
    add_output_file(parser, "OUT", path, what, required=False)
    what = f"may be repeated, except for {LOOP}; default: all others, CasADi only if installed"
    parser.add_argument("--language", action="append", choices=(*LANGUAGES, LOOP), help=what)
    parser.add_argument(
        "--functions",
        type=comma_separated(one_of(FUNCTIONS)),
        metavar="NAME,…",
        help=f"some of {','.join(FUNCTIONS)}; default: all of the robot except those on a moving base and of "
        f"observers. {FEEDFORWARD}, motion and efforts of the motors of elastic joints, {ON_BASE}, and {PLANT}, for "
        "simulation, are written with the functions that they call",
    )


def run(options: argparse.Namespace) -> Result:
    is_loop = LOOP in (options.language or ())
    if not (options.output or is_loop):
        options.refuse("the following arguments are required: -o/--output")
    if is_loop:
        return _compile_loop(options)
    check_folder(options.output, force=options.force)
    exported, missing = _project(options, load(options))
    files, skipped = project_files(exported, options.language)
    write_folder(options.output, files, force=options.force)
    costs = {program.name: program.costs() for program in exported.programs.values()}
    # Factors of results are no operations, and some programs have nothing else.
    counted = {name: counts for name, counts in costs.items() if counts["total"]}
    tables = [*([operation_counts(counted)] if counted else []), _sizes(files, options.output)]
    return Result(
        sections=[ResultSection(tables=[table]) for table in tables],
        warnings=[f"no {name}: {reason}" for name, reason in (missing | skipped).items()],
    )


def _compile_loop(options: argparse.Namespace) -> Result:
    """Compile the kernels for a control loop; the result has robot, fingerprint and path."""
    output: Path | None = options.output
    if options.language != [LOOP] or options.functions:
        options.refuse(f"--language {LOOP} is for itself, without --functions")
    if output is not None and output.suffix != ".so":
        options.refuse(f"argument -o/--output: must end in .so with --language {LOOP}, is {str(output)!r}")
    robot = load(options)
    library = loop_library(robot)
    if output is not None:
        write_file(output, library.content, force=options.force)
    line = f"{robot.name}: {robot.n} joints, fingerprint {library.fingerprint}"
    return Result(lead=[line, str(output or library.path)])


def _project(options: argparse.Namespace, robot: Robot) -> tuple[Project, dict[str, str]]:
    """Requested functions of the robot, by default all that it has, and why the plant is not one of these."""
    wanted, missing = options.functions, {}
    if wanted is None:
        able = capabilities(robot)["c"]
        # Packages for ROS 2 need no others, and stored values of all of them take long for a robot of many joints.
        required = [LANGUAGES[language].required for language in dict.fromkeys(options.language or ())]
        alone = required[0] if len(required) == 1 else ()
        default = alone or (name for name in FUNCTIONS if name not in _ON_REQUEST)
        wanted = [name for name in default if name in able.functions]
        missing = {name: reason for name, reason in able.missing.items() if name == PLANT}
    return project(robot, list(dict.fromkeys(wanted))), missing


def _sizes(files: dict[str, bytes], folder: Path) -> TextTable:
    sizes: dict[str, list[int]] = {}
    for name, content in files.items():
        sizes.setdefault(name.partition("/")[0], []).append(len(content))
    rows = [(str(folder / name), str(len(counts)), f"{sum(counts) / 1000:,.0f} kB") for name, counts in sizes.items()]
    return TextTable(("", "files", "size"), rows)

# SPDX-License-Identifier: Apache-2.0
"""Write a robot's dynamics as C, C++, MATLAB, CasADi and CUDA code or a ros2_control package, with stored tests.

With --language loop, compile its kernels to a library for the ros2_control controller of every robot, and print
the path. Without -o, it is in the cache: a robot that has not changed is not compiled again.
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
    PRECISIONS,
    Project,
    capabilities,
    generic_files,
    loop_library,
    project,
    project_files,
)
from ...export.functions import OBSERVER, controller_functions
from ...robot import Robot
from ..results import Result, ResultSection, TextTable, operation_counts
from ..writing import check_folder, write_file, write_folder
from .arguments import add_output_file, add_robot_arguments, load
from .options import comma_separated, one_of, path

LOOP = "loop"

# Only on request: programs on a base are as long as those of all others, and those of observers need one around them.
_ON_REQUEST = tuple(name for name in FUNCTIONS if "on_base" in name or name in OBSERVER)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_robot_arguments(parser, note="; none with --generic", nargs="?")
    what = (
        f"folder to write; with --language {LOOP} optional, a library, .so, such as for a computer without a compiler"
    )
    add_output_file(parser, "OUT", path, what, required=False)
    what = f"may be repeated, but for {LOOP}; default: all others, without CasADi where it is not installed"
    parser.add_argument("--language", action="append", choices=(*LANGUAGES, LOOP), help=what)
    parser.add_argument(
        "--generic",
        action="store_true",
        help="with --language ros2_control: one controller for every robot, whose loop it compiles or loads when it is "
        f"configured, as --language {LOOP} does",
    )
    what = f"with --language {LOOP}: setpoints may have a motion of the base, for which code is compiled, too"
    parser.add_argument("--moving-base", action="store_true", help=what)
    parser.add_argument(
        "--functions",
        type=comma_separated(one_of(FUNCTIONS)),
        metavar="NAME,…",
        help=f"some of {','.join(FUNCTIONS)}; default: all of the robot except those on a moving base "
        "and of observers, for "
        f"ros2_control alone those that it calls. {FEEDFORWARD}, motion and efforts of the motors of elastic joints, "
        f"{ON_BASE}, and {PLANT}, for simulation and feedback, are written with the functions that they call",
    )
    languages = ", ".join(name for name, language in LANGUAGES.items() if "single" in language.precisions)
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=PRECISIONS[0],
        help=f"precision of the numbers in the languages {languages}, the only ones that may be requested with single; "
        "default: %(default)s",
    )


def run(options: argparse.Namespace) -> Result:
    is_loop = LOOP in (options.language or ())
    if options.generic and (options.language != ["ros2_control"] or options.robot is not None):
        options.refuse("--generic is for --language ros2_control alone, and for every robot: leave out ROBOT")
    for name, value in (("ROBOT", options.robot or options.generic), ("-o/--output", options.output or is_loop)):
        if not value:
            options.refuse(f"the following arguments are required: {name}")
    if options.moving_base and not is_loop:
        options.refuse(f"--moving-base is for --language {LOOP}; others have --functions {ON_BASE}")
    if is_loop:
        return _compile_loop(options)
    check_folder(options.output, force=options.force)
    if options.generic:
        files = {f"ros2_control/{name}": text.encode("ascii") for name, text in generic_files().items()}
        write_folder(options.output, files, force=options.force)
        return Result(sections=[ResultSection(tables=[_sizes(files, options.output)])])
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
    if options.language != [LOOP] or options.functions or options.precision != PRECISIONS[0]:
        options.refuse(f"--language {LOOP} is for itself, without --functions and --precision")
    if output is not None and output.suffix != ".so":
        options.refuse(f"argument -o/--output: must end in .so with --language {LOOP}, is {str(output)!r}")
    robot = load(options)
    library = loop_library(robot, moving_base=options.moving_base)
    if output is not None:
        write_file(output, library.content, force=options.force)
    line = f"{robot.name}: {robot.n} joints, fingerprint {library.fingerprint}"
    return Result(lead=[line, str(output or library.path)])


def _project(options: argparse.Namespace, robot: Robot) -> tuple[Project, dict[str, str]]:
    """Requested functions of the robot, by default all that it has, and why the plant is not one of these."""
    wanted, missing = options.functions, {}
    if wanted is None:
        able = capabilities(robot)["c"]
        # These packages call no others, and stored values of all of them take long for a robot of many joints.
        alone = ",".join(dict.fromkeys(options.language or ()))
        if alone == "ros2_control":
            default = controller_functions(robot)
        elif alone == "inverse_dynamics_solver":
            default = [*LANGUAGES[alone].required]
        else:
            default = [name for name in FUNCTIONS if name not in _ON_REQUEST]
        wanted = [name for name in default if name in able.functions]
        missing = {name: reason for name, reason in able.missing.items() if name == PLANT}
    return project(robot, list(dict.fromkeys(wanted)), precision=options.precision), missing


def _sizes(files: dict[str, bytes], folder: Path) -> TextTable:
    sizes: dict[str, list[int]] = {}
    for name, content in files.items():
        sizes.setdefault(name.partition("/")[0], []).append(len(content))
    rows = [(str(folder / name), str(len(counts)), f"{sum(counts) / 1000:,.0f} kB") for name, counts in sizes.items()]
    return TextTable(("", "files", "size"), rows)

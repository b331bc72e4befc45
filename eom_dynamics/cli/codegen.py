# SPDX-License-Identifier: Apache-2.0
"""Write a robot's dynamics as code that stands alone, in C, MATLAB, CasADi and CUDA, with tests by stored values."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..exceptions import KernelError
from ..kernel.export import (
    LANGUAGES,
    ExportError,
    Project,
    project,
    readme,
    stored_values,
)
from ..kernel.programs import PROGRAMS
from ..robot import load_robot, packaged_robots
from ..terminal import printable
from ..writing import check_folder, write_folder
from .arguments import folder
from .messages import complain
from .tables import columns, cost_rows

SUMMARY = "write a robot's dynamics as C, MATLAB, CasADi and CUDA code"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument(
        "robot", metavar="ROBOT", help=f"a packaged robot ({', '.join(packaged_robots())}) or a parameter file (.yaml)"
    )
    parser.add_argument("-o", "--output", metavar="DIR", type=folder, required=True, help="folder for the code")
    parser.add_argument(
        "--language",
        action="append",
        choices=LANGUAGES,
        help="may be given more than once; default: all, but CasADi only where it is installed",
    )
    parser.add_argument(
        "--functions",
        type=_names,
        default=list(PROGRAMS),
        help=f"some of {','.join(PROGRAMS)}, separated by commas; default: all",
    )
    parser.add_argument("--force", action="store_true", help="write over what is in DIR already")


def run(options: argparse.Namespace) -> int:
    """Write the code and show what was written; returns the exit code, 1 if the code fails its own test.

    Raises:
        EomDynamicsError: the robot cannot be loaded, the folder is not empty or cannot be written, or CasADi is asked
            for and missing.
        OSError: the folder cannot be read.
    """
    check_folder(options.output, force=options.force)
    exported = project(load_robot(options.robot), options.functions)
    try:
        files = _files(exported, options.language)
    except ExportError as error:
        complain("eom_dynamics codegen", str(error))
        return 1
    write_folder(options.output, files, force=options.force)
    print(_summary(exported, files, options.output))
    return 0


def _files(exported: Project, asked: list[str] | None) -> dict[str, bytes]:
    """The contents of all files by path."""
    stored = stored_values(exported)
    files: dict[str, bytes] = {}
    languages = []
    for language in dict.fromkeys(asked or LANGUAGES):
        try:
            made = LANGUAGES[language](exported, stored)
        except KernelError as error:
            if asked:
                raise
            complain("eom_dynamics codegen", f"no {language}: {error}")
            continue
        languages.append(language)
        files |= {f"{language}/{name}": content for name, content in made.items()}
    return {"README.md": readme(exported, languages), **files}


def _summary(exported: Project, files: dict[str, bytes], folder: Path) -> str:
    costs = {program.name: program.costs() for program in exported.programs.values()}
    written: dict[str, list[int]] = {}
    for name, content in files.items():
        written.setdefault(name.partition("/")[0], []).append(len(content))
    listed = [
        (printable(str(folder / name)), str(len(sizes)), f"{sum(sizes) / 1000:,.0f} kB")
        for name, sizes in written.items()
    ]
    return "\n".join(
        [*columns(cost_rows(costs), right_from=1), "", *columns([("", "files", "size"), *listed], right_from=1)]
    )


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in PROGRAMS:
            raise argparse.ArgumentTypeError(f"must be some of {','.join(PROGRAMS)}, has {name!r}")
    return names

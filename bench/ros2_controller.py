# SPDX-License-Identifier: Apache-2.0
"""Cycle of the generated ros2_control controller, and of that of every robot, with observers, too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from compiled import scratch
from report import Bar, Section, Table, seconds
from settings import QUICK, Settings

from eom_dynamics import load_robot
from eom_dynamics.export import LANGUAGES, generic_files, loop_library, project, stored_values
from eom_dynamics.export.cpp_project import type_name
from eom_dynamics.export.functions import controller_functions

_ROBOTS = ("sea_planar_2r", "iiwa")
_RATES = (1000, 4000)
_SECONDS, _QUICK_SECONDS = 20, 1

# The bars: medians by those of the generated one.
_RATIOS = {"generic": ("of every robot", 1.2), "generated_observing": ("with an observer", 1.3)}


def run(settings: Settings) -> Section:
    """Build both packages, then measure cycles in turns; needs a workspace with ros2_control."""
    section = Section("ros2_controller", "Controllers of ros2_control")
    duration = _QUICK_SECONDS if settings is QUICK else _SECONDS
    table = Table(
        f"`update()` of the controllers in turns, {duration} s of the simulated arm in real time",
        ("", "median", "99 %", "99.9 %", "longest"),
    )
    folder = scratch() / "ros2_controller"
    _install("generic", folder, {name: text.encode() for name, text in generic_files().items()})
    for name in _ROBOTS:
        program, environment, kernel = _built(name, folder)
        for rate in _RATES:
            command = [str(program), str(kernel), str(duration * rate), str(rate)]
            output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            rows = {title: [float(x) for x in values] for title, *values in map(str.split, output.splitlines())}
            difference, _ = rows.pop("difference")
            assert difference == 0, f"efforts differ by {difference}"
            for title, row in rows.items():
                table.add(f"{name}, {rate} Hz, {title}", *map(seconds, row))
            for title, (what, most) in _RATIOS.items():
                ratio = rows[title][0] / rows["generated"][0]
                promise = f"{name}, {rate} Hz: the cycle of the controller {what} takes at most {most} × as long"
                section.bars.append(Bar(promise, f"{ratio:.2f} ×", ratio <= most))
    section.tables = [table]
    return section


def _built(name: str, folder: Path) -> tuple[Path, dict[str, str], Path]:
    """Program with the simulated arm, environment with both packages installed, and library of the robot's loop."""
    robot = load_robot(name)
    exported = project(robot, controller_functions(robot))
    _install(name, folder, LANGUAGES["ros2_control"].files(exported, stored_values(exported)))
    given = {"ROBOT_FOLDER": folder / name, "PACKAGE": f"{name}_control", "NAME": name, "ROBOT": type_name(exported)}
    _cmake(Path(__file__).with_name("ros2_controller_cycles"), folder / f"build_{name}_cycles", given)
    paths = {"AMENT_PREFIX_PATH": folder / "installed", "LD_LIBRARY_PATH": folder / "installed/lib"}
    environment = {key: f"{path}{os.pathsep}{os.environ.get(key, '')}" for key, path in paths.items()}
    return folder / f"build_{name}_cycles/cycles", {**os.environ, **environment}, loop_library(robot).path


def _install(name: str, folder: Path, files: dict[str, bytes]) -> None:
    """Build a package."""
    for path, content in files.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_bytes(content)
    given = {"CMAKE_INSTALL_PREFIX": folder / "installed", "BUILD_TESTING": "OFF"}
    _cmake(folder / name, folder / f"build_{name}", given, "--target", "install")


def _cmake(source: Path, build: Path, given: Mapping[str, object], *target: str) -> None:
    defined = [f"-D{key}={value}" for key, value in given.items()]
    subprocess.run(["cmake", "-S", source, "-B", build, *defined], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build, *target], check=True, capture_output=True)

# SPDX-License-Identifier: Apache-2.0
"""Cycle of the controller for ros2_control, with an observer of external efforts, too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from compiled import scratch
from report import Bar, Section, Table, seconds
from settings import QUICK, Settings

from eom_dynamics import load_robot
from eom_dynamics.export import FEEDFORWARD, LANGUAGES, loop_library, project, stored_values

_ROBOTS = ("sea_planar_2r", "iiwa")
_RATES = (1000, 4000)
_SECONDS, _QUICK_SECONDS = 20, 1

# The bar: the median with an observer by that without.
_RATIO = 1.3


def run(settings: Settings) -> Section:
    """Build the package, then measure cycles in turns; needs a workspace with ros2_control."""
    section = Section("ros2_controller", "Controller of ros2_control")
    duration = _QUICK_SECONDS if settings is QUICK else _SECONDS
    table = Table(
        f"`update()` of the controller, without and with an observer in turns, {duration} s of the simulated arm",
        ("", "median", "99 %", "99.9 %", "longest"),
    )
    folder = scratch() / "ros2_controller"
    program, environment = _built(folder)
    for name in _ROBOTS:
        kernel = str(loop_library(load_robot(name)).path)
        for rate in _RATES:
            command = [str(program), kernel, str(duration * rate), str(rate)]
            output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
            rows = {title: [float(x) for x in values] for title, *values in map(str.split, output.splitlines())}
            difference, _ = rows.pop("difference")
            assert difference == 0, f"efforts differ by {difference}"
            for title, row in rows.items():
                table.add(f"{name}, {rate} Hz, {title}", *map(seconds, row))
            ratio = rows["observing"][0] / rows["controller"][0]
            promise = (
                f"{name}, {rate} Hz: the cycle of the controller with an observer takes at most {_RATIO} × as long"
            )
            section.bars.append(Bar(promise, f"{ratio:.2f} ×", ratio <= _RATIO))
    section.tables = [table]
    return section


def _built(folder: Path) -> tuple[Path, dict[str, str]]:
    """Program with the simulated arm, and environment with the package installed."""
    package, exported = folder / "package", project(load_robot(_ROBOTS[0]), [FEEDFORWARD])
    for path, content in LANGUAGES["ros2_control"].files(exported, stored_values(exported)).items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_bytes(content)
    given = {"CMAKE_INSTALL_PREFIX": folder / "installed", "BUILD_TESTING": "OFF"}
    _cmake(package, folder / "build_package", given, "--target", "install")
    cycles = Path(__file__).with_name("ros2_controller_cycles")
    _cmake(cycles, folder / "build_cycles", {"PACKAGE_FOLDER": package})
    paths = {"AMENT_PREFIX_PATH": folder / "installed", "LD_LIBRARY_PATH": folder / "installed/lib"}
    environment = {key: f"{path}{os.pathsep}{os.environ.get(key, '')}" for key, path in paths.items()}
    return folder / "build_cycles/cycles", {**os.environ, **environment}


def _cmake(source: Path, build: Path, given: Mapping[str, object], *target: str) -> None:
    defined = [f"-D{key}={value}" for key, value in given.items()]
    subprocess.run(["cmake", "-S", source, "-B", build, *defined], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build, *target], check=True, capture_output=True)

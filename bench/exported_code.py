# SPDX-License-Identifier: Apache-2.0
"""Exported code: a cycle of the control loop and of the ros2_control controller, and Pinocchio; and on a GPU."""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import CONSOLE, Section, Settings, scratch, seconds, write_files

from eom_dynamics import Robot, load_robot
from eom_dynamics.control.headers import loop_headers, source
from eom_dynamics.export import FEEDFORWARD, LANGUAGES, loop_library, project, project_files, stored_values
from eom_dynamics.export.project import template

_ROUNDING = 1e-9
_MEDIAN, _WORST, _RATIO = 2e-6, 10e-6, 1.5  # promised median and 99.99 % quantile, s; median over rnea's

# Definitions for Pinocchio, which has more types of joints than Boost's default lists can hold.
_BOOST = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)

_ROWS = {
    "clock": "nothing: the clock alone",
    "additions": "additions for about as long as the loop",
    "rnea": "Pinocchio `rnea`: τ",
    "feedforward": "feedforward: τ, τ̇, τ̈, motor motion and efforts",
    "cycle": "the loop, `eom_loop_run`: with checks of limits, PD of motors and links",
}


def control_cycle(section: Section, settings: Settings) -> None:
    """Compile for the robot, compare efforts, then measure interleaved cycles."""
    robot = load_robot("iiwa")
    program, library = _built(robot), scratch() / "robot.so"
    library.write_bytes(loop_library(robot).content)
    cycles = 20_000 if settings.quick else 1_000_000
    rows = _rows(program, cycles, library)
    difference = rows.pop("difference")[0]
    assert difference < _ROUNDING, f"tau differs from Pinocchio's by {difference}"
    table = section.table(
        f"iiwa with springs, {cycles:,} cycles, the calls of each in turn",
        *("", "median", "99 %", "99.9 %", "99.99 %", "longest"),
    )
    for name, title in _ROWS.items():
        table.add(title, *map(seconds, rows[name]))
    clock = rows["clock"][0]
    median, _, _, worst, _ = rows["cycle"]
    ratio = (median - clock) / (rows["rnea"][0] - clock)
    section.promise(f"a cycle takes at most {seconds(_MEDIAN)}, median", seconds(median), median <= _MEDIAN)
    section.promise(f"99.99 % of the cycles take at most {seconds(_WORST)}", seconds(worst), worst <= _WORST)
    section.promise(f"a cycle takes at most {_RATIO} × `rnea`, without the clock", f"{ratio:.2f} ×", ratio <= _RATIO)


def _rows(program: Path, *arguments: object, environment: Mapping[str, str] | None = None) -> dict[str, list[float]]:
    """Numbers of each line of a program's output, by the name at its start."""
    command = [str(program), *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return {name: [float(x) for x in values] for name, *values in map(str.split, output.splitlines())}


def _built(robot: Robot) -> Path:
    """Path of the program, compiled with the same flags for both libraries."""
    import pinocchio as pin
    from pinocchio_model import pinocchio_model

    texts = {"loop.cpp": source("loop.cpp"), "loop_library.hpp": template("ros2_control/loop_library.hpp")}
    model = _model(pinocchio_model(robot))
    folder = write_files(scratch() / "control_cycle", {**loop_headers(), **texts, "model.inc": model})
    prefix = Path(pin.__file__).parents[4]
    if not (prefix / "include/pinocchio").exists():  # scripts/slim.py removes them
        again = ".venv/bin/pip install --force-reinstall --no-deps -c requirements/lock.txt libpinocchio cmeel-boost"
        raise SystemExit(f"control_cycle: headers of Pinocchio are missing in {prefix}: run {again}")
    eigen = [Path("/usr/include/eigen3"), Path(sysconfig.get_path("purelib")) / "casadi/include/eigen3"]
    includes = [f"-I{folder / 'include'}", f"-I{folder}", f"-isystem{prefix / 'include'}"]
    includes += [f"-isystem{path}" for path in eigen if path.exists()][:1]
    command = ["c++", "-std=c++17", "-O3", "-DNDEBUG", *includes, *(f"-D{name}" for name in _BOOST)]
    libraries = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lpinocchio_default", "-lm", "-ldl"]
    sources = [Path(__file__).with_name("control_cycle.cpp"), folder / "loop.cpp"]
    subprocess.run([*command, *sources, "-o", folder / "built", *libraries], check=True)
    return folder / "built"


def _model(model: Any) -> str:
    """Statements that build a model of Pinocchio in C++."""
    lines = [f"model.gravity.linear({_vector(model.gravity.linear)});"]
    for k in range(1, model.njoints):
        joint, placement, inertia = model.joints[k], model.jointPlacements[k], model.inertias[k]
        kind = joint.shortname()
        pose = f"pinocchio::SE3({_matrix(placement.rotation)}, {_vector(placement.translation)})"
        lines += [
            f'model.addJoint({model.parents[k]}, pinocchio::{kind}(), {pose}, "joint_{k}");',
            f"model.inertias[{k}] = pinocchio::Inertia({inertia.mass!r}, {_vector(inertia.lever)}, "
            f"{_matrix(inertia.inertia)});",
        ]
    return "\n".join(lines)


def _vector(values: Any) -> str:
    return f"Eigen::Vector3d({', '.join(repr(float(x)) for x in values)})"


def _matrix(values: Any) -> str:
    entries = ", ".join(repr(float(x)) for row in values for x in row)
    return f"(Eigen::Matrix3d() << {entries}).finished()"


# --- The controller of ros2_control -----------------------------------------------------

_OBSERVING = 1.3  # promised ratio of the medians with and without an observer


def ros2_controller(section: Section, settings: Settings) -> None:
    """Build the package, then measure cycles in turns; needs a workspace with ros2_control."""
    duration = 1 if settings.quick else 20
    table = section.table(
        f"`update()` of the controller, without and with an observer in turns, {duration} s of the simulated arm",
        *("", "median", "99 %", "99.9 %", "longest"),
    )
    program, environment = _built_in_workspace(scratch() / "ros2_controller")
    for name in ("sea_planar_2r", "iiwa"):
        kernel = loop_library(load_robot(name)).path
        for rate in (1000, 4000):
            rows = _rows(program, kernel, duration * rate, rate, environment=environment)
            difference, _ = rows.pop("difference")
            assert difference == 0, f"efforts differ by {difference}"
            for title, row in rows.items():
                table.add(f"{name}, {rate} Hz, {title}", *map(seconds, row))
            ratio = rows["observing"][0] / rows["controller"][0]
            promise = f"{name}, {rate} Hz: the cycle with an observer takes at most {_OBSERVING} × as long"
            section.promise(promise, f"{ratio:.2f} ×", ratio <= _OBSERVING)


def _built_in_workspace(folder: Path) -> tuple[Path, dict[str, str]]:
    """Program with the simulated arm, and environment with the package installed."""
    exported = project(load_robot("sea_planar_2r"), [FEEDFORWARD])
    files = LANGUAGES["ros2_control"].files(exported, stored_values(exported))
    package = write_files(folder / "package", {str(path): content for path, content in files.items()})
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


# --- A GPU ------------------------------------------------------------------------------

FUNCTIONS = {"feedforward": "motor effort", "inverse_dynamics": "tau, taud, taudd", "effort": "tau"}


def gpu(section: Section, settings: Settings) -> None:
    """Build, test and time each exported CUDA function."""
    for program in ("nvcc", "nvidia-smi"):
        if not shutil.which(program):
            raise SystemExit(f"gpu: {program} is not installed: an NVIDIA GPU and the CUDA toolkit are needed")
    robot = load_robot(settings.robot or "iiwa")
    device = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]).strip()
    table = section.table(
        f"{robot.name} on one {device}: states a second, data on the device",
        *("way", "gives", "precision", "million states a second", "error"),
    )
    for function, gives in FUNCTIONS.items():
        files, _ = project_files(project(robot, [function]), ["cuda"])
        code = write_files(scratch() / f"gpu_{function}", files) / "cuda"
        _output(["nvcc", "-O3", "-arch=native", *map(str, code.glob("*.cu")), "-o", str(code / "test")])
        report = _output([str(code / "test")])
        CONSOLE.print(report)
        (rate,) = re.findall(rf"_{function} +([0-9.e+]+) states per second", report)
        worst = max(re.findall(r"error +([0-9.e+-]+)", report), key=float)
        table.add(f"exported CUDA: `{function}`", gives, "double", f"{1e-6 * float(rate):,.0f}", worst)


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"gpu: {' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout

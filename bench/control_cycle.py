# SPDX-License-Identifier: Apache-2.0
"""One cycle of the control loop, beside Pinocchio's rnea in C++."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pinocchio as pin
from compiled import scratch
from pinocchio_model import pinocchio_model
from report import Bar, Section, Table, seconds
from settings import QUICK, Settings

from eom_dynamics import Robot, load_robot
from eom_dynamics.control.headers import loop_headers, source
from eom_dynamics.export import loop_library
from eom_dynamics.export.templates import template

_CYCLES, _QUICK_CYCLES = 1_000_000, 20_000
_ROUNDING = 1e-9

# The bars: median and 99.99 % of a cycle, and the median over that of rnea.
_MEDIAN, _WORST, _RATIO = 2e-6, 10e-6, 1.5

# Definitions that Pinocchio needs, which has more kinds of joints than Boost's lists by default.
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


def run(settings: Settings) -> Section:
    """Compile for the robot, compare efforts, then measure interleaved cycles."""
    section = Section("control_cycle", "Control cycle")
    robot = load_robot("iiwa")
    program, library = _built(robot), scratch() / "robot.so"
    library.write_bytes(loop_library(robot).content)
    cycles = _QUICK_CYCLES if settings is QUICK else _CYCLES
    output = subprocess.run([program, str(cycles), library], check=True, capture_output=True, text=True).stdout
    rows = {name: [float(x) for x in values] for name, *values in map(str.split, output.splitlines())}
    difference = rows.pop("difference")[0]
    assert difference < _ROUNDING, f"tau differs from Pinocchio's by {difference}"
    table = Table(
        f"iiwa with springs, {cycles:,} cycles, the calls of each in turn",
        ("", "median", "99 %", "99.9 %", "99.99 %", "longest"),
    )
    for name, title in _ROWS.items():
        table.add(title, *map(seconds, rows[name]))
    clock = rows["clock"][0]
    median, _, _, worst, _ = rows["cycle"]
    ratio = (median - clock) / (rows["rnea"][0] - clock)
    section.tables = [table]
    section.bars = [
        Bar(f"a cycle takes at most {seconds(_MEDIAN)}, median", seconds(median), median <= _MEDIAN),
        Bar(f"99.99 % of the cycles take at most {seconds(_WORST)}", seconds(worst), worst <= _WORST),
        Bar(f"a cycle takes at most {_RATIO} × `rnea`, without the clock", f"{ratio:.2f} ×", ratio <= _RATIO),
    ]
    return section


def _built(robot: Robot) -> Path:
    """Path of the program, compiled with the same flags for both libraries."""
    folder = scratch() / "control_cycle"
    texts = {**loop_headers(), "loop.cpp": source("loop.cpp"), "model.inc": _model(pinocchio_model(robot))}
    for name, text in (texts | {"loop_library.hpp": template("ros2_control/loop_library.hpp")}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    prefix = Path(pin.__file__).parents[4]
    eigen = [Path("/usr/include/eigen3"), Path(sysconfig.get_path("purelib")) / "casadi/include/eigen3"]
    includes = [f"-I{folder / 'include'}", f"-I{folder}", f"-isystem{prefix / 'include'}"]
    includes += [f"-isystem{path}" for path in eigen if path.exists()][:1]
    command = ["c++", "-std=c++17", "-O3", "-DNDEBUG", *includes, *(f"-D{name}" for name in _BOOST)]
    libraries = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lpinocchio_default", "-lm", "-ldl"]
    sources = [Path(__file__).with_suffix(".cpp"), folder / "loop.cpp"]
    subprocess.run([*command, *sources, "-o", folder / "built", *libraries], check=True)
    return folder / "built"


def _model(model: pin.Model) -> str:
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


def _vector(values: object) -> str:
    return f"Eigen::Vector3d({', '.join(repr(float(x)) for x in values)})"  # type: ignore[attr-defined]


def _matrix(values: object) -> str:
    entries = ", ".join(repr(float(x)) for row in values for x in row)  # type: ignore[attr-defined]
    return f"(Eigen::Matrix3d() << {entries}).finished()"

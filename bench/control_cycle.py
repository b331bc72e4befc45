# SPDX-License-Identifier: Apache-2.0
"""One cycle of the C++ control loop, beside Pinocchio's rnea in C++; and the error of single precision."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pinocchio as pin
from compiled import scratch
from pinocchio_model import pinocchio_model
from report import Bar, Section, Table, seconds
from settings import QUICK, Settings

from eom_dynamics import Robot, load_robot
from eom_dynamics.control.headers import source as header_source
from eom_dynamics.export import FEEDFORWARD, LANGUAGES, PLANT, Project, loop_library, project, stored_values
from eom_dynamics.export.cpp_project import type_name
from eom_dynamics.export.templates import template

_CYCLES, _QUICK_CYCLES = 1_000_000, 20_000
_ROUNDING = 1e-9

# The bars: median and 99.99 % of a cycle, and the median over that of rnea, and of a loaded robot over it.
_MEDIAN, _WORST, _RATIO, _LOADED = 2e-6, 10e-6, 1.5, 1.15

# Definitions that Pinocchio needs, which has more kinds of joints than Boost's lists by default.
_BOOST = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)

# Robots in single precision: rigid links, stiff linear springs, hardening ones with losses, antagonistic pairs.
_SINGLE = ("panda", "iiwa", "sea_planar_2r", "vsa_planar_2r")

_ROWS = {
    "clock": "nothing: the clock alone",
    "additions": "additions for about as long as `ControlLoop`",
    "rnea": "Pinocchio `rnea`: τ",
    "feedforward": "`eom::Feedforward`: τ, τ̇, τ̈, motor motion and efforts",
    "cycle": "`eom::ControlLoop`: with checks of limits, PD of motors and links",
    "loaded": "the same of a robot that is loaded, whose sizes are known at run time",
    "linearized": "the same with feedback linearization",
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
    loaded = (rows["loaded"][0] - clock) / (median - clock)
    section.tables = [table, _single_precision()]
    section.bars = [
        Bar(f"a cycle takes at most {seconds(_MEDIAN)}, median", seconds(median), median <= _MEDIAN),
        Bar(f"99.99 % of the cycles take at most {seconds(_WORST)}", seconds(worst), worst <= _WORST),
        Bar(
            f"that of a loaded robot takes at most {_LOADED} ×, without the clock", f"{loaded:.2f} ×", loaded <= _LOADED
        ),
        Bar(f"a cycle takes at most {_RATIO} × `rnea`, without the clock", f"{ratio:.2f} ×", ratio <= _RATIO),
    ]
    return section


def _built(robot: Robot) -> Path:
    """Path of the program, compiled with the same flags for both libraries."""
    folder = scratch() / "control_cycle"
    exported = _exported(robot, folder)
    (folder / "model.inc").write_text(_model(pinocchio_model(robot)))
    flags = ["-O3", "-DNDEBUG"]
    prefix = Path(pin.__file__).parents[4]
    eigen = [Path("/usr/include/eigen3"), Path(sysconfig.get_path("purelib")) / "casadi/include/eigen3"]
    includes = [f"-I{folder / 'include'}", f"-I{folder / 'c'}", f"-I{folder}", f"-isystem{prefix / 'include'}"]
    includes += [f"-isystem{path}" for path in eigen if path.exists()][:1]
    includes += [f"-D{name}" for name in _BOOST]
    header = f'-DROBOT_HEADER="<eom/robots/{exported.name}.hpp>"'.replace('"', "")
    (folder / "loop_library.hpp").write_text(template("ros2_control/generic/loop_library.hpp"))
    (folder / "loop.cpp").write_text(header_source("loop.cpp"))
    command = ["c++", "-std=c++17", *flags, *includes, header, f"-DROBOT_TYPE=eom::robots::{type_name(exported)}"]
    libraries = [f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lpinocchio_default", "-lm", "-ldl"]
    source = Path(__file__).with_suffix(".cpp")
    subprocess.run(
        [*command, source, folder / "loop.cpp", *folder.glob("*.o"), "-o", folder / "built", *libraries], check=True
    )
    return folder / "built"


def _exported(robot: Robot, folder: Path, precision: str = "double") -> Project:
    """The robot's C++ in a folder, with objects of its functions for one state."""
    exported = project(robot, [PLANT], precision=precision)
    for name, content in LANGUAGES["cpp"].files(exported, stored_values(exported)).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    sources = [path for path in (folder / "c").glob("*.c") if not re.search(r"^test_|_batch\.c$", path.name)]
    subprocess.run(["cc", "-std=c99", "-O3", "-c", *sources], check=True, cwd=folder)
    return exported


def _single_precision() -> Table:
    """Errors that the exported tests print in single precision: of the feedforward's outputs, and of each function."""
    title = "Largest error in single precision, of 1 + the largest entry, at the stored states of the exported tests"
    table, errors = Table(title, ("", *_SINGLE)), {}
    for name in _SINGLE:
        folder = scratch() / f"single_{name}"
        exported = _exported(load_robot(name), folder, "single")
        errors[name] = _errors_of_outputs(folder) | _errors_of_functions(exported, folder)
    for quantity in errors[_SINGLE[0]]:
        table.add(quantity, *(f"{errors[name][quantity]:.1e}" for name in _SINGLE))
    return table


def _errors_of_outputs(folder: Path) -> dict[str, float]:
    """Error of each output of the feedforward, from the test in C++."""
    includes = ["-DEOM_EIGEN=0", f"-I{folder / 'include'}", f"-I{folder / 'c'}"]
    source, built = folder / "test/test_feedforward.cpp", folder / "built"
    subprocess.run(["c++", "-std=c++17", *includes, source, *folder.glob("*.o"), "-o", built, "-lm"], check=True)
    output = subprocess.run([built, "10"], check=True, capture_output=True, text=True).stdout
    return {f"`{name}`": float(error) for name, error in re.findall(r"^ok +(\w+) +error +(\S+)", output, re.MULTILINE)}


def _errors_of_functions(exported: Project, folder: Path) -> dict[str, float]:
    """Largest error of each other function over its outputs, from the test in C."""
    built = folder / "built_c"
    subprocess.run(["cc", "-std=c99", "-O3", *(folder / "c").glob("*.c"), "-o", built, "-lm"], check=True)
    output = subprocess.run([built], check=True, capture_output=True, text=True).stdout
    errors = {}
    for name, function in exported.functions.items():
        if name != FEEDFORWARD:
            each = re.findall(rf"^ok +{function.name} .* error +(\S+)", output, re.MULTILINE)
            errors[f"all outputs of `{name}`"] = max(map(float, each))
    return errors


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

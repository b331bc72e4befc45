# SPDX-License-Identifier: Apache-2.0
"""Exported code for tests, written to a folder, compiled and run."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from chains import fixed_case
from closed_forms import check_closed_form
from compilation import run
from own_drives import AGES, on_both_sides, with_drives
from springs import EVERY_KIND, with_springs
from urdf_arms import urdf_arm

from eom_dynamics import Robot, load_robot, robot_from_parameters
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.parallel_springs import Anchors, GasLaw, ParallelSpring, TableLaw
from eom_dynamics.actuators.springs import CoupledSpring
from eom_dynamics.control.headers import loop_headers, source
from eom_dynamics.export import LANGUAGES, STRAIGHT_LINE, Project, StoredValues, project, stored_values
from eom_dynamics.export.project import template
from eom_dynamics.robot.model import COMPENSATIONS

FUNCTIONS: Mapping[str, Iterable[str]] = {
    **{"iiwa": ["effort"], "planar_2r": STRAIGHT_LINE, "mixed_chain": ["inverse_dynamics"]},
    **{"slider": ["effort", "mass_matrix"], "scissors": ["effort_partials", "forward_kinematics"]},
    "held": ["inverse_dynamics", "effort_partials"],
}
"""Functions to export by robot: together all kinds of joints, angles and outputs."""

MOTOR_ROBOTS = ("vsa_planar_2r", "planar_pr", "scissors", "shared", "lossy_0", "lossy_1", "carried")
"""With commanded stiffness, a slide, a tree, all springs with losses, and carried rotors."""

SPRING_ROBOTS = ("springs_0", "springs_1", "shared")
"""Robots with a spring of every kind, and with coupled springs, a transmission, friction and gear loss."""


KINDS = ("rigid", "one_joint", "slider", "scissors", "fourteen_joints", "leg", "one_rigid", "springs_0")
"""Kinds of robots to export with all functions.

Without springs and rotors as of a URDF, with one joint or 14, with slides, a tree, rotors of rigid joints, a spring at
one of two joints, and seven kinds of springs.
"""


@cache
def robot(name: str) -> Robot:
    """A robot of :data:`FUNCTIONS`, :data:`SPRING_ROBOTS` or :data:`KINDS`, a packaged robot, or one of those below.

    ``lossy_0`` and ``lossy_1`` are ``springs_0`` and ``springs_1`` with motor friction, gear loss and joint friction,
    and ``carried_0`` and ``carried_1`` the same with the complete rotor model.
    ``drives`` adds efforts itself, and its drives have units of their own. Drives of ``sides`` count on both sides of
    the gears, of joints of all kinds.
    The slider has no angles and a constant mass matrix; the scissors are a tree with a tool on each branch, and a mimic
    joint.
    """
    made: dict[str, Callable[[], Robot]] = {
        "slider": lambda: robot_from_parameters(_slider()),
        "scissors": lambda: robot_from_parameters(_scissors()),
        "shared": _shared,
        "held": _held,
        "rigid": lambda: load_robot(urdf_arm()),
        "one_joint": lambda: load_robot(urdf_arm(joints=("hinge",))),
        "fourteen_joints": lambda: robot_from_parameters(_planar(14)),
        "one_rigid": lambda: with_springs(load_robot("planar_2r"), EVERY_KIND["rigid"], EVERY_KIND["linear"]),
        "drives": lambda: with_drives(load_robot("sea_planar_2r"), *COMPENSATIONS, ages=AGES),
        "sides": lambda: on_both_sides(_shared()),
        "carried": lambda: replace(load_robot("sea_planar_2r"), rotor_model="complete"),
    }
    if name in made:
        return replace(made[name](), name=name)
    if name.startswith("springs_"):
        return _sprung(robot_from_parameters(_planar()), name)
    if name.startswith(("lossy_", "carried_")):
        return _lossy(name)
    return fixed_case(name, 1).robot if name in FUNCTIONS else load_robot(name)


def renamed(name: str, *joints: str) -> Robot:
    planar = robot("planar_2r")
    named = (replace(joint, name=other) for joint, other in zip(planar.joints, joints, strict=True))
    return replace(planar, name=name, joints=tuple(named))


def export(
    robot: Robot, language: str, folder: Path, functions: Iterable[str] = STRAIGHT_LINE
) -> tuple[Project, StoredValues]:
    exported, stored = with_values(robot, tuple(functions))
    write(LANGUAGES[language].files(exported, stored), folder)
    return exported, stored


def write(files: Mapping[str, str | bytes], folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


C_STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
CPP_STRICT = ("-std=c++17", *C_STRICT[1:])


def loop_sources() -> dict[str, str]:
    """Headers of the loop, its source, and the loader of libraries, as in the package for ros2_control."""
    loader = template("ros2_control/loop_library.hpp")
    return {**loop_headers(), "src/loop.cpp": source("loop.cpp"), "src/loop_library.hpp": loader}


def compile_functions(folder: Path, *flags: str) -> list[Path]:
    """Objects of the functions for one state in the folder ``c``, which C++ calls."""
    sources = [file.name for file in sorted((folder / "c").glob("*.c")) if not re.search("_batch|^test_", file.name)]
    succeed(["cc", *C_STRICT, "-O1", *flags, "-c", *sources], folder / "c")
    return sorted((folder / "c").glob("*.o"))


def passes_c_test(folder: Path, *flags: str, compiler: str = "cc") -> list[str]:
    """Lines of the test of exported C, compiled with flags such as -lm; all are fine."""
    succeed([compiler, *C_STRICT, *sorted(folder.glob("*.c")), "-o", "built", *flags], folder)
    lines = succeed([folder / "built"], folder).splitlines()
    assert lines and all(line.startswith("ok") for line in lines), lines
    return lines


def used_by_cmake(folder: Path, languages: str, target: str, main: str, tests: str = "") -> str:
    """Output of a C++ program that finds the package in ``library`` once it is built, tested and installed."""
    chosen = ["--target", tests] if tests else ["--parallel", "2"]
    named = ["-R", tests] if tests else []
    succeed(["cmake", "-S", folder / "library", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], folder)
    succeed(["cmake", "--build", "build", *chosen], folder)
    assert "100% tests passed" in succeed(["ctest", "--test-dir", "build", *named], folder)
    succeed(["cmake", "--install", "build", "--prefix", folder / "installed"], folder)
    package = target.partition("::")[0]
    lists = (
        f"cmake_minimum_required(VERSION 3.13)\nproject(user {languages})\nfind_package({package} REQUIRED)\n"
        f"add_executable(user main.cpp)\ntarget_link_libraries(user {target})\n"
    )
    write({"main.cpp": main, "CMakeLists.txt": lists}, folder / "user")
    succeed(["cmake", "-S", folder / "user", "-B", "used", f"-DCMAKE_PREFIX_PATH={folder / 'installed'}"], folder)
    succeed(["cmake", "--build", "used"], folder)
    return succeed([folder / "used/user"], folder)


@cache
def with_values(robot: Robot, functions: tuple[str, ...]) -> tuple[Project, StoredValues]:
    """Functions of a robot and their values, computed once for all languages and tests, which leave them alone."""
    exported = project(robot, functions)
    stored = stored_values(exported)
    check_closed_form(exported, stored)
    return exported, stored


def succeed(command: Sequence[str | Path], folder: Path) -> str:
    """Output of a command, which must succeed."""
    done = run(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def replace_in(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def _held() -> Robot:
    """Constant efforts, a gas spring between anchors, and a table."""
    gas = ParallelSpring(GasLaw(400.0, 0.3, 1.4, 1.2), anchors=Anchors(0.5, 0.2, -2.0, 0.65))
    table = ParallelSpring(TableLaw(np.array([-1.2, -0.5, 0.1, 0.9]), np.array([3.0, -1.0, 2.0, 2.5])), 0.2)
    arm = load_robot("sea_planar_2r")
    joints = [
        replace(joint, constant_effort=-1.3, parallel_spring=spring)
        for joint, spring in zip(arm.joints, (gas, table), strict=True)
    ]
    return replace(arm, joints=tuple(joints))


def _shared() -> Robot:
    """A damped spring, coupled springs, a pair between them, a differential, presliding and losses."""
    friction = Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2, presliding_distance=0.3)
    actuator = Actuator(friction=friction, gear=Gear(0.8, 2.0))
    springs = [EVERY_KIND[kind] for kind in ("rigid", "antagonistic_quadratic", "rigid", "damped", "linear", "cubic")]
    iiwa = with_springs(load_robot("iiwa"), *springs, EVERY_KIND["dead_zone"], rotor_inertia=0.3, actuator=actuator)
    stiffness = CoupledSpring(np.array([[2e3, 300.0], [300.0, 1.5e3]]))
    differential = Transmission([[0.5, 0.4], [0.6, -0.5]])
    return replace(iiwa, coupled_stiffness=((0, 2), stiffness), transmission=((4, 6), differential))


def _sprung(arm: Robot, name: str) -> Robot:
    """One of the halves of all kinds of springs, which the name ends with, on seven joints."""
    springs, first = list(EVERY_KIND.values()), 7 * int(name[-1])
    return replace(with_springs(arm, *springs[first : first + 7], rotor_inertia=0.3), name=name)


def _lossy(name: str) -> Robot:
    """Springs of every kind with friction of motors, gears and joints; in the complete rotor model if so named.

    Carried rotors need an arm that turns them about all axes.
    """
    springs, actuator = (
        _sprung(load_robot("iiwa"), name) if name.startswith("carried") else robot(f"springs_{name[-1]}"),
        Actuator(friction=Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2), gear=Gear(0.8, 2.0)),
    )
    joints = [
        replace(
            joint,
            actuator=replace(actuator, gear=Gear()) if joint.spring.is_rigid else actuator,
            damping=0.4,
            friction=0.7,
            gear_ratio=50.0,
        )
        for joint in springs.joints
    ]
    model = "complete" if name.startswith("carried") else "reduced"
    return replace(springs, name=name, joints=tuple(joints), joint_friction=True, rotor_model=model)


BODY = {"mass": 2.0, "center_of_mass": [0.1, 0.0, 0.0], "inertia": [0.02, 0.0, 0.0, 0.02, 0.0, 0.01]}


def _planar(count: int = 7) -> dict[str, Any]:
    """Parallel axes, seven for as many springs: code that compiles in a third of the time of a spatial arm's."""
    origin = {"xyz": [0.2, 0.0, 0.0], "rpy": [0.0, 0.0, 0.0]}
    joint = {"type": "revolute", "screw": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "origin": origin, **BODY}
    names = [f"joint_{k}" for k in range(1, count + 1)]
    return {
        **{"name": "planar", "joint_names": names, "inertia_reference": "com"},
        **{"gravity": [0.0, -9.80665, 0.0], "joints": dict.fromkeys(names, joint)},
    }


def _slider() -> dict[str, Any]:
    origin = {"xyz": [0.0, 0.0, 0.3], "rpy": [0.0, 0.0, 0.0]}
    screws = {"x": [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], "z": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]}
    joints = {name: {"type": "prismatic", "screw": screw, "origin": origin, **BODY} for name, screw in screws.items()}
    return {"name": "slider", "joint_names": list(joints), "inertia_reference": "com", "joints": joints}


def _scissors() -> dict[str, Any]:
    origin = {"xyz": [0.2, 0.0, 0.3], "rpy": [0.3, -0.4, 0.5]}
    turn = {"type": "revolute", "screw": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "origin": origin, **BODY}
    blade = {"parent": "arm", "screw": [0.0, 1.0, 0.0, 0.1, 0.0, 0.0]}
    return {
        "name": "scissors",
        "joint_names": ["arm", "first", "second"],
        "inertia_reference": "com",
        "tool_names": ["first", "second"],
        "joints": {
            "arm": turn,
            "first": turn | blade,
            "second": turn | blade | {"mimic": {"joint": "first", "ratio": -0.7, "offset": 0.2}},
        },
    }

# SPDX-License-Identifier: Apache-2.0
"""Cycles of the loop in C++, of robots of all kinds from their libraries; names of robots; robots without a plant."""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compilation import SANITIZERS, run, supports
from exported import C_STRICT, loop_sources, renamed, robot, succeed, with_values, write
from exported_loop import cycles_program, passes_cycles

import eom_dynamics.export as code
from eom_dynamics import Robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import CoupledSpring, LinearSpring, RigidSpring
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export.c_project import c_files
from eom_dynamics.export.compiled_loop import literal


def soft_and_stiff() -> Robot:
    """A stop needs many times the effort of the motion before it, and the simulated arm steps of some microseconds."""
    planar = robot("planar_2r")
    springs = ((LinearSpring(0.5), 20.0), (LinearSpring(2e4), 1e-4))
    rows = zip(planar.joints, springs, strict=True)
    return replace(
        planar, joints=tuple(replace(x, spring=spring, rotor_inertia=inertia) for x, (spring, inertia) in rows)
    )


def paired_and_rigid() -> Robot:
    """An antagonistic pair and a rigid joint; presliding friction."""
    vsa = robot("vsa_planar_2r")
    sticking = Actuator(Friction(0.8, 0.3, 0.5, 0.3, 0.2, presliding_distance=0.3))
    paired, other = (replace(joint, actuator=sticking) for joint in vsa.joints)
    return replace(vsa, joints=(paired, replace(other, spring=RigidSpring())))


def steep_friction() -> Robot:
    """Dry friction over a slow rotor: efforts change within less than a cycle, and rotors settle in microseconds."""
    slide, hinge = (planar := robot("planar_pr")).joints
    dry = Actuator(Friction(viscous=0.4, coulomb=0.22, static=0.22, smoothing_velocity=1.2e-3), Gear(0.55, 0.02))
    coupled = (0, 1), CoupledSpring([[290.0, -122.0], [-122.0, 136.0]])
    driven = (1, 0), Transmission([[2.04, -1.36], [0.03, 1.95]])
    joints = replace(slide, rotor_inertia=1.0), replace(hinge, rotor_inertia=2.5e-3, actuator=dry)
    return replace(planar, joints=joints, coupled_stiffness=coupled, transmission=driven)


@pytest.mark.parametrize(
    "make",
    [
        paired_and_rigid,
        pytest.param(soft_and_stiff, marks=pytest.mark.soak),
        pytest.param(steep_friction, marks=pytest.mark.soak),
        pytest.param(lambda: robot("shared"), marks=pytest.mark.soak, id="shared"),
    ],
)
@pytest.mark.parametrize("sanitized", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_loop_of_other_robots(make: Callable[[], Robot], sanitized: bool, tmp_path: Path) -> None:
    flags = SANITIZERS if sanitized and supports(tmp_path, *SANITIZERS) else ()
    passes_cycles(cycles_program(make(), tmp_path, "-O0", *flags), code.loop_library(make()).path, 1000)


@pytest.fixture(scope="module")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cycles of a robot with different springs, gears and limits; they allocate if ALLOCATES is set."""
    call = "        robot.feedforward(candidate_, result_);\n        if (robot.slides())"
    allocates = 'if (std::getenv("ALLOCATES")) { int *volatile x = new int[9]; delete[] x; getppid(); }'
    name = "include/eom/evaluation.hpp"
    header = loop_sources()[name]
    assert call in header
    changed, included = {name: header.replace(call, allocates + call)}, ("-include", "cstdlib", "-include", "unistd.h")
    return cycles_program(robot("sea_planar_2r"), tmp_path_factory.mktemp("sea"), *included, changed=changed)


def test_cycles(sea: Path) -> None:
    passes_cycles(sea, code.loop_library(replace(robot("sea_planar_2r"), moving_base=True)).path, 20000)


def test_allocations_and_system_calls_are_found(sea: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOCATES", "1")
    output = run([sea, code.loop_library(robot("sea_planar_2r")).path, "10"], sea.parent).stdout
    assert "BAD  no allocation" in output and "BAD  no call of the system" in output


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"rotor_inertia": 0.0}, "rotor_inertia must be positive for code of plant, is 0; functions that can "),
        ({"spring": RigidSpring()}, "efficiency must be 1 at a rigid joint for code of plant; functions that can "),
    ],
)
def test_a_robot_without_a_plant_is_refused(change: dict[str, object], error: str) -> None:
    sea = robot("sea_planar_2r")
    joints = (sea.joints[0], replace(sea.joints[1], actuator=Actuator(gear=Gear(0.9)), **change))
    with pytest.raises(RobotDescriptionError, match=f"^joint_2: {error}"):
        code.project(replace(sea, joints=joints), [code.PLANT])


def test_any_names(tmp_path: Path) -> None:
    joints = ('a "quoted" \\ ??/ joint', "Gelenk_\N{LATIN SMALL LETTER A WITH DIAERESIS}\n1")
    library = ctypes.CDLL(str(code.loop_library(renamed("class", *joints)).path))
    library.eom_robot_table.restype = ctypes.c_void_p
    assert library.eom_robot_table()
    assert all(name.encode() in code.loop_library(renamed("class", *joints)).content for name in joints)
    assert literal("a?\N{GREEK SMALL LETTER BETA}7") == '"a\\077\\316\\2627"'


# Macros, and other objects of the C library and of the tests; and names in the source of a table.
TAKEN_IN_C = (
    *("scalar", "SCALAR", "drive", "shafts", "ends", "state", "measurement", "map"),
    *("NULL", "EOF", "NAN", "INFINITY", "HUGE_VAL", "M_PI", "errno", "assert", "linux", "unix"),
    *("stdin", "FILE", "std", "main", "stored", "check", "motor", "spring"),
)
TAKEN = (*("table", "filled", "infinity", "Vector", "Robot", "joint_names", "lower_q"), *TAKEN_IN_C)


def test_names_that_are_taken(tmp_path: Path) -> None:
    units = []
    _, stored = with_values(robot("pendulum"), (code.PLANT,))  # which do not depend on its name
    for name in TAKEN:
        named = replace(robot("pendulum"), name=name)
        if name in ("table", "NULL", "linux", "joint_names"):
            assert code.loop_library(named).content
        if name in TAKEN_IN_C:
            write(c_files(code.project(named, [code.PLANT]), stored), tmp_path / name / "c")
            files = [file.name for file in tmp_path.glob(f"{name}/c/*.c") if not file.stem.endswith("_batch")]
            units.append(tmp_path / name / "all.c")
            units[-1].write_text("".join(f'#include "c/{file}"\n' for file in files))
    # All files with one name together, including files with sines.
    succeed(["cc", *C_STRICT, "-DEOM_SINCOS=", "-fsyntax-only", *units], tmp_path)

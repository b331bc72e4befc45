# SPDX-License-Identifier: Apache-2.0
"""Exported C++: its own tests pass, find errors, and run clean under sanitizers; names; single precision."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compilation import SANITIZERS, run, supports
from exported import (
    C_STRICT,
    CPP_STRICT,
    compile_functions,
    export,
    renamed,
    replace_in,
    robot,
    succeed,
    used_by_cmake,
    with_values,
    write,
)

import eom_dynamics.export as code
from eom_dynamics import Robot
from eom_dynamics.actuators import Actuator, Friction, Gear, Transmission
from eom_dynamics.actuators.springs import CoupledSpring, LinearSpring, RigidSpring
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export.c_project import c_files
from eom_dynamics.export.cpp_project import headers, literal, type_name


def test_program(folder: Path, name: str, *flags: str) -> Path:
    """A test of exported C++, compiled.

    Loops of thousands of cycles run faster with the little optimization of -Og, which takes no time to compile.
    """
    objects = sorted((folder / "c").glob("*.o"))
    if name == "loop_cycles":
        shutil.copy(Path(__file__).with_name("loop_cycles.cpp"), folder / "test")
    eigen = "-isystem/usr/include/eigen3"  # where it is installed
    command = ["c++", *CPP_STRICT, "-Og", *flags, eigen, "-Iinclude", "-Ic", f"test/{name}.cpp", *objects]
    succeed([*command, "-o", name, "-pthread", "-lm"], folder)
    return folder / name


test_program.__test__ = False  # type: ignore[attr-defined]


def results(program: Path, *arguments: str) -> list[str]:
    return succeed([program, *arguments], program.parent).splitlines()


def soft_and_stiff() -> Robot:
    """A stop needs many times the effort of the motion before it, and the simulated arm steps of some microseconds."""
    planar = robot("planar_2r")
    springs = ((LinearSpring(0.5), 20.0), (LinearSpring(2e4), 1e-4))
    rows = zip(planar.joints, springs, strict=True)
    return replace(
        planar, joints=tuple(replace(x, spring=spring, rotor_inertia=inertia) for x, (spring, inertia) in rows)
    )


def paired_and_rigid() -> Robot:
    """An antagonistic pair and a rigid joint, before whose motor linearization has integrators; presliding friction."""
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
    export(make(), "cpp", tmp_path, [code.PLANT])
    compile_functions(tmp_path, *flags)
    lines = results(test_program(tmp_path, "loop_cycles", "-O0", *flags), "1000")
    assert all(line.startswith(("ok", "none")) for line in lines), lines


@pytest.fixture(scope="module")
def sea(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exported C++ of a robot with different springs, gears and limits; it allocates where ALLOCATES is set."""
    folder = tmp_path_factory.mktemp("sea")
    export(robot("sea_planar_2r"), "cpp", folder, [code.PLANT, code.FEEDFORWARD_WITH_PAYLOAD, code.ON_BASE])
    compile_functions(folder)
    allocates = 'if (std::getenv("ALLOCATES")) { int *volatile x = new int[9]; delete[] x; std::fflush(nullptr); }'
    call = "Robot::feedforward(setpoint, command);"
    replace_in(folder / "include/eom/feedforward.hpp", call, allocates + call)
    for name in ("test_feedforward", "loop_cycles"):
        test_program(folder, name, "-include", "cstdio", "-include", "cstdlib")
    return folder


def test_its_tests_pass(sea: Path) -> None:
    for name in ("test_feedforward", "loop_cycles"):
        lines = results(sea / name, "20000")
        assert len(lines) >= 8
        assert all(line.startswith(("ok", "none")) for line in lines), lines


def test_allocations_and_system_calls_are_found(sea: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALLOCATES", "1")
    assert "BAD  no allocation" in run([sea / "test_feedforward", "10"], sea).stdout


@pytest.mark.parametrize(
    "name", ["springs_1", *(pytest.param(x, marks=pytest.mark.soak) for x in ("springs_0", "shared"))]
)
def test_springs_and_plant_in_single_precision(name: str, tmp_path: Path) -> None:
    """Every kind of spring, under deflections, and all other functions; test_languages.py has double precision."""
    exported, _ = export(robot(name), "c", tmp_path, [code.PLANT], "single")
    for file in tmp_path.glob("*_batch.c"):
        file.unlink()
    test = tmp_path / f"test_{exported.library}.c"
    # Without batches, which take long to compile.
    text = re.sub(r"    \w+_batch\(COUNT.*?;\n", "", test.read_text(), flags=re.DOTALL)
    text = re.sub(r"    clear\(.*?;\n|    compare\(\"\w+_batch.*?;\n", "", text)
    test.write_text(text.replace("static void clear", "void clear(scalar *, size_t);\nvoid clear"))
    succeed(["cc", *C_STRICT, *sorted(tmp_path.glob("*.c")), "-o", "built", "-lm"], tmp_path)
    lines = results(tmp_path / "built")
    assert sum("_plant " in line for line in lines) == 2
    assert sum("_spring_efforts " in line for line in lines) == len(exported.functions["spring_efforts"].outputs)
    assert all(line.startswith("ok") for line in lines), lines


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


def test_single_precision_is_single_throughout(tmp_path: Path) -> None:
    export(robot("springs_1"), "cpp", tmp_path, [code.PLANT], "single")
    flags = ["-std=c99", "-Wdouble-promotion", "-Wfloat-conversion", "-Werror", "-c"]
    sources = [file for file in (tmp_path / "c").glob("*.c") if not file.name.startswith("test_")]
    succeed(["cc", *flags, *sources], tmp_path / "c")
    undefined = succeed(["nm", "--undefined-only", *(tmp_path / "c").glob("*.o")], tmp_path)
    called = set(re.findall(r" U (\w+)", undefined))
    assert {"sinf", "expf"} <= called
    assert not {"sin", "cos", "exp", "expm1", "log", "sqrt", "pow", "tanh", "asinh", "sinh"} & called
    (tmp_path / "main.cpp").write_text(
        "#include <eom/control_loop.hpp>\n#include <eom/plant.hpp>\n#include <eom/robots/springs_1.hpp>\n"
        "template class eom::ControlLoop<eom::robots::Springs1>;\ntemplate class eom::Plant<eom::robots::Springs1>;\n"
    )
    command = ["c++", *CPP_STRICT, "-Iinclude", "-Ic", "-c", "main.cpp"]
    succeed(command, tmp_path)
    functions = " ".join((tmp_path / "c/springs_1_dynamics.h").read_text().split())
    assert (
        "call math.h (link with -lm)" in functions and "lanes" not in functions and "call no library" not in functions
    )
    header = (tmp_path / "include/eom/robots/springs_1.hpp").read_text()
    assert "using Scalar = float;" in header and "double" not in re.sub("//.*", "", header)


def test_any_names(tmp_path: Path) -> None:
    joints = ('a "quoted" \\ ??/ joint', "Gelenk_\N{LATIN SMALL LETTER A WITH DIAERESIS}\n1")
    export(renamed("class", *joints), "cpp", tmp_path, [code.FEEDFORWARD])
    compile_functions(tmp_path)
    (tmp_path / "main.cpp").write_text(
        "#include <cstdio>\n#include <eom/feedforward.hpp>\n#include <eom/robots/class.hpp>\n"
        'int main() { for (const char *name : eom::robots::Class::joint_names) std::printf("%s|", name); }\n'
    )
    command = ["c++", *CPP_STRICT, "-Iinclude", "-Ic", "main.cpp", *(tmp_path / "c").glob("*.o")]
    succeed([*command, "-o", "main", "-lm"], tmp_path)
    assert succeed([tmp_path / "main"], tmp_path).split("|")[:2] == list(joints)
    assert literal("a?\N{GREEK SMALL LETTER BETA}7") == '"a\\077\\316\\2627"'


# Members of the type, macros, and other objects of the C library and of the tests; and templates of eom.
TAKEN_IN_C = (
    *("scalar", "SCALAR", "drive", "shafts", "ends", "state", "measurement", "map"),
    *("NULL", "EOF", "NAN", "INFINITY", "HUGE_VAL", "M_PI", "errno", "assert", "linux", "unix"),
    *("stdin", "FILE", "std", "main", "stored", "check", "motor", "spring"),
)
TAKEN = (
    *("setpoint", "command", "Robot", "Limits", "Spline", "Plant", "Piece", "Mailbox", "feedforward", "control_loop"),
    *TAKEN_IN_C,
)


def test_names_that_are_taken(tmp_path: Path) -> None:
    standard = ("assert", "errno", "float", "limits", "math", "signal", "stdio", "stdlib", "string", "time")
    lines = {file: [f"#include <{header}.h>" for header in standard] for file in "ab"}
    includes, units = ["-Iinclude"], []
    _, stored = with_values(robot("pendulum"), (code.PLANT,))  # which do not depend on its name
    for name in TAKEN:
        exported = code.project(replace(robot("pendulum"), name=name), [code.PLANT])
        write(headers(exported), tmp_path)
        write(c_files(exported, stored), tmp_path / name / "c")
        includes.append(f"-I{name}/c")
        if name in TAKEN_IN_C:
            files = [file.name for file in tmp_path.glob(f"{name}/c/*.c") if not file.stem.endswith("_batch")]
            units.append(tmp_path / name / "all.c")
            units[-1].write_text("".join(f'#include "c/{file}"\n' for file in files))
        lines["b" if name.isupper() else "a"] += [  # two files, as names that differ in case have one type
            "#include <eom/control_loop.hpp>\n#include <eom/feedforward.hpp>\n#include <eom/plant.hpp>",
            f"#include <eom/robots/{name}.hpp>",
            *(
                f"static_assert(sizeof(eom::{user}<eom::robots::{type_name(exported)}>) > 0);"
                for user in ("ControlLoop", "Feedforward", "Plant")
            ),
        ]
    for file, text in lines.items():
        (tmp_path / f"{file}.cpp").write_text("\n".join([*text, ""]))
    # With more macros than c++17 has.
    command = ["c++", *CPP_STRICT, "-std=gnu++17", "-fsyntax-only", *includes]
    succeed([*command, "a.cpp", "b.cpp"], tmp_path)
    # All files of a name at once, those with sines among them.
    succeed(["cc", *C_STRICT, "-DEOM_SINCOS=", "-fsyntax-only", *units], tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(("sea_planar_2r", "SeaPlanar2r"), ("UR5e", "UR5e"), ("UR5", "Ur5")),
        *(("ends", "EndsRobot"), ("SCALAR", "ScalarRobot")),
    ],
)
def test_name_of_the_type(name: str, expected: str) -> None:
    assert type_name(code.project(renamed(name, "first", "second"), [code.FEEDFORWARD])) == expected


def test_without_a_feedforward_it_is_refused() -> None:
    with pytest.raises(code.UnavailableError, match=r"needs the function feedforward"):
        code.project_files(code.project(robot("planar_2r"), ["effort"]), ["cpp"])


@pytest.mark.skipif(not shutil.which("cmake"), reason="CMake is not installed")
def test_cmake_package(tmp_path: Path) -> None:
    """Built, tested with Eigen where that is installed, installed, and used by name, without functions of the plant."""
    export(robot("planar_2r"), "cpp", tmp_path / "library", [code.FEEDFORWARD])
    main = (
        "#include <eom/feedforward.hpp>\n#include <eom/robots/planar_2r.hpp>\n"
        "int main() { eom::Feedforward<eom::robots::Planar2r> f; return !eom::finite(f.update()); }\n"
    )
    used_by_cmake(tmp_path, "C CXX", "planar_2r_dynamics::planar_2r_dynamics_cpp", main, "test_feedforward")

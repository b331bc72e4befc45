# SPDX-License-Identifier: Apache-2.0
"""Exported code passes its own test in every language, or gives the values stored in it.

Robots with all kinds of joints, springs, losses and drives; every packaged robot and every kind of spring, ideal and
with losses, on a thousand states: long, and not part of CI.
"""

import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import cuda_on_host
import numpy as np
import pytest
from closed_forms import check_closed_form
from compilation import COMPILERS, run
from exported import (
    FUNCTIONS,
    KINDS,
    MOTOR_ROBOTS,
    SPRING_ROBOTS,
    passes_c_test,
    replace_in,
    robot,
    succeed,
    with_values,
    write,
)
from exported_loop import cycles_program, passes_cycles
from springs import EVERY_KIND, with_springs

import eom_dynamics.export as code
from eom_dynamics import Robot, load_robot, packaged_robots
from eom_dynamics.actuators import Actuator, Friction, Gear
from eom_dynamics.export.functions import OF_DRIVES

STATES = 1000

LOSSES = Actuator(friction=Friction(0.8, 0.3, 0.5, 0.3, 0.2, 0.6, 0.2), gear=Gear(0.8, 2.0))


def arms() -> dict[str, Robot]:
    """Packaged robots, and the iiwa with each kind of spring: ideal, and with all losses."""
    iiwa = load_robot("iiwa")
    found = {name: load_robot(name) for name in packaged_robots()} | {"drives": robot("drives")}
    for kind, spring in EVERY_KIND.items():
        ideal = replace(with_springs(iiwa, spring, rotor_inertia=0.3), name=kind)
        found[kind] = ideal
        if not spring.is_rigid:
            joints = tuple(replace(x, actuator=LOSSES, damping=0.4, friction=0.7) for x in ideal.joints)
            found[f"{kind}_lossy"] = replace(ideal, name=f"{kind}_lossy", joints=joints, joint_friction=True)
    return found


ARMS = arms()


class Case(NamedTuple):
    """A robot of ``exported.robot`` with some functions; without functions one of ARMS with all that it has."""

    name: str
    functions: tuple[str, ...] = ()


OF_LINKS = [Case(name, tuple(functions)) for name, functions in FUNCTIONS.items()]
OF_MOTORS = [Case(name, (code.FEEDFORWARD,)) for name in MOTOR_ROBOTS]
OF_PLANTS = [Case(name, (code.PLANT,)) for name in ("lossy_0", "lossy_1", "shared")]
DRIVES = Case("drives", tuple(OF_DRIVES))
OF_KINDS = [Case(name, code.capabilities(robot(name))["c"].functions) for name in KINDS]


def cases(*quick: Case) -> Any:
    """Parametrise a test; each arm in all languages before the next, so that they share its values."""
    soak = [pytest.param(Case(name), id=name, marks=pytest.mark.soak) for name in ARMS]
    chosen = [pytest.param(case, id=f"{case.name}-{len(case.functions)}") for case in quick]
    return pytest.mark.parametrize("case", [*soak, *chosen], scope="module")


LINKS = set(code.STRAIGHT_LINE) - {"inverse_dynamics", "inverse_dynamics_with_payload"}
"""Functions of the links that no other function needs: equal for arms that differ in springs only."""


def functions_of(name: str, language: str) -> tuple[str, ...]:
    """All functions of the robot in a language, except functions of links that another arm also has."""
    able = code.capabilities(ARMS[name])[language].functions
    return able if name in (*packaged_robots(), "linear_lossy") else tuple(x for x in able if x not in LINKS)


@lru_cache(maxsize=2)
def values(name: str, functions: tuple[str, ...]) -> tuple[code.Project, code.StoredValues]:
    """Values of the library for some functions of a robot, which agrees with the closed form."""
    of_robot = code.project(ARMS[name], functions)
    check_closed_form(of_robot, code.stored_values(of_robot))
    return of_robot, code.stored_values(of_robot, STATES)


def exported(case: Case, language: str, folder: Path) -> tuple[code.Project, code.StoredValues]:
    if case.functions:
        of_robot, stored = with_values(robot(case.name), case.functions)
    else:
        functions = functions_of(case.name, language)
        assert functions
        of_robot, stored = values(case.name, functions)
    write(code.LANGUAGES[language].files(of_robot, stored), folder)
    return of_robot, stored


def judge(output: str, count: int) -> None:
    lines = [line for line in output.splitlines() if "per second" not in line]
    print(output)
    assert len(lines) == count and all(line.startswith("ok") for line in lines)


def outputs(of_robot: code.Project) -> int:
    return sum(len(function.outputs) for function in of_robot.functions.values())


@pytest.mark.parametrize("name", KINDS)
def test_project_has_every_language_for_every_kind_of_robot(name: str) -> None:
    """With the functions that ``codegen`` writes by default."""
    functions = [x for x in code.capabilities(robot(name))["c"].functions if "on_base" not in x]
    files, missing = code.project_files(code.project(robot(name), functions))
    assert {path.partition("/")[0] for path in files} == {"README.md", *code.LANGUAGES} - missing.keys()
    assert missing.keys() <= {"casadi"}


@pytest.mark.parametrize("compiler", COMPILERS)
@cases(*OF_LINKS, *(case for case in OF_MOTORS if case.name not in dict(OF_PLANTS)), *OF_PLANTS, DRIVES, *OF_KINDS)
def test_c(case: Case, compiler: str, tmp_path: Path) -> None:
    of_robot, _ = exported(case, "c", tmp_path)
    assert len(passes_c_test(tmp_path, "-lm", compiler=compiler)) == 2 * outputs(of_robot)


@cases()
def test_loop(case: Case, tmp_path: Path) -> None:
    passes_cycles(cycles_program(ARMS[case.name], tmp_path), code.loop_library(ARMS[case.name]).path, 1000)


@pytest.mark.skipif(not shutil.which("octave-cli"), reason="GNU Octave is not installed (Debian: apt install octave)")
@cases(*OF_LINKS, *OF_MOTORS, DRIVES, *OF_KINDS)
def test_matlab(case: Case, tmp_path: Path) -> None:
    of_robot, _ = exported(case, "matlab", tmp_path)
    judge(
        succeed(["octave-cli", "--no-gui", "--norc", "--eval", f"test_{of_robot.library}"], tmp_path),
        2 * outputs(of_robot),
    )


ALL_SPRINGS = ("carried_0", *SPRING_ROBOTS[1:])  # carried_0 includes springs_0

MORE_MOTORS = [Case(x, (code.FEEDFORWARD, "spring_efforts")) for x in ("sea_planar_2r", *ALL_SPRINGS)]


@cases(*OF_LINKS, *MORE_MOTORS, DRIVES, *OF_KINDS)
def test_casadi(case: Case, tmp_path: Path) -> None:
    casadi = pytest.importorskip("casadi")
    of_robot, stored = exported(case, "casadi", tmp_path)
    assert len(list(tmp_path.iterdir())) == len(of_robot.functions)
    for key, function in of_robot.functions.items():
        loaded = casadi.Function.load(str(tmp_path / f"{function.name}.casadi"))
        assert loaded.name() == function.name
        assert loaded.name_in() == list(function.inputs) and loaded.name_out() == list(function.outputs)
        results = loaded(**{vector: stored.inputs[vector].T for vector in function.inputs})
        for output in function.outputs:
            computed, expected = np.array(results[output]), stored.outputs[key][output].T
            errors = np.where(np.isnan(computed) & np.isnan(expected), 0.0, np.abs(computed - expected))
            assert np.all(errors <= stored.tolerance(key, output)), (key, output)


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
@cases(*(Case(name, (code.FEEDFORWARD,)) for name in SPRING_ROBOTS[1:]), *OF_KINDS)
def test_cuda_on_the_processor(case: Case, tmp_path: Path) -> None:
    of_robot, _ = exported(case, "cuda", tmp_path)
    cuda_on_host.adapt(tmp_path)
    for file in tmp_path.glob("test_*.cpp"):
        replace_in(file, "30 * STATES + 3", "STATES + 3")
    succeed(["g++", "-I.", *sorted(tmp_path.glob("*.cpp")), "-o", "built"], tmp_path)
    judge(succeed([tmp_path / "built"], tmp_path), outputs(of_robot))


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@cases()
def test_cuda(case: Case, tmp_path: Path) -> None:
    """Compiled without a warning; run if there is a device."""
    of_robot, _ = exported(case, "cuda", tmp_path)
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    device = bool(shutil.which("nvidia-smi")) and run(["nvidia-smi", "-L"], tmp_path).returncode == 0
    architecture = "native" if device else "sm_80"
    # One unit of compilation for all functions, since each takes seconds of its own.
    test = f"test_{of_robot.library}_cuda.cu"
    sources = [file.name for file in sorted(tmp_path.glob("*.cu")) if file.name != test]
    lines = [f'namespace of_{k} {{\n#include "{source}"\n}}' for k, source in enumerate(sources)]
    # Each file defines its tables once.
    tables = max((file.read_text().count("#define EOM_TABLE_") for file in tmp_path.glob("*.cu")), default=0)
    lines = [line + "".join(f"\n#undef EOM_TABLE_{k}" for k in range(tables)) for line in lines]
    (tmp_path / "all.cu").write_text("\n".join([f'#include "{of_robot.library}_cuda.h"', *lines, ""]))
    succeed(["nvcc", f"-arch={architecture}", *strict, "all.cu", test, "-o", "built"], tmp_path)
    if device:
        judge(succeed([tmp_path / "built"], tmp_path), outputs(of_robot))

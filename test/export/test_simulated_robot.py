# SPDX-License-Identifier: Apache-2.0
"""The simulated robot of the package for ros2_control, compiled with stand-ins for its base class and for logs."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compilation import run
from exported import CPP_STRICT, loop_sources, robot, succeed, with_values, write

import eom_dynamics.export as code
from eom_dynamics import ElasticArm, Robot
from eom_dynamics.actuators import Actuator
from eom_dynamics.actuators.springs import RigidSpring

HELPERS = Path(__file__).parents[1] / "helpers"

JOINTS = ("joint_1", "joint_2")
PARTS = (*JOINTS, "joint_1_motor", "joint_2_motor")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    files = code.LANGUAGES["ros2_control"].files(*with_values(robot("sea_planar_2r"), (code.FEEDFORWARD,)))
    write({**files, **loop_sources()}, folder)
    # Compilers cache only files in their folder.
    shutil.copytree(HELPERS / "ros2_control_stand_in", folder / "stand_in")
    shutil.copy(Path(__file__).with_name("simulated_robot_cycles.cpp"), folder / "cycles.cpp")
    folders = ["-Istand_in", "-Iinclude", "-Isrc"]
    sizes = [f"-DEOM_{name}={size}" for name, size in (("JOINTS", 2), ("MOTORS", 4), ("TOOLS", 1))]
    succeed(["c++", *CPP_STRICT, "-O0", *folders, "-c", "cycles.cpp", "-o", "cycles.o"], folder)
    succeed(["c++", "-std=c++17", "-O0", *folders, *sizes, "-c", "src/loop.cpp", "-o", "loop.o"], folder)
    succeed(["c++", "cycles.o", "loop.o", "-ldl", "-pthread", "-o", "simulated"], folder)
    return folder / "simulated"


def simulated(
    program: Path,
    subject: Robot | str,
    cycles: int = 0,
    *,
    parts: Sequence[str] = PARTS,
    parameters: Mapping[str, str] | None = None,
    commands: Mapping[str, float] | None = None,
) -> tuple[int, str]:
    """Exit code, and output."""
    arm = robot(subject) if isinstance(subject, str) else subject
    given = {"kernel": str(code.loop_library(arm).path), **(parameters or {})}
    rows = [*parts, "--", *(x for pair in given.items() for x in pair), "--"]
    rows += [str(x) for pair in (commands or {}).items() for x in pair]
    done = run([program, str(cycles), *rows], program.parent)
    return done.returncode, done.stdout


def states(output: str) -> dict[str, float]:
    return {name: float(value) for name, value in map(str.split, output.splitlines())}


def test_it_rests_at_its_position_until_it_is_commanded(program: Path) -> None:
    motion = np.zeros((5, 2))
    motion[0] = 0.3
    wanted = ElasticArm(robot("sea_planar_2r")).feedforward(*motion)
    for cycles in (0, 100):
        got = states(simulated(program, "sea_planar_2r", cycles, parameters={"position": "0.3"})[1])
        for k, joint in enumerate(JOINTS):
            assert got[f"{joint}/position"] == pytest.approx(0.3, abs=1e-9)
            assert got[f"{joint}_motor/position"] == pytest.approx(wanted.motor_position[k], abs=1e-9)
            assert got[f"{joint}_motor/effort"] == pytest.approx(wanted.motor_effort[k], rel=1e-9)
            assert got[f"{joint}/velocity"] == pytest.approx(0.0, abs=1e-9)


def test_positions_and_efforts_move_the_motors(program: Path) -> None:
    arm = ElasticArm(robot("sea_planar_2r"))
    at_rest = states(simulated(program, "sea_planar_2r")[1])
    gains = {"motor_kp": "900, 700", "motor_kd": "60 50"}
    wanted = {f"{joint}_motor/position": at_rest[f"{joint}_motor/position"] + 0.1 for joint in JOINTS}
    moved = states(simulated(program, "sea_planar_2r", 3000, parameters=gains, commands=wanted)[1])
    for k, (name, position) in enumerate(wanted.items()):
        # Only the PD holds the arm there.
        sag = moved[f"{JOINTS[k]}_motor/effort"] / (900.0, 700.0)[k]
        assert moved[name] == pytest.approx(position - sag, abs=2e-3)
    pushed = {f"{joint}_motor/effort": at_rest[f"{joint}_motor/effort"] + 1.0 for joint in JOINTS}
    output = simulated(program, "sea_planar_2r", 5, commands=pushed)[1]
    for k, joint in enumerate(JOINTS):  # against friction
        assert 0 < states(output)[f"{joint}_motor/velocity"] < 0.005 / arm.motor_inertia[k]
        assert states(output)[f"{joint}_motor/effort"] == pytest.approx(pushed[f"{joint}_motor/effort"])


def test_motors_of_rigid_joints_are_the_joints_and_pairs_have_names_of_their_own(program: Path) -> None:
    sea = robot("sea_planar_2r")
    rigid = replace(sea, joints=tuple(replace(x, spring=RigidSpring(), actuator=Actuator()) for x in sea.joints))
    exit_code, output = simulated(program, rigid, 10, parts=JOINTS)
    assert exit_code == 0 and len(states(output)) == 6 and not np.isnan(list(states(output).values())).any()
    motors = [f"{joint}_{kind}_motor" for joint in JOINTS for kind in ("agonist", "antagonist")]
    exit_code, output = simulated(program, "vsa_planar_2r", 10, parts=[*JOINTS, *motors])
    assert exit_code == 0 and states(output).keys() >= {f"{motor}/effort" for motor in motors}


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("sea_planar_2r", {"parts": JOINTS}, "no joint joint_1_motor, the motor of the elastic joint joint_1"),
        ("sea_planar_2r", {"parts": PARTS[1:]}, "the description has no joint joint_1"),
        ("sea_planar_2r", {"parameters": {"motor_kp": "1.0"}}, "parameter motor_kp must have 2 numbers"),
        ("sea_planar_2r", {"parameters": {"rate": "0"}}, "parameter rate must be positive"),
        ("sea_planar_2r", {"parameters": {"kernel": "/none.so"}}, "/none.so: No such file"),
        ("carried", {}, "carried: there is no code of a plant"),
        ("sea_planar_2r", {"commands": {"joint_1_motor/effort": 1e300}, "cycles": 9}, "the motion leaves all bounds"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(program: Path, name: str, given: dict, error: str) -> None:
    exit_code, output = simulated(program, name, **given)
    assert exit_code != 0 and output.startswith("error: ") and error in output

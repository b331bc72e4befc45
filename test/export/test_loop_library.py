# SPDX-License-Identifier: Apache-2.0
"""Loops of robots as libraries, loaded as the controller of every robot does, and by ``codegen --language loop``."""

import re
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from compilation import run, supports
from exported import CPP_STRICT, loop_sources, robot, succeed, write
from exported_loop import ExportedTable
from springs import with_springs

from eom_dynamics import ElasticArm
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.codegen.compiler import run_compiler
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.exceptions import RobotDescriptionError, StateError
from eom_dynamics.export import UnavailableError, compiled_loop, loop_library
from eom_dynamics.tools.cli.main import main

NAME = "sea_planar_2r"

STATE_LIMITS = ("velocity", "acceleration", "jerk", "snap")

LOOP = [sys.executable, "-m", "eom_dynamics.tools.cli.main", "codegen", "--language", "loop"]

OTHER_ABI = "unsigned eom_robot_abi(void) { return 0; }\nvoid *eom_robot_table(void) { return 0; }\n"


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loader")
    write(loop_sources(), folder)
    shutil.copy(Path(__file__).with_name("load_loop.cpp"), folder)
    succeed(["c++", *CPP_STRICT, "-Iinclude", "-Isrc", "load_loop.cpp", "-o", "load_loop", "-ldl", "-pthread"], folder)
    return folder / "load_loop"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernel") / "arm.so"
    assert main(["codegen", "--language=loop", NAME, "-o", str(path)]) == 0
    return path


def loaded(loader: Path, *arguments: str | Path) -> CompletedProcess[str]:
    """The program with arguments; of its output, errors are one line."""
    done = run([loader, *arguments], loader.parent)
    assert done.returncode != 1 or (len(done.stdout.splitlines()) == 1 and not done.stderr)
    return done


def c_library(folder: Path, source: str) -> Path:
    (folder / "other.c").write_text(source)
    run_compiler(["cc", "-shared", "-fPIC", str(folder / "other.c")], folder / "other.so")
    return folder / "other.so"


@pytest.mark.parametrize("name", [NAME, "vsa_planar_2r", "dual_arm", "carried_1"])
def test_numbers_of_the_library(loader: Path, name: str) -> None:
    """Numbers of the arm, padded for 8 joints and for 16."""
    model = robot(name)
    table = ExportedTable(model)
    loop, library = ControlLoop(table), table.compiled  # type: ignore[arg-type]
    facts = f"{name} {library.fingerprint} {model.n} {loop.arm.motor_names[0]} {model.tools[0].name}\n"
    assert loaded(loader, "kernel", library.path, "").stdout == facts
    motion = np.random.default_rng(5).uniform(-0.5, 0.5, (5, model.n))
    loop.configure(limits="ignore")
    loop.rest()
    np.testing.assert_array_equal(loop.given["k"], loop.arm.side.nominal_stiffness)
    for row, values in zip(STATE_NAMES, motion, strict=True):
        loop.given[row][:] = values
    loop.refer(0)
    assert loop.update(0) == 0
    for row, values in loop.arm.feedforward(*motion)._asdict().items():
        np.testing.assert_allclose(loop.command[row], values, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["panda", NAME, "stiff", "slow"])
def test_limits_of_the_motion_to_targets(loader: Path, name: str) -> None:
    """Limits of the robot, overrides, and defaults; one line if a limit is missing."""
    model = robot("panda" if name == "panda" else NAME)
    if name == "stiff":  # its lowest frequency shortens the default
        model = with_springs(model, LinearSpring(1e5), LinearSpring(1e5))
    if name == "slow":  # in its efforts
        first, second = model.joints
        model = replace(model, joints=(first, replace(second, limits=replace(second.limits, effort_rate=50.0))))
    arm, path = ElasticArm(model), loop_library(model).path
    for values in ((), ("2", "20"), ("0", "20", "0", "1e6"), ("3", "20", "2000", "5e5")):
        done = loaded(loader, "limits", path, *values)
        given = {x: float(value) for x, value in zip(STATE_LIMITS, values, strict=False) if value != "0"}
        try:
            wanted = motion_limits(arm, given).rows(1e-3)
        except StateError:
            assert done.returncode == 1 and re.search("has no limit of (velocity|acceleration)", done.stdout)
        else:
            np.testing.assert_allclose(np.loadtxt(done.stdout.splitlines(), ndmin=2), wanted, rtol=1e-14)


def test_libraries_that_are_refused(loader: Path, kernel: Path, tmp_path: Path) -> None:
    """One line with reason and remedy, before any of their code that could fail runs."""
    content = kernel.read_bytes()
    truncated, text = tmp_path / "truncated.so", tmp_path / "text.so"
    truncated.write_bytes(content[: len(content) // 2])
    text.write_text("not a library, and longer than the header of one" * 3)
    refused = {
        tmp_path / "none.so": "No such file",
        text: "is not a library",
        truncated: "is truncated",
        c_library(tmp_path, OTHER_ABI): "is of another version than this controller",
    }
    for path, reason in refused.items():
        done = loaded(loader, "kernel", path, "")
        assert done.returncode == 1 and done.stdout.startswith(f"{path}: {reason}"), done
        assert "write it again: eom_dynamics codegen ROBOT --language loop -o FILE.so" in done.stdout
    assert "has no robot" in loaded(loader, "kernel", c_library(tmp_path, "int other;\n"), "").stdout
    done = loaded(loader, "kernel", kernel, "0123")
    assert done.returncode == 1 and f"is of the robot {NAME} with fingerprint " in done.stdout
    assert done.stdout.count("0123") == 1


def test_a_library_that_is_written_again(loader: Path, kernel: Path, tmp_path: Path) -> None:
    """A second load returns the new robot, while the first robot is unchanged."""
    path, replaced = Path(shutil.copy(kernel, tmp_path)), loop_library(robot("iiwa")).path
    other, first, second, third = loaded(loader, "again", path, replaced).stdout.splitlines()
    assert first == third and first.startswith(f"{NAME} ") and other == second and second.startswith("iiwa ")


def test_commands(loader: Path, kernel: Path, tmp_path: Path) -> None:
    """Their last line is the path; they get the robot or its description; failures are reported in one line."""
    answer = f"echo warning >&2; echo {NAME}; echo {kernel}"
    assert loaded(loader, "command", "9", "arm", "", "sh", "-c", answer).stdout.startswith(f"{NAME} ")
    described = f'test "$(cat "$0")" = "<robot/>" && echo {kernel}'
    assert loaded(loader, "command", "9", "", "<robot/>", "sh", "-c", described).stdout.startswith(f"{NAME} ")
    failures = {
        (
            "9",
            "arm",
            "",
            "/nonexistent/command",
        ): "timeout: failed to run command .*/nonexistent/command.*: No such file or directory",
        ("9", "arm", "", "sh", "-c", "echo one >&2; echo two >&2; exit 2"): "two",
        ("9", "arm", "", "false"): "false: failed",
        ("0.1", "arm", "", "sh", "-c", "sleep 8"): "sh: did not finish within its timeout",
    }
    for arguments, reason in failures.items():
        start = time.monotonic()
        done = loaded(loader, "command", *arguments)
        assert done.returncode == 1 and time.monotonic() - start < 8
        assert re.match(f"{reason}; or set kernel to a library from another computer: ", done.stdout)
    assert "there is no robot: set kernel, robot_file" in loaded(loader, "command", "9", "", "", "true").stdout


def test_the_command_loop(kernel: Path, loader: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr(compiled_loop, "run_compiler", lambda *_: pytest.fail("is compiled again"))
    assert main(["codegen", "--language=loop", NAME]) == 0
    first, path = capsys.readouterr().out.splitlines()
    assert first == f"{NAME}: 2 joints, fingerprint {loop_library(robot(NAME)).fingerprint}"
    assert Path(path).read_bytes().startswith(kernel.read_bytes())
    assert loaded(loader, "kernel", path, "").stdout.startswith(f"{NAME} ")
    assert main(["codegen", "--language=loop", NAME, "-o", str(kernel)]) == 2
    assert "exists already" in capsys.readouterr().err
    monkeypatch.setenv("CXX", "/nonexistent")
    assert main(["codegen", "--language=loop", "iiwa"]) == 2
    error = "eom_dynamics codegen: no C++ compiler found (CXX=/nonexistent); install g++\n"
    assert capsys.readouterr().err == error
    done = loaded(loader, "command", "60", NAME, "", *LOOP)
    assert done.returncode == 1 and done.stdout.startswith(error.strip())


def test_robots_without_a_library_are_refused_before_they_are_compiled() -> None:
    with pytest.raises(RobotDescriptionError, match=r"rotor_model.*reduced.*feedforward_on_base"):
        loop_library(replace(robot("carried_1"), moving_base=True))
    tool = robot(NAME).tools[0]
    tools = tuple(replace(tool, name=f"tool_{k}") for k in range(17))
    with pytest.raises(UnavailableError, match=r"16.*tools.*17"):
        loop_library(replace(robot(NAME), tools=tools))


OTHER_LOOP = """\
#include <cstdio>
#include "loop_library.hpp"

const char *eom_loop_digest() { return "of other sources"; }

int main()
{
    try {
        eom::loaded_robot({}, "<robot/>");
    } catch (const std::exception &error) {
        std::puts(error.what());
    }
}
"""


def test_a_loop_of_another_version_than_its_host_is_refused(tmp_path: Path) -> None:
    write({**loop_sources(), "main.cpp": OTHER_LOOP}, tmp_path)
    succeed(["c++", *CPP_STRICT, "-Iinclude", "-Isrc", "main.cpp", "-o", "host", "-ldl"], tmp_path)
    said = succeed([tmp_path / "host"], tmp_path)
    assert said.startswith("libeom_loop.so is of another version of eom_dynamics than this was compiled with")


MESSAGES = 125_000  # for each robot, and twice


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("flags", ["-fsanitize=address,undefined -fno-sanitize-recover=undefined", "-fsanitize=thread"])
def test_random_messages_from_another_thread(flags: str, tmp_path: Path) -> None:
    """Some of them have no sense."""
    if not supports(tmp_path, *flags.split()):
        pytest.skip(f"the compiler has no {flags}")
    write(loop_sources(), tmp_path)
    sizes = [f"-DEOM_{name}={most}" for name, most in (("JOINTS", 8), ("MOTORS", 8), ("TOOLS", 2))]
    sources = [Path(__file__).with_name("loop_messages.cpp"), "src/loop.cpp", "-ldl", "-pthread"]
    common = ["-std=c++17", "-O1", "-g", "-Iinclude", "-Isrc", *sizes]
    succeed(["c++", *flags.split(), *common, *sources, "-o", "play"], tmp_path)
    for name in ("sea_planar_2r", "vsa_planar_2r", "drives", "shared"):
        library = loop_library(replace(robot(name), drive_delay=2e-3, moving_base=True)).path
        for seed in ("1", "2"):
            assert f"{MESSAGES} cycles;" in succeed([tmp_path / "play", library, str(MESSAGES), seed], tmp_path)

# SPDX-License-Identifier: Apache-2.0
"""Exported motor feedforward: in all languages as in the library, for every kind of spring."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import cuda_on_host
import numpy as np
import pytest
from compilation import COMPILERS
from exported import SPRING_ROBOTS, export, replace_in, robot, run, succeed
from springs import with_springs

from eom_dynamics import ElasticArm, Robot
from eom_dynamics.actuators.springs import SPRINGS, CoupledSpring, LinearSpring
from eom_dynamics.arrays import Array
from eom_dynamics.exceptions import RobotDescriptionError
from eom_dynamics.export import FEEDFORWARD, PLANT, project
from eom_dynamics.export.motors import MOTOR_NAMES, MotorFeedforward
from eom_dynamics.export.spring_code import SPRING_CODE
from eom_dynamics.export.templates import template

ROBOTS = ("sea_planar_2r", "vsa_planar_2r", "panda", "planar_pr", "scissors", *SPRING_ROBOTS)
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Werror")
OCTAVE = shutil.which("octave-cli")

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler is installed")
needs_octave = pytest.mark.skipif(OCTAVE is None, reason="GNU Octave is not installed (Debian: apt install octave)")


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_compiles_and_passes_its_test(compiler: str, name: str, tmp_path: Path) -> None:
    exported, _ = export(robot(name), "c", tmp_path, [FEEDFORWARD])
    assert list(exported.programs) == ["inverse_dynamics"]
    succeed([compiler, *STRICT, *sorted(tmp_path.glob("*.c")), "-o", "built", "-lm"], tmp_path)
    lines = succeed([tmp_path / "built"], tmp_path).splitlines()
    assert len(lines) == 2 * (3 + 7)  # one state, and the batch
    assert all(line.startswith("ok") for line in lines)


@needs_octave
@pytest.mark.parametrize("name", ROBOTS)
def test_octave_passes_its_test(name: str, tmp_path: Path) -> None:
    exported, _ = export(robot(name), "matlab", tmp_path, [FEEDFORWARD])
    lines = octave(f"test_{exported.library}", tmp_path).splitlines()
    assert len(lines) == 2 * (3 + 7)  # a batch, and one state
    assert all(line.startswith("ok") for line in lines)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
@pytest.mark.parametrize("name", SPRING_ROBOTS)
def test_cuda_compiles(name: str, tmp_path: Path) -> None:
    export(robot(name), "cuda", tmp_path, [FEEDFORWARD])
    # Without the kernel of the inverse dynamics, which has its own test and takes long to compile.
    (source,) = tmp_path.glob("*_feedforward.cu")
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    succeed(["nvcc", "-arch=sm_80", *strict, "-c", source, "-o", "built.o"], tmp_path)
    assert (tmp_path / "built.o").stat().st_size > 0


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
@pytest.mark.parametrize("name", SPRING_ROBOTS)
def test_cuda_passes_its_test_on_the_processor(name: str, tmp_path: Path) -> None:
    export(robot(name), "cuda", tmp_path, [FEEDFORWARD])
    cuda_on_host.adapt(tmp_path)
    succeed(["g++", "-I.", *sorted(tmp_path.glob("*.cpp")), "-o", "built"], tmp_path)
    lines = [line for line in succeed([tmp_path / "built"], tmp_path).splitlines() if "per second" not in line]
    assert len(lines) == 3 + 7
    assert all(line.startswith("ok") for line in lines)


@needs_compiler
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("400.0, 20000.0, &s[0]", "400.0, 20000.1, &s[0]"),
        ("eom_friction(motor_velocity[1], 0.3", "eom_friction(motor_velocity[1], 0.300001"),
        ("s->deltadd = (taudd - bend", "s->deltadd = (taudd - 1.0000001 * bend"),
    ],
)
def test_its_test_finds_errors(old: str, new: str, tmp_path: Path) -> None:
    export(robot("sea_planar_2r"), "c", tmp_path, [FEEDFORWARD])
    replace_in(tmp_path / "sea_planar_2r_dynamics_motors.h", old, new)
    succeed(["cc", *STRICT, *sorted(tmp_path.glob("*.c")), "-o", "built", "-lm"], tmp_path)
    done = run([tmp_path / "built"], tmp_path)
    assert done.returncode == 1
    assert "BAD" in done.stdout


def test_every_kind_of_spring_has_code() -> None:
    assert set(SPRING_CODE) == {*SPRINGS, CoupledSpring.kind}
    for kind, code in SPRING_CODE.items():
        for name in (*code.uses, kind):
            assert f"eom_{name}" in template(f"motors/{name}.h.in")
            assert f"eom_{name}(" in template(f"motors/{name}.m.in")


def test_only_the_springs_of_the_robot_are_written(tmp_path: Path) -> None:
    for language, header in (("c", "_motors.h"), ("cuda", "_motors.cuh")):
        export(robot("planar_pr"), language, tmp_path, [FEEDFORWARD])
        text = (tmp_path / f"planar_pr_dynamics{header}").read_text()
        assert "eom_linear(" in text
        assert not any(f"eom_{name}(" in text for name in ("cubic", "gear", "friction", "root_step", "undefined"))


def test_a_kind_without_code_is_refused() -> None:
    class NewSpring(LinearSpring):
        kind = "new"

    with pytest.raises(RobotDescriptionError, match=r"^joint_1: elasticity of type new has no code for feedforward"):
        project(with_springs(robot("planar_2r"), NewSpring(5.0)), [FEEDFORWARD])


def test_the_complete_rotor_model_is_refused() -> None:
    complete = replace(robot("sea_planar_2r"), rotor_model="complete")
    with pytest.raises(RobotDescriptionError, match=r"^sea_planar_2r: rotor_model must be reduced .*, is complete"):
        project(complete, [FEEDFORWARD])
    assert project(complete, ["effort"]).feedforward is None


def test_header_describes_motors_and_commands(tmp_path: Path) -> None:
    export(robot("vsa_planar_2r"), "c", tmp_path, [FEEDFORWARD])
    text = (tmp_path / "vsa_planar_2r_dynamics.h").read_text()
    for wanted in (
        "joint_1_agonist, joint_1_antagonist, joint_2_agonist, joint_2_antagonist.",
        "k, kd and kdd are read at joint_1 (nominally 250), joint_2 (nominally 120).",
        "NaN where its k is out of range",
        "it calls math.h",
        "commanded stiffness, N m/rad\n",
    ):
        assert wanted in text
    export(robot("vsa_planar_2r"), "c", tmp_path, [PLANT])
    text = " ".join((tmp_path / "vsa_planar_2r_dynamics.h").read_text().replace("\n *", "").split())
    assert "_feedforward, vsa_planar_2r_spring_efforts and vsa_planar_2r_plant: they call math.h" in text


@needs_compiler
def test_fast_math_is_an_error(tmp_path: Path) -> None:
    export(robot("planar_pr"), "c", tmp_path, [FEEDFORWARD])
    done = run(["cc", "-std=c99", "-ffast-math", "-c", "planar_pr_feedforward.c"], tmp_path)
    assert done.returncode != 0
    assert "without -ffast-math" in done.stderr


@dataclass(frozen=True)
class Motors:
    """The compiled motor side of a robot, at rest at q = 0, so that motor positions are deflections."""

    feedforward: MotorFeedforward
    executable: Path

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Motor motion and efforts (states, m) for inputs (states, n); omitted ones are zero."""
        states = len(next(iter(inputs.values())))
        sizes = self.feedforward.size
        rows = [inputs.get(name, np.zeros((states, sizes[name]))) for name in self.feedforward.motor_inputs]
        (self.executable.parent / "inputs").write_bytes(np.concatenate(rows, axis=1).tobytes())
        succeed([self.executable, "inputs", "outputs"], self.executable.parent)
        results = np.fromfile(self.executable.parent / "outputs").reshape(states, -1)
        return dict(zip(MOTOR_NAMES, np.split(results, len(MOTOR_NAMES), axis=1), strict=True))


SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")

DRIVER = """
#include "{library}_motors.h"
#include <stdio.h>

int main(int count, char **files)
{{
    double {arrays};
    FILE *in = fopen(files[1], "rb"), *out = fopen(files[2], "wb");
    if (count != 3 || !in || !out)
        return 1;
    while ({read}) {{
        eom_motors({names});
        {write}
    }}
    return fclose(in) + fclose(out);
}}
"""


@pytest.fixture(scope="module")
def motors(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Motors]:
    """The motor sides of the robots with all springs, compiled with sanitizers where they are installed."""
    if not COMPILERS:
        pytest.skip("no C compiler is installed")
    folder = tmp_path_factory.mktemp("sanitizers")
    (folder / "probe.c").write_text("int main(void) { return 0; }\n")
    probe = ["cc", *SANITIZERS, "probe.c", "-o", "probe"]
    sanitized = not run(probe, folder).returncode and not run([folder / "probe"], folder).returncode
    return {name: _compiled(robot(name), tmp_path_factory.mktemp(name), sanitized) for name in SPRING_ROBOTS}


def _compiled(subject: Robot, folder: Path, sanitized: bool) -> Motors:
    exported, _ = export(subject, "c", folder, [FEEDFORWARD])
    feedforward = exported.feedforward
    assert feedforward is not None
    inputs, size = feedforward.motor_inputs, feedforward.size
    text = DRIVER.format(
        library=exported.library,
        arrays=", ".join(f"{name}[{size[name]}]" for name in (*inputs, *MOTOR_NAMES)),
        names=", ".join((*inputs, *MOTOR_NAMES)),
        read=" && ".join(f"fread({name}, sizeof {name}, 1, in)" for name in inputs),
        write=" ".join(f"fwrite({name}, sizeof {name}, 1, out);" for name in MOTOR_NAMES),
    )
    (folder / "driver.c").write_text(text)
    succeed(["cc", *STRICT, "-O1", *(SANITIZERS if sanitized else ()), "driver.c", "-o", "driver", "-lm"], folder)
    return Motors(feedforward, folder / "driver")


@pytest.mark.parametrize("name", SPRING_ROBOTS)
def test_springs_at_small_and_large_efforts(name: str, motors: Mapping[str, Motors]) -> None:
    """Across gaps, tables and their ends, deflections to 12 digits, or to the rounding of a table's points."""
    arm, compiled = ElasticArm(robot(name)), motors[name]
    sizes = np.concatenate([[1e-300, 1e-9, 0.3999, 0.4, 0.4001, 2.0, 9.0, 90.0, 130.0], np.geomspace(1e-3, 1e3, 60)])
    tau = np.tile(np.concatenate([-sizes, [0.0], sizes])[:, np.newaxis], 7)
    taud, taudd = 3.0 + 0.5 * tau, 20.0 - 2.0 * tau
    # Within the range of the variable spring, and above the least of the pairs.
    k = np.where(arm.paired, 2e4 + 0.0 * tau, 600.0)
    stiffness, deflection = (k, 0.2 * k, -0.7 * k), 0.01 + 0.001 * tau
    expected = arm.deflections(tau, taud, taudd, stiffness=stiffness, deflection=deflection)
    commands = dict(zip(("k", "kd", "kdd", "deflection"), (*stiffness, deflection), strict=True))
    taken = {key: value for key, value in commands.items() if key in compiled.feedforward.inputs}
    results = compiled(tau=tau, taud=taud, taudd=taudd, **taken)
    weights = compiled.feedforward.motion_weights
    for output, wanted in zip(MOTOR_NAMES[:3], expected[:3], strict=True):
        np.testing.assert_allclose(results[output], wanted @ weights.T, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("name", SPRING_ROBOTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_any_inputs_are_read_without_a_trap(name: str, bad: float, motors: Mapping[str, Motors]) -> None:
    """Sanitizers find no access out of bounds, and loops end; a NaN effort gives NaN at its motors."""
    compiled = motors[name]
    ones = np.full((1, 7), 1.0)
    inputs = {key: (bad if key == "tau" else 1.0) * ones for key in compiled.feedforward.motor_inputs}
    effort = compiled(**inputs)["motor_effort"]
    if np.isnan(bad):
        assert np.all(np.isnan(effort))
    for key in compiled.feedforward.motor_inputs:
        compiled(**{other: (bad if other == key else 1.0) * ones for other in inputs})


def test_stiffness_out_of_range_is_nan_at_the_motors_of_the_joint(motors: Mapping[str, Motors]) -> None:
    compiled = motors["springs_1"]
    arm = ElasticArm(robot("springs_1"))
    tau = np.full((1, 7), 10.0)
    good = np.where(arm.paired, 1500.0, 400.0)[np.newaxis]
    assert np.all(np.isfinite(np.concatenate(list(compiled(tau=tau, k=good).values()))))
    for joint in np.flatnonzero(arm.variable):
        for stiffness in (0.0, -5.0, 49.0, np.nan):
            k = good.copy()
            k[0, joint] = stiffness
            for values in compiled(tau=tau, k=k).values():
                np.testing.assert_array_equal(np.isnan(values[0]), arm.motor_joint == joint)


@needs_octave
def test_octave_stiffness_out_of_range_and_omitted(tmp_path: Path) -> None:
    export(robot("vsa_planar_2r"), "matlab", tmp_path, [FEEDFORWARD])
    octave(
        "q = zeros(2, 3); W = zeros(6, 1); z = [0; 0]; r = cell(1, 7); s = cell(1, 7); t = cell(1, 7);"
        "[r{:}] = vsa_planar_2r_feedforward(q, z, z, z, z);"
        "[s{:}] = vsa_planar_2r_feedforward(z, z, z, z, z, W, W, W, [250 250 250; 120 120 120], z, z);"
        "[t{:}] = vsa_planar_2r_feedforward(z, z, z, z, z, W, W, W, [250 99 250; 120 120 59], z, z);"
        "assert(isequal(r, s) && size(r{7}, 2) == 3);"
        "for i = 4:7, assert(isequal(isnan(t{i}), logical([0 1 0; 0 1 0; 0 0 1; 0 0 1]))), end",
        tmp_path,
    )


@pytest.mark.skipif(not (shutil.which("cmake") and COMPILERS), reason="CMake or a C compiler is not installed")
def test_cmake_links_the_library_of_math(tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    export(robot("sea_planar_2r"), "c", library, [FEEDFORWARD])
    succeed(["cmake", "-S", library, "-B", "build"], tmp_path)
    succeed(["cmake", "--build", "build", "--parallel", "2"], tmp_path)
    assert "100% tests passed" in succeed(["ctest", "--test-dir", "build"], tmp_path)


def octave(code: str, folder: Path) -> str:
    assert OCTAVE
    return succeed([OCTAVE, "--no-gui", "--norc", "--eval", code], folder)

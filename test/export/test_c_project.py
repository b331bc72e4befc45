# SPDX-License-Identifier: Apache-2.0
"""Exported C: compiles without warnings or libraries, and agrees with the closed form."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from compilation import COMPILERS, run, supports
from exported import C_STRICT, export, replace_in, robot, succeed

from eom_dynamics.export import FEEDFORWARD

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no C compiler is installed")


def compile_all(folder: Path, *flags: str, compiler: str = "cc") -> None:
    succeed([compiler, *C_STRICT, *sorted(folder.glob("*.c")), "-o", "built", *flags], folder)


@pytest.mark.parametrize("flags", [["-march=native"], ["-DNO_LANES"], ["-fsanitize=address,undefined"]])
def test_batches_with_all_lanes_without_lanes_and_sanitized(flags: list[str], tmp_path: Path) -> None:
    export(robot("planar_2r" if "sanitize" in flags[0] else "mixed_chain"), "c", tmp_path, ["effort"])
    if "sanitize" in flags[0]:
        if not supports(tmp_path, *flags):
            pytest.skip("the sanitizers are not installed")
        (tmp_path / "source_0.c").unlink()
    for file in tmp_path.glob("*_batch.c"):
        replace_in(file, "#if defined(__GNUC__)", "#if defined(__GNUC__) && !defined(NO_LANES)")
    compile_all(tmp_path, *flags)
    assert "BAD" not in succeed([tmp_path / "built"], tmp_path)


@pytest.mark.skipif(not shutil.which("nm"), reason="nm is not installed")
def test_functions_for_one_state_call_no_library(tmp_path: Path) -> None:
    export(robot("mixed_chain"), "c", tmp_path, ["effort"])
    source = "mixed_chain_effort.c"
    succeed(["cc", "-std=c99", "-O2", "-fno-stack-protector", "-c", source, "-o", "one.o"], tmp_path)
    assert succeed(["nm", "--undefined-only", "one.o"], tmp_path) == ""


def test_fast_math_is_an_error(tmp_path: Path) -> None:
    export(robot("planar_pr"), "c", tmp_path, [FEEDFORWARD])
    for function in ("inverse_dynamics", "motors"):
        done = run(["cc", "-std=c99", "-ffast-math", "-c", f"planar_pr_{function}.c"], tmp_path)
        assert done.returncode != 0 and "without -ffast-math" in done.stderr


@pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("c++")), reason="CMake or C++ is not installed")
def test_cmake_package_in_a_cpp_program(tmp_path: Path) -> None:
    library, user = tmp_path / "library", tmp_path / "user"
    library.mkdir()
    user.mkdir()
    _, stored = export(robot("planar_2r"), "c", library, ["effort", FEEDFORWARD])  # that takes the library of math
    succeed(["cmake", "-S", library, "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], tmp_path)
    succeed(["cmake", "--build", "build", "--parallel", "2"], tmp_path)
    assert "100% tests passed" in succeed(["ctest", "--test-dir", "build"], tmp_path)
    succeed(["cmake", "--install", "build", "--prefix", tmp_path / "installed"], tmp_path)

    q, qd, qdd, W = (", ".join(map(repr, stored.inputs[name][1].tolist())) for name in ("q", "qd", "qdd", "W"))
    (user / "main.cpp").write_text(
        "#include <planar_2r_dynamics.h>\n#include <cstdio>\n"
        "int main() {\n"
        f"    const double q[] = {{{q}}}, qd[] = {{{qd}}}, qdd[] = {{{qdd}}}, W[] = {{{W}}};\n"
        "    double tau[PLANAR_2R_JOINTS];\n"
        "    planar_2r_effort(q, qd, qdd, W, tau);\n"
        '    std::printf("%.17g %.17g\\n", tau[PLANAR_2R_INDEX_JOINT_1], tau[PLANAR_2R_INDEX_JOINT_2]);\n'
        "}\n"
    )
    (user / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(user CXX)\nfind_package(planar_2r_dynamics REQUIRED)\n"
        "add_executable(user main.cpp)\ntarget_link_libraries(user planar_2r_dynamics::planar_2r_dynamics)\n"
    )
    succeed(["cmake", "-S", user, "-B", "user_build", f"-DCMAKE_PREFIX_PATH={tmp_path / 'installed'}"], tmp_path)
    succeed(["cmake", "--build", "user_build"], tmp_path)
    tau = [float(x) for x in succeed([tmp_path / "user_build" / "user"], tmp_path).split()]
    assert tau == pytest.approx(stored.outputs["effort"]["tau"][1].tolist(), abs=stored.tolerance("effort", "tau")[1])

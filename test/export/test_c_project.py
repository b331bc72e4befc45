# SPDX-License-Identifier: Apache-2.0
"""Exported C compiles without warnings or libraries, and agrees with the closed form.

Exported CUDA compiles if nvcc is installed, and runs if there is a device, else on the processor.
"""

import re
import shutil
from pathlib import Path

import cuda_on_host
import pytest
from compilation import run, supports
from exported import C_STRICT, export, passes_c_test, replace_in, robot, succeed, used_by_cmake

from eom_dynamics.export import FEEDFORWARD


@pytest.mark.parametrize("flags", [["-march=native"], ["-DNO_LANES"], ["-fsanitize=address,undefined"]])
def test_batches_with_all_lanes_without_lanes_and_sanitized(flags: list[str], tmp_path: Path) -> None:
    export(robot("planar_2r" if "sanitize" in flags[0] else "mixed_chain"), "c", tmp_path, ["effort"])
    if "sanitize" in flags[0]:
        if not supports(tmp_path, *flags):
            pytest.skip("the sanitizers are not installed")
        (tmp_path / "source_0.c").unlink()
    for file in tmp_path.glob("*_batch.c"):
        replace_in(file, "#if defined(__GNUC__)", "#if defined(__GNUC__) && !defined(NO_LANES)")
    passes_c_test(tmp_path, *flags)


@pytest.mark.skipif(
    not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64-static")),
    reason="exported C on arm64: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static",
)
@pytest.mark.parametrize(("name", "function"), [("mixed_chain", "effort"), ("planar_pr", FEEDFORWARD)])
def test_arm64_in_an_emulator(name: str, function: str, tmp_path: Path) -> None:
    """Batches over the two lanes of NEON."""
    _, stored = export(robot(name), "c", tmp_path, [function])
    compiler = "aarch64-linux-gnu-gcc"
    succeed([compiler, *C_STRICT, "-O2", *sorted(tmp_path.glob("*.c")), "-static", "-lm", "-o", "built"], tmp_path)
    lines = succeed(["qemu-aarch64-static", "built"], tmp_path).splitlines()
    assert len(lines) == 2 * sum(map(len, stored.outputs.values())) and all(x.startswith("ok") for x in lines), lines
    first = next(iter(stored.outputs))
    assembly = succeed([compiler, "-O2", "-S", f"{name}_{first}_batch.c", "-o", "-"], tmp_path)
    assert len(re.findall(r"\bf(?:mul|mla|mls|add|sub)\tv\d+\.2d", assembly)) > 50


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
    subject = robot("planar_2r")
    _, stored = export(subject, "c", tmp_path / "library", ["effort", FEEDFORWARD])  # that takes the library of math
    q, qd, qdd, W = (", ".join(map(repr, stored.inputs[name][1].tolist())) for name in ("q", "qd", "qdd", "W"))
    main = (
        "#include <planar_2r_dynamics.h>\n#include <cstdio>\n"
        "int main() {\n"
        f"    const double q[] = {{{q}}}, qd[] = {{{qd}}}, qdd[] = {{{qdd}}}, W[] = {{{W}}};\n"
        "    double tau[PLANAR_2R_JOINTS];\n"
        "    planar_2r_effort(q, qd, qdd, W, tau);\n"
        '    std::printf("%.17g %.17g\\n", tau[PLANAR_2R_INDEX_JOINT_1], tau[PLANAR_2R_INDEX_JOINT_2]);\n'
        "}\n"
    )
    tau = [float(x) for x in used_by_cmake(tmp_path, "CXX", "planar_2r_dynamics::planar_2r_dynamics", main).split()]
    assert tau == pytest.approx(stored.outputs["effort"]["tau"][1].tolist(), abs=stored.tolerance("effort", "tau")[1])


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not installed")
    folder = tmp_path_factory.mktemp("cuda")
    export(robot("mixed_chain"), "cuda", folder, ["effort"])
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    succeed(["nvcc", "-arch=sm_80", *strict, *folder.glob("*.cu"), "-o", "built"], folder)
    return folder


def test_cuda_compiles_and_its_header_is_c(cuda: Path) -> None:
    (cuda / "user.c").write_text('#include "mixed_chain_dynamics_cuda.h"\nint n = MIXED_CHAIN_JOINTS;\n')
    succeed(["nvcc", "-c", "user.c", "-Xcompiler", "-std=c99,-Wall,-Werror"], cuda)


@pytest.mark.skipif(bool(shutil.which("nvidia-smi")), reason="this machine may have a CUDA device")
def test_the_test_of_cuda_reports_a_missing_device(cuda: Path) -> None:
    done = run([cuda / "built"], cuda)
    assert done.returncode == 1
    assert done.stderr.startswith("CUDA: ")


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_the_test_of_cuda_finds_errors(tmp_path: Path) -> None:
    export(robot("planar_2r"), "cuda", tmp_path, ["effort"])
    cuda_on_host.adapt(tmp_path)
    test = tmp_path / "test.o"
    succeed(["g++", "-I.", "-c", *tmp_path.glob("test_*.cpp"), "-o", test], tmp_path)
    (kernel,) = tmp_path.glob("*_effort.cu.cpp")
    good = kernel.read_text()

    def output(old: str, new: str) -> tuple[int, str]:
        assert old in good
        kernel.write_text(good.replace(old, new, 1))
        succeed(["g++", "-I.", kernel, test, "-o", "built"], tmp_path)
        done = run([tmp_path / "built"], tmp_path)
        return done.returncode, done.stdout

    code, lines = output("", "")
    assert code == 0 and "BAD" not in lines
    for old, new in (
        ("tau[i] = ", "tau[i] = 1e-6 + "),
        ("tau[i] = ", "tau[i] = (i == 0 ? NAN : 0.0) + "),
        ("tau[1 * count + i] = ", "tau[0] = "),
    ):
        code, lines = output(old, new)
        assert code == 1 and "BAD" in lines, new

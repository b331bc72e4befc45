# SPDX-License-Identifier: Apache-2.0
"""Exported CUDA: compiles if nvcc is installed, and runs if there is a device, else on the processor."""

import shutil
from pathlib import Path

import cuda_on_host
import pytest
from compilation import run
from exported import export, robot, succeed


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not installed")
    folder = tmp_path_factory.mktemp("cuda")
    export(robot("mixed_chain"), "cuda", folder, ["effort"])
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    succeed(["nvcc", "-arch=sm_80", *strict, *folder.glob("*.cu"), "-o", "built"], folder)
    return folder


def test_it_compiles_and_its_header_is_c(built: Path) -> None:
    (built / "user.c").write_text('#include "mixed_chain_dynamics_cuda.h"\nint n = MIXED_CHAIN_JOINTS;\n')
    succeed(["nvcc", "-c", "user.c", "-Xcompiler", "-std=c99,-Wall,-Werror"], built)


@pytest.mark.skipif(bool(shutil.which("nvidia-smi")), reason="this machine may have a CUDA device")
def test_its_test_reports_a_missing_device(built: Path) -> None:
    done = run([built / "built"], built)
    assert done.returncode == 1
    assert done.stderr.startswith("CUDA: ")


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_its_test_finds_errors(tmp_path: Path) -> None:
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

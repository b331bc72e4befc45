# SPDX-License-Identifier: Apache-2.0
"""Exported CUDA: it compiles where there is a compiler, and runs where there is a device."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from exported import export, robot, run, succeed

pytestmark = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc here")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cuda")
    export(robot("mixed_chain"), "cuda", folder, ["effort", "mass_matrix"])
    strict = ["-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    device = "native" if has_device() else "sm_80"
    succeed(["nvcc", f"-arch={device}", *strict, *folder.glob("*.cu"), "-o", "built"], folder)
    return folder


def has_device() -> bool:
    return bool(shutil.which("nvidia-smi")) and run(["nvidia-smi", "-L"], Path.cwd()).returncode == 0


def test_compiles_without_a_warning(built: Path) -> None:
    assert (built / "built").stat().st_size > 0


def test_header_is_c(built: Path) -> None:
    (built / "user.c").write_text('#include "mixed_chain_dynamics_cuda.h"\nint n = MIXED_CHAIN_JOINTS;\n')
    succeed(["nvcc", "-c", "user.c", "-Xcompiler", "-std=c99,-Wall,-Werror"], built)


@pytest.mark.skipif(has_device(), reason="there is a device")
def test_without_a_device_its_test_fails_and_says_why(built: Path) -> None:
    done = run([built / "built"], built)
    assert done.returncode == 1
    assert done.stderr.startswith("CUDA: ")


@pytest.mark.skipif(not has_device(), reason="no CUDA device here")
def test_passes_its_test(built: Path) -> None:
    lines = succeed([built / "built"], built).splitlines()
    assert sum(line.startswith("ok") for line in lines) == 2
    assert sum("states per second" in line for line in lines) == 2

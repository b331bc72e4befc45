# SPDX-License-Identifier: Apache-2.0
"""Emitted C and the compiled caller under the sanitizers of the compiler: memory, undefined behaviour, data races."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chains import fixed_case
from compilation import supports
from paths import ROOT

from eom_dynamics import Robot
from eom_dynamics.codegen.emit_c import c_source
from eom_dynamics.codegen.program import c_name
from eom_dynamics.codegen.programs import PROGRAMS

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

MEMORY = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-g", "-pthread", "-fsanitize=thread")

# Tests that call kernels and the caller in all their ways, and the compiled inverse kinematics.
CALLS = (
    "codegen/test_caller.py",
    "codegen/test_functions.py",
    "codegen/test_not_finite.py",
    "codegen/test_backends.py",
    "kinematics/test_inverse.py",
)

DRIVER = Path(__file__).with_name("batch_in_threads.c")

OVERRUN = """
import ctypes
from eom_dynamics.codegen.compiler import compiled
source = "double last(const double *x, int n) { return x[n]; }"
with compiled(lambda: source, "overrun") as path:
    last = ctypes.CDLL(str(path)).last
import numpy as np
last.restype = ctypes.c_double
last(ctypes.c_void_p(np.ones(100).ctypes.data), ctypes.c_int(100))
print("not found")
"""


def flags_or_skip(folder: Path, flags: tuple[str, ...]) -> tuple[str, ...]:
    """The flags, where the compiler has the sanitizers and they run here."""
    if not supports(folder, *flags):
        pytest.skip("the sanitizers are not installed, or do not run here")
    return flags


def under_memory_sanitizers(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with kernels and the caller compiled for the sanitizers, which must be loaded first."""
    flags = flags_or_skip(folder, MEMORY)
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = {
        **os.environ,
        "CC": " ".join(["gcc", *flags]),
        "EOM_DYNAMICS_CACHE": str(folder / "cache"),
        "LD_PRELOAD": ":".join(libraries),
        # Python keeps objects until it ends. Its own allocator would hide what lies beside them.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_memory_and_undefined_behaviour(tmp_path: Path) -> None:
    files = [f"test/{name}" for name in CALLS]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=1500"]
    # Left out: tests that choose another compiler, and tests for leaks, since sanitizers hold on to freed memory.
    chosen = ["-k", "not compiler and not cache and not Fallback and not leak"]
    done = under_memory_sanitizers(tmp_path, "-m", "pytest", *options, *chosen, *files)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert list((tmp_path / "cache").iterdir())


def test_the_sanitizers_find_an_overrun(tmp_path: Path) -> None:
    done = under_memory_sanitizers(tmp_path, "-c", OVERRUN)
    assert done.returncode != 0 and "not found" not in done.stdout
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize("robot", ["mixed_chain", "iiwa"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "mass_matrix"])
def test_batches_in_threads(robot: str, name: str, tmp_path: Path) -> None:
    done = in_threads(fixed_case(robot, 0).robot, name, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not done.stderr


def test_the_sanitizer_finds_threads_that_write_the_same_rows(tmp_path: Path) -> None:
    done = in_threads(fixed_case("planar_2r", 0).robot, "inverse_dynamics", tmp_path, "-DOVERLAP=1")
    assert done.returncode != 0
    assert "ThreadSanitizer: data race" in done.stderr


def in_threads(robot: Robot, name: str, folder: Path, *defines: str) -> subprocess.CompletedProcess[str]:
    """Compile the program of a robot with the driver, and run it."""
    flags = flags_or_skip(folder, THREADS)
    program = PROGRAMS[name](robot)
    source, built = folder / "program.c", folder / "built"
    source.write_text(c_source(program))
    sizes = {"INPUTS": program.inputs.values(), "OUTPUTS": program.outputs.values()}
    given = [f"-D{key}={','.join(map(str, numbers))}" for key, numbers in sizes.items()]
    command = ["gcc", "-O1", "-march=native", *flags, *given, *defines, f"-DBATCH={c_name(name)}_batch"]
    subprocess.run([*command, source, DRIVER, "-o", built, "-lm"], check=True, capture_output=True, text=True)
    return subprocess.run([built], capture_output=True, text=True, check=False)

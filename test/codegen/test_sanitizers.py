# SPDX-License-Identifier: Apache-2.0
"""Emitted C and the compiled caller under the sanitizers of the compiler: memory and undefined behavior."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from compilation import supports
from paths import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

MEMORY = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Tests that call kernels and the caller in all their ways, and the compiled inverse kinematics.
CALLS = (
    *("codegen/test_caller.py", "codegen/test_functions.py"),
    *("codegen/test_backends.py", "kinematics/test_inverse.py"),
)

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


def under_memory_sanitizers(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with kernels and the caller compiled for the sanitizers, which must be loaded first."""
    if not supports(folder, *MEMORY):
        pytest.skip("the sanitizers are not installed, or do not run here")
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    environment = {
        **os.environ,
        "CC": " ".join(["gcc", *MEMORY]),
        "EOM_DYNAMICS_CACHE": str(folder / "cache"),
        "LD_PRELOAD": ":".join(libraries),
        # Python keeps objects until it ends. Its own allocator would hide adjacent memory.
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

# SPDX-License-Identifier: Apache-2.0
"""Compilation of C source, and the compilers and vector widths of this machine."""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

from eom_dynamics.arrays import Array

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

STRICT = ("-Wall", "-Wextra", "-Wshadow", "-Wcast-align", "-Wno-psabi", "-Werror")


def lane_flags() -> dict[str, list[str]]:
    """Compiler flags for each vector width of this processor."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return {"native": []}
    has = Path("/proc/cpuinfo").read_text().split()
    wanted = {"avx512f": ["-mavx512f", "-mfma"], "avx2": ["-mavx2", "-mfma"], "sse2": ["-msse2"]}
    return {name: ["-march=x86-64", *flags] for name, flags in wanted.items() if name in has}


def compile_c(sources: Sequence[str], folder: Path, *flags: str, compiler: str = "cc") -> CompletedProcess[str]:
    """Compile sources separately and link them to ``folder / "built"``."""
    files = [folder / f"source_{i}.c" for i in range(len(sources))]
    for file, source in zip(files, sources, strict=True):
        file.write_text(source)
    command = [compiler, *flags, *map(str, files), "-o", str(folder / "built")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class CompiledProgram:
    """Functions of an emitted source."""

    def __init__(self, source: str, name: str, folder: Path, *flags: str) -> None:
        result = compile_c([source], folder, "-O2", "-fPIC", "-shared", *flags)
        assert result.returncode == 0, result.stderr
        library = ctypes.CDLL(str(folder / "built"))
        self._one, self._batch = library[name], library[f"{name}_batch"]

    def one(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        self._one(_pointers(inputs), _pointers(outputs))

    def batch(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Evaluate all rows of the inputs; a single row is shared by all states."""
        count = len(outputs[0])
        strides = [x.strides[0] // 8 if len(x) > 1 else 0 for x in inputs]
        sizes = (ctypes.c_size_t * len(strides))(*strides)
        self._batch(ctypes.c_size_t(count), _pointers(inputs), sizes, _pointers(outputs))


def _pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))


def supports(folder: Path, *flags: str) -> bool:
    """Whether programs compile and run with these flags."""
    return (
        sys.platform == "linux"
        and compile_c(["int main(void) { return 0; }"], folder, *flags).returncode == 0
        and subprocess.run([str(folder / "built")], check=False).returncode == 0
    )

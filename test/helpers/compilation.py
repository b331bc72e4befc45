# SPDX-License-Identifier: Apache-2.0
"""Compilation of C source, and the compilers and vector widths of this machine."""

import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import mkdtemp

from eom_dynamics.arrays import Array
from eom_dynamics.codegen.cache import digest
from eom_dynamics.codegen.compiler import identity, target_processor

COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

STRICT = ("-Wall", "-Wextra", "-Wshadow", "-Wcast-align", "-Wno-psabi", "-Werror")

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize=null,object-size", "-fno-sanitize-recover=all")
"""Without the checks of null pointers and sizes of objects, which add two fifths to the time to compile C++."""

COMPILED = Path(__file__).parents[2] / ".pytest_cache" / "compiled"
"""Cache of compiler outputs: most exported code is equal between runs, byte for byte."""

_FORGOTTEN_AFTER = 3 * 24 * 3600.0


def run(command: Sequence[str | Path], folder: Path) -> CompletedProcess[str]:
    """Run a command in a folder; a compiler does not run again on the same files, which it would compile to the same.

    Cached for files of this folder and of the system only; with other files, it runs.
    """
    words = [str(word) for word in command]
    used = [word.replace(str(folder), ".") for word in words]
    compiler = shutil.which(words[0]) if words[0] in ("cc", "gcc", "clang", "c++", "g++", "clang++", "nvcc") else None
    if compiler is None or any(word.removeprefix("-I").startswith(("/", "..")) for word in used):
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    before = _files(folder)
    entry = COMPILED / digest(
        identity([compiler]), target_processor(), *used, *(x for file in before.items() for x in file)
    )
    if not (entry / "output").is_file():
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            written = [name for name, content in _files(folder).items() if before.get(name) != content]
            _remember(entry, folder, written, (done.stdout, done.stderr))
        return done
    os.utime(entry)
    shutil.copytree(entry / "files", folder, dirs_exist_ok=True)
    return CompletedProcess(words, 0, *json.loads((entry / "output").read_text()))


def forget_old() -> None:
    """Remove outputs that no run has used for days."""
    for entry in COMPILED.glob("*"):
        if time.time() - entry.stat().st_mtime > _FORGOTTEN_AFTER:
            shutil.rmtree(entry, ignore_errors=True)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def _remember(entry: Path, folder: Path, written: Sequence[str], output: tuple[str, str]) -> None:
    """Store the files of a compiler, all or none."""
    COMPILED.mkdir(parents=True, exist_ok=True)
    new = Path(mkdtemp(dir=COMPILED))
    for name in written:
        (new / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(folder / name, new / "files" / name)
    (new / "files").mkdir(exist_ok=True)  # a check of syntax writes none
    (new / "output").write_text(json.dumps(output))
    try:
        new.rename(entry)
    except OSError:  # another worker was faster
        shutil.rmtree(new)


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
    return run(command, folder)


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
    """True if programs compile and run with these flags."""
    return (
        sys.platform == "linux"
        and compile_c(["int main(void) { return 0; }"], folder, *flags).returncode == 0
        and subprocess.run([str(folder / "built")], check=False).returncode == 0
    )

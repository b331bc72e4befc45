# SPDX-License-Identifier: Apache-2.0
"""Library of the control loop (eom/loop.h), built with the package and the same for every robot."""

from __future__ import annotations

import ctypes
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ..exceptions import KernelError
from .headers import loop_digest, loop_headers

NAME = "libeom_loop.so"
"""Name of the file, in a folder of the package."""

BUILD = "run make build in a clone, colcon build in a workspace, or pip install --no-cache-dir --force-reinstall"
"""Command that builds the library."""

LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
}
"""Processor flags of each level of x86-64, from the highest; lower levels are required as well."""

_NUMBERS = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "double": ctypes.c_double}


def _type(declared: str) -> Any:
    """ctypes type of a result or argument in C: number, text, or address."""
    kind = declared.replace("const ", "").split()[0]
    if "*" in declared:
        return ctypes.c_char_p if kind == "char" and declared.count("*") == 1 else ctypes.c_void_p
    return None if kind == "void" else _NUMBERS.get(kind, ctypes.c_void_p)


def folders_for(flags: set[str]) -> list[str]:
    """Folders with builds for a processor with these flags, the fastest first, as the dynamic linker names them."""
    levels = [level for level, needed in LEVELS.items() if needed <= flags and LEVELS["x86-64-v3"] <= flags]
    return [f"glibc-hwcaps/{level}" for level in levels]


def _flags() -> set[str]:
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        return next((set(line.split()) for line in lines if line.startswith("flags")), set())
    return set()


@cache
def library() -> ctypes.CDLL:
    """Load the library; KernelError with a remedy if it is missing or built from other sources."""
    reason = "the control loop is not built; install g++ (a C++ compiler), and"
    folders = sys.modules[__name__.partition(".")[0]].__path__  # two in a workspace: sources and build
    levels = (*folders_for(_flags()), "")
    paths = (Path(folder, level, NAME) for folder in folders for level in levels)
    for path in filter(Path.exists, paths):
        try:
            loaded = ctypes.CDLL(str(path))
            digest: Any = loaded["eom_loop_digest"]
        except (OSError, AttributeError) as error:
            reason = f"the control loop cannot be loaded: {error};"
            continue
        digest.restype = ctypes.c_char_p
        if digest().decode() == loop_digest():
            return _declared(loaded)
        reason = f"{path} is not built from the sources in {Path(__file__).with_name('eom')}:"
    raise KernelError(f"{reason} {BUILD}")


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the functions of loop.h with their types, under their names without ``eom_``."""
    header = loop_headers()["include/eom/loop.h"]
    for result, name, arguments in re.findall(r"^(\w[\w ]* \**)eom_(\w+)\(([^)]*)\);", header, re.MULTILINE):
        function: Any = loaded[f"eom_{name}"]
        function.restype = _type(result)
        function.argtypes = [_type(argument) for argument in arguments.split(",") if argument != "void"]
        setattr(loaded, name, function)
    return loaded

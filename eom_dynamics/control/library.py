# SPDX-License-Identifier: Apache-2.0
"""The compiled control loop behind its interface in C, eom/loop.h: one library for robots of similar size."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import Any

from ..codegen.cache import loadable
from ..codegen.compiler import key_of, own_flags, require_compiler, run_compiler, uncached
from ..exceptions import KernelError
from .headers import LARGEST_LOADED, loop_headers, source

SIZES = ((8, 8, 1), (16, 16, 2), (32, 32, 4), tuple(LARGEST_LOADED.values()))
"""Most joints, motors and tools of robots with a library of their own: the fewer places, the shorter the cycle."""

# Without fused operations, so that the loop has the same bits in a controller, which is compiled for any processor.
_FLAGS = ("-std=gnu++17", "-O2", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-DNDEBUG")

_NUMBERS = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "double": ctypes.c_double}


def _type(declared: str) -> Any:
    """Type of a result or an argument in C: a number, a text, or an address of anything else."""
    kind = declared.replace("const ", "").split()[0]
    if "*" in declared:
        return ctypes.c_char_p if kind == "char" and declared.count("*") == 1 else ctypes.c_void_p
    return None if kind == "void" else _NUMBERS.get(kind, ctypes.c_void_p)


@cache
def library(joints: int, motors: int, tools: int) -> ctypes.CDLL:
    """The library for robots of at most this size, one of SIZES, compiled or from the cache.

    Raises:
        KernelError: no compiler was found, compilation failed, or the cache is not usable.
    """
    sources = loop_headers() | {"loop.cpp": source("loop.cpp")}
    places = zip(("JOINTS", "MOTORS", "TOOLS"), (joints, motors, tools), strict=True)
    flags = [*_FLAGS, *(f"-DEOM_{name}={most}" for name, most in places)]
    flags += own_flags()
    texts = [part for file in sources.items() for part in file]
    key = key_of("loop", *texts, *flags, variable="CXX")

    def build(output: Path) -> None:
        compiler, folder = require_compiler("CXX"), output.parent
        for name, text in sources.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        # Named, since flags may leave libraries out.
        run_compiler([*compiler, *flags, f"-I{folder}/include", str(folder / "loop.cpp"), "-lstdc++", "-lm"], output)

    try:
        with loadable(key, build) as path:
            loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise uncached("loops", error) from None
    declarations = re.findall(r"^(\w[\w ]* \**)eom_(\w+)\(([^)]*)\);", sources["include/eom/loop.h"], re.MULTILINE)
    for result, name, arguments in declarations:
        function: Any = loaded[f"eom_{name}"]
        function.restype, function.argtypes = _type(result), [_type(argument) for argument in arguments.split(",")]
        setattr(loaded, name, function)
    return loaded


def library_for(joints: int, motors: int, tools: int) -> ctypes.CDLL:
    """The smallest library for a robot of this size; KernelError if it is too large, or as :func:`library`."""
    for sizes in SIZES:
        if all(x <= most for x, most in zip((joints, motors, tools), sizes, strict=True)):
            return library(*sizes)
    raise KernelError(
        f"a control loop is for at most {SIZES[-1]} joints, motors and tools, not {joints, motors, tools}"
    )

# SPDX-License-Identifier: Apache-2.0
"""The compiled control loop behind its interface in C, eom/loop.h: one library for robots of similar size."""

from __future__ import annotations

import ctypes
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
_FLAGS = ("-std=gnu++17", "-O2", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-DNDEBUG", "-DEOM_EIGEN=0")

_TEXT, _ADDRESS, _SIZE, _INT, _TIME = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int64

# Result and arguments of the functions of eom/loop.h.
_FUNCTIONS = {
    "robot_make": (_ADDRESS, _SIZE, _SIZE, _SIZE),
    **dict.fromkeys(("robot_free", "loop_free", "motion_free"), (None, _ADDRESS)),
    **dict.fromkeys(("robot_set", "loop_set", "observer_set"), (_TEXT, _ADDRESS, _TEXT, _ADDRESS, _SIZE)),
    "robot_add": (_TEXT, _ADDRESS, _TEXT, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _SIZE),
    **dict.fromkeys(("loop_size", "setpoint_size"), (_SIZE, _ADDRESS)),
    "loop_make": (_ADDRESS, _ADDRESS),
    "loop_configure": (_TEXT, _ADDRESS),
    "loop_vector": (_ADDRESS, _ADDRESS, _TEXT, _TEXT),
    "loop_measure": (None, _ADDRESS, _INT, _INT),
    "loop_sense": (_INT, _ADDRESS, _TIME, _INT),
    "loop_restart": (_TEXT, _ADDRESS, _TIME),
    "loop_rest": (_ADDRESS, _ADDRESS, _INT),
    "loop_refer": (None, _ADDRESS, _TIME),
    "loop_carry": (_TEXT, _ADDRESS, _SIZE, _ADDRESS, ctypes.c_double),
    "loop_send": (_TEXT, _ADDRESS, _TIME, _ADDRESS, _SIZE, _ADDRESS),
    "loop_plan": (_INT, _ADDRESS, _TIME, ctypes.c_double),
    "loop_act": (_TEXT, _ADDRESS, _TEXT),
    "loop_update": (_INT, _ADDRESS, _TIME, ctypes.c_double),
    "loop_answer": (
        *(_SIZE, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS),
    ),
    "observer_update": (None, _ADDRESS, _SIZE, _ADDRESS, _INT, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS, _ADDRESS),
    "loop_limit": (_TEXT, _ADDRESS, _ADDRESS, _SIZE, _INT),
    "loop_post_target": (_TEXT, _ADDRESS, _TIME, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS),
    "loop_post_speed": (_TEXT, _ADDRESS, ctypes.c_double),
    "loop_post_mode": (_TEXT, _ADDRESS, _INT),
    "loop_aim": (_INT, _ADDRESS, _TIME),
    "loop_number": (ctypes.c_double, _ADDRESS, _TEXT),
    "motion_make": (_TEXT, _ADDRESS, _ADDRESS, _SIZE, _INT, _ADDRESS),
    "motion_begin": (None, _ADDRESS, _ADDRESS, _ADDRESS),
    "motion_aim": (_TEXT, _ADDRESS, _ADDRESS, _SIZE, _ADDRESS, _ADDRESS),
    "motion_step": (ctypes.c_double, _ADDRESS, _SIZE, _ADDRESS),
    "motion_arrived": (_INT, _ADDRESS),
}


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
    for name, (result, *arguments) in _FUNCTIONS.items():
        function: Any = loaded[f"eom_{name}"]
        function.restype, function.argtypes = result, arguments
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

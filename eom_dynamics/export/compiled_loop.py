# SPDX-License-Identifier: Apache-2.0
"""A robot's control loop as a compiled library, for the ros2_control controller of every robot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..codegen.c_functions import filled
from ..codegen.cache import cache_directory, cached, digest
from ..codegen.compiler import find_compiler, identity, run_compiler, uncached
from ..robot import Robot
from . import c_project, cpp_project
from .cpp_project import cpp_comment, type_name
from .functions import controller_functions
from .languages import UnavailableError, language_unavailable
from .project import project
from .templates import template

# As CMake compiles the exported package, so that both have the same bits; without other symbols than those of its
# interface, since another library may have a robot of the same name.
_FLAGS = ("-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-DEOM_EIGEN=0", "-Ic", "-Iinclude")


class LoopLibrary(NamedTuple):
    """A compiled library.

    Attributes:
        path: of the library in the cache.
        content: of the file, without what the cache appends.
        fingerprint: digest of its sources, which it tells.
    """

    path: Path
    content: bytes
    fingerprint: str


def loop_library(robot: Robot) -> LoopLibrary:
    """The library of a robot's control loop, compiled or from the cache.

    Compilers are ``$CC`` and ``$CXX``, which may compile for another processor.

    Raises:
        UnavailableError: the robot has no motor feedforward, or C++ cannot have its names.
        KernelError: no compiler was found, it failed, or the cache is not usable.
    """
    exported = project(robot, controller_functions(robot))
    if reason := language_unavailable(exported, "cpp"):
        raise UnavailableError(reason)
    sources = {f"c/{name}": text for name, text in c_project.sources(exported).items()}
    sources |= cpp_project.headers(exported)
    fingerprint = digest(*(part for file in sources.items() for part in file))
    fields = {"notice": cpp_comment(exported), "name": exported.name, "type": type_name(exported)}
    sources["loop.cpp"] = filled(template("cpp/loop.cpp.in"), **fields, fingerprint=fingerprint)
    c, cpp = find_compiler(), find_compiler("CXX")
    flags = [*_FLAGS, *os.environ.get("EOM_DYNAMICS_CFLAGS", "").split()]
    key = digest("loop", fingerprint, sources["loop.cpp"], *flags, *c, identity(c), *cpp, identity(cpp))

    def build(output: Path) -> None:
        folder = output.parent
        for name, text in sources.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        located = [f"-I{folder}/{flag[2:]}" if flag.startswith("-I") else flag for flag in flags]
        objects = []
        for name in sources:
            if name.endswith(".c"):
                objects.append(str((folder / name).with_suffix(".o")))
                run_compiler([*c, "-std=gnu99", *located, "-c", str(folder / name)], Path(objects[-1]))
        run_compiler([*cpp, "-std=gnu++17", *located, "-shared", str(folder / "loop.cpp"), *objects, "-lm"], output)

    try:
        content = cached(key, build)
    except OSError as error:
        raise uncached("loops", error) from None
    return LoopLibrary(cache_directory() / f"{key}.so", content, fingerprint)

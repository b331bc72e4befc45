# SPDX-License-Identifier: Apache-2.0
"""Robot as a compiled library, for a control loop that is compiled separately: eom/robot_table.hpp."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..codegen.cache import cache_directory, cached, digest
from ..codegen.compiler import find_compiler, identity, own_flags, run_compiler, uncached
from ..control.headers import LARGEST_LOADED, loop_headers
from ..elastic.motor_side import MotorSide
from ..exceptions import EomDynamicsError
from ..robot import Robot
from . import c_project
from .functions import loop_functions
from .project import project
from .robot_table import allowed_in_cpp, robot_table

# Only interface symbols are exported, since another library may have a robot of the same name.
_FLAGS = ("-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-Ic", "-Iinclude")


class UnavailableError(EomDynamicsError):
    """Error: a robot, or a function of it, cannot be exported in a language."""


class LoopLibrary(NamedTuple):
    """Compiled library of a robot.

    Attributes:
        path: path of the library in the cache.
        content: content of the file, without the checksum of the cache.
        fingerprint: digest of the sources, which the library reports.
    """

    path: Path
    content: bytes
    fingerprint: str


def loop_unavailable(robot: Robot) -> str | None:
    """Reason why a control loop cannot load a robot; None if it can."""
    for name in (robot.name, *robot.joint_names):
        if not allowed_in_cpp(name):
            return f"a library cannot have the name {name!r}: rename it without such characters"
    sizes = {"joints": robot.n, "motors": len(MotorSide.of(robot).motor_names), "tools": len(robot.tools)}
    for kind, most in LARGEST_LOADED.items():
        if sizes[kind] > most:
            return f"{robot.name}: a loop loads robots with at most {most} {kind}, this one has {sizes[kind]}"
    return None


def loop_library(robot: Robot, *, moving_base: bool = False) -> LoopLibrary:
    """Library of a robot's kernels for a control loop and a simulated robot, compiled or from the cache.

    Compilers are ``$CC`` and ``$CXX``, which may compile for another processor.

    Args:
        robot: the robot.
        moving_base: whether setpoints may have a base motion; compilation then takes half as long again.

    Raises:
        RobotDescriptionError: the base moves in the complete rotor model.
        UnavailableError: the robot is too large, or its names are not valid in C++.
        KernelError: no compiler is available, compilation failed, or the cache is unusable.
    """
    if reason := loop_unavailable(robot):
        raise UnavailableError(reason)
    exported = project(robot, loop_functions(robot, moving_base=moving_base))
    sources = {f"c/{name}": text for name, text in c_project.sources(exported).items()}
    table = "include/eom/robot_table.hpp"
    sources[table] = loop_headers()[table]
    sources["loop.cpp"] = robot_table(exported)
    fingerprint = digest(*(part for file in sources.items() for part in file))
    c, cpp = find_compiler(), find_compiler("CXX")
    flags = [*_FLAGS, *own_flags()]
    key = digest("loop", fingerprint, *flags, *c, identity(c), *cpp, identity(cpp))

    def build(output: Path) -> None:
        folder = output.parent
        for name, text in sources.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        located = [f"-I{folder}/{flag[2:]}" if flag.startswith("-I") else flag for flag in flags]
        headers = [text for name, text in sources.items() if name.endswith(".h")]
        for name, text in sources.items():
            if name.endswith(".c"):  # independent of the robot's limits
                compiled = partial(run_compiler, [*c, "-std=gnu99", *located, "-c", str(folder / name)])
                kernel = cached(digest("object", text, *headers, *flags, *c, identity(c)), compiled)
                (folder / name).with_suffix(".o").write_bytes(kernel)
        objects = sorted(map(str, folder.glob("c/*.o")))
        link_flags = ["-std=gnu++17", f'-DEOM_FINGERPRINT="{fingerprint}"', "-shared"]
        run_compiler([*cpp, *link_flags, *located, str(folder / "loop.cpp"), *objects, "-lm"], output)

    try:
        content = cached(key, build)
    except OSError as error:
        raise uncached("loops", error) from None
    return LoopLibrary(cache_directory() / f"{key}.so", content, fingerprint)

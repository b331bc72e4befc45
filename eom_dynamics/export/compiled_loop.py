# SPDX-License-Identifier: Apache-2.0
"""A robot as a compiled library, for control loops that are compiled without it: eom/robot_table.hpp."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from ..codegen.cache import cache_directory, cached, digest
from ..codegen.compiler import find_compiler, identity, own_flags, run_compiler, uncached
from ..control.headers import LARGEST_LOADED
from ..robot import Robot
from . import c_project, cpp_project
from .functions import loop_functions
from .languages import UnavailableError, language_unavailable
from .project import project

# As CMake compiles the exported package, so that both have the same bits; without other symbols than those of its
# interface, since another library may have a robot of the same name.
_FLAGS = ("-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-DEOM_EIGEN=0", "-Ic", "-Iinclude")

_INTERFACE = """\
#define EOM_EXPORTED extern "C" __attribute__((visibility("default")))

EOM_EXPORTED std::uint32_t eom_robot_abi() noexcept { return eom::ROBOT_ABI; }

EOM_EXPORTED const eom::RobotTable *eom_robot_table() noexcept { return &table; }"""


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


def loop_library(robot: Robot, *, moving_base: bool = False) -> LoopLibrary:
    """The library of a robot's kernels for a control loop, compiled or from the cache.

    Compilers are ``$CC`` and ``$CXX``, which may compile for another processor.

    Args:
        robot: the robot.
        moving_base: whether setpoints may have a motion of the base, which takes half as long again to compile.

    Raises:
        RobotDescriptionError: the base moves in the complete rotor model.
        UnavailableError: the robot has no motor feedforward, is too large, or C++ cannot have its names.
        KernelError: no compiler was found, it failed, or the cache is not usable.
    """
    exported = project(robot, loop_functions(robot, moving_base=moving_base))
    if reason := language_unavailable(exported, "cpp"):
        raise UnavailableError(reason)
    sizes = {"joints": robot.n, "motors": len(exported.side.motor_names), "tools": len(robot.tools)}
    for name, most in LARGEST_LOADED.items():
        if sizes[name] > most:
            raise UnavailableError(
                f"{robot.name}: a loop loads robots with at most {most} {name}, this one has {sizes[name]}; export a "
                "package of its own: eom_dynamics codegen ROBOT --language ros2_control"
            )
    sources = {f"c/{name}": text for name, text in c_project.sources(exported).items()}
    headers = cpp_project.headers(exported)
    # Without those of the loop, a change of which leaves the library as it is.
    for name in (f"robots/{exported.name}", "setpoint", "robot_table"):
        sources[f"include/eom/{name}.hpp"] = headers[f"include/eom/{name}.hpp"]
    fingerprint = digest(*(part for file in sources.items() for part in file))
    sources["loop.cpp"] = cpp_project.robot_table(exported, _INTERFACE, fingerprint)
    c, cpp = find_compiler(), find_compiler("CXX")
    flags = [*_FLAGS, *own_flags()]
    key = digest("loop", fingerprint, sources["loop.cpp"], *flags, *c, identity(c), *cpp, identity(cpp))

    def build(output: Path) -> None:
        folder = output.parent
        for name, text in sources.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        located = [f"-I{folder}/{flag[2:]}" if flag.startswith("-I") else flag for flag in flags]
        headers = [text for name, text in sources.items() if name.endswith(".h")]
        for name, text in sources.items():
            if name.endswith(".c"):  # the same for a robot with other limits
                compiled = partial(run_compiler, [*c, "-std=gnu99", *located, "-c", str(folder / name)])
                kernel = cached(digest("object", text, *headers, *flags, *c, identity(c)), compiled)
                (folder / name).with_suffix(".o").write_bytes(kernel)
        objects = sorted(map(str, folder.glob("c/*.o")))
        run_compiler([*cpp, "-std=gnu++17", *located, "-shared", str(folder / "loop.cpp"), *objects, "-lm"], output)

    try:
        content = cached(key, build)
    except OSError as error:
        raise uncached("loops", error) from None
    return LoopLibrary(cache_directory() / f"{key}.so", content, fingerprint)

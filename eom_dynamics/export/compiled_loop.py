# SPDX-License-Identifier: Apache-2.0
"""Robot as a compiled library, for a control loop that is compiled separately: eom/robot_table.hpp."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.c_functions import filled
from ..codegen.cache import cache_directory, cached, digest
from ..codegen.compiler import find_compiler, identity, own_flags, run_compiler, uncached
from ..codegen.programs import WITH_PAYLOAD
from ..control.headers import LARGEST_LOADED, loop_headers
from ..control.online_trajectory import RAMP, inertia_and_frequency, limits_of_joints, smoothing_for
from ..control.robot_table import limits_of, matrices_of
from ..elastic.drive_programs import sides_text
from ..elastic.motor_side import MotorSide
from ..exceptions import EomDynamicsError
from ..robot import Robot
from . import c_project
from .c_project import wrapped
from .functions import FEEDFORWARD, OBSERVER, OF_DRIVES, ON_BASE, PLANT, links_of, loop_functions
from .project import Project, project, template

# Functions with the same name in eom::Kernels.
_KERNELS = (
    *(FEEDFORWARD, FEEDFORWARD + WITH_PAYLOAD, ON_BASE, ON_BASE + WITH_PAYLOAD, "motors", "drive", "filtered"),
    *("presliding", *OF_DRIVES, "tool_kinematics", *OBSERVER, PLANT),
)


def robot_table(project: Project) -> str:
    """Source of the table of a robot's functions, and of the interface of its library."""
    robot, side = project.robot, project.side
    names = {"joint": robot.joint_names, "motor": side.motor_names, "tool": [tool.name for tool in robot.tools]}
    lines = [_array("const char *", f"{kind}_names", map(literal, listed)) for kind, listed in names.items()]
    lines.append(_array("std::size_t", "motor_joint", map(str, side.motor_joint)))
    lines.append(_array("bool", "rigid", map(_boolean, side.rigid)))
    members = [f"transmission = {_boolean(robot.transmission is not None)};"]
    for name, value in _scalars(project).items():
        members.append(f"{name} = {_number(value)};")
    for name, values in _vectors(project).items():
        array = name.replace(".", "_")
        lines.append(_array("double", array, map(_number, np.ravel(values).tolist())))
        members.append(f"{name} = {array};")
    for kernel, name in _kernels(project).items():
        function = project.functions[name]
        sides = {"inputs": function.inputs, "outputs": function.outputs}
        for end, listed in sides.items():
            lines.append(_array("Vector", f"{kernel}_{end}", (f"Vector::{vector}" for vector in listed)))
            lines.append(f"static_assert({kernel}_{end}.size() <= eom::MOST_VECTORS);")
        arguments = [f"{end[0]}[{k}]" for end, listed in sides.items() for k in range(len(listed))]
        call = f"[](const double *const *i, double *const *o) {{ {function.name}({', '.join(arguments)}); }}"
        members.append(f"kernels.{kernel} = {{{call}, {kernel}_inputs, {kernel}_outputs}};")
    return filled(
        template("robot_table.cpp.in"),
        notice=cpp_comment(project),
        library=project.library,
        constants="\n".join(lines),
        members="\n".join(f"    x.{member}" for member in members),
        name=literal(robot.name),
        drive_side=literal(sides_text(side.motor_names, project.arm.drive_sides)),
        commanded=_boolean(side.variable.any()),
    )


def _kernels(project: Project) -> dict[str, str]:
    """Functions of a project by kernel name."""
    renamed = {links_of(project.robot): "inverse_dynamics", "efforts_on_base": "inverse_dynamics_on_base"}
    renamed |= {name + WITH_PAYLOAD: kernel + WITH_PAYLOAD for name, kernel in renamed.items()}
    kernels = {kernel: name for name, kernel in renamed.items()} | {name: name for name in _KERNELS}
    return {kernel: name for kernel, name in kernels.items() if name in project.functions}


def _scalars(project: Project) -> Mapping[str, float]:
    robot = project.robot
    _, frequency = inertia_and_frequency(project.arm)
    return {
        "command_lead": robot.command_lead,
        "drive_feedback_delay": robot.drive_feedback_delay.position,
        "ramp": 1 / max(frequency, 1 / RAMP),
        "smoothing": smoothing_for(frequency),
    }


def _vectors(project: Project) -> Mapping[str, ArrayLike]:
    arm = project.arm
    inertia, _ = inertia_and_frequency(arm)
    return {
        "nominal_stiffness": project.side.nominal_stiffness,
        **limits_of(arm),
        **matrices_of(arm),
        "motion": np.stack(limits_of_joints(arm), axis=1),
        "inertia": inertia,
    }


def _array(kind: str, name: str, items: Iterable[str]) -> str:
    """A constant array."""
    entries = [item.replace(" ", "\N{NO-BREAK SPACE}") for item in items]
    text = f"constexpr std::array<{kind}, {len(entries)}> {name}{{{', '.join(entries)}}};"
    return wrapped(text, "    ").replace("\N{NO-BREAK SPACE}", " ")


def cpp_comment(project: Project) -> str:
    """Notice of a project as a C++ comment, safe against backslashes at line ends."""
    return re.sub(r"\\$", r"\\ //", project.notice_as("// "), flags=re.MULTILINE)


def literal(name: str) -> str:
    """ASCII string literal of a name: other UTF-8 bytes become octal escapes, which have a fixed length."""
    plain = {*range(32, 127)} - {ord(x) for x in '"\\?'}
    return '"' + "".join(chr(x) if x in plain else f"\\{x:03o}" for x in name.encode()) + '"'


def allowed_in_cpp(name: str) -> bool:
    """True for a name that is a valid UTF-8 string in C++: without NUL and unpaired surrogates."""
    return not any(x == "\0" or "\ud800" <= x <= "\udfff" for x in name)


def _number(value: float) -> str:
    if np.isinf(value):
        return ("-" if value < 0 else "") + "infinity"
    return repr(float(value))


def _boolean(value: bool | np.bool_) -> str:
    return "true" if value else "false"


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
            return f"{robot.name}: a loop loads robots with at most {most} {kind}, this robot has {sizes[kind]}"
    return None


def loop_library(robot: Robot) -> LoopLibrary:
    """Library of a robot's kernels for a control loop and a simulated robot, compiled or from the cache.

    Compilers are ``$CC`` and ``$CXX``, which may compile for another processor.

    Args:
        robot: the robot.

    Raises:
        RobotDescriptionError: the base moves in the complete rotor model.
        UnavailableError: the robot is too large, or its names are not valid in C++.
        KernelError: no compiler is available, compilation failed, or the cache is unusable.
    """
    if reason := loop_unavailable(robot):
        raise UnavailableError(reason)
    exported = project(robot, loop_functions(robot))
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

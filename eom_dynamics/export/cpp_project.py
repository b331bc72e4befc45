# SPDX-License-Identifier: Apache-2.0
"""Export as C++17: classes in headers over the library in C, with a test for CTest.

The headers in ``control/eom`` are the same for every robot; one more describes the robot as a type for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from ..codegen.c_functions import REALS, filled
from ..codegen.floating_programs import IMU_NAMES
from ..codegen.programs import WITH_PAYLOAD
from ..control.headers import loop_headers
from ..control.online_trajectory import RAMP, inertia_and_frequency, limits_of_joints
from ..control.robot_table import LIMITED, limits_of, matrices_of
from ..elastic.carried_rotors import SPIN
from ..elastic.drive_programs import DRIVE_NAMES, OWN_MOTORS, SENT_NAMES, SHARE
from ..elastic.flat_programs import COMMANDED, HELD, REFERENCE, SPRING_EFFORTS, STIFFNESS
from ..elastic.motor_programs import FRICTION_STATE, MOTOR_NAMES, SETTLED, STIFFNESS_NAMES
from ..robot.model import DRIVE_INTERPOLATIONS
from ..states import EFFORT_NAMES, STATE_NAMES, WRENCH_NAMES
from . import c_project
from .c_project import call, constant_arrays, real, wrapped
from .functions import (
    ACCELERATIONS,
    DRIVE_COMMAND,
    DRIVE_COMMAND_WITH_PAYLOAD,
    DRIVE_STATE,
    FEEDFORWARD,
    FEEDFORWARD_WITH_PAYLOAD,
    LINEARIZATION,
    LINEARIZATION_WITH_PAYLOAD,
    MOTOR_STATE,
    OBSERVER,
    ON_BASE,
    ON_BASE_WITH_PAYLOAD,
    PLANT,
    links_of,
)
from .project import Project
from .stored_values import StoredValues
from .templates import template

# Names that types and template parameters have in the templates of the type.
_MEMBER_TYPES = ("Scalar", "Ends", "State", "Motors", "Shafts", "Before", "After", "Measurement")


def type_name(project: Project) -> str:
    """Name of the type: the robot's name in CamelCase, which is never a keyword.

    Names in capitals alone, which macros have, keep only those that words begin with, and names of types in the
    template get a suffix.
    """
    parts = project.name.split("_")
    if project.name.isupper():
        parts = [part.capitalize() for part in parts]
    name = "".join(part[:1].upper() + part[1:] for part in parts)
    return f"{name}Robot" if name in _MEMBER_TYPES else name


def cpp_comment(project: Project) -> str:
    """Notice of a project as a C++ comment, safe against backslashes at line ends."""
    return re.sub(r"\\$", r"\\ //", project.notice_as("// "), flags=re.MULTILINE)


def robot_header(project: Project) -> str:
    """Text of the header."""
    robot, side = project.robot, project.side
    return filled(
        template("cpp/robot.hpp.in"),
        notice=cpp_comment(project),
        guard=f"EOM_ROBOTS_{project.name.upper()}_HPP",
        library=project.library,
        type=type_name(project),
        scalar=real(project),
        joints=str(robot.n),
        motors=str(len(side.motor_names)),
        tools=str(len(robot.tools)),
        name=literal(robot.name),
        joint_names=_listed(map(literal, robot.joint_names)),
        tool_names=_listed(literal(tool.name) for tool in robot.tools),
        motor_names=_listed(map(literal, side.motor_names)),
        motor_joint=_listed(map(str, side.motor_joint)),
        commanded=_boolean(side.variable.any()),
        damped=_boolean(side.damped.any()),
        has_presliding=_boolean(side.presliding.any()),
        settled_friction=_numbers(project, np.full(len(side.motor_names), SETTLED)),
        settled=_number(project, SETTLED),
        nominal=_numbers(project, side.nominal_stiffness),
        constants=_constants(project),
        functions="".join(text(project) for name, text in _OPTIONAL.items() if name in project.functions),
        has_plant=_boolean(PLANT in project.functions),
        has_linearization=_boolean(LINEARIZATION in project.functions),
        has_drives=_boolean(DRIVE_COMMAND in project.functions),
        has_payload=_boolean(FEEDFORWARD_WITH_PAYLOAD in project.functions),
        has_moving_base=_boolean(ON_BASE in project.functions),
        inverse_dynamics=_variants(project, links_of(robot), "efforts_on_base"),
        feedforward=_variants(project, FEEDFORWARD, ON_BASE),
        drive=_call(project, "drive"),
    )


def _constants(project: Project) -> str:
    arm = project.arm
    inertia, frequency = inertia_and_frequency(arm)
    numbers = {name: _numbers(project, values) for name, values in (limits_of(arm) | matrices_of(arm)).items()}
    return filled(
        template("cpp/robot_constants.hpp.in"),
        rigid=_listed(map(_boolean, arm.rigid)),
        **{
            side: "\n".join(f"        {{{numbers[f'{side}.{x}']}}}, // {x}" for x in LIMITED)
            for side in ("lower", "upper")
        },
        **{name: values for name, values in numbers.items() if "." not in name},
        command_period=_number(project, project.robot.command_period),
        drive_delay=_number(project, project.robot.drive_delay),
        drive_feedback_delay=_number(project, project.robot.drive_feedback_delay.position),
        mean_age=_number(project, DRIVE_INTERPOLATIONS[project.robot.drive_interpolation]),
        motion=_numbers(project, np.stack(limits_of_joints(arm), axis=1)),
        inertia=_numbers(project, inertia),
        ramp=_number(project, 1 / max(frequency, 1 / RAMP)),
        transmission=_boolean(arm.transmission is not None),
    )


def _filter(project: Project) -> str:
    places = {f"{name}_before": f"before.{name}" for name in EFFORT_NAMES} | {x: f"after.{x}" for x in EFFORT_NAMES}
    places |= {name: name for name in ("deflection", "step", "deflection_now")}
    return filled(template("cpp/robot_filter.hpp.in"), filtered=_call(project, "filtered", **places))


def _presliding(project: Project) -> str:
    position, velocity = MOTOR_NAMES[:2]
    places = {f"{position}_before": f"before.{position}", position: f"after.{position}", velocity: f"after.{velocity}"}
    places |= {name: name for name in (FRICTION_STATE, "step", f"{FRICTION_STATE}_now")}
    return filled(template("cpp/robot_presliding.hpp.in"), presliding=_call(project, "presliding", **places))


def _plant(project: Project) -> str:
    places = dict(zip(ACCELERATIONS, ("qdd", "thetadd"), strict=True))
    return filled(template("cpp/robot_plant.hpp.in"), plant=_call(project, PLANT, tau_m="tau_m", **places))


def _drives(project: Project) -> str:
    """Functions of drives that are not sent the command itself."""
    places = {name: f"y.{name}" for name in ("taud", *MOTOR_NAMES[:3])}
    places |= {"tau": "joint_effort", "motor_effort": "motor_effort", SHARE: SHARE}
    sent = ("position", "velocity", "effort", "joint_effort", "joint_effort_rate")
    places |= {name: f"sent.{own}" for name, own in zip((*DRIVE_NAMES, *SENT_NAMES), sent, strict=True)}
    loaded = DRIVE_COMMAND_WITH_PAYLOAD in project.functions
    own = {name: name for name in ("q", "qd", *DRIVE_NAMES, SHARE, *OWN_MOTORS)}
    return filled(
        template("cpp/robot_drives.hpp.in"),
        type=type_name(project),
        loaded=_if_loaded(project, DRIVE_COMMAND_WITH_PAYLOAD, **places) if loaded else "",
        drive_command=_call(project, DRIVE_COMMAND, **places),
        drive_state=_call(project, DRIVE_STATE, **own),
    )


def _linearization(project: Project) -> str:
    places = {"q": "measured.q", "qd": "measured.qd", "gains": "gains", "stiffness_gains": "stiffness_gains"}
    places |= dict(zip(MOTOR_STATE, ("measured.motor_position", "measured.motor_velocity"), strict=True))
    places |= {name: f"x.{name}" for name in (*WRENCH_NAMES[:2], *STIFFNESS_NAMES)}
    places |= dict(zip(REFERENCE, (f"x.{name}" for name in STATE_NAMES), strict=True))
    places |= dict(zip(HELD, ("qdd_held", "qddd_held"), strict=True))
    places |= dict(zip(COMMANDED, (f"y.{name}" for name in STIFFNESS_NAMES), strict=True))
    places |= {name: name for name in (*SPRING_EFFORTS, *STIFFNESS)}
    called = project.functions[LINEARIZATION]
    unused = [f"(void){name};" for name in (*HELD, "stiffness_gains") if name not in called.inputs]
    return filled(
        template("cpp/robot_linearization.hpp.in"),
        type=type_name(project),
        springs=", ".join(name for name in (*SPRING_EFFORTS, *STIFFNESS) if name in called.outputs),
        unused="".join(f"        {line}\n" for line in unused),
        loaded=_if_loaded(project, LINEARIZATION_WITH_PAYLOAD, **places),
        call=_call(project, LINEARIZATION, **places),
    )


_OPTIONAL = {
    "filtered": _filter,
    "presliding": _presliding,
    PLANT: _plant,
    LINEARIZATION: _linearization,
    DRIVE_COMMAND: _drives,
}
"""Texts of functions that only some projects have."""


def literal(name: str) -> str:
    """A name as an ASCII string literal: other UTF-8 bytes become octal escapes, which have a fixed length."""
    plain = {*range(32, 127)} - {ord(x) for x in '"\\?'}
    return '"' + "".join(chr(x) if x in plain else f"\\{x:03o}" for x in name.encode()) + '"'


def _numbers(project: Project, values: ArrayLike) -> str:
    """Numbers as the inside of a braced list; infinity and NaN by names of the template."""
    return _listed(_number(project, float(x)) for x in np.ravel(values))


def _number(project: Project, value: float) -> str:
    if np.isnan(value):
        return "nan"
    if np.isinf(value):
        return ("-" if value < 0 else "") + "infinity"
    return REALS["single" if project.precision == "single" else "one"].syntax.constant(value)


def _listed(items: Iterable[str]) -> str:
    return wrapped(", ".join(x.replace(" ", "\N{NO-BREAK SPACE}") for x in items), " " * 8).replace(
        "\N{NO-BREAK SPACE}", " "
    )


def _boolean(value: bool | np.bool_) -> str:
    return "true" if value else "false"


def _if_loaded(project: Project, function: str, condition: str = "x.loaded", **places: str) -> str:
    """A call of a function that takes payloads, for setpoints that have some; empty if the project has none."""
    if function not in project.functions or FEEDFORWARD_WITH_PAYLOAD not in project.functions:
        return ""
    return _if(condition, _call(project, function, **places))


def _variants(project: Project, function: str, on_base: str) -> str:
    """Calls of a function, and of those for a moving base and for payloads, if the project has them."""
    places, moving = {name: f"x.base.{name}" for names in IMU_NAMES for name in names}, ""
    if ON_BASE in project.functions:
        moving = _if_loaded(project, on_base + WITH_PAYLOAD, "x.on_base && x.loaded", **places)
        moving += _if("x.on_base", _call(project, on_base, **places))
    return moving + _if_loaded(project, function + WITH_PAYLOAD) + _call(project, function)


def _if(condition: str, called: str) -> str:
    inner = "\n".join(f"    {line}" for line in called.splitlines())
    return f"        if ({condition}) {{\n{inner}\n            return;\n        }}\n"


def _call(project: Project, function: str, **places: str) -> str:
    """A call of a function with members of x and, for results, of y, but for those that have a place of their own."""
    called = project.functions[function]
    members = {name: f"x.{name}" for name in called.inputs} | {name: f"y.{name}" for name in called.outputs}
    members |= {name: place for name, place in places.items() if name in members}
    declared = ""
    if SPIN in called.outputs:
        declared, members[SPIN] = f"        std::array<Scalar, motors> {SPIN};\n", SPIN
    return declared + call(called.name, [f"{x}.data()" for x in members.values()], indent=8) + ";"


def cpp_files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the library by path, for a project with the motor feedforward."""
    library = {f"c/{name}": text for name, text in c_project.c_files(project, stored).items()}
    cmake = filled(
        template("cpp/CMakeLists.txt.in"),
        notice=project.notice_as("# "),
        library=project.library,
        tests="test_feedforward" + (" test_control_loop" if project.precision == "double" else ""),
    )
    return library | headers_and_tests(project, stored) | {"CMakeLists.txt": cmake}


def headers_and_tests(project: Project, stored: StoredValues) -> dict[str, str]:
    """Headers and tests by path, for a project with the motor feedforward."""
    texts = headers(project) | {"test/test_feedforward.cpp": _test(project, stored)}
    if project.precision == "double":
        fields = {"notice": cpp_comment(project), "type": type_name(project), "name": project.name}
        texts["test/test_control_loop.cpp"] = filled(template("cpp/test/test_control_loop.cpp.in"), **fields)
    texts["test/checks.hpp"] = template("cpp/test/checks.hpp")
    return texts


def headers(project: Project) -> dict[str, str]:
    """Headers by path."""
    return {f"include/eom/robots/{project.name}.hpp": robot_header(project), **loop_headers()}


def allowed_in_cpp(name: str) -> bool:
    """Whether a name can be a UTF-8 string in C++: it has no NUL and no unpaired surrogates."""
    return not any(x == "\0" or "\ud800" <= x <= "\udfff" for x in name)


def _test(project: Project, stored: StoredValues) -> str:
    feedforward = project.functions[FEEDFORWARD]
    outputs = [name for name in feedforward.outputs if name != SPIN]
    arrays, names = stored.named({FEEDFORWARD: feedforward})
    errors = [
        f"error[{k}] = std::fmax(error[{k}], difference(y.{name}, stored_{names[FEEDFORWARD][name]}[state]));"
        for k, name in enumerate(outputs)
    ]
    arguments = [f"x.{name}.data()" for name in feedforward.inputs]
    arguments += ["spin.data()" if name == SPIN else f"y.{name}.data()" for name in feedforward.outputs]
    return filled(
        template("cpp/test/test_feedforward.cpp.in"),
        notice=cpp_comment(project),
        type=type_name(project),
        name=project.name,
        states=str(stored.count),
        tolerance=repr(stored.relative_tolerance),
        stored=constant_arrays({name: x for name, x in arrays.items() if name != SPIN}),
        spin="        eom::MotorVector<Robot> spin;\n" if SPIN in feedforward.outputs else "",
        inputs="\n".join(f"    take(x.{name}, stored_{name}[state]);" for name in feedforward.inputs),
        outputs=str(len(outputs)),
        errors="\n".join(f"        {line}" for line in errors),
        names=", ".join(f'"{name}"' for name in outputs),
        call=call(feedforward.name, arguments, indent=8) + ";",
    )


def robot_table(exported: Project, interface: str, fingerprint: str = "") -> str:
    """Source of the table of a robot, with a text after it: eom/robot_table.hpp."""
    links = links_of(exported.robot)
    names = (
        *(links, links + WITH_PAYLOAD, FEEDFORWARD, FEEDFORWARD_WITH_PAYLOAD, "drive", "filtered", "presliding"),
        *(DRIVE_COMMAND, DRIVE_COMMAND_WITH_PAYLOAD, DRIVE_STATE, LINEARIZATION, LINEARIZATION_WITH_PAYLOAD),
        *(
            "efforts_on_base",
            "efforts_on_base" + WITH_PAYLOAD,
            ON_BASE,
            ON_BASE_WITH_PAYLOAD,
            "motors",
            "tool_kinematics",
            *OBSERVER,
        ),
    )
    vectors, kernels = [], []
    for name in names:
        function = exported.functions.get(name)
        if function is None:
            kernels.append("    {},")
            continue
        sides = {"inputs": function.inputs, "outputs": function.outputs}
        for side, listed in sides.items():
            members = ", ".join(f"Vector::{vector}" for vector in listed)
            vectors.append(f"constexpr std::array<Vector, {len(listed)}> {name}_{side}{{{members}}};")
            vectors.append(f"static_assert({name}_{side}.size() <= eom::MOST_VECTORS);")
        arguments = [f"{side[0]}[{k}]" for side, listed in sides.items() for k in range(len(listed))]
        called = f"{function.name}({', '.join(arguments)});"
        kernels.append(
            f"    {{[](const double *const *i, double *const *o) {{ {called} }}, {name}_inputs, {name}_outputs}},"
        )
    return filled(
        template("cpp/robot_table.cpp.in"),
        notice=cpp_comment(exported),
        name=exported.name,
        type=type_name(exported),
        vectors="\n".join(vectors),
        kernels="\n".join(kernels),
        fingerprint=fingerprint,
        interface=interface,
    )

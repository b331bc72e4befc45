# SPDX-License-Identifier: Apache-2.0
"""Export as C++17: classes in headers over the library in C, with a test for CTest.

The headers in ``templates/cpp/eom`` are the same for every robot; one more describes the robot as a type for them.
"""

from __future__ import annotations

import re
from functools import cache

from ..codegen.cache import digest
from ..codegen.emit_c import filled
from ..elastic.carried_rotors import SPIN
from ..elastic.flat_programs import REFERENCE
from ..messages.setpoint_to_command import LONGEST_GAP
from ..states import STATE_NAMES
from ..stream.watchdog import DEFAULTS, LONGEST_RESPONSE_STEP
from . import c_project
from .c_text import call, constant_arrays
from .cpp_robot import comment, robot_header, type_name
from .functions import FEEDFORWARD, LINEARIZATION, PLANT
from .loop_values import KNOTS, loop_values
from .plant import MOTOR_STATE
from .project import Project
from .stored_values import POLES, STIFFNESS_GAINS, StoredValues
from .templates import template, template_names

LOOP_DEFAULTS = {name: str(value) for name, value in DEFAULTS._asdict().items()}
"""Those of the parameters of control loops that the node has, too."""

# Of a stream, ns: those of the node.
_LONGEST_TIMES = {
    "longest_gap": str(round(LONGEST_GAP * 1e9)),
    "longest_response_step": str(round(LONGEST_RESPONSE_STEP * 1e9)),
}

# Headers of what a library of a loop and its user have in common.
_INTERFACE = ("any_loop.hpp", "limits.hpp", "loop_parameters.hpp", "payload.hpp", "references.hpp")


def files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Files of the library by path, for a project with the motor feedforward."""
    library = {f"c/{name}": text for name, text in c_project.files(project, stored).items()}
    return library | headers_and_tests(project, stored) | {"CMakeLists.txt": _cmake(project)}


def headers_and_tests(project: Project, stored: StoredValues) -> dict[str, str]:
    """Headers and tests by path, for a project with the motor feedforward."""
    texts = headers(project) | {"test/test_feedforward.cpp": _test(project, stored)}
    if project.precision == "double":
        texts["test/test_control_loop.cpp"] = _loop_test(project, stored)
    texts["test/checks.hpp"] = template("cpp/test/checks.hpp")
    return texts


def headers(project: Project) -> dict[str, str]:
    """Headers by path."""
    return {f"include/eom/robots/{project.name}.hpp": robot_header(project), **shared_headers()}


@cache
def shared_headers() -> dict[str, str]:
    """Headers that are the same for every robot, by path."""
    fields = LOOP_DEFAULTS | _LONGEST_TIMES
    interface = "".join(filled(template(f"cpp/eom/{name}"), **fields, loop_abi="") for name in _INTERFACE)
    # Of their code alone: comments and layout may change.
    abi = digest("".join(re.sub(r"//.*", "", interface).split()))[:8]
    return {
        f"include/eom/{name}": filled(template(f"cpp/eom/{name}"), **fields, loop_abi=f"0x{abi}")
        for name in template_names("cpp/eom")
    }


def can_be_written(name: str) -> bool:
    """Whether a name can be a UTF-8 string in C++: it has no NUL and no unpaired surrogates."""
    return not any(x == "\0" or "\ud800" <= x <= "\udfff" for x in name)


def _cmake(project: Project) -> str:
    return filled(
        template("cpp/CMakeLists.txt.in"),
        notice=project.notice_as("# "),
        library=project.library,
        tests="test_feedforward" + (" test_control_loop" if project.precision == "double" else ""),
    )


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
        notice=comment(project),
        type=type_name(project),
        name=project.name,
        states=str(stored.count),
        tolerance=repr(stored.relative_tolerance),
        stored=constant_arrays({name: x for name, x in arrays.items() if name != SPIN}, rows="STATES"),
        spin="        eom::MotorVector<Robot> spin;\n" if SPIN in feedforward.outputs else "",
        inputs="\n".join(f"    take(x.{name}, stored_{name}[state]);" for name in feedforward.inputs),
        outputs=str(len(outputs)),
        errors="\n".join(f"        {line}" for line in errors),
        names=", ".join(f'"{name}"' for name in outputs),
        call=call(feedforward.name, arguments, indent=8) + ";",
    )


def _loop_test(project: Project, stored: StoredValues) -> str:
    values = loop_values(project, stored)
    linearized = LINEARIZATION in project.functions
    taken = []
    if linearized:
        count = len(values[REFERENCE[0]])
        rest = [name for name in project.functions[FEEDFORWARD].inputs if name not in STATE_NAMES]
        values |= {name: stored.inputs[name][:count] for name in ("q", "qd", *MOTOR_STATE, *rest)}
        places = dict(zip(STATE_NAMES, REFERENCE, strict=True)) | {name: name for name in rest}
        taken = [f"take(x.{name}, stored_{place}[row]);" for name, place in places.items()]
    linearization = filled(
        template("cpp/test/linearization.cpp.in"),
        inputs="\n".join(f"        {line}" for line in taken),
        poles=repr(POLES),
        stiffness_gains=", ".join(map(repr, STIFFNESS_GAINS)),
    )
    return filled(
        template("cpp/test/test_control_loop.cpp.in"),
        linearization=linearization if linearized else "",
        calls="    linearization();" if linearized else "",
        tracking=template("cpp/test/tracking.cpp.in") if PLANT in project.functions else "",
        calls_of_plant="    simulated_arm();\n" if PLANT in project.functions else "",
        notice=comment(project),
        type=type_name(project),
        name=project.name,
        knots=", ".join(map(repr, KNOTS)),
        stored=constant_arrays(values),
    )

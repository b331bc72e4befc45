# SPDX-License-Identifier: Apache-2.0
"""Export as C++17: classes in headers over the library in C, with a test for CTest.

The headers in ``templates/cpp/eom`` are the same for every robot; one more describes the robot as a type for them.
"""

from __future__ import annotations

import re

from ..codegen.emit_c import filled
from . import c_project
from .c_text import call, constant_arrays, stored_arrays
from .cpp_robot import comment, robot_header, type_name
from .loop_values import KNOTS, POLES, STIFFNESS_GAINS, loop_values
from .motors import FEEDFORWARD, MotorFeedforward
from .plant import MOTOR_STATE
from .project import Project, UnavailableError
from .stored_values import StoredValues
from .templates import template, template_names

# Characters that a string of C++ in UTF-8 cannot have: its end, and halves of surrogate pairs.
_NOT_UTF8 = "[\0\ud800-\udfff]"


def files(project: Project, stored: StoredValues) -> dict[str, bytes]:
    """Files of the library by path.

    Raises:
        UnavailableError: the project has no motor feedforward, or a name cannot be a string of C++.
    """
    feedforward = require_feedforward(project, "C++")
    require_names(project, "C++", _NOT_UTF8)
    texts = {
        "CMakeLists.txt": _cmake(project),
        f"include/eom/robots/{project.name}.hpp": robot_header(project, feedforward),
        "test/test_feedforward.cpp": _test(project, feedforward, stored),
    }
    if project.precision == "double":
        texts["test/test_control_loop.cpp"] = _loop_test(project, feedforward, stored)
    texts |= {f"include/eom/{name}": template(f"cpp/eom/{name}") for name in template_names("cpp/eom")}
    texts["test/trap.hpp"] = template("cpp/test/trap.hpp")
    library = {f"c/{name}": content for name, content in c_project.files(project, stored).items()}
    return library | {name: text.encode("ascii") for name, text in texts.items()}


def require_feedforward(project: Project, language: str) -> MotorFeedforward:
    """The motor feedforward of a project.

    Raises:
        UnavailableError: it has none.
    """
    if project.feedforward is None:
        raise UnavailableError(f"{language} needs the function {FEEDFORWARD}; export it too")
    return project.feedforward


def require_names(project: Project, language: str, wrong: str) -> None:
    """Check that names can be written in a language.

    Args:
        project: the project.
        language: for the error.
        wrong: regular expression of characters that names must not have.

    Raises:
        UnavailableError: a name has one of them.
    """
    for name in (project.robot.name, *project.robot.joint_names):
        if re.search(wrong, name):
            raise UnavailableError(f"{language} cannot have the name {name!r}: rename it without such characters")


def _cmake(project: Project) -> str:
    return filled(
        template("cpp/CMakeLists.txt.in"),
        notice="\n".join(f"# {line}".rstrip() for line in project.notice()),
        library=project.library,
        tests="test_feedforward" + (" test_control_loop" if project.precision == "double" else ""),
    )


def _test(project: Project, feedforward: MotorFeedforward, stored: StoredValues) -> str:
    outputs = list(feedforward.outputs)
    errors = [
        f"error[{k}] = std::fmax(error[{k}], error_of(y.{name}, stored_{name}, state));"
        for k, name in enumerate(outputs)
    ]
    arguments = [f"x.{name}.data()" for name in feedforward.inputs] + [f"y.{name}.data()" for name in outputs]
    return filled(
        template("cpp/test/test_feedforward.cpp.in"),
        notice=comment(project),
        type=type_name(project),
        name=project.name,
        states=str(stored.count),
        tolerance=repr(stored.relative_tolerance),
        stored=stored_arrays(stored, (*feedforward.inputs, *outputs)),
        inputs="\n".join(f"    take(x.{name}, stored_{name}, state);" for name in feedforward.inputs),
        outputs=str(len(outputs)),
        errors="\n".join(f"        {line}" for line in errors),
        names=", ".join(f'"{name}"' for name in outputs),
        call=call(feedforward.name, arguments, indent=8) + ";",
    )


def _loop_test(project: Project, feedforward: MotorFeedforward, stored: StoredValues) -> str:
    values = loop_values(project, stored)
    linearized = "reference_q" in values
    taken = []
    if linearized:
        count = len(values["reference_q"])
        measured = ("q", "qd", *MOTOR_STATE)
        rest = [name for name in feedforward.inputs if name not in measured]
        values |= {name: stored.inputs[name][:count] for name in (*measured, *rest)}
        taken = [f"take(x.{name}, stored_reference_{name}[row]);" for name in ("q", "qd")]
        taken += [f"take(x.{name}, stored_{name}[row]);" for name in rest]
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
        tracking=template("cpp/test/tracking.cpp.in") if project.plant else "",
        calls_of_plant="    simulated_arm();\n" if project.plant else "",
        notice=comment(project),
        type=type_name(project),
        name=project.name,
        knots=", ".join(map(repr, KNOTS)),
        stored=constant_arrays(values),
    )

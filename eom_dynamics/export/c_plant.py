# SPDX-License-Identifier: Apache-2.0
"""Springs under deflections, and the plant of links and motors, in C."""

from __future__ import annotations

import numpy as np

from ..actuators.springs import CoupledSpring
from ..codegen.emit_c import filled
from .c_motors import spring_arguments
from .c_text import call, comment, prototype, state_prototype, wrapped
from .motors import ExportedSpring, MotorFeedforward, motor_load, number, weighted
from .plant import ACCELERATIONS, EFFORTS, PLANT, SPRING_EFFORTS, PlantFunction
from .project import Project
from .templates import template

# Templates that the code of a kind uses beside its own.
_USES = {
    "memoryless": ("linear", "cubic", "exponential", "dead_zone", "polynomial", "tabulated"),
    "pair": ("antagonistic_exponential", "antagonistic_quadratic"),
}

# Members of the structure of a spring for the outputs.
_MEMBERS = dict(zip(EFFORTS, ("tau", "taud", "k", "kd"), strict=True))


def plant_files(project: Project, feedforward: MotorFeedforward) -> dict[str, str]:
    """Texts of the files by name."""
    springs, plant = project.plant[SPRING_EFFORTS], project.plant[PLANT]
    return {
        f"{project.library}_springs.h": _springs_header(project, feedforward, springs),
        f"{springs.name}.c": _spring_efforts(project, springs),
        f"{plant.name}.c": _plant(project, feedforward, springs, plant),
    }


def _springs_header(project: Project, feedforward: MotorFeedforward, springs: PlantFunction) -> str:
    kinds = list(dict.fromkeys(place.spring.kind for place in feedforward.springs))
    names = [name for name, users in _USES.items() if set(users) & set(kinds)] + kinds
    arrays, calls = [], []
    for k, place in enumerate(feedforward.springs):
        declared, text = _spring(place, k)
        arrays += declared
        calls.append(text)
    lines = [*_deflections(feedforward), *arrays, *calls]
    body = "\n".join(wrapped(f"    {line}", "        ") for line in lines)
    return filled(
        template("plant.h.in"),
        notice=comment(project.notice()),
        guard=f"{project.library.upper()}_SPRINGS_H",
        library=project.library,
        functions="\n".join(template(f"springs/{name}.h.in") for name in names),
        prototype=prototype(
            "eom_spring_efforts",
            [
                *(f"const double {name}[{size}]" for name, size in springs.inputs.items()),
                f"eom_spring s[{_n(project)}]",
            ],
            returns="static inline void",
        ),
        motors=str(len(feedforward.motor_joint)),
        unused="".join(f"    (void){name};\n" for name in springs.inputs if f"{name}[" not in body),
        body=body,
    )


def _deflections(feedforward: MotorFeedforward) -> list[str]:
    """Assignments of the deflections at all motors; a rigid joint has none."""
    joint_sides = np.linalg.inv(feedforward.motion_weights)
    rigid = {motor for place in feedforward.springs if place.spring.is_rigid for motor in place.motors}
    lines = []
    for name, motor, link in (("delta", "theta", "q"), ("deltad", "thetad", "qd")):
        motors = [f"{motor}[{i}]" for i in range(len(feedforward.motor_joint))]
        for i, joint in enumerate(feedforward.motor_joint):
            deflection = f"{weighted(joint_sides[i], motors)} - {link}[{joint}]"
            lines.append(f"{name}[{i}] = {'0' if i in rigid else deflection};")
    return lines


def _spring(place: ExportedSpring, k: int) -> tuple[list[str], str]:
    """Declarations of constant arrays, and the call of the function of the k-th spring."""
    function = f"eom_{place.spring.kind}_effort"
    if isinstance(place.spring, CoupledSpring):
        count = len(place.joints)
        values = ", ".join(map(repr, np.ravel(place.spring.matrix).tolist()))
        arrays = [f"static const double constants_{k}[{count * count}] = {{{values}}};"]
        for name, indices in (("joints", place.joints), ("motors", place.motors)):
            arrays.append(f"static const int {name}_{k}[{count}] = {{{', '.join(map(str, indices))}}};")
        return arrays, f"{function}({count}, joints_{k}, motors_{k}, constants_{k}, delta, deltad, s);"
    (joint,), motor = place.joints, place.motors[0]
    arrays, constants = spring_arguments(place, k)
    deflection = ["&delta[{0}]", "&deltad[{0}]"] if len(place.motors) > 1 else ["delta[{0}]", "deltad[{0}]"]
    inputs = [text.format(motor) for text in deflection]
    if place.spring.is_variable and len(place.motors) == 1:
        inputs += [f"k[{joint}]", f"kd[{joint}]"]
    return arrays, f"{function}({', '.join([*inputs, *constants, f'&s[{joint}]'])});"


def _spring_efforts(project: Project, function: PlantFunction) -> str:
    n = _n(project)
    lines = [
        f"    eom_spring s[{n}];",
        call("eom_spring_efforts", [*function.inputs, "s"], indent=4) + ";",
        f"    for (int i = 0; i < {n}; ++i) {{",
        *(f"        {name}[i] = s[i].{_MEMBERS[name]};" for name in function.outputs),
        "    }",
    ]
    includes = [f'#include "{project.library}.h"', f'#include "{project.library}_springs.h"']
    return "\n".join([comment(project.notice()), *includes, "", state_prototype(function), "{", *lines, "}\n"])


def _plant(project: Project, feedforward: MotorFeedforward, springs: PlantFunction, plant: PlantFunction) -> str:
    n, motors = _n(project), range(len(feedforward.motor_joint))
    rigid = {motor: place.joints[0] for place in feedforward.springs if place.spring.is_rigid for motor in place.motors}
    first = {joint: i for i, joint in reversed(list(enumerate(feedforward.motor_joint)))}
    loads = [f"s[{joint}].load[{i - first[joint]}]" for i, joint in enumerate(feedforward.motor_joint)]
    effort = project.programs["effort"]
    at_rest = {"q": "q", "qd": "qd"}
    given = [name if name in plant.inputs else "rest" for name in springs.inputs]
    body = [
        f"eom_spring_efforts({', '.join(given)}, s);",
        f"{project.programs['mass_matrix'].name}(q, M);",
        f"{effort.name}({', '.join(at_rest.get(name, 'rest') for name in effort.inputs)}, bias);",
        *(f"net[{i}] = tau_m[{i}] - ({motor_load(feedforward, i, loads, f'thetad[{i}]')});" for i in motors),
        *(f"link_acceleration[{i}] = s[{i}].tau - bias[{i}];" for i in range(n)),
        *(f"link_acceleration[{joint}] += net[{motor}];" for motor, joint in rigid.items()),
        *(
            f"M[{joint * (n + 1)}] += {number(feedforward.inertia[motor])};"
            for motor, joint in rigid.items()
            if feedforward.inertia[motor]
        ),
        "eom_solve(M, link_acceleration);",
        *(
            f"{ACCELERATIONS[1]}[{i}] = "
            + (f"link_acceleration[{rigid[i]}]" if i in rigid else f"net[{i}] / {number(feedforward.inertia[i])}")
            + ";"
            for i in motors
        ),
    ]
    return filled(
        template("plant.c.in"),
        notice=comment(project.notice()),
        library=project.library,
        prototype=state_prototype(plant),
        n=str(n),
        motors=str(len(motors)),
        rest=str(max(n, *effort.inputs.values())),
        body="\n".join(wrapped(f"    {line}", "        ") for line in body),
    )


def _n(project: Project) -> int:
    return project.robot.n

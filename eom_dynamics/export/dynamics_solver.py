# SPDX-License-Identifier: Apache-2.0
"""Export as a ROS 2 package with a plugin for inverse_dynamics_solver (unisa-acg), loaded by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..codegen.c_functions import filled
from ..elastic.carried_rotors import SPIN
from ..elastic.motor_programs import DEFLECTION, FRICTION_STATE, SETTLED
from . import c_project
from .compiled_loop import cpp_comment, literal
from .functions import FEEDFORWARD, FRICTION, links_of
from .project import Project, ros_package, template
from .stored_values import StoredValues

_DEPENDS = ("eigen", "inverse_dynamics_solver", "pluginlib", "rclcpp", "urdf")


def solver_name(project: Project) -> str:
    """Name of the package: the robot's name in lower case."""
    return f"{project.name.lower()}_eom_solver"


def solver_files(project: Project, stored: StoredValues) -> dict[str, str]:
    """Package files by path, for a project with the motor feedforward and friction."""
    names = (links_of(project.robot), "motors", FEEDFORWARD, FRICTION)
    project = replace(project, functions={name: project.functions[name] for name in names})
    sources = {f"c/{name}": text for name, text in c_project.sources(project).items()}
    fields = {"package": solver_name(project), "library": project.library, "title": literal(project.robot.name)}
    to_joints, rotors = _motors_at_joints(project)
    solver = filled(
        template("inverse_dynamics_solver/solver.cpp.in"),
        notice=cpp_comment(project),
        joints=str(project.robot.n),
        motors=str(len(project.side.motor_names)),
        names=c_project.wrapped(", ".join(map(literal, project.robot.joint_names)), "    "),
        gravity=_numbers(project.robot.gravity),
        to_joints=_numbers(to_joints),
        rotors=_numbers(rotors),
        links=_call(project, links_of(project.robot)),
        # Link efforts include carried rotors, except the efforts that accelerate their own spin.
        rigid=f"sum(tau, TO_JOINTS, {SPIN})"
        if project.robot.rotor_model == "complete"
        else "sum(tau, ROTORS, qdd.data())",
        feedforward=_call(project, FEEDFORWARD),
        friction=_call(project, FRICTION),
        **fields,
    )
    build = filled(
        template("inverse_dynamics_solver/CMakeLists.txt.in"),
        sources="\n".join(f"  {source}" for source in sorted(sources) if source.endswith(".c")),
        **fields,
    )
    description = "Plugin of inverse_dynamics_solver for one robot"
    package = ros_package(fields["package"], description, project.notice_as("# "), _DEPENDS, build)
    plugins = filled(template("inverse_dynamics_solver/plugins.xml.in"), **fields)
    return sources | package | {"plugins.xml": plugins, "src/solver.cpp": solver}


def _motors_at_joints(project: Project) -> tuple[Array, Array]:
    """Matrix (n, m) from motor efforts to their sums at the joints, and rotor inertia matrix at the joints."""
    joint = project.side.motor_joint
    to_joints = np.array(project.side.motor_sums(list(np.eye(len(joint)))))
    inertia = np.array(project.side.rotor_inertia)[joint]
    return to_joints, to_joints @ np.diag(inertia) @ to_joints.T


def _call(project: Project, name: str) -> str:
    """Call lines of a function of q, qd and qdd: at nominal stiffness, without wrench and further derivatives."""
    function, lines = project.functions[name], []
    constant = {"k": _numbers(project.side.nominal_stiffness)}
    for vector, size in function.inputs.items():
        if vector in (DEFLECTION, FRICTION_STATE):
            constant[vector] = _numbers(np.full(size, SETTLED))
        if vector not in ("q", "qd", "qdd"):
            lines.append(f"static const double {vector}[{size}] = {{{constant.get(vector, '')}}};")
    lines += [f"double {vector}[{size}];" for vector, size in function.outputs.items()]
    arguments = [f"{vector}.data()" if vector in ("q", "qd", "qdd") else vector for vector in function.inputs]
    lines.append(c_project.call(function.name, [*arguments, *function.outputs]) + ";")
    return "\n".join(f"        {line}" for text in lines for line in text.split("\n"))


def _numbers(values: Array) -> str:
    return c_project.wrapped(", ".join(repr(float(x)) for x in np.ravel(values)), "    ")

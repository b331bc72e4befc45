# SPDX-License-Identifier: Apache-2.0
"""Text of a parameter file, as it comes in the parameters of another node: without xacro files, which are programs."""

from __future__ import annotations

from eom_dynamics import robot_from_parameters
from eom_dynamics.robot.readers.parameter_file import find_robot

from .promises import check_robot, refused

TOKENS = (
    *("/**:\n  ros__parameters:\n    robot:\n", "joint_names: [a, b]", "joints:", "a:", "type: revolute", "prismatic"),
    *(
        "screw: [0, 0, 1, 0, 0, 0]",
        "origin: {xyz: [0, 0, 0], rpy: [0, 0, 0]}",
        "mass: 1.0",
        "center_of_mass: [0, 0, 0]",
    ),
    *("inertia: [1, 0, 0, 1, 0, 1]", "inertia_reference: com", "link", "parent: a", "gravity: [0, 0, -9.81]", "tools:"),
    *("elasticity: {type: linear, stiffness: 100.0}", "cubic", "exponential", "tabulated", "variable", "polynomial"),
    *("antagonistic_quadratic", "antagonistic_exponential", "dead_zone", "damping: 1.0", "rigid", "coupled"),
    *("rotor_inertia: 0.1", "gear_ratio: 100.0", "actuator: {limits: {torque: 1.0}}", "limits: {position: [-1, 1]}"),
    *(
        *("friction: {viscous: 1.0}", "payloads:", "mimic: {joint: a}", "urdf: /dev/null", ".nan", ".inf"),
        *("1e400", "&a *a"),
    ),
)


def check(data: bytes) -> None:
    with refused():
        parameters, _ = find_robot(data.decode("utf-8", "surrogateescape"), "text")
        check_robot(robot_from_parameters(parameters, "text", expand=lambda path, arguments: ""))

# SPDX-License-Identifier: Apache-2.0
"""Facts about a robot: its tree, joints, limits, tools, merged links, assumptions, and operation counts."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import Any

import numpy as np

from ... import lie
from ...actuators.drive_units import SI_UNITS
from ...arrays import Array
from ...codegen.programs import PROGRAMS
from ...kinematics import Kinematics
from ...robot import Joint, Robot
from ...robot.physical_consistency import joints_without_inertia
from ...robot.reach import reach
from ..pages.numbers import for_json
from .motors import motors
from .plausibility import elastic_joints, poses
from .plausibility import warnings as implausible

COUNTED = ("inverse_dynamics", "effort", "forward_dynamics", "mass_matrix", "effort_partials")
"""Programs whose operations are counted; tracing some of the others takes a second."""

# The cost of these, and of the search for the reach, grows with the square of the number of joints and more.
_SQUARE: tuple[str, ...] = ("mass_matrix", "effort_partials")

MOST_JOINTS = 20
"""Robots with more joints than this get operation counts of some programs only."""


def robot_facts(robot: Robot) -> dict[str, Any]:
    """Return the facts about a robot, ready for JSON.

    SI units; None for infinite and missing values. Operations are those per state, by name of the program in
    :data:`eom_dynamics.codegen.programs.PROGRAMS`.
    """
    uncounted = _SQUARE if robot.n > MOST_JOINTS else ()
    if joints_without_inertia(robot):
        uncounted += ("forward_dynamics",)
    elastic, drives = elastic_joints(robot), motors(robot, poses(robot))
    return {
        "name": robot.name,
        "independent_joints": robot.n,
        "total_mass": float(np.sum([joint.mass for joint in robot.joints])),
        "base_mass": robot.base.mass,
        "gravity": robot.gravity.tolist(),
        "joints": [_joint(robot, joint) for joint in robot.joints],
        "tools": [
            {
                "name": tool.name,
                "body": robot.joints[tool.joint].name,
                "reach": reach(robot, tool),
            }
            for tool in robot.tools
        ],
        "operations": {name: None if name in uncounted else PROGRAMS[name](robot).costs() for name in COUNTED},
        "command_period": robot.command_period or None,
        "drive_delay": robot.drive_delay,
        "drive_interpolation": robot.drive_interpolation,
        "drive_feedback_delay": robot.drive_feedback_delay._asdict(),
        "command_lead": robot.command_lead,
        "compensated_by_robot": list(robot.compensated_by_robot),
        "joint_friction": robot.joint_friction,
        "rotors_left_out": [robot.joint_names[i] for i in np.flatnonzero(robot.rigid_rotors)],
        "elastic_joints": elastic,
        "motors": drives,
        "implausible": implausible(robot, elastic, drives),
        "merged": list(robot.merged),
        "assumed": [*robot.assumed, *_assumed(robot)],
    }


def _joint(robot: Robot, joint: Joint) -> dict[str, Any]:
    mimic = joint.mimic
    return {
        "name": joint.name,
        "type": joint.type,
        "parent": robot.joints[joint.parent].name if joint.parent >= 0 else None,
        "axis": _axis(joint),
        "mass": joint.mass,
        "mimic": mimic and {"joint": robot.joints[mimic.joint].name, "ratio": mimic.ratio, "offset": mimic.offset},
        "limits": {name: for_json(value) for name, value in asdict(joint.limits).items()},
        "stiffness": for_json(joint.stiffness),
        "rotor_inertia": joint.rotor_inertia,
        "gear_ratio": joint.gear_ratio,
        "drive": None if joint.drive == SI_UNITS else joint.drive.entries(),
        "damping": joint.damping,
        "friction": joint.friction,
        "constant_effort": joint.constant_effort,
        "parallel_spring": joint.parallel_spring and joint.parallel_spring.entries(),
    }


def _axis(joint: Joint) -> list[float]:
    """Return the joint axis, a unit vector (3,) in the body's frame."""
    angular, linear = joint.screw[:3], joint.screw[3:]
    axis: list[float] = (angular if np.any(angular) else linear).tolist()
    return axis


def _assumed(robot: Robot) -> list[str]:
    """Return the defaults that were taken because the description gives no value."""
    joints = robot.independent_joints
    rigid = [joint.name for joint in joints if np.isinf(joint.stiffness)]
    massless = [joint.name for joint in joints if joint.rotor_inertia == 0]
    unlimited = [joint.name for joint in joints if np.isinf(joint.limits.lower) and np.isinf(joint.limits.upper)]
    lines = (("rigid, without a spring", rigid), ("no rotor inertia", massless), ("no limits of position", unlimited))
    return [
        *(
            f"{what}: {', '.join(names) if len(names) < len(joints) else 'all joints'}"
            for what, names in lines
            if names
        ),
        f"an external wrench acts at {' and at '.join(tool.name for tool in robot.tools)}",
    ]


def tool_poses(robot: Robot, q: Array) -> dict[str, Any]:
    """Return the poses of the tools at joint variables q (n,), rad or m, ready for JSON.

    The manipulability is that of all six directions; None for fewer than six joints, which have tasks of fewer.
    """
    kinematics = Kinematics(robot)
    tools = []
    for tool in robot.tools:
        C = kinematics.pose(q, tool.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # gimbal lock, of which the table cannot tell
            rpy = lie.euler_angles("xyz", C[:3, :3])
        tools.append(
            {
                "name": tool.name,
                "position": C[:3, 3].tolist(),
                "quaternion": lie.quaternion(C[:3, :3]).tolist(),
                "rpy": rpy.tolist(),
                "manipulability": None if robot.n < 6 else float(kinematics.manipulability(q, frame=tool.name)),
            }
        )
    return {"q": q.tolist(), "tools": tools}

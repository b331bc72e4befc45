# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the parameters ``robot.*`` and ``urdf.*``, for ``ros2 param describe``."""

from __future__ import annotations

_MEANINGS = {
    "name": "name of the robot",
    "joint_names": "joints in the order of q, parents before children",
    "convention": "meaning of screws and origins",
    "inertia_reference": "point that inertias are about: com or link",
    "gravity": "gravitational acceleration in the base frame, m/s^2",
    "tool_names": "bodies or frames at which wrenches act",
    "parent": "joint above; by default the previous one",
    "screw": "joint screw, angular part first",
    "origin.xyz": "position of the body's frame, m",
    "origin.rpy": "roll, pitch and yaw of the body's frame, rad",
    "mass": "mass of the body, kg",
    "center_of_mass": "centre of mass in the body's frame, m",
    "inertia": "xx xy xz yy yz zz, kg m^2",
    "limits.lower": "smallest position, rad or m",
    "limits.upper": "largest position, rad or m",
    "limits.velocity": "largest speed, rad/s or m/s",
    "limits.effort": "largest effort, N m or N",
    "damping": "viscous friction of the joint, N m s/rad or N s/m",
    "friction": "dry friction of the joint, N m or N",
    "constant_effort": "effort that holds the joint against a constant load, N m or N",
    "parallel_spring.type": "law of the spring beside the motor: docs/actuators.md",
    "parallel_spring.stiffness": "stiffness of the spring beside the motor, N m/rad or N/m",
    "parallel_spring.rest_position": "joint position where the spring beside the motor has no deflection, rad or m",
    "parallel_spring.deflections": "deflections of a table, rad or m",
    "parallel_spring.efforts": "efforts of a table, N m or N",
    "parallel_spring.force": "force of an extended gas spring, N",
    "parallel_spring.stroke": "stroke of a gas spring, m",
    "parallel_spring.force_ratio": "force of a gas spring after its stroke over that before it",
    "parallel_spring.exponent": "polytropic exponent of a gas spring: 1 slow, 1.4 fast",
    "anchors.parent": "distance of the anchor on the parent from the joint axis, m",
    "anchors.link": "distance of the anchor on the link from the joint axis, m",
    "anchors.aligned_position": "joint position where the anchors are nearest, rad",
    "anchors.rest_length": "distance of the anchors where the spring has no deflection, m",
    "gear_ratio": "motor revolutions per joint revolution",
    "rotor_inertia": "rotor inertia at the link side of the gear, kg m^2 or kg",
    "elasticity.type": "type of the spring: docs/actuators.md",
    "elasticity.stiffness": "stiffness of the spring, N m/rad or N/m",
    "elasticity.damping": "damping of the spring, N m s/rad or N s/m",
    "joint_friction": "of damping and friction, ignored or included in joint efforts: docs/actuators.md",
    "rotor_model": "reduced or complete: docs/elastic_joints.md",
    "command_period": "time from one command of the drives to the next, s; 0 where it is unknown",
    "drive_delay": "time from a command to its effect on the motors, s",
    "drive_interpolation": "what drives do from one command to the next, none (hold it) or linear",
    "root": "link to use as the base",
    "tip": "links where the robot ends",
    "tools": "links at which wrenches act",
    "branches": "how to treat joints that lead to no tip: lump or drop",
    "unphysical": "how to treat physically inconsistent inertia: warn or refuse",
}


def describe(name: str) -> str:
    """Return the meaning and unit of a parameter, such as ``robot.joints.elbow.mass``."""
    parts = name.split(".")
    meaning = _MEANINGS.get(".".join(parts[-2:])) or _MEANINGS.get(parts[-1])
    return meaning or "entry of the robot's description: docs/robots.md, docs/actuators.md"

# SPDX-License-Identifier: Apache-2.0
"""Facts about a robot: its tree, joints, limits, tools, merged links, assumptions, and operation counts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ... import lie
from ...actuators.drive_units import SI_UNITS
from ...arrays import Array
from ...codegen.programs import PROGRAMS
from ...elastic import ElasticArm
from ...kinematics import Kinematics
from ...robot import Joint, Robot
from ...robot.inertia import joints_without_inertia
from ...robot.task_space import reach
from ...simulation import feedforward_advice
from ..quantity_text import for_json
from ..results import Result, ResultSection, TextTable, operation_counts
from .plausibility import elastic_joints, motor_facts, poses
from .plausibility import warnings as implausible

# Programs whose operations are counted; tracing some of the others takes a second.
_COUNTED = ("inverse_dynamics", "effort", "forward_dynamics", "mass_matrix", "effort_partials")

# The cost of these, and of the search for the reach, grows with the square of the number of joints and more.
_SQUARE: tuple[str, ...] = ("mass_matrix", "effort_partials")
_MOST_JOINTS = 20  # robots with more joints than this get operation counts of some programs only
_NATURAL_FREQUENCIES = (20.0, 70.0, 280.0)  # of soft, usual and stiff drives, rad/s

# Limits that have a column in the table of joints if any joint has one.
_RARE_LIMITS = ("acceleration", "jerk", "effort_rate", "effort_rms")


def robot_facts(robot: Robot) -> dict[str, Any]:
    """Return the facts about a robot, ready for JSON.

    SI units; None for infinite and missing values. Operations are those per state, by name of the program in
    :data:`eom_dynamics.codegen.programs.PROGRAMS`.
    """
    uncounted = _SQUARE if robot.n > _MOST_JOINTS else ()
    if joints_without_inertia(robot):
        uncounted += ("forward_dynamics",)
    elastic, drives = elastic_joints(robot), motor_facts(robot, poses(robot))
    return {
        "name": robot.name,
        "independent_joints": robot.n,
        "total_mass": float(np.sum([joint.mass for joint in robot.joints])),
        "base_mass": robot.base.mass,
        "gravity": robot.gravity.tolist(),
        "joints": [_joint(robot, joint) for joint in robot.joints],
        "tools": [
            {"name": tool.name, "body": robot.joints[tool.joint].name, "reach": reach(robot, tool)}
            for tool in robot.tools
        ],
        "operations": {name: None if name in uncounted else PROGRAMS[name](robot).costs() for name in _COUNTED},
        "command_period": robot.command_period or None,
        "drive_delay": robot.drive_delay,
        "drive_interpolation": robot.drive_interpolation,
        "drive_feedback_delay": robot.drive_feedback_delay._asdict(),
        "command_lead": robot.command_lead,
        "compensated_by_robot": list(robot.compensated_by_robot),
        "joint_friction": robot.joint_friction,
        "uncertainty": robot.uncertainty._asdict(),
        "feedforward": _feedforward(robot),
        "rotors_left_out": [robot.joint_names[i] for i in np.flatnonzero(robot.rigid_rotors)],
        "elastic_joints": elastic,
        "motors": drives,
        "implausible": implausible(robot, elastic, drives),
        "merged": list(robot.merged),
        "assumed": [*robot.assumed, *_assumed(robot)],
    }


def _feedforward(robot: Robot) -> list[dict[str, Any]]:
    if not any(robot.uncertainty):
        return []
    arm = ElasticArm(robot)
    advice = [feedforward_advice(arm, w) for w in _NATURAL_FREQUENCIES]
    return [row._asdict() | {"best": row.best} for row in advice if row]


def _joint(robot: Robot, joint: Joint) -> dict[str, Any]:
    mimic = joint.mimic
    return {
        "name": joint.name,
        "type": joint.type,
        "parent": robot.joints[joint.parent].name if joint.parent >= 0 else None,
        "axis": (joint.screw[:3] if np.any(joint.screw[:3]) else joint.screw[3:]).tolist(),
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
        "motor_friction": None
        if joint.actuator.friction.is_none
        else {name: for_json(value) for name, value in asdict(joint.actuator.friction).items()},
    }


def _assumed(robot: Robot) -> list[str]:
    joints = robot.independent_joints
    rigid = [joint.name for joint in joints if np.isinf(joint.stiffness)]
    massless = [joint.name for joint in joints if joint.rotor_inertia == 0]
    unlimited = [joint.name for joint in joints if np.isinf(joint.limits.lower) and np.isinf(joint.limits.upper)]
    lines = (("rigid, without a spring", rigid), ("no rotor inertia", massless), ("no limits of position", unlimited))
    wrench = f"an external wrench acts at {' and at '.join(tool.name for tool in robot.tools)}"
    return [*(f"{what}: {_which(names, len(joints))}" for what, names in lines if names), wrench]


def _which(joints: Sequence[str], of: int) -> str:
    return ", ".join(joints) if len(joints) < of else "all joints"


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


def facts_result(facts: Mapping[str, Any]) -> Result:
    """Make the result of the facts of :func:`robot_facts`: a table of joints, and sections on the rest."""
    gravity, mass = _vector(facts["gravity"]), f"{facts['total_mass']:g} kg"
    if facts["base_mass"]:
        mass += f" on a base of {facts['base_mass']:g} kg"
    counted = {name: costs for name, costs in facts["operations"].items() if costs is not None}
    reasons = {"forward_dynamics": "unavailable, since the mass matrix is singular"}
    usual = f"not counted for more than {_MOST_JOINTS} joints"
    uncounted = [f"{name}: {reasons.get(name, usual)}" for name in facts["operations"] if name not in counted]
    tools = [
        f"tool {tool['name']} on the body of {tool['body']}: reach {tool['reach']:.3g} m from the base"
        for tool in facts["tools"]
    ]
    rest = [
        *(
            f"drive of {joint['name']}: {', '.join(f'{name} {value}' for name, value in joint['drive'].items())}"
            for joint in facts["joints"]
            if joint["drive"]
        ),
        *_friction(facts),
        *(
            f"motor friction of {joint['name']}: {', '.join(_entry(*x) for x in friction.items() if x[1] is not None)}"
            for joint in facts["joints"]
            if (friction := joint["motor_friction"])
        ),
        *(line for joint in facts["joints"] for line in _passive_efforts(joint)),
        *(f"{title.replace('_', ' ')}: {line}" for title in ("merged", "assumed") for line in facts[title]),
        *(f"not plausible: {line}" for line in facts["implausible"]),
    ]
    return Result(
        lead=[f"{facts['name']}: {facts['independent_joints']} joints, {mass}, gravity {gravity} m/s²"],
        sections=[
            ResultSection(tables=[_joints(facts["joints"])]),
            ResultSection(lines=tools),
            ResultSection(lines=uncounted, tables=[operation_counts(counted)]),
            ResultSection(lines=[_commands(facts)]),
            *(ResultSection(tables=[table]) for table in (_elastic(facts), _motors(facts["motors"])) if table.rows),
            *_uncertain(facts),
            ResultSection(lines=rest),
        ],
        json=facts,
    )


def _commands(facts: Mapping[str, Any]) -> str:
    period = "unknown" if facts["command_period"] is None else f"{facts['command_period']:g} s"
    ages = facts["drive_feedback_delay"]
    aged = any(ages.values())
    return (
        f"command_period {period}, drive_delay {facts['drive_delay']:g} s, drive_interpolation "
        f"{facts['drive_interpolation']}: command lead {facts['command_lead']:g} s"
        + (f"; feedback of the drives {ages['position']:g} s old, of velocities {ages['velocity']:g} s" if aged else "")
        + (f"; not sent, the robot adds: {', '.join(added)}" if (added := facts["compensated_by_robot"]) else "")
    )


def _elastic(facts: Mapping[str, Any]) -> TextTable:
    types = {joint["name"]: joint["type"] for joint in facts["joints"]}
    header = ("elastic joint", "link on the spring [Hz]", "motor against link [Hz]", "largest sag by weight")
    rows = [
        (
            row["joint"],
            f"{row['link_frequency']:.3g}",
            f"{row['motor_frequency']:.4g}",
            f"{1e3 * row['sag']:.3g} {'mm' if types[row['joint']] == 'prismatic' else 'mrad'}",
        )
        for row in facts["elastic_joints"]
    ]
    return TextTable(header, rows)


def _uncertain(facts: Mapping[str, Any]) -> Iterator[ResultSection]:
    """What the uncertainty of the parameters means for the choice of the feedforward, if the robot has any."""
    if rows := facts["feedforward"]:
        known = ", ".join(f"{name.replace('_', ' ')} {100 * x:.2g} %" for name, x in facts["uncertainty"].items())
        header = ("PD of the motors [rad/s]", *(f"{name} [mrad or mm]" for name in rows[0]["errors"]), "least")
        table = [
            (f"{row['natural_frequency']:g}", *(f"{1e3 * x:.3g}" for x in row["errors"].values()), row["best"])
            for row in rows
        ]
        line = f"expected link errors on the paper's motion, with standard deviations of {known}"
        yield ResultSection(lines=[line], tables=[TextTable(header, table)])


def _motors(motors: Sequence[Mapping[str, Any]]) -> TextTable:
    """Table of motors; limits are behind a slash."""
    header = (
        *("motor", "gear ratio", "rotor inertia: shaft", "joint", "torque constant [N m/A]"),
        *("speed at the joint's limit [rad/s]", "torque by weight [N m]", "current [A]", "voltage [V]"),
    )

    def shown(row: Mapping[str, Any], name: str) -> str:
        value, limit = row[name], row[f"{name}_limit"]
        return f"{'-' if value is None else f'{value:.3g}'} / {_or(limit, '-')}"

    rows = [
        (
            row["motor"],
            f"{row['gear_ratio']:g}",
            *(f"{row[name]:.3g}" for name in ("shaft_inertia", "rotor_inertia")),
            _or(row["torque_constant"], "-"),
            *(shown(row, name) for name in ("speed", "torque", "current", "voltage")),
        )
        for row in motors
    ]
    return TextTable(header, rows)


def _friction(facts: Mapping[str, Any]) -> Iterator[str]:
    """Lines on damping and dry friction of joints, and on rotors of rigid joints, if the description has any."""
    joints, rotors = facts["joints"], facts["rotors_left_out"]
    if rubbing := [joint for joint in joints if joint["damping"] or joint["friction"]]:
        where = _which([joint["name"] for joint in rubbing], len(joints))
        part = "part of the efforts" if facts["joint_friction"] else "not part of the efforts unless friction=True"
        yield f"joint damping and friction: {where}; {part}"
    for joint in rubbing:
        damping, friction = ("N s/m", "N") if joint["type"] == "prismatic" else ("N m s/rad", "N m")
        yield f"  {joint['name']}: damping {joint['damping']:g} {damping}, friction {joint['friction']:g} {friction}"
    if rotors:
        part = "part of motor efforts, not of joint efforts unless rotor_inertia=True"
        yield f"rotor inertia of rigid joints: {_which(rotors, facts['independent_joints'])}; {part}"


def _passive_efforts(joint: Mapping[str, Any]) -> Iterator[str]:
    parts = []
    if joint["constant_effort"]:
        parts.append(f"constant effort {joint['constant_effort']:g} {'N' if joint['type'] == 'prismatic' else 'N m'}")
    if joint["parallel_spring"] is not None:
        kind, *entries = joint["parallel_spring"].items()
        parts.append(f"parallel spring: {kind[1]}, {', '.join(_entry(*entry) for entry in entries)}")
    if parts:
        yield f"{joint['name']}: {'; '.join(parts)}"


def _entry(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{name} ({', '.join(_entry(*entry) for entry in value.items())})"
    return f"{name} {_vector(value)}" if isinstance(value, list) else f"{name} {value:g}"


def _joints(joints: Sequence[Mapping[str, Any]]) -> TextTable:
    units = dict.fromkeys(("N/m", "kg") if joint["type"] == "prismatic" else ("N m/rad", "kg m²") for joint in joints)
    stiffness_unit, inertia_unit = (" or ".join(unit) for unit in zip(*units, strict=True))
    limits = ["velocity", "effort"]
    limits += [name for name in _RARE_LIMITS if any(joint["limits"][name] is not None for joint in joints)]
    header = (
        *("joint", "type", "axis", "limits", *(name.replace("_", " ") for name in limits), "mass [kg]"),
        *(f"stiffness [{stiffness_unit}]", f"rotor inertia [{inertia_unit}]"),
    )
    rows = [
        (
            branch + joint["name"],
            joint["type"]
            if (mimic := joint["mimic"]) is None
            else f"= {mimic['ratio']:g} {mimic['joint']}" + (f" {mimic['offset']:+g}" if mimic["offset"] else ""),
            _vector(joint["axis"]),
            _limits(joint["limits"]),
            *(_or(joint["limits"][name], "-") for name in limits),
            f"{joint['mass']:g}",
            _or(joint["stiffness"], "rigid"),
            f"{joint['rotor_inertia']:g}",
        )
        for joint, branch in zip(joints, _branches(joints), strict=True)
    ]
    return TextTable(header, rows, text_columns=4)


def _branches(joints: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the tree drawing in front of each joint; an unbranched chain is not indented."""
    below: dict[str | None, str] = {None: ""}  # lines in front of the children of a joint
    for joint in joints:
        parent = joint["parent"]
        siblings = [other["name"] for other in joints if other["parent"] == parent]
        last = joint["name"] == siblings[-1]
        mark, line = ("", "") if len(siblings) == 1 else ("└─", "  ") if last else ("├─", "│ ")
        below[joint["name"]] = below[parent] + line
        yield below[parent] + mark


def _limits(limits: Mapping[str, float | None]) -> str:
    lower, upper = limits["lower"], limits["upper"]
    return "-" if lower is None and upper is None else f"{_or(lower, '-inf')} … {_or(upper, 'inf')}"


def _or(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}"


def _vector(values: Sequence[float]) -> str:
    return "[" + " ".join(f"{value:g}" for value in values) + "]"


def pose_result(poses: Mapping[str, Any]) -> Result:
    """Make the result of the poses of :func:`tool_poses`."""
    rows = [
        (
            tool["name"],
            *(" ".join(f"{x + 0.0:.6f}" for x in tool[key]) for key in ("position", "quaternion", "rpy")),
            "-" if tool["manipulability"] is None else f"{tool['manipulability']:.4g}",
        )
        for tool in poses["tools"]
    ]
    header = ("tool", "position [m]", "quaternion x y z w", "roll pitch yaw [rad]", "manipulability")
    return Result(sections=[ResultSection(tables=[TextTable(header, rows, text_columns=4)])], json=poses)

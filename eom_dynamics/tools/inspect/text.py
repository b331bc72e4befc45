# SPDX-License-Identifier: Apache-2.0
"""Facts about a robot as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...terminal import printable
from ..text_tables import columns, operation_counts
from .facts import MOST_JOINTS

_RARE_LIMITS = ("acceleration", "jerk", "effort_rate", "effort_rms")


def as_text(facts: Mapping[str, Any]) -> str:
    """Return the facts of :func:`.facts.robot_facts` as a table of joints and lines on the rest."""
    gravity, mass = _vector(facts["gravity"]), f"{facts['total_mass']:g} kg"
    if facts["base_mass"]:
        mass += f" on a base of {facts['base_mass']:g} kg"
    counted = {name: costs for name, costs in facts["operations"].items() if costs is not None}
    lines = [
        f"{facts['name']}: {facts['independent_joints']} joints, {mass}, gravity {gravity} m/s²",
        "",
        *columns(_joint_rows(facts["joints"]), right_from=4),
        "",
        *(
            f"tool {tool['name']} on the body of {tool['body']}: reach {tool['reach']:.3g} m from the base"
            for tool in facts["tools"]
        ),
        "",
        *operation_counts(counted),
        *(
            f"{name}: unavailable, since the mass matrix is singular"
            if name == "forward_dynamics"
            else f"{name}: not counted for more than {MOST_JOINTS} joints"
            for name in facts["operations"]
            if name not in counted
        ),
        "",
        _commands(facts),
        "",
        *_elastic(facts),
        *_motors(facts["motors"]),
        *(
            f"drive of {joint['name']}: " + ", ".join(f"{name} {value}" for name, value in joint["drive"].items())
            for joint in facts["joints"]
            if joint["drive"]
        ),
        *_friction(facts),
        *_rotors(facts["rotors_left_out"], facts["independent_joints"]),
        *_passive_efforts(facts),
        *(f"merged: {line}" for line in facts["merged"]),
        *(f"assumed: {line}" for line in facts["assumed"]),
        *(f"not plausible: {line}" for line in facts["implausible"]),
    ]
    return "\n".join(map(printable, lines))


def _commands(facts: Mapping[str, Any]) -> str:
    period = "unknown" if facts["command_period"] is None else f"{facts['command_period']:g} s"
    ages = facts["drive_feedback_delay"]
    aged = any(ages.values())
    return (
        f"command_period {period}, drive_delay {facts['drive_delay']:g} s, drive_interpolation "
        f"{facts['drive_interpolation']}: command lead {facts['command_lead']:g} s"
        + (f"; feedback of the drives {ages['position']:g} s old, of velocities {ages['velocity']:g} s" if aged else "")
        + (f"; not sent, the robot adds: {', '.join(own)}" if (own := facts["compensated_by_robot"]) else "")
    )


def _elastic(facts: Mapping[str, Any]) -> list[str]:
    """Return a table of resonances and static deflections, if there are elastic joints."""
    if not facts["elastic_joints"]:
        return []
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
    return [*columns([header, *rows], right_from=1), ""]


def _motors(motors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of motors, if there are any; limits are behind a slash."""
    if not motors:
        return []
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
    return [*columns([header, *rows], right_from=1), ""]


def _friction(facts: Mapping[str, Any]) -> list[str]:
    """Return a line on damping and dry friction of joints, if the description has any."""
    rubbing = [joint for joint in facts["joints"] if joint["damping"] or joint["friction"]]
    if not rubbing:
        return []
    where = ", ".join(joint["name"] for joint in rubbing) if len(rubbing) < len(facts["joints"]) else "all joints"
    said = "part of the efforts" if facts["joint_friction"] else "not part of the efforts unless friction=True"
    lines = [f"joint damping and friction: {where}; {said}"]
    for joint in rubbing:
        damping, friction = ("N s/m", "N") if joint["type"] == "prismatic" else ("N m s/rad", "N m")
        values = f"damping {joint['damping']:g} {damping}, friction {joint['friction']:g} {friction}"
        lines.append(f"  {joint['name']}: {values}")
    return lines


def _rotors(rigid: Sequence[str], n: int) -> list[str]:
    """Return a line on the rotors of rigid joints, if there are any."""
    if not rigid:
        return []
    where = ", ".join(rigid) if len(rigid) < n else "all joints"
    left_out = "part of motor efforts, not of joint efforts unless rotor_inertia=True"
    return [f"rotor inertia of rigid joints: {where}; {left_out}"]


def _passive_efforts(facts: Mapping[str, Any]) -> list[str]:
    """Return a line for each joint with a constant effort or a parallel spring."""
    lines = []
    for joint in facts["joints"]:
        parts = []
        if joint["constant_effort"]:
            unit = "N" if joint["type"] == "prismatic" else "N m"
            parts.append(f"constant effort {joint['constant_effort']:g} {unit}")
        if joint["parallel_spring"] is not None:
            kind, *entries = joint["parallel_spring"].items()
            parts.append(f"parallel spring: {kind[1]}, {', '.join(_entry(*entry) for entry in entries)}")
        if parts:
            lines.append(f"{joint['name']}: {'; '.join(parts)}")
    return lines


def _entry(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{name} ({', '.join(_entry(*entry) for entry in value.items())})"
    return f"{name} {_vector(value)}" if isinstance(value, list) else f"{name} {value:g}"


def _joint_rows(joints: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
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
            _branch(joints, joint) + joint["name"],
            joint["type"] if joint["mimic"] is None else _mimic(joint["mimic"]),
            _vector(joint["axis"]),
            _limits(joint["limits"]),
            *(_or(joint["limits"][name], "-") for name in limits),
            f"{joint['mass']:g}",
            _or(joint["stiffness"], "rigid"),
            f"{joint['rotor_inertia']:g}",
        )
        for joint in joints
    ]
    return [header, *rows]


def _branch(joints: Sequence[Mapping[str, Any]], joint: Mapping[str, Any]) -> str:
    """Return the lines of the tree drawing in front of a joint; an unbranched chain is not indented."""
    parents = {other["name"]: other["parent"] for other in joints}
    children: dict[str | None, list[str]] = {}
    for other in joints:
        children.setdefault(other["parent"], []).append(other["name"])
    name = joint["name"]
    branches = children[parents[name]]
    lines = "" if len(branches) == 1 else "└─" if name == branches[-1] else "├─"
    name = parents[name]
    while name is not None:
        branches = children[parents[name]]
        if len(branches) > 1:
            lines = ("  " if name == branches[-1] else "│ ") + lines
        name = parents[name]
    return lines


def _mimic(mimic: Mapping[str, Any]) -> str:
    offset = f" {mimic['offset']:+g}" if mimic["offset"] else ""
    return f"= {mimic['ratio']:g} {mimic['joint']}{offset}"


def _limits(limits: Mapping[str, float | None]) -> str:
    lower, upper = limits["lower"], limits["upper"]
    return "-" if lower is None and upper is None else f"{_or(lower, '-inf')} … {_or(upper, 'inf')}"


def _or(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}"


def _vector(values: Sequence[float]) -> str:
    return "[" + " ".join(f"{value:g}" for value in values) + "]"


def pose_table(poses: Mapping[str, Any]) -> str:
    """Return the poses of :func:`.facts.tool_poses` as a table."""
    header = ("tool", "position [m]", "quaternion x y z w", "roll pitch yaw [rad]", "manipulability")
    rows = [
        (
            tool["name"],
            *(_numbers(tool[key]) for key in ("position", "quaternion", "rpy")),
            "-" if tool["manipulability"] is None else f"{tool['manipulability']:.4g}",
        )
        for tool in poses["tools"]
    ]
    return "\n".join(map(printable, columns([header, *rows], right_from=4)))


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value + 0.0:.6f}" for value in values)

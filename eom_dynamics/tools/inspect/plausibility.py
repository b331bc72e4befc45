# SPDX-License-Identifier: Apache-2.0
"""Resonances and static deflection of elastic joints, and robot parameters that suggest unit errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm
from ...robot import Joint, Robot
from ...robot.readers.numbers import typical_degrees

# Poses at which gravity is evaluated, besides zero.
_POSES = 200

# A spring that its own arm, or the joint's effort limit, deflects by more, rad, is softer than any.
_LARGEST_DEFLECTION = 0.3

# A rotor lighter than this share of the links, or than this before its gear, kg m², lacks the square of the ratio, if
# with it is not.
_LIGHT, _GEARED, _LIGHTEST = 1e-3, 10.0, 1e-8

# No motor has a larger torque constant, N m/A, and none so much more torque at its current limit than its torque limit.
_LARGEST_CONSTANT, _LARGEST_EXCESS = 5.0, 100.0

# No motor alone accelerates its shaft faster, rad/s², and none its joint slower, rad/s².
_FASTEST_SHAFT, _SLOWEST_JOINT = 1e6, 1.0

# A rotor heavier than this, kg m², and than so many times the links is of no joint.
_HEAVY, _HEAVIEST = 10.0, 100.0

# No joint turns further, rad, without being continuous, or faster, rad/s; files say the last for "without a limit".
_LARGEST_ANGLE, _LARGEST_VELOCITY, _NO_LIMIT = 20.0, 60.0, 1000.0

# No drive waits longer for commands or for their effect, s, and no rate of commands, Hz, is lower.
_LARGEST_TIME, _LOWEST_RATE = 0.2, 20.0

# No arm is longer, m; none heavier than the first, kg, has more than the second of mass over length cubed, kg/m³.
_LONGEST, _HEAVY_ARM, _DENSEST = 50.0, 200.0, 500.0

USUAL_PERIOD = 1e-3
"""Of commands, s, where the robot's file names none."""


def elastic_joints(robot: Robot) -> list[dict[str, Any]]:
    """Frequencies and static deflection of each elastic joint with springs and motors of its own.

    Returns:
        Dictionaries with ``joint``; ``link_frequency``, of the links on the spring with the motor at rest, and
        ``motor_frequency``, of the motor against the links, Hz, each alone, at q = 0 and unloaded stiffness; and
        ``sag``, the largest deflection under the arm's own weight within its limits, rad or m.
    """
    arm = ElasticArm(robot)
    # Of a pair, both motors turn against the link.
    rotors = np.where(arm.paired, 2.0, 1.0) * arm.rotor_inertia
    elastic = np.flatnonzero(np.isfinite(arm.stiffness) & (rotors > 0)).tolist()
    if not elastic:
        return []
    links = np.diagonal(arm.dynamics.mass_matrix(np.zeros(robot.n)))
    weight = np.abs(arm.dynamics.gravity(poses(robot))).max(axis=0)
    return [
        {
            "joint": robot.joint_names[i],
            "link_frequency": float(np.sqrt(arm.stiffness[i] / links[i]) / (2 * np.pi)),
            "motor_frequency": float(np.sqrt(arm.stiffness[i] * (1 / links[i] + 1 / rotors[i])) / (2 * np.pi)),
            "sag": float(weight[i] / arm.stiffness[i]),
        }
        for i in elastic
    ]


def warnings(robot: Robot, elastic: list[dict[str, Any]], motors: list[dict[str, Any]]) -> list[str]:
    """Warnings about implausible numbers, one sentence each."""
    arm, joints = ElasticArm(robot), robot.independent_joints
    links = np.diagonal(arm.dynamics.mass_matrix(np.zeros(robot.n))).tolist()
    size = _size(robot)
    lines = [*_times(robot), *size]
    for i, joint in enumerate(joints):
        lines += [*_angles(joint), *_motor(joint)]
        # Weight and inertia in wrong units say nothing of springs and rotors.
        if not size:
            lines += _rotor(joint, links[i], max(links))
    if not size:
        rate = 1 / plausible_period(robot)
        for row in elastic:
            i = robot.joint_names.index(row["joint"])
            lines += _spring(row, joints[i], float(arm.stiffness[i]), rate)
        for i, row in zip(arm.motor_joint.tolist(), motors, strict=False):
            lines += [] if _rest_in_degrees(joints[i]) else _held(row)
    return lines


def plausible_period(robot: Robot) -> float:
    """Period of the commands, s; the usual one where the robot's is unknown or implausible."""
    return robot.command_period if 0 < robot.command_period <= _LARGEST_TIME else USUAL_PERIOD


def _times(robot: Robot) -> list[str]:
    lines = []
    for name in ("command_period", "drive_delay"):
        value = getattr(robot, name)
        if value > _LARGEST_TIME:
            rate = name == "command_period" and value >= _LOWEST_RATE
            unit, seconds = ("a rate in Hz", 1 / value) if rate else ("in ms", value / 1000)
            lines.append(f"{name} is {value:g} s; if it is {unit}, it is {seconds:g} s")
    return lines


def _size(robot: Robot) -> list[str]:
    lengths: list[float] = []
    for joint in robot.joints:
        before = lengths[joint.parent] if joint.parent >= 0 else 0.0
        lengths.append(before + float(np.linalg.norm(joint.reference_pose[:3, 3])))
    size = max(
        length + float(np.linalg.norm(joint.center_of_mass))
        for length, joint in zip(lengths, robot.joints, strict=True)
    )
    if size > _LONGEST:
        return [f"lengths add up to {size:.4g} m; if they are in mm, to {size / 1000:.4g} m"]
    mass = sum(joint.mass for joint in robot.joints)
    if mass > max(_HEAVY_ARM, _DENSEST * size**3):
        return [f"mass is {mass:.4g} kg at a length of {size:.3g} m; if masses are in g, it is {mass / 1000:.4g} kg"]
    return []


def _angles(joint: Joint) -> list[str]:
    lines = []
    if rest := _rest_in_degrees(joint):
        lines.append(
            f"{joint.name}: rest_position of the parallel spring is {rest:g} rad; if it is in degrees, it is "
            f"{np.deg2rad(rest):.4g}"
        )
    limits = joint.limits
    largest = {"lower": _LARGEST_ANGLE, "upper": _LARGEST_ANGLE, "velocity": _LARGEST_VELOCITY}
    values = {name: x for name, most in largest.items() if most < abs(x := getattr(limits, name)) < _NO_LIMIT}
    speed = float(np.min(joint.actuator.motor.speed_limit)) / abs(joint.gear_ratio)
    if joint.type != "prismatic" and values:
        listed = ", ".join(f"{name} {x:g} rad{'/s' if name == 'velocity' else ''}" for name, x in values.items())
        radians = ", ".join(f"{np.deg2rad(x):.4g}" for x in values.values())
        lines.append(f"{joint.name}: limits are {listed}; if in degrees: {radians}")
    elif speed < limits.velocity < np.inf:
        lines.append(
            f"{joint.name}: the motor's speed limit is {speed:.4g} behind the gear, below the joint's velocity "
            f"limit {limits.velocity:g}"
        )
    return lines


def _rest_in_degrees(joint: Joint) -> float:
    """Rest position of a parallel spring that looks like degrees; 0 if none does."""
    rest = joint.parallel_spring.rest_position if joint.parallel_spring else 0.0
    return rest if joint.type != "prismatic" and typical_degrees(rest) else 0.0


def _motor(joint: Joint) -> list[str]:
    motor, lines = joint.actuator.motor, []
    constant, torque = float(np.max(motor.torque_constant)), float(np.min(motor.torque_limit))
    most = _LARGEST_EXCESS * float(np.min(motor.torque_limit / motor.current_limit)) if torque < np.inf else np.inf
    allowed = float(np.min(motor.torque_constant * motor.current_limit))
    if constant > _LARGEST_CONSTANT or 0 < most < constant:
        lines.append(
            f"{joint.name}: torque constant {constant:g} N m/A is larger than of any motor, or than torque and "
            f"current limits allow; if it is in mN m/A, it is {constant / 1000:g} N m/A"
        )
    if np.inf > torque > _LARGEST_EXCESS * allowed:
        lines.append(
            f"{joint.name}: torque limit {torque:g} N m is far beyond the {allowed:.3g} N m of the current limit; if "
            f"it is in mN m, it is {torque / 1000:g} N m"
        )
    return lines


def _rotor(joint: Joint, links: float, largest: float) -> list[str]:
    inertia, ratio, motor = joint.rotor_inertia, abs(joint.gear_ratio), joint.actuator.motor
    if inertia == 0:
        return []
    square, rotary = ratio**2, joint.type != "prismatic"
    if ratio >= _GEARED and (inertia < _LIGHT * links or (rotary and inertia / square < _LIGHTEST)):
        if links > 100 * inertia * square:
            return []
        return [
            f"{joint.name}: rotor inertia {inertia:g} is tiny beside the links' {links:.3g} or for a motor; "
            f"behind the gear of {joint.gear_ratio:g} it must have the square of the ratio: {inertia * square:.4g}"
        ]
    torque = float(np.min(np.fmin(motor.torque_limit, motor.torque_constant * motor.current_limit)))
    acceleration = torque * square / inertia
    if ratio >= _GEARED and _FASTEST_SHAFT < acceleration < np.inf:
        return [
            f"{joint.name}: rotor inertia {inertia:g} lets the torque limit accelerate the motor by {acceleration:.2g} "
            f"rad/s²; if it is that of the shaft times the gear ratio, not its square, it is {inertia * ratio:.4g}"
        ]
    if rotary and (acceleration / ratio < _SLOWEST_JOINT or inertia > max(_HEAVY, _HEAVIEST * largest)):
        return [
            f"{joint.name}: rotor inertia {inertia:g} kg m² is too large for the links' {links:.3g} or for the motor's "
            f"torque; if it is that of the shaft in g cm², it is {1e-7 * inertia * square:.4g} kg m² behind the gear"
        ]
    return []


def _spring(row: dict[str, Any], joint: Joint, K: float, rate: float) -> list[str]:
    lines = []
    for effort, what in ((row["sag"] * K, "the arm's own weight"), (joint.limits.effort, "the effort limit")):
        if joint.type != "prismatic" and not _rest_in_degrees(joint) and _LARGEST_DEFLECTION < effort / K < np.inf:
            lines.append(
                f"{joint.name}: {what} deflects the spring by {effort / K:.3g} rad; stiffness {K:g} may be per "
                f"degree: in N m/rad that is {K * 180 / np.pi:.4g}"
            )
            break
    if row["motor_frequency"] > rate:
        lines.append(
            f"{joint.name}: the motor swings against the link at {row['motor_frequency']:.4g} Hz, above the "
            f"{rate:g} commands a second; check stiffness and rotor inertia"
        )
    return lines


def _held(row: dict[str, Any]) -> list[str]:
    over = [
        f"{name} {row[name]:.3g} {unit} (limit {row[f'{name}_limit']:.3g})"
        for name, unit in (("torque", "N m"), ("current", "A"), ("voltage", "V"))
        if None not in (row[name], row[f"{name}_limit"]) and row[name] > row[f"{name}_limit"]
    ]
    if not over:
        return []
    return [
        f"{row['motor']}: holding the arm's weight takes {', '.join(over)}; check gear_ratio {row['gear_ratio']:g}, "
        "masses and limits"
    ]


def poses(robot: Robot) -> Array:
    """Zero, and poses within the limits, up to half a turn or a metre from zero."""
    lower, upper = (
        np.array([np.clip(getattr(joint.limits, side), -np.pi, np.pi) for joint in robot.independent_joints])
        for side in ("lower", "upper")
    )
    drawn = np.random.default_rng(0).uniform(lower, np.maximum(upper, lower), (_POSES, robot.n))
    return np.concatenate([np.zeros((1, robot.n)), drawn])

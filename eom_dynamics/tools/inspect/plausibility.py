# SPDX-License-Identifier: Apache-2.0
"""Resonances and static deflection of elastic joints, motor loads, and robot parameters that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...actuators.actuator import stacked
from ...arrays import Array
from ...elastic.motor_programs import DEFLECTION, FRICTION_STATE, SETTLED, SHAFT
from ...elastic.motor_side import MotorSide
from ...elastic.spring_set import MotorFunctions
from ...recursion import inverse_dynamics, link_tree
from ...recursion.composite import composite_inertias
from ...robot import Joint, Robot
from ...robot.task_space import poses_within_limits
from ..quantity_text import for_json

_POSES = 200  # poses at which gravity is evaluated, besides zero

# Deflection by the arm's own weight or the joint's effort limit, rad, beyond which a stiffness may be per degree.
_LARGEST_DEFLECTION = 0.3

# Ratio of a gear behind which a rotor may lack the square of the ratio: if it is below this share of the links, or its
# shaft below this, kg m², and the square brings it to more than this share.
_GEARED, _LIGHT, _LIGHTEST_SHAFT, _USUAL = 10.0, 1e-3, 1e-8, 1e-2

# Range of a joint, rad, and velocity, rad/s, that may be degrees; files say the last for "without a limit".
_LARGEST_ANGLE, _LARGEST_VELOCITY, _NO_LIMIT = 20.0, 60.0, 1000.0

# Length, m, mass, kg, and mass over length cubed, kg/m³, of an arm in mm or g.
_LONGEST, _HEAVIEST, _DENSEST = 50.0, 200.0, 500.0
_DATA_SHEET = ("torque_constant", "speed_limit", "torque_limit", "current_limit", "voltage_limit")

USUAL_PERIOD = 1e-3
"""Of commands, s, where the robot's file names none."""


def elastic_joints(robot: Robot) -> list[dict[str, Any]]:
    """Frequencies and static deflection of each elastic joint with springs and motors of its own.

    Returns:
        Dictionaries with ``joint``; ``link_frequency``, of the links on the spring with the motor at rest, and
        ``motor_frequency``, of the motor against the links, Hz, each alone, at q = 0 and unloaded stiffness; and
        ``sag``, the largest deflection under the arm's own weight within its limits, rad or m.
    """
    side = MotorSide.of(robot)
    # Of a pair, both motors turn against the link.
    K, rotors = side.rest_stiffness, np.where(side.paired, 2.0, 1.0) * side.rotor_inertia
    elastic = np.flatnonzero(np.isfinite(K) & (rotors > 0)).tolist()
    if not elastic:
        return []
    links, weight = _link_inertias(robot), np.abs(_gravity(robot, poses(robot))).max(axis=0)
    return [
        {
            "joint": robot.joint_names[i],
            "link_frequency": float(np.sqrt(K[i] / links[i]) / (2 * np.pi)),
            "motor_frequency": float(np.sqrt(K[i] * (1 / links[i] + 1 / rotors[i])) / (2 * np.pi)),
            "sag": float(weight[i] / K[i]),
        }
        for i in elastic
    ]


# By recursions on numbers, since to compile the kernels of a long chain for one look takes a minute.
def _link_inertias(robot: Robot) -> Array:
    """Diagonal of the mass matrix at q = 0 (n,)."""
    return np.array(composite_inertias(link_tree(robot), [0.0] * robot.n))


def _gravity(robot: Robot, poses: Array) -> Array:
    """Joint efforts at rest in poses (N, n), of the same shape."""
    rest = [0.0] * robot.n
    (efforts,) = inverse_dynamics(link_tree(robot), [[*poses.T], rest, rest])
    return np.stack([np.broadcast_to(effort, len(poses)) for effort in efforts], axis=1)


def motor_facts(robot: Robot, poses: Array) -> list[dict[str, Any]]:
    """Numbers of each motor at poses (N, n), ready for JSON; empty if the robot's description has no motors.

    Returns:
        Dictionaries with ``motor``; ``gear_ratio``; ``rotor_inertia`` on the link side of the gear, kg m² or kg, and
        ``shaft_inertia`` before it, kg m²; ``speed`` at the joint's velocity limit, rad/s; ``torque``, ``current`` and
        ``voltage`` that hold the arm's weight in the worst of the poses, N m, A, V; the ``torque_constant``, N m/A; and
        the limits of speed, torque, current and voltage. None for infinite or unknown numbers.
    """
    side = MotorSide.of(robot)
    joints = [robot.independent_joints[i] for i in side.motor_joint]
    motor = stacked([joint.actuator.motor for joint in joints])
    inertia, ratio = (np.array(x)[side.motor_joint] for x in (side.rotor_inertia, side.gear_ratio))
    limited = [np.isfinite(x).any() for x in (motor.speed_limit, motor.torque_limit, motor.torque_constant)]
    if not (inertia.any() or (ratio != 1).any() or any(limited)):
        return []
    held = dict(zip(SHAFT, _at_rest(side, poses, _gravity(robot, poses)), strict=True))
    columns = {
        "gear_ratio": ratio,
        "rotor_inertia": inertia,
        "shaft_inertia": inertia / ratio**2,
        "speed": np.abs(ratio) * [joint.limits.velocity for joint in joints],
        **{name: np.abs(held[name]).max(axis=0) for name in ("torque", "current", "voltage")},
        **{name: getattr(motor, name) for name in _DATA_SHEET},
    }
    values = np.stack([np.broadcast_to(x, ratio.shape) for x in columns.values()], axis=1)
    rows = zip(side.motor_names, for_json(values), strict=True)
    return [{"motor": name, **dict(zip(columns, row, strict=True))} for name, row in rows]


def _at_rest(side: MotorSide, q: Array, tau: Array) -> tuple[Array, ...]:
    """Quantities of SHAFT of the motors (N, m) that hold joint efforts (N, n) at rest in poses (N, n)."""
    functions = MotorFunctions(side, "numpy")
    inputs: dict[str, Any] = {
        "q": q,
        "tau": tau,
        "k": side.nominal_stiffness,
        DEFLECTION: SETTLED,
        FRICTION_STATE: SETTLED,
    }
    sizes = functions.program("motors").inputs.items()
    motors = functions("motors", *(np.broadcast_to(inputs.get(name, 0.0), (len(q), size)) for name, size in sizes))
    return functions("drive", motors[1], motors[3])


def warnings(robot: Robot, elastic: list[dict[str, Any]], motors: list[dict[str, Any]]) -> list[str]:
    """Warnings about parameters that look as if in another unit or contradict each other, one sentence each."""
    stiffness, joints = MotorSide.of(robot).rest_stiffness.tolist(), robot.independent_joints
    links = _link_inertias(robot).tolist()
    limits = [line for joint in joints for line in _limits(joint)]
    # With weight and inertia in another unit, springs and rotors cannot be judged.
    if size := list(_size(robot)):
        return [*size, *limits]
    rate = 1 / (robot.command_period or USUAL_PERIOD)
    lines = [line for joint, inertia in zip(joints, links, strict=True) for line in _rotor(joint, inertia)]
    light = [x.name for x, K in zip(joints, stiffness, strict=True) if np.isfinite(K) and not x.rotor_inertia]
    lines += [f"{name}: rotor_inertia is 0, so the motor behind the spring has no inertia: set it" for name in light]
    for row in elastic:
        i = robot.joint_names.index(row["joint"])
        lines += _spring(row, joints[i], stiffness[i], rate)
    return [*limits, *lines, *(line for row in motors for line in _held(row))]


def _size(robot: Robot) -> Iterator[str]:
    lengths: list[float] = []
    for joint in robot.joints:
        before = lengths[joint.parent] if joint.parent >= 0 else 0.0
        lengths.append(before + float(np.linalg.norm(joint.reference_pose[:3, 3])))
    beyond = [float(np.linalg.norm(joint.center_of_mass)) for joint in robot.joints]
    size = float(np.max(np.add(lengths, beyond)))
    mass = sum(joint.mass for joint in robot.joints)
    if size > _LONGEST:
        yield f"lengths add up to {size:.4g} m; if they are in mm, to {size / 1000:.4g} m"
    elif mass > max(_HEAVIEST, _DENSEST * size**3):
        yield f"mass is {mass:.4g} kg at a length of {size:.3g} m; if masses are in g, it is {mass / 1000:.4g} kg"


def _limits(joint: Joint) -> Iterator[str]:
    limits = joint.limits
    largest = {"lower": _LARGEST_ANGLE, "upper": _LARGEST_ANGLE, "velocity": _LARGEST_VELOCITY}
    values = {name: x for name, most in largest.items() if most < abs(x := getattr(limits, name)) < _NO_LIMIT}
    speed = float(np.min(joint.actuator.motor.speed_limit)) / abs(joint.gear_ratio)
    if joint.type != "prismatic" and values:
        listed = ", ".join(f"{name} {x:g} rad{'/s' if name == 'velocity' else ''}" for name, x in values.items())
        radians = ", ".join(f"{np.deg2rad(x):.4g}" for x in values.values())
        yield f"{joint.name}: limits are {listed}; if in degrees: {radians}"
    elif speed < limits.velocity < np.inf:
        yield (
            f"{joint.name}: the motor's speed limit is {speed:.4g} behind the gear, below the joint's velocity "
            f"limit {limits.velocity:g}"
        )


def _rotor(joint: Joint, links: float) -> Iterator[str]:
    inertia, square = joint.rotor_inertia, joint.gear_ratio**2
    light = inertia < _LIGHT * links or (joint.type != "prismatic" and inertia < _LIGHTEST_SHAFT * square)
    if inertia and abs(joint.gear_ratio) >= _GEARED and light and inertia * square >= _USUAL * links:
        yield (
            f"{joint.name}: rotor inertia {inertia:g} is tiny beside the links' {links:.3g}; behind the gear of "
            f"{joint.gear_ratio:g} it must have the square of the ratio: {inertia * square:.4g}"
        )


def _spring(row: dict[str, Any], joint: Joint, K: float, rate: float) -> Iterator[str]:
    for effort, what in ((row["sag"] * K, "the arm's own weight"), (joint.limits.effort, "the effort limit")):
        if joint.type != "prismatic" and _LARGEST_DEFLECTION < effort / K < np.inf:
            yield (
                f"{joint.name}: {what} deflects the spring by {effort / K:.3g} rad; stiffness {K:g} may be per "
                f"degree: in N m/rad that is {K * 180 / np.pi:.4g}"
            )
            break
    if row["motor_frequency"] > rate:
        yield (
            f"{joint.name}: the motor swings against the link at {row['motor_frequency']:.4g} Hz, above the "
            f"{rate:g} commands a second; check stiffness and rotor inertia"
        )


def _held(row: dict[str, Any]) -> Iterator[str]:
    over = [
        f"{name} {row[name]:.3g} {unit} (limit {row[f'{name}_limit']:.3g})"
        for name, unit in (("torque", "N m"), ("current", "A"), ("voltage", "V"))
        if None not in (row[name], row[f"{name}_limit"]) and row[name] > row[f"{name}_limit"]
    ]
    if over:
        taken, ratio = ", ".join(over), f"{row['gear_ratio']:g}"
        yield f"{row['motor']}: holding the arm's weight takes {taken}; check gear_ratio {ratio}, masses and limits"


def poses(robot: Robot) -> Array:
    """Zero, and poses within the limits, up to half a turn or a metre from zero."""
    return np.concatenate([np.zeros((1, robot.n)), poses_within_limits(robot, _POSES)])

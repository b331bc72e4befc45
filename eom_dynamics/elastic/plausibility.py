# SPDX-License-Identifier: Apache-2.0
"""Resonances and static deflection of elastic joints, motor loads, and implausible parameters of a robot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..actuators.actuator import stacked
from ..arrays import Array
from ..jet import Jet
from ..recursion import inverse_dynamics, link_tree
from ..recursion.composite import composite_inertias
from ..robot import Joint, Robot
from ..robot.mass_matrix import joints_without_inertia, smallest_eigenvalue
from ..robot.task_space import poses_within_limits
from .motor_functions import MotorFunctions
from .motor_programs import DEFLECTION, FRICTION_STATE, SETTLED, SHAFT
from .motor_side import MotorSide

_POSES = 200  # poses at which gravity is evaluated, besides zero
_MATRICES = 4  # and of these, poses at which the mass matrix is

# Deflection by the arm's own weight or the joint's effort limit, rad, beyond which a stiffness may be per degree.
_LARGEST_DEFLECTION = 0.3

# Ratio of a gear behind which a rotor may lack the square of the ratio: if it is below this share of the links, or its
# shaft below this, kg m², and the square brings it to more than this share.
_GEARED, _LIGHT, _LIGHTEST_SHAFT, _USUAL = 10.0, 1e-3, 1e-8, 1e-2

# Range of a joint, rad, and velocity, rad/s, that may be degrees; files say the last for "without a limit".
_LARGEST_ANGLE, _LARGEST_VELOCITY, _NO_LIMIT = 20.0, 60.0, 1000.0
_SLOWEST = 0.6  # share of the velocity limit of a joint that its motor reaches at least

# Length, m, mass, kg, and mass over length cubed, kg/m³, of an arm in mm or g.
_LONGEST, _HEAVIEST, _DENSEST = 50.0, 200.0, 500.0

# Share of effort limits that holds the arm in its worst pose. Of 136 public models the largest is 5.4, of a humanoid on
# a fixed base. An arm with masses in t has less than the smaller share and density, kg/m³. Public models have one of
# both: a limit of 1000 N m for a few hundred grams, or long booms.
_LARGEST_SHARE, _SMALLEST_SHARE, _LIGHTEST = 10.0, 2e-3, 0.3
_GRAVITY = 9.81  # m/s², in any direction, since arms may turn about vertical axes or be in space

# Eigenvalue of the mass matrix, scaled to a diagonal of one, of which the sign is not due to rounding.
_INDEFINITE = -1e-9

USED = ("speed", "torque", "current", "voltage")
"""Quantities of motors that have limits."""

_LONGEST_PERIOD = 0.1  # between commands, s
_USUAL_RATE = 1000.0  # of commands, Hz, where the robot's file names no period


class ElasticJoint(NamedTuple):
    """Joint with a spring and a motor of its own: stiffness, resonances, Hz, weight, N m or N, and sag, rad or m.

    Frequencies are those of the links on the spring with the motor at rest, and of the motor against the links, each
    joint alone, at q = 0 and unloaded. The weight is the largest one within the position limits, and the sag is the
    deflection under it.
    """

    joint: Joint
    stiffness: float
    link_frequency: float
    motor_frequency: float
    weight: float
    sag: float


def elastic_joints(robot: Robot) -> list[ElasticJoint]:
    """Resonances and sag of each elastic joint with a motor of its own."""
    side = MotorSide.of(robot)
    # Of a pair, both motors turn against the link.
    rotors = np.where(side.paired, 2.0, 1.0) * side.rotor_inertia
    elastic = np.flatnonzero(np.isfinite(side.rest_stiffness) & (rotors > 0))
    weight = np.abs(_gravity(robot, _poses(robot))).max(axis=0)
    delta, _ = side.deflections([Jet([x, 0.0, 0.0]) for x in weight])  # at rest
    sag = np.bincount(side.motor_joint, [float(x[0]) for x in delta]) / np.bincount(side.motor_joint)  # mean of a pair
    rows = side.rest_stiffness, rotors, _link_inertias(robot), weight, np.abs(sag)
    K, B, links, weight, sag = (x[elastic] for x in rows)
    columns = (K, np.sqrt(K / links) / (2 * np.pi), np.sqrt(K / links + K / B) / (2 * np.pi), weight, sag)
    joints = [robot.independent_joints[i] for i in elastic]
    return [ElasticJoint(*row) for row in zip(joints, *(x.tolist() for x in columns), strict=True)]


# By recursions on numbers, since to compile the kernels of a long chain for one look takes a minute.
def _link_inertias(robot: Robot) -> Array:
    """Diagonal of the mass matrix at q = 0 (n,)."""
    return np.array(composite_inertias(link_tree(robot), [0.0] * robot.n))


def _gravity(robot: Robot, poses: Array) -> Array:
    """Joint efforts at rest in poses (N, n), of the same shape."""
    rest = [0.0] * robot.n
    (efforts,) = inverse_dynamics(link_tree(robot), [[*poses.T], rest, rest])
    return np.stack([np.broadcast_to(effort, len(poses)) for effort in efforts], axis=1)


def motors_at_rest(robot: Robot) -> dict[str, dict[str, float]]:
    """Numbers of each motor by name; empty if the robot's description has no motors.

    Gear ratio; rotor inertia on the link side of the gear, kg m² or kg; torque constant, N m/A; largest speed at the
    velocity limits of its joints, rad/s; torque, N m, current, A, and voltage, V, that hold the arm's weight in the
    worst pose; and the motor's limits of these four. Infinite or NaN if unknown.
    """
    side, q = MotorSide.of(robot), _poses(robot)
    joints = [robot.independent_joints[i] for i in side.motor_joint]
    motor = stacked([joint.actuator.motor for joint in joints])
    inertia, ratio = (np.array(x)[side.motor_joint] for x in (side.rotor_inertia, side.gear_ratio))
    known = np.isfinite([motor.speed_limit, motor.torque_limit, motor.torque_constant]).any()
    if not (inertia.any() or (ratio != 1).any() or known):
        return {}
    held = dict(zip(SHAFT, _at_rest(side, q, _gravity(robot, q)), strict=True))
    columns = {
        "gear_ratio": ratio,
        "rotor_inertia": inertia,
        "torque_constant": motor.torque_constant,
        "speed": np.abs(ratio) * _speeds(robot)[side.motor_joint],
        **{name: np.abs(held[name]).max(axis=0) for name in ("torque", "current", "voltage")},
        **{f"{name}_limit": getattr(motor, f"{name}_limit") for name in USED},
    }
    rows = zip(*(np.broadcast_to(x, ratio.shape).tolist() for x in columns.values()), strict=True)
    return {name: dict(zip(columns, row, strict=True)) for name, row in zip(side.motor_names, rows, strict=True)}


def _speeds(robot: Robot) -> Array:
    """Largest speeds (n,) of motors behind their gears at the velocity limits of the joints that each one moves."""
    limits = np.array([joint.limits.velocity for joint in robot.independent_joints])
    if robot.transmission is not None:
        joints, transmission = robot.transmission
        moved = transmission.inverse != 0
        shares = np.abs(transmission.inverse) * np.where(moved, limits[[*joints]], 0.0)
        limits[[*joints]] = np.where(moved, shares, 0.0).sum(axis=1)
    return limits


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


def implausible(
    robot: Robot, elastic: Sequence[ElasticJoint] | None = None, motors: Mapping[str, dict[str, float]] | None = None
) -> list[str]:
    """Warnings about parameters that look as if in another unit or contradict each other, one sentence each.

    Elastic joints and motors are those of :func:`elastic_joints` and :func:`motors_at_rest`, where the caller has them.
    """
    elastic = elastic_joints(robot) if elastic is None else elastic
    motors = motors_at_rest(robot) if motors is None else motors
    stiffness, joints = MotorSide.of(robot).rest_stiffness.tolist(), robot.independent_joints
    limits = [line for joint in joints for line in _limits(joint)]
    # With weight, inertia or parallel springs in another unit, springs and rotors cannot be judged.
    if size := list(_size(robot) or _definiteness(robot) or _angles(robot) or _effort(robot)):
        return [*size, *limits]
    period = robot.command_period
    if period > _LONGEST_PERIOD:
        limits.append(f"command_period is {period:g} s between commands; if in ms, it is {period / 1000:g} s")
    rate = 1 / period if 0 < period <= _LONGEST_PERIOD else _USUAL_RATE
    links = _link_inertias(robot).tolist()
    # Axes of one place, as of a universal joint, have links without mass between them.
    singular = joints_without_inertia(robot)  # of which loading warns
    between = {joint.parent for joint in robot.joints if not np.any(joint.reference_pose[:3, 3])}
    lines = [
        f"{joint.name}: its link has neither mass nor inertia; give it an <inertial>, or mass and inertia"
        for i, joint in enumerate(robot.joints)
        if i not in between and not (joint.mass or np.any(joint.inertial.about_origin)) and joint.name not in singular
    ]
    lines += [line for joint, inertia in zip(joints, links, strict=True) for line in _rotor(joint, inertia)]
    light = [x.name for x, K in zip(joints, stiffness, strict=True) if np.isfinite(K) and not x.rotor_inertia]
    lines += [f"{name}: rotor_inertia is 0, so the motor behind the spring has no inertia: set it" for name in light]
    lines += [line for x in elastic for line in _spring(x, rate)]
    return [*limits, *lines, *(line for name, motor in motors.items() for line in _held(name, motor))]


def _size(robot: Robot) -> list[str]:
    lengths: list[float] = []
    for joint in robot.joints:
        before = lengths[joint.parent] if joint.parent >= 0 else 0.0
        lengths.append(before + float(np.linalg.norm(joint.reference_pose[:3, 3])))
    beyond = [float(np.linalg.norm(joint.center_of_mass)) for joint in robot.joints]
    size = float(np.max(np.add(lengths, beyond)))
    mass = sum(joint.mass for joint in robot.joints)
    if size > _LONGEST:
        return [f"lengths add up to {size:.4g} m; if they are in mm, to {size / 1000:.4g} m"]
    if mass > max(_HEAVIEST, _DENSEST * size**3):
        return [f"mass is {mass:.4g} kg at a length of {size:.3g} m; if masses are in g, it is {mass / 1000:.4g} kg"]
    if 0 < mass < _LIGHTEST * size**3 and (share := _largest_share(robot)) < _SMALLEST_SHARE:
        return [
            f"mass is {mass:.4g} kg at a length of {size:.3g} m, its weight needs at most {100 * share:.2g} % of an "
            f"effort limit; if masses are in t, it is {mass * 1000:.4g} kg"
        ]
    return []


def _largest_share(robot: Robot) -> float:
    """Largest share of an effort limit by weight, in any pose and direction of gravity; infinite without limits."""
    poses, limits = _poses(robot), _effort_limits(robot)
    springs = _gravity(replace(robot, gravity=np.zeros(3)), poses)
    weights = [_gravity(replace(robot, gravity=_GRAVITY * axis), poses) - springs for axis in np.eye(3)]
    shares = (np.abs(weights) / limits).max(axis=(0, 1))
    return float(np.max(shares[np.isfinite(limits)], initial=0.0)) or np.inf


def _effort_limits(robot: Robot) -> Array:
    """Effort limits of the joints (n,); of zero, as files have it for unknown ones, infinite."""
    return np.array([joint.limits.effort or np.inf for joint in robot.independent_joints])


def _definiteness(robot: Robot) -> list[str]:
    for q in _poses(robot)[: _MATRICES + 1]:
        if (smallest := smallest_eigenvalue(robot, q)) < _INDEFINITE:
            pose = " ".join(f"{x:.3g}" for x in q)
            return [
                f"mass matrix is not positive definite at [{pose}]: smallest eigenvalue {smallest:.3g}, scaled to a "
                "diagonal of 1; correct masses and inertias"
            ]
    return []


def _angles(robot: Robot) -> list[str]:
    """Angles of parallel springs that may be degrees."""
    return [
        f"{joint.name}: parallel_spring has {name} {angle:g} rad; if in degrees: {np.deg2rad(angle):.4g}"
        for joint in robot.joints
        if (spring := joint.parallel_spring) is not None and joint.type != "prismatic"
        for name, angle in (
            ("rest_position", spring.rest_position),
            ("aligned_position", spring.anchors.aligned_position if spring.anchors else 0.0),
        )
        if abs(angle) > _LARGEST_ANGLE
    ]


def _effort(robot: Robot) -> list[str]:
    """Efforts that hold the arm, far beyond effort limits."""
    limits, largest = _effort_limits(robot), np.abs(_gravity(robot, _poses(robot))).max(axis=0)
    return [
        f"{joint.name}: holding the arm needs {effort:.3g} {unit}, limit {limit:g} {unit}, {effort / limit:.3g} times "
        "this; check masses, kg, centers of mass and the effort limit"
        for joint, effort, limit in zip(robot.independent_joints, largest.tolist(), limits.tolist(), strict=True)
        for unit in ["N" if joint.type == "prismatic" else "N m"]
        if effort > _LARGEST_SHARE * limit
    ]


def _limits(joint: Joint) -> Iterator[str]:
    limits = joint.limits
    largest = {"lower": _LARGEST_ANGLE, "upper": _LARGEST_ANGLE, "velocity": _LARGEST_VELOCITY}
    values = {name: x for name, most in largest.items() if most < abs(x := getattr(limits, name)) < _NO_LIMIT}
    speed = float(np.min(joint.actuator.motor.speed_limit)) / abs(joint.gear_ratio)
    if joint.type != "prismatic" and values:
        listed = ", ".join(f"{name} {x:g} rad{'/s' if name == 'velocity' else ''}" for name, x in values.items())
        radians = ", ".join(f"{np.deg2rad(x):.4g}" for x in values.values())
        yield f"{joint.name}: limits are {listed}; if in degrees: {radians}"
    elif speed < _SLOWEST * limits.velocity < np.inf:
        yield (
            f"{joint.name}: the motor's speed limit is {speed:.4g} behind the gear, below the joint's velocity "
            f"limit {limits.velocity:g}"
        )


def _rotor(joint: Joint, links: float) -> Iterator[str]:
    if abs(joint.gear_ratio) < 1:
        yield (
            f"{joint.name}: gear_ratio {joint.gear_ratio:g} is below 1, the motor turns slower than the joint; "
            f"of a gear that reduces its speed it is {1 / abs(joint.gear_ratio):g}"
        )
    inertia, square = joint.rotor_inertia, joint.gear_ratio**2
    light = inertia < _LIGHT * links or (joint.type != "prismatic" and inertia < _LIGHTEST_SHAFT * square)
    if inertia and abs(joint.gear_ratio) >= _GEARED and light and inertia * square >= _USUAL * links:
        yield (
            f"{joint.name}: rotor inertia {inertia:g} is tiny compared with the links' {links:.3g}; behind the gear of "
            f"{joint.gear_ratio:g} it must have the square of the ratio: {inertia * square:.4g}"
        )


def _spring(x: ElasticJoint, rate: float) -> Iterator[str]:
    joint, K = x.joint, x.stiffness
    for effort, what in ((x.weight, "the arm's own weight"), (joint.limits.effort, "the effort limit")):
        if joint.type != "prismatic" and _LARGEST_DEFLECTION < effort / K < np.inf:
            yield (
                f"{joint.name}: {what} deflects the spring by {effort / K:.3g} rad; stiffness {K:g} may be per "
                f"degree: in N m/rad that is {K * 180 / np.pi:.4g}"
            )
            break
    if x.motor_frequency > rate:
        yield (
            f"{joint.name}: the motor swings against the link at {x.motor_frequency:.4g} Hz, above the "
            f"{rate:g} commands a second; check stiffness and rotor inertia"
        )


def _held(name: str, motor: Mapping[str, float]) -> Iterator[str]:
    over = [
        f"{used} {motor[used]:.3g} {unit} (limit {motor[f'{used}_limit']:.3g})"
        for used, unit in (("torque", "N m"), ("current", "A"), ("voltage", "V"))
        if np.inf > motor[used] > motor[f"{used}_limit"]
    ]
    if over:
        taken, ratio = ", ".join(over), f"{motor['gear_ratio']:g}"
        yield f"{name}: holding the arm's weight takes {taken}; check gear_ratio {ratio}, masses and limits"


def _poses(robot: Robot) -> Array:
    """Zero, and poses within the limits, up to half a turn or a meter from zero."""
    return np.concatenate([np.zeros((1, robot.n)), poses_within_limits(robot, _POSES)])


def objections(robot: Robot) -> list[str]:
    """Implausible parameters, unless the robot's file accepts them."""
    return implausible(robot) if robot.implausible == "refuse" else []

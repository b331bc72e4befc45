# SPDX-License-Identifier: Apache-2.0
"""Parameters of a robot's file as a vector, and identified ones written into a robot.

The vector x (P,) of all parameters has base parameters beta, then those of the terms, joint by joint:
x = (beta; x_1 … x_k),    beta = K pi,    each x_i (n,)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..actuators.actuator import LOSSLESS
from ..actuators.friction import Friction
from ..arrays import Array
from ..recursion import PARAMETERS
from ..robot import Joint, Robot
from ..robot.inertia import symmetric
from .filtering import Filter
from .joint_terms import TERMS, coupled
from .options import Options
from .parallel_springs import SCALE, constant_part, effort, with_values
from .parallel_springs import values as spring_values
from .regressor import Regressor, transmission_matrix

# Terms whose parameters a robot cannot have negative.
_NOT_NEGATIVE = ("viscous", "coulomb", "stribeck", "load", "rotor_inertia", SCALE)

_WITHOUT_PLACE = ("asymmetric", "load")

_Number = TypeVar("_Number", bound=np.generic)


def parameter_vector(regressor: Regressor, inertial: Array, terms: Mapping[str, Array]) -> Array:
    """Parameter vector x (P,) from inertial parameters pi (10 B,) and terms, (n,) by name."""
    return np.concatenate([regressor.base(inertial), *(terms[name] for name in regressor.terms)])


def vector_of_file(regressor: Regressor, side: str | None) -> Array:
    """Parameter vector x (P,) of the robot's file, with joint or motor friction by ``side``."""
    terms = _terms_of_file(regressor.robot, motor_side=side == "motor")
    if regressor.transmission is not None:
        terms["offset"] = regressor.transmission.T @ terms["offset"]
    return parameter_vector(regressor, regressor.dynamics.inertial_parameters, terms)


def terms_in_effect(regressor: Regressor, file: Array, side: str | None) -> Array:
    """Terms (k n,) of the file's x (P,), without joint friction if the robot's efforts exclude it."""
    terms = by_term(regressor, file[regressor.inertial :].copy())
    if side == "joint" and not regressor.robot.joint_friction:
        for name in ("viscous", "coulomb", "stribeck"):
            if name in terms:
                terms[name][:] = 0.0
    return np.concatenate([*terms.values(), np.zeros(0)])


def _terms_of_file(robot: Robot, *, motor_side: bool) -> dict[str, Array]:
    """Parameters (n,) of all terms as the file has them, zero where it cannot have them."""
    joints = robot.independent_joints
    laws = [joint.actuator.friction if motor_side else joint.friction_law for joint in joints]
    values: dict[str, Array] = {name: np.zeros(robot.n) for name in TERMS}
    values["viscous"] = np.array([float(law.viscous) for law in laws])
    values["coulomb"] = np.array([float(law.coulomb) for law in laws])
    values["stribeck"] = np.array([float(law.static) - float(law.coulomb) for law in laws])
    for k, joint in enumerate(joints):
        for name, value in spring_values(joint.parallel_spring).items():
            values[name][k] = value
        values["offset"][k] = joint.constant_effort + constant_part(joint.parallel_spring)
    if motor_side:
        values["rotor_inertia"] = np.asarray(robot.rotor_inertia)
    return values


def by_term(regressor: Regressor, values: NDArray[_Number]) -> dict[str, NDArray[_Number]]:
    """Parameters (k n,) of all terms, split into (n,) by name."""
    return dict(zip(regressor.terms, values.reshape(-1, regressor.robot.n), strict=True))


def lower_bounds(regressor: Regressor) -> Array:
    """Lower bounds (k n,) of the parameters of the terms."""
    n = regressor.robot.n
    bounds = [np.full(n, 0.0 if name in _NOT_NEGATIVE else -np.inf) for name in regressor.terms]
    return np.concatenate(bounds) if bounds else np.zeros(0)


def terms_not_in_file(options: Options) -> tuple[str, ...]:
    """Terms that a robot file cannot hold."""
    return _WITHOUT_PLACE if options.offset == "arm" else (*_WITHOUT_PLACE, "offset")


def with_parameters(
    robot: Robot,
    options: Options,
    using: Filter,
    parameters: Array,
    terms: Mapping[str, Array],
    kept: Collection[str] = (),
) -> Robot:
    """The robot with inertial parameters (10 B,), and terms (n,) by name.

    Friction on the joint side becomes ``damping`` and ``friction`` of the joints, and part of their efforts by
    ``joint_friction``. On the motor side it becomes the friction of the actuators, which the feedforward adds to motor
    efforts, and includes gear losses.

    Args:
        robot: as its file describes it.
        options: what was identified.
        using: filter, with the velocities of dry friction.
        parameters, terms: what was found.
        kept: joints that stay as they are.
    """
    joints = list(robot.joints)
    T = transmission_matrix(robot) if options.side == "motor" else None
    if T is not None and "offset" in terms:  # of the motors, T' times those of the joints
        terms = {**terms, "offset": np.linalg.solve(T.T, terms["offset"])}
    if options.inertia:
        table = parameters.reshape(-1, PARAMETERS)
        joints = [_with_inertia(joint, pi) for joint, pi in zip(joints, table, strict=True)]
    rubbing = options.side == "joint" and any(name in terms for name in ("viscous", "coulomb"))
    for k, i in enumerate(robot.independent):
        if joints[i].name in kept:
            joints[i] = robot.joints[i]
            if rubbing and not robot.joint_friction:  # friction that had no effect
                joints[i] = replace(joints[i], damping=0.0, friction=0.0)
            continue
        own = {name: float(x[k]) for name, x in terms.items()}
        velocities = float(using.smoothing_velocity[k]), float(using.stribeck_velocity[k])
        joints[i] = _with_terms(joints[i], own, velocities, joint_side=options.side == "joint")
        joints[i] = _with_passive_efforts(
            joints[i], {k: x for k, x in own.items() if k not in terms_not_in_file(options)}
        )
    return replace(robot, joints=tuple(joints), joint_friction=rubbing or robot.joint_friction)


def _with_inertia(joint: Joint, pi: Array) -> Joint:
    mass = float(pi[0])
    if not mass:
        return joint
    return replace(joint, mass=mass, center_of_mass=pi[1:4] / mass, inertia_about_origin=symmetric(*pi[4:]))


def _with_terms(
    joint: Joint, terms: Mapping[str, float], velocities: tuple[float, float], *, joint_side: bool
) -> Joint:
    if "rotor_inertia" in terms:
        joint = replace(joint, rotor_inertia=terms["rotor_inertia"])
    own = {name: terms[name] for name in ("viscous", "coulomb", "stribeck") if name in terms}
    if not own:
        return joint
    if joint_side:
        # What was not identified stays as in the file.
        return replace(joint, damping=own.get("viscous", joint.damping), friction=own.get("coulomb", joint.friction))
    old = joint.actuator.friction
    coulomb = own.get("coulomb", float(old.coulomb))
    extra = own.get("stribeck", max(0.0, float(old.static) - float(old.coulomb)))
    law = Friction(
        viscous=own.get("viscous", float(old.viscous)),
        coulomb=coulomb,
        static=coulomb + extra,
        stribeck_velocity=velocities[1],
        smoothing_velocity=velocities[0],
    )
    return replace(joint, actuator=replace(joint.actuator, friction=law, gear=LOSSLESS))


def _with_passive_efforts(joint: Joint, terms: Mapping[str, float]) -> Joint:
    """The joint with offset and spring as a constant effort and a spring with the rest position of the file."""
    spring = with_values(joint.parallel_spring, terms)
    offset = terms.get("offset", joint.constant_effort + constant_part(joint.parallel_spring))
    return replace(joint, parallel_spring=spring, constant_effort=offset - constant_part(spring))


def known_efforts(regressor: Regressor, q: Array) -> Array:
    """Efforts (N, n) at positions (N, n) of the file's constant loads and parallel springs that are not identified."""
    robot, terms, T = regressor.robot, regressor.terms, regressor.transmission
    E, e = robot.coupling
    among = np.zeros(robot.n, dtype=bool) if T is None else coupled(T)
    result = np.zeros_like(q)
    for joint, row, shift in zip(robot.joints, E, e, strict=True):
        own, spring, x = joint.mimic is None, joint.parallel_spring, q @ row + shift
        held = np.zeros_like(x)
        if spring is not None and (not own or np.any(row[among]) or not set(spring_values(spring)) <= set(terms)):
            held += effort(spring, x) - constant_part(spring)
        if not (own and "offset" in terms):
            held += joint.constant_effort + constant_part(spring)
        result += held[:, np.newaxis] * row
    return regressor.at_motors(result)

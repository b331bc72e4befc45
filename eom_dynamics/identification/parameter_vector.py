# SPDX-License-Identifier: Apache-2.0
"""The vector x (P,) of all parameters: base parameters beta, then those of the terms, joint by joint.

x = (beta; x_1 … x_k),    beta = K pi,    each x_i (n,)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..arrays import Array
from ..robot import Robot
from .joint_terms import TERMS
from .parallel_springs import SCALE, constant_part
from .parallel_springs import values as spring_values
from .regressor import Regressor

# Terms whose parameters a robot cannot have negative.
_NOT_NEGATIVE = ("viscous", "coulomb", "stribeck", "load", "rotor_inertia", SCALE)


def parameter_vector(regressor: Regressor, inertial: Array, terms: Mapping[str, Array]) -> Array:
    """Parameter vector x (P,) from inertial parameters pi (10 B,) and terms, (n,) by name."""
    columns = inertial if regressor.full else regressor.base(inertial)
    return np.concatenate([columns, *(terms[name] for name in regressor.terms)])


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


def by_term(regressor: Regressor, values: Array) -> dict[str, Array]:
    """Parameters (k n,) of all terms, split into (n,) by name."""
    return dict(zip(regressor.terms, values.reshape(-1, regressor.robot.n), strict=True))


def lower_bounds(regressor: Regressor) -> Array:
    """Lower bounds (k n,) of the parameters of the terms."""
    n = regressor.robot.n
    bounds = [np.full(n, 0.0 if name in _NOT_NEGATIVE else -np.inf) for name in regressor.terms]
    return np.concatenate(bounds) if bounds else np.zeros(0)

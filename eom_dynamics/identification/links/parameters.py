# SPDX-License-Identifier: Apache-2.0
"""Options of an identification, the parameter vector of a robot's file, and identified parameters in a robot.

The vector x (P,) of all parameters has base parameters beta, then the parameters of the terms, joint by joint:
x = (beta; x_1 … x_k),    beta = K pi,    each x_i (n,)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...actuators.actuator import LOSSLESS
from ...actuators.friction import Friction
from ...arguments import check_options, option
from ...arrays import Array
from ...recursion import PARAMETERS
from ...robot import Joint, Robot
from ...robot.inertia import symmetric
from ..recording import IdentificationError, Recording
from .regressor import (
    LINE,
    SCALE,
    TERMS,
    Regressor,
    constant_part,
    coupled,
    spring_effort,
    spring_terms,
    spring_values,
    transmission_matrix,
    with_spring_values,
)

if TYPE_CHECKING:
    from .filtering import Filter

_COMMON_TERMS = ("viscous", "coulomb", "offset")

# The term of other parallel springs follows from the robot's file.
_ELECTIVE_TERMS = tuple(name for name in TERMS if name != SCALE)

# Terms without negative parameters.
_NOT_NEGATIVE = ("viscous", "coulomb", "rotor_inertia", SCALE)

_FRICTION = ("viscous", "coulomb")

_NAMED = 6  # base parameters that a note names


@dataclass(frozen=True)
class Options:
    """Identification of links.

    Attributes:
        side: side of measured efforts: at the joints, behind the gears, or at the motors, in units of the joints;
            default: joint if the robot's joints have springs, else motor.
        terms: terms besides inertias, or none; default: viscous, coulomb and offset, rotor_inertia on the motor side,
            and parallel springs of the file; only offset if springs and motors are identified.
        prior_weight: weight of the distance from the file: 1 if its inertias are known to a factor of e; default:
            chosen by held-out blocks of the training data.
        cutoff: cut-off frequency of the filter, Hz; default: chosen in the same way.
        offset: whether offsets are constant efforts of the arm, such as a counterbalance, written to its file, or
            sensor biases; one recording cannot distinguish them.
        suspect: treatment of a recording that contradicts the robot's file in signs, units, joint order or time. keep:
            the exit code is 1, and the parameters of the file are kept; if efforts alias, no file is written. use: the
            recording is used.
        payload: identify only a payload on the body of this joint, and offsets; all else as in the file.
    """

    side: str | None = option(choices=("joint", "motor"))
    terms: tuple[str, ...] | None = option(choices=_ELECTIVE_TERMS, metavar="NAME,…")
    prior_weight: float | None = None
    cutoff: float | None = option(rule="positive", metavar="HZ")
    offset: str = option("arm", choices=("arm", "sensor"))
    suspect: str = option("keep", choices=("keep", "use"))
    payload: str | None = option(metavar="JOINT")

    def __post_init__(self) -> None:
        """Check names and numbers; raises IdentificationError."""
        check_options(self, IdentificationError, terms=tuple(TERMS))

    def for_robot(self, robot: Robot) -> Options:
        """These options, completed by defaults that depend on the robot."""
        side = self.side or ("joint" if any(not j.spring.is_rigid for j in robot.independent_joints) else "motor")
        default = (*_COMMON_TERMS, "rotor_inertia") if side == "motor" else _COMMON_TERMS
        terms = (*default, *spring_terms(robot)) if self.terms is None else self.terms
        if LINE in terms:
            terms = tuple(dict.fromkeys((*terms, *spring_terms(robot))))
        return replace(self, side=side, terms=terms)


_Number = TypeVar("_Number", bound=np.generic)


def parameter_vector(regressor: Regressor, inertial: Array, terms: Mapping[str, Array]) -> Array:
    """Parameter vector x (P,) from inertial parameters pi (10 B,) and terms, (n,) by name."""
    return np.concatenate([regressor.base(inertial), *(terms[name] for name in regressor.terms)])


def vector_of_file(regressor: Regressor, side: str | None) -> Array:
    """Parameter vector x (P,) of the robot's file, with joint or motor friction by ``side``.

    Motors feel joint friction that is part of the efforts. Terms are zero if a file does not support them.
    """
    joints, on_motors = regressor.robot.independent_joints, side == "motor"
    on_joints = not on_motors or (regressor.robot.joint_friction and regressor.transmission is None)
    terms: dict[str, Array] = {name: np.zeros(len(joints)) for name in TERMS}
    for name in _FRICTION:
        laws = [[getattr(law, name) for law in (joint.actuator.friction, joint.friction_law)] for joint in joints]
        terms[name] = np.array(laws, dtype=float) @ [on_motors, on_joints]
    for k, joint in enumerate(joints):
        for name, value in spring_values(joint.parallel_spring).items():
            terms[name][k] = value
        terms["offset"][k] = joint.constant_effort + constant_part(joint.parallel_spring)
    if on_motors:
        terms["rotor_inertia"] = np.asarray(regressor.robot.rotor_inertia)
    if regressor.transmission is not None:
        terms["offset"] = regressor.transmission.T @ terms["offset"]
    return parameter_vector(regressor, regressor.dynamics.inertial_parameters, terms)


def terms_in_effect(regressor: Regressor, file: Array, side: str | None) -> Array:
    """Terms (k n,) of the file's x (P,), without joint friction if the robot's efforts exclude it."""
    rubbing = side != "joint" or regressor.robot.joint_friction
    effective = [rubbing or name not in _FRICTION for name in regressor.terms]
    return np.where(np.repeat(effective, regressor.robot.n), file[regressor.inertial :], 0.0)


def by_term(regressor: Regressor, values: NDArray[_Number]) -> dict[str, NDArray[_Number]]:
    """Parameters (k n,) of all terms, split into (n,) by name."""
    return dict(zip(regressor.terms, values.reshape(-1, regressor.robot.n), strict=True))


def lower_bounds(regressor: Regressor) -> Array:
    """Lower bounds (k n,) of the parameters of the terms."""
    return np.repeat([0.0 if name in _NOT_NEGATIVE else -np.inf for name in regressor.terms], regressor.robot.n)


def sensor_bias(regressor: Regressor, options: Options, terms: Mapping[str, Array]) -> Array:
    """Bias (n,) of the sensors of efforts, N m or N: the offsets among the terms, unless they are of the arm."""
    if options.offset == "arm" or "offset" not in terms:
        return np.zeros(regressor.robot.n)
    file = by_term(regressor, vector_of_file(regressor, options.side)[regressor.inertial :])
    return np.asarray(terms["offset"] - file["offset"])


def with_link_parameters(
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
    efforts, and includes gear losses and friction of the joints. Joint friction of the file that is no part of the
    efforts, and was therefore not recorded, is removed. The filter has the velocity of dry friction; joints that are
    ``kept`` are otherwise unchanged.
    """
    joints, on_joints = list(robot.joints), options.side == "joint"
    T = None if on_joints else transmission_matrix(robot)
    if T is not None and "offset" in terms:  # offsets of the motors are T' times the offsets of the joints
        terms = {**terms, "offset": np.linalg.solve(T.T, terms["offset"])}
    for i, (mass, *rest) in enumerate(parameters.reshape(-1, PARAMETERS).tolist()):
        if mass:
            center, inertia = np.array(rest[:3]) / mass, symmetric(*rest[3:])
            joints[i] = replace(joints[i], mass=mass, center_of_mass=center, inertia_about_origin=inertia)
    rubbing = on_joints and options.payload is None and any(name in terms for name in ("viscous", "coulomb"))
    for k, i in enumerate(robot.independent):
        if joints[i].name in kept:
            joints[i] = robot.joints[i]
            continue
        of_joint = {name: float(x[k]) for name, x in terms.items()}
        joint = joints[i]
        if options.payload is None:
            joint = _with_terms(joint, of_joint, float(using.smoothing_velocity[k]), on_joints=on_joints)
        # A constant effort, and a spring with the rest position of the file.
        passive = {name: x for name, x in of_joint.items() if name != "offset" or options.offset == "arm"}
        spring = with_spring_values(joint.parallel_spring, passive)
        offset = passive.get("offset", joint.constant_effort + constant_part(joint.parallel_spring))
        joints[i] = replace(joint, parallel_spring=spring, constant_effort=offset - constant_part(spring))
    if not robot.joint_friction and options.payload is None:  # friction that had no effect
        fitted = {i for i in robot.independent if rubbing and joints[i].name not in kept}
        joints = [x if i in fitted else replace(x, damping=0.0, friction=0.0) for i, x in enumerate(joints)]
    return replace(robot, joints=tuple(joints), joint_friction=rubbing or robot.joint_friction)


def _with_terms(joint: Joint, terms: Mapping[str, float], smoothing_velocity: float, *, on_joints: bool) -> Joint:
    """Return the joint with rotor and friction; unidentified parameters stay as in the file."""
    joint = replace(joint, rotor_inertia=terms.get("rotor_inertia", joint.rotor_inertia))
    if on_joints:
        damping, friction = terms.get("viscous", joint.damping), terms.get("coulomb", joint.friction)
        return replace(joint, damping=damping, friction=friction)
    if not any(name in terms for name in _FRICTION):
        return joint
    old = joint.actuator.friction
    coulomb = terms.get("coulomb", float(old.coulomb))
    law = Friction(
        viscous=terms.get("viscous", float(old.viscous)),
        coulomb=coulomb,
        static=coulomb + max(0.0, float(old.static) - float(old.coulomb)),
        smoothing_velocity=smoothing_velocity,
        stribeck_velocity=float(old.stribeck_velocity),
        presliding_distance=old.presliding_distance,
    )
    actuator = replace(joint.actuator, friction=law, gear=LOSSLESS)
    return replace(joint, actuator=actuator, damping=0.0, friction=0.0)


def without_known_efforts(regressor: Regressor, recording: Recording) -> Recording:
    """Subtract the efforts of the file's unchanged constant loads and springs from a recording."""
    robot, terms, T = regressor.robot, regressor.terms, regressor.transmission
    among = np.zeros(robot.n, dtype=bool) if T is None else coupled(T)
    known = np.zeros_like(recording.q)
    for joint, row, shift in zip(robot.joints, *robot.coupling, strict=True):
        leads, spring, x = joint.mimic is None, joint.parallel_spring, recording.q @ row + shift
        held = np.zeros_like(x)
        if spring is not None and (not leads or np.any(row[among]) or not set(spring_values(spring)) <= set(terms)):
            held += spring_effort(spring, x) - constant_part(spring)
        if not (leads and "offset" in terms):
            held += joint.constant_effort + constant_part(spring)
        known += held[:, np.newaxis] * row
    return replace(recording, tau=recording.tau - regressor.at_motors(known)) if np.any(known) else recording


def base_parameters_without_data(regressor: Regressor, deviations: Array) -> list[str]:
    """Report base parameters with infinite standard deviations (P,)."""
    infinite = list(compress(regressor.names, ~np.isfinite(deviations[: regressor.inertial])))
    if not infinite:
        return []
    listed = f"{'; '.join(infinite[:_NAMED])}{' …' if len(infinite) > _NAMED else ''}"
    share = f"{len(infinite)} of {regressor.inertial} base parameters"
    return [f"{share} are not identifiable and stay close to the file: {listed}"]


def doubtful_terms(
    robot: Robot, terms: Mapping[str, Array], deviations: Mapping[str, Array], of_file: Mapping[str, NDArray[np.bool_]]
) -> list[str]:
    """Report terms (n,) by name that are unidentifiable or as small as their standard deviation."""
    lines = []
    for name, values in terms.items():
        unknown = np.isinf(deviations[name])
        weak = ~unknown & (np.abs(values) < deviations[name])
        for which, what in (
            (unknown & of_file[name], "not identifiable from these data: as in the file"),
            (unknown & ~of_file[name], "not identifiable from these data but with inertias or other terms together"),
            (weak, "within one standard deviation of zero"),
        ):
            if names := list(compress(robot.joint_names, which)):
                one = len(names) == 1
                plural = "s" if name == "offset" and not one else ""
                lines.append(f"{name}{plural} of {', '.join(names)} {'is' if one else 'are'} {what}")
    return lines

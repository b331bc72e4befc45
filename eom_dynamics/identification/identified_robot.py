# SPDX-License-Identifier: Apache-2.0
"""The robot that a fit found, and what of the fit a robot's file cannot say."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

from ..actuators.friction import Friction
from ..arrays import Array
from ..recursion import PARAMETERS
from ..robot import Joint, Robot
from ..robot.inertia import symmetric
from .fit import Fit

# Terms of efforts that no file has.
_WITHOUT_PLACE = ("asymmetric", "load", "offset")


def identified_robot(fit: Fit) -> Robot:
    """The robot with identified inertias, friction and rotors.

    Friction on the joint side becomes ``damping`` and ``friction`` of the joints, and part of their efforts by
    ``joint_friction``. On the motor side it becomes the friction of the actuators, which the feedforward adds to motor
    efforts.
    """
    joints = list(fit.robot.joints)
    if fit.options.inertia:
        table = fit.parameters.reshape(-1, PARAMETERS)
        joints = [_with_inertia(joint, pi) for joint, pi in zip(joints, table, strict=True)]
    for k, i in enumerate(fit.robot.independent):
        joints[i] = _with_terms(joints[i], {name: float(x[k]) for name, x in fit.terms.items()}, fit, k)
    rubbing = fit.options.side == "joint" and any(name in fit.terms for name in ("viscous", "coulomb"))
    return replace(fit.robot, joints=tuple(joints), joint_friction=rubbing or fit.robot.joint_friction)


def not_in_file(fit: Fit) -> list[str]:
    """What the fit found and the robot's file cannot say, a line each."""
    lines = []
    names = fit.robot.joint_names
    for term in fit.regressor.terms:
        values = zip(names, fit.terms[term], fit.term_of_file[term], strict=True)
        listed = ", ".join(f"{name} {value:.4g}" for name, value, of_file in values if not of_file)
        if not listed:
            continue
        if term in _WITHOUT_PLACE:
            lines.append(f"{term}: {listed}")
        elif term == "stribeck" and fit.options.side == "joint":
            lines.append(f"stribeck: {listed}; joint friction has none, only that of actuators does")
    return lines


def _with_inertia(joint: Joint, pi: Array) -> Joint:
    mass = float(pi[0])
    if not mass:
        return joint
    return replace(joint, mass=mass, center_of_mass=pi[1:4] / mass, inertia_about_origin=symmetric(*pi[4:]))


def _with_terms(joint: Joint, terms: dict[str, float], fit: Fit, k: int) -> Joint:
    if "rotor_inertia" in terms:
        joint = replace(joint, rotor_inertia=terms["rotor_inertia"])
    own = {name: terms[name] for name in ("viscous", "coulomb", "stribeck") if name in terms}
    if not own:
        return joint
    if fit.options.side == "joint":
        # What was not identified stays as in the file.
        return replace(joint, damping=own.get("viscous", joint.damping), friction=own.get("coulomb", joint.friction))
    old = joint.actuator.friction
    coulomb = own.get("coulomb", float(old.coulomb))
    extra = own.get("stribeck", max(0.0, float(old.static) - float(old.coulomb)))
    law = Friction(
        viscous=own.get("viscous", float(old.viscous)),
        coulomb=coulomb,
        static=coulomb + extra,
        stribeck_velocity=float(fit.filter.stribeck_velocity[k]),
        smoothing_velocity=float(fit.filter.smoothing_velocity[k]),
    )
    return replace(joint, actuator=dataclasses.replace(joint.actuator, friction=law))

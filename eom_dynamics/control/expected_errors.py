# SPDX-License-Identifier: Apache-2.0
"""Expected errors of the links with three feedforwards, for the uncertainty of a model.

Drives have the gains kp = w² B and kd = 2 w B. Under the efforts tau of the model, springs deflect by delta, so motors
follow theta = q + delta. To first order in the errors of the model, the link errors are

| feedforward | motor reference  | exact model    | stiffness  | masses             | rotor inertia            |
|-------------|------------------|----------------|------------|--------------------|--------------------------|
| rigid       | q, qd            | -delta         | 0          | H tau/kp           | H B qdd/kp               |
| tau/K       | q + delta, qd    | -(1 - H) delta | -H delta   | H tau/kp + H delta | H B qdd/kp               |
| flatness    | theta, thetad    | 0              | -delta     | H tau/kp + delta   | H B qdd/kp + deltadd/w²  |

times the relative error in the head of the column, with H = w²/(s + w)² = 1 - 2 s/w + 3 s²/w², which needs taud and
taudd. Squares of independent errors with mean zero add up, so no samples are drawn. Assumption: links follow their
motors, because the motion is slow compared with the resonances and w. Friction, gear loss and delays affect all three
feedforwards equally, and are neglected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arguments import positive
from ..arrays import Array
from ..elastic import ElasticArm
from ..elastic.elastic_arm import require_arm
from ..exceptions import StateError
from ..robot.model import ModelUncertainty
from ..trajectory import paper_motion

FEEDFORWARDS = ("rigid", "tau/K", "flatness")
"""Feedforwards in the order of :func:`expected_errors`."""

# Ratio to the smallest error, below which a feedforward is among the best.
_ALIKE = 1.05


def expected_errors(
    arm: ElasticArm, states: Sequence[Array], uncertainty: ModelUncertainty, natural_frequency: float = 70.0
) -> Array:
    """Expected root mean square errors of the links on their springs with :data:`FEEDFORWARDS`, rad or m.

    Args:
        arm: the model.
        states: q, qd, qdd, qddd, qdddd of the motion, each (N, n).
        uncertainty: relative standard deviations of its parameters.
        natural_frequency: w of the motors' PD, rad/s.

    Raises:
        StateError: the natural frequency is not positive, no joint has a spring, or an elastic joint does not have one
            motor with a rotor inertia.
    """
    require_arm(arm)
    w, joints = positive(natural_frequency, "natural_frequency"), np.flatnonzero(~arm.rigid)
    if not joints.size:
        raise StateError(f"{arm.robot.name}: no joint has a spring")
    if len(arm.motor_joint) > arm.robot.n or arm.transmission or not np.all(arm.motor_inertia[joints]):
        raise StateError(f"{arm.robot.name}: each elastic joint must have one motor with a rotor inertia")
    tau = arm.dynamics.inverse_dynamics(*states)
    at = arm.deflections(*tau)
    zero = np.zeros_like(at.delta)

    def behind(x: Array, xd: Array, xdd: Array) -> Array:
        return x - 2 * xd / w + 3 * xdd / w**2

    soft, sag = behind(*tau) / (w**2 * arm.motor_inertia), behind(at.delta, at.deltad, at.deltadd)
    spin = behind(*states[2:5]) / w**2
    exact = [-at.delta, sag - at.delta, zero]
    stiffness, mass = [zero, -sag, -at.delta], [soft, soft + sag, soft + at.delta]
    rotor_inertia = [spin, spin, spin + at.deltadd / w**2]
    squares = np.mean(np.square([exact, stiffness, mass, rotor_inertia])[..., joints], axis=(2, 3))
    return np.sqrt(np.square((1.0, *uncertainty)) @ squares)


class Advice(NamedTuple):
    """Feedforward with the smallest expected error on 1 s of the paper's motion.

    Attributes:
        natural_frequency: natural frequency of the motors' PD control, rad/s.
        errors: expected link errors by feedforward, rad or m.
    """

    natural_frequency: float
    errors: dict[str, float]

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {1e3 * x:.3g}" for name, x in self.errors.items())
        return f"{self.best} ({errors} mrad or mm, with a PD of {self.natural_frequency:g} rad/s)"

    @property
    def best(self) -> str:
        """Names of the feedforwards whose error is within 5 % of the smallest, as text."""
        least = min(self.errors.values())
        return " or ".join(name for name, error in self.errors.items() if error <= _ALIKE * least)


def feedforward_advice(arm: ElasticArm, natural_frequency: float = 70.0) -> Advice | None:
    """Compare the feedforwards for the uncertainty in the robot file.

    Returns None without uncertainty, and for arms that :func:`expected_errors` refuses.
    """
    require_arm(arm)
    if not any(arm.robot.uncertainty):
        return None
    states = paper_motion(arm.robot.n).derivatives(np.linspace(0.0, 1.0, 201))
    try:
        errors = expected_errors(arm, states, arm.robot.uncertainty, natural_frequency).tolist()
    except StateError:
        return None
    return Advice(natural_frequency, dict(zip(FEEDFORWARDS, errors, strict=True)))

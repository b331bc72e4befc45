# SPDX-License-Identifier: Apache-2.0
"""A spring of every kind, sized for the packaged arms, and arms with such springs."""

from dataclasses import replace
from typing import Any

import numpy as np

from eom_dynamics import Robot
from eom_dynamics.actuators import springs as kinds
from eom_dynamics.arrays import Array
from eom_dynamics.jet import Jet

MEMORYLESS: dict[str, Any] = {
    "linear": kinds.LinearSpring(500.0),
    "cubic": kinds.CubicSpring(300.0, 5e4),
    "cubic_linear": kinds.CubicSpring(300.0, 0.0),
    "polynomial": kinds.PolynomialSpring([300.0, 200.0, 4e3, 0.0, 1e5]),
    "exponential": kinds.ExponentialSpring(300.0, 12.0),
    "dead_zone": kinds.DeadZoneSpring(800.0, 40.0, 0.01, 0.004),
    "tabulated": kinds.TabulatedSpring([0.0, 0.01, 0.03, 0.08, 0.2], [0.0, 2.0, 9.0, 40.0, 130.0]),
    "tabulated_one_sided": kinds.TabulatedSpring([-0.2, -0.05, 0.0, 0.1], [-90.0, -20.0, 0.0, 30.0]),
}
"""Springs tau = f(delta)."""

# A kind without an example above has the start values of identification.
MEMORYLESS |= {
    kind: spring(**spring.first_values(400.0, 0.05))
    for kind, spring in kinds.SPRINGS.items()
    if issubclass(spring, kinds.MemorylessSpring) and kind not in {x.kind for x in MEMORYLESS.values()}
}

EVERY_KIND = MEMORYLESS | {
    "rigid": kinds.RigidSpring(),
    "damped": kinds.DampedSpring(500.0, 15.0),
    "variable": kinds.VariableSpring(50.0, 2e3, 400.0),
    "antagonistic_exponential": kinds.ExponentialPair(50.0, 6.0, 1500.0),
    "antagonistic_quadratic": kinds.QuadraticPair(50.0, 4e3, 1500.0),
}
"""All springs."""

assert {spring.kind for spring in EVERY_KIND.values()} == set(kinds.SPRINGS), "a kind of spring has no example here"


def deflection(spring: kinds.MemorylessSpring, tau: Any) -> Array:
    """Deflections (…) under efforts (…)."""
    with np.errstate(all="ignore"):
        return np.asarray(spring.inverse_jet(Jet([np.asarray(tau, dtype=float)]))[0])


def with_springs(robot: Robot, *springs: Any, **changes: Any) -> Robot:
    """The robot with these springs, repeated as often as needed, and other changes of every joint."""
    rows = zip(robot.joints, springs * len(robot.joints), strict=False)
    return replace(robot, joints=tuple(replace(joint, spring=spring, **changes) for joint, spring in rows))

# SPDX-License-Identifier: Apache-2.0
"""Springs between motors and links, one file a kind. They know of deflections and efforts, of no robot."""

from .antagonistic import AntagonisticPair, ExponentialPair, Pull, QuadraticPair
from .base import Deflection, Spring
from .coupled import CoupledSpring
from .cubic import CubicSpring
from .damped import DampedSpring
from .dead_zone import DeadZoneSpring
from .exponential import ExponentialSpring
from .linear import LinearSpring, RigidSpring
from .polynomial import PolynomialSpring
from .tabulated import TabulatedSpring
from .variable import VariableSpring

AnySpring = Spring | DampedSpring | VariableSpring | AntagonisticPair
"""What can stand between the motor, or motors, and the link of a joint."""

__all__ = [
    "AntagonisticPair",
    "AnySpring",
    "CoupledSpring",
    "CubicSpring",
    "DampedSpring",
    "DeadZoneSpring",
    "Deflection",
    "ExponentialPair",
    "ExponentialSpring",
    "LinearSpring",
    "PolynomialSpring",
    "Pull",
    "QuadraticPair",
    "RigidSpring",
    "Spring",
    "TabulatedSpring",
    "VariableSpring",
]

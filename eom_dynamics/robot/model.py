# SPDX-License-Identifier: Apache-2.0
"""The robot: bodies in a tree, each moved by one joint."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import lie
from .inertia import spatial_inertia

Array = NDArray[np.float64]

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
"""Gravitational acceleration in the base frame, m/s² (z up), where a robot does not say otherwise."""

# Below this, in m/rad, a screw is read as that of a revolute joint.
_NO_PITCH = 1e-5


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint and the body that it moves.

    Attributes:
        name: name of the joint.
        screw: joint screw (6,) in the body's frame, angular part first: a unit angular part, or none and
            a unit linear part.
        reference_pose: pose (4, 4) of the body in its parent at q = 0.
        parent: index of the joint that moves the parent body; -1 for the base.
        mass: kg.
        center_of_mass: (3,) in m, in the body's frame.
        inertia_about_origin: (3, 3) in kg m², about the body frame's origin and along its axes.
        stiffness: of the spring between motor and link, N m/rad (prismatic: N/m); infinite if rigid.
        rotor_inertia: of the motor, reflected to the link side of the gear, kg m² (prismatic: kg).
    """

    name: str
    screw: Array
    reference_pose: Array
    parent: int
    mass: float
    center_of_mass: Array
    inertia_about_origin: Array
    stiffness: float = np.inf
    rotor_inertia: float = 0.0

    @property
    def type(self) -> str:
        """The type of the joint by its screw: revolute, prismatic or helical."""
        angular, linear = self.screw[:3], self.screw[3:]
        if not np.any(angular):
            return "prismatic"
        return "helical" if abs(angular @ linear) > _NO_PITCH else "revolute"

    @cached_property
    def spatial_inertia(self) -> Array:
        """Inertia matrix (6, 6) of the body in its own frame, equation (30)."""
        return spatial_inertia(self.mass, self.center_of_mass, self.inertia_about_origin)

    @cached_property
    def ad_screw(self) -> Array:
        """The constant matrix ad_X (6, 6) of the joint screw, equation (21)."""
        return lie.ad(self.screw)


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot with a fixed base, whose joints stand in an order where parents come first.

    Attributes:
        name: name of the robot.
        joints: its joints with their bodies.
        gravity: gravitational acceleration (3,) in the base frame, m/s².

    The tool body, on which an external wrench acts, is the last one.
    """

    name: str
    joints: tuple[Joint, ...]
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints, in the order of all joint vectors."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def stiffness(self) -> Array:
        """Stiffness of each joint (n,), N m/rad or N/m; infinite where the joint is rigid."""
        return np.array([joint.stiffness for joint in self.joints])

    @cached_property
    def rotor_inertia(self) -> Array:
        """Rotor inertia of each joint (n,) on the link side of the gear, kg m² or kg."""
        return np.array([joint.rotor_inertia for joint in self.joints])

    def __repr__(self) -> str:
        return f"Robot({self.name!r}, n={self.n})"

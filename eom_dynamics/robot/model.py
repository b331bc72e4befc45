# SPDX-License-Identifier: Apache-2.0
"""The robot: bodies in a tree, each moved by one joint."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import lie
from ..drivetrain.actuator import IDEAL_ACTUATOR, Actuator
from ..drivetrain.springs import AnySpring, CoupledSpring, LinearSpring, RigidSpring
from ..drivetrain.transmission import Transmission
from .inertia import spatial_inertia

Array = NDArray[np.float64]

STANDARD_GRAVITY = (0.0, 0.0, -9.80665)
"""Gravitational acceleration in the base frame, m/s² (z up), where a robot does not say otherwise."""

# Below this, in m/rad, a screw is read as that of a revolute joint.
_NO_PITCH = 1e-5


@dataclass(frozen=True)
class Mimic:
    """A joint variable that follows another: ``ratio`` times it plus ``offset`` (rad or m).

    Attributes:
        joint: index of the joint that leads; it does not itself follow one.
        ratio: how far this joint moves for a unit of the other.
        offset: where it stands when the other is at 0.
    """

    joint: int
    ratio: float
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame on a body, such as a tool's.

    Attributes:
        name: name of the frame.
        joint: index of the joint that moves the body; -1 for the base.
        pose: pose (4, 4) of the frame in the body's.
    """

    name: str
    joint: int
    pose: Array


@dataclass(frozen=True)
class Limits:
    """How far, how fast and how hard a joint may go; infinite where nothing is said.

    Attributes:
        lower, upper: of the joint variable, rad or m.
        velocity: rad/s or m/s.
        effort: N m or N.
        acceleration, jerk: rad or m, per s² and s³.
        effort_rate: N m/s or N/s.
    """

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    acceleration: float = np.inf
    jerk: float = np.inf
    effort_rate: float = np.inf


NO_LIMITS = Limits()
"""The limits of a joint of which nothing is said."""


ROTOR_MODELS = ("reduced", "complete")
"""What rotors do beside driving their joints: nothing else (M. W. Spong, 1987), or what bodies on their links do."""


@dataclass(frozen=True, eq=False)
class RotorMount:
    """Where the rotor of a joint's motor spins.

    Attributes:
        carrier: index of the joint that moves the body which carries the rotor; -1 for the base.
        axis: unit vector (3,) in that body's frame, about which the rotor turns forward for a positive joint rate
            (backward where the gear ratio is negative).
    """

    carrier: int
    axis: Array


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
        stiffness: of the spring between motor and link, N m/rad (prismatic: N/m); infinite if rigid. Of a spring
            that is not linear that without load.
        elasticity: the spring where it is not linear, or None.
        rotor_inertia: of the motor, reflected to the link side of the gear, kg m² (prismatic: kg).
        mimic: the joint that this one follows, or None if it moves on its own.
        limits: how far, how fast and how hard the joint may go.
        damping: viscous friction of the joint, N m s/rad (prismatic: N s/m).
        friction: dry friction of the joint, N m (prismatic: N).
        gear_ratio: turns of the motor for one turn of the joint.
        actuator: friction, loss and motor.
        rotor_mount: where the rotor spins; None: on the parent body, along the joint's axis.
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
    mimic: Mimic | None = None
    limits: Limits = NO_LIMITS
    damping: float = 0.0
    friction: float = 0.0
    gear_ratio: float = 1.0
    elasticity: AnySpring | None = None
    actuator: Actuator = IDEAL_ACTUATOR
    rotor_mount: RotorMount | None = None

    @cached_property
    def mount(self) -> RotorMount:
        """Where the rotor spins."""
        if self.rotor_mount is not None:
            return self.rotor_mount
        return RotorMount(self.parent, self.reference_pose[:3, :3] @ self.axis)

    @property
    def axis(self) -> Array:
        """Unit vector (3,) along the axis of the joint, in the body's frame."""
        return self.screw[:3] if np.any(self.screw[:3]) else self.screw[3:]

    @cached_property
    def spring(self) -> AnySpring:
        """What is between motor and link."""
        if self.elasticity is not None:
            return self.elasticity
        return RigidSpring() if np.isinf(self.stiffness) else LinearSpring(self.stiffness)

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
    """A robot with a fixed base: a tree of bodies.

    Attributes:
        name: name of the robot.
        joints: all joints with their bodies, parents before children.
        gravity: gravitational acceleration (3,) in the base frame, m/s².
        tools: the frames at which external wrenches act; by default one, the frame of the last body.
        frames: the named frames of its description, those of tools and merged bodies among them.
        merged: what of its description was made part of something else, a line each.
        assumed: what its description does not say, a line each.
        coupled_stiffness: joints, by their number in joint vectors, and the spring between them; or None.
        transmission: joints, by their number in joint vectors, and what moves them together; or None.
        rotor_model: one of :data:`ROTOR_MODELS`.
    """

    name: str
    joints: tuple[Joint, ...]
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    tools: tuple[Frame, ...] = ()
    frames: tuple[Frame, ...] = ()
    merged: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    coupled_stiffness: tuple[tuple[int, ...], CoupledSpring] | None = None
    transmission: tuple[tuple[int, ...], Transmission] | None = None
    rotor_model: str = "reduced"

    def __post_init__(self) -> None:
        """Give the robot its default tool."""
        if not self.tools:
            object.__setattr__(self, "tools", (Frame(self.joints[-1].name, len(self.joints) - 1, np.eye(4)),))

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Indices of the joints that move on their own."""
        return tuple(i for i, joint in enumerate(self.joints) if joint.mimic is None)

    @cached_property
    def independent_joints(self) -> tuple[Joint, ...]:
        """The joints that move on their own, in the order of all joint vectors."""
        return tuple(self.joints[i] for i in self.independent)

    @property
    def n(self) -> int:
        """Number of independent joint variables."""
        return len(self.independent)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the independent joints, in the order of all joint vectors."""
        return tuple(joint.name for joint in self.independent_joints)

    @cached_property
    def coupling(self) -> tuple[Array, Array]:
        """E (number of joints, n) and e (number of joints,): all joints stand at E q + e."""
        E, e = np.zeros((len(self.joints), self.n)), np.zeros(len(self.joints))
        position = {joint: k for k, joint in enumerate(self.independent)}
        for i, joint in enumerate(self.joints):
            lead = joint.mimic or Mimic(i, 1.0)
            E[i, position[lead.joint]], e[i] = lead.ratio, lead.offset
        if all(joint.mimic is None for joint in self.joints):
            return E.astype(int), e.astype(int)  # symbols stay free of floating-point ones
        return E, e

    @cached_property
    def stiffness(self) -> Array:
        """Stiffness of each independent joint (n,), N m/rad or N/m; infinite where the joint is rigid."""
        return np.array([joint.stiffness for joint in self.independent_joints])

    @cached_property
    def rotor_inertia(self) -> Array:
        """Rotor inertia of each independent joint (n,) on the link side of the gear, kg m² or kg."""
        return np.array([joint.rotor_inertia for joint in self.independent_joints])

    @property
    def wrench_shape(self) -> tuple[int, ...]:
        """Shape of an external wrench: (6,), or (number of tools, 6) where there are several."""
        return (6,) if len(self.tools) == 1 else (len(self.tools), 6)

    def __repr__(self) -> str:
        return f"Robot({self.name!r}, n={self.n})"

# SPDX-License-Identifier: Apache-2.0
"""A robot as its file describes it, whatever the format: links, joints of all types, nothing put together yet.

Readers of formats make a :class:`Description`; :func:`eom_dynamics.robot.assembly.assemble` makes a robot of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..drivetrain.actuator import IDEAL_ACTUATOR, Actuator
from ..drivetrain.springs import AnySpring, CoupledSpring, RigidSpring
from ..drivetrain.transmission import Transmission
from ..exceptions import RobotDescriptionError
from .inertia import Inertial
from .model import NO_LIMITS, STANDARD_GRAVITY, Limits

Array = NDArray[np.float64]

MOVING_TYPES = ("revolute", "continuous", "prismatic", "helical", "planar", "floating")
"""Types of joints that let their child move."""

JOINT_TYPES = (*MOVING_TYPES, "fixed")
"""All types of joints."""

SINGLE_TYPES = ("revolute", "continuous", "prismatic", "helical")
"""Types of joints with one joint variable."""


RIGID = RigidSpring()
"""The elasticity of a joint of which nothing is said."""

Whole = TypeVar("Whole", CoupledSpring, Transmission)


@dataclass(frozen=True, eq=False)
class Group(Generic[Whole]):
    """What several joints have together.

    Attributes:
        joints: their names.
        whole: a spring or a transmission.
        where: how messages name it.
    """

    joints: tuple[str, ...]
    whole: Whole
    where: str


@dataclass(frozen=True, eq=False)
class LinkDescription:
    """A link: a frame, with mass or without.

    Attributes:
        name: name of the link.
        inertial: mass and inertia in the link's frame, or None for a mere frame.
        where: how messages name it.
        objection: why no body can have such inertia, or None.
    """

    name: str
    inertial: Inertial | None
    where: str
    objection: str | None = None


@dataclass(frozen=True)
class MimicDescription:
    """A joint variable that is ``ratio`` times that of the joint ``leader`` plus ``offset``.

    The leader may follow another joint itself.
    """

    leader: str
    ratio: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class RotorDescription:
    """Where a rotor spins.

    Attributes:
        where: how messages name it.
        carrier: name of the link that carries it; None is the joint's parent.
        axis: unit vector (3,) in that link's frame; None is along the joint's axis, all joints at 0.
    """

    where: str
    carrier: str | None = None
    axis: Array | None = None


@dataclass(frozen=True, eq=False)
class JointDescription:
    """A joint between two links.

    Attributes:
        name: name of the joint.
        type: one of :data:`JOINT_TYPES`.
        parent, child: names of its links.
        origin: pose (4, 4) of the child link in the parent link when the joint is at 0.
        screw: joint screw (6,) in the child link's frame, angular part first: of a planar joint the turn about
            the normal of its plane; without meaning for fixed and floating joints.
        where: how messages name it.
        mimic: what it follows, or None.
        elasticity: the spring between motor and link.
        rotor: where the rotor spins, or None where nothing is said.
        limits, damping, friction, rotor_inertia, gear_ratio, actuator: as of :class:`eom_dynamics.Joint`.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Array
    screw: Array
    where: str
    mimic: MimicDescription | None = None
    limits: Limits = NO_LIMITS
    damping: float = 0.0
    friction: float = 0.0
    elasticity: AnySpring = RIGID
    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0
    actuator: Actuator = IDEAL_ACTUATOR
    rotor: RotorDescription | None = None


@dataclass(frozen=True, eq=False)
class FrameDescription:
    """A named frame on a link, with its pose (4, 4) in it, and how messages name it."""

    name: str
    link: str
    pose: Array
    where: str


@dataclass(frozen=True, eq=False)
class Description:
    """A whole robot.

    Attributes:
        name: name of the robot.
        source: where it comes from; the start of every message.
        links: by name.
        joints: parents before children; the order of the robot's joints.
        gravity: (3,), m/s², in the frame of the root link.
        frames: further frames on links.
        tools: names of the links or frames at which external wrenches act; none: that of the last body.
        assumed: what the file does not say, a line each.
        prefix: of all names in messages, such as the name of a section.
        coupled_stiffness: a spring between several joints, or None.
        transmission: what moves several joints together, or None.
        rotor_model: as of :class:`eom_dynamics.Robot`.
    """

    name: str
    source: str
    links: Mapping[str, LinkDescription]
    joints: tuple[JointDescription, ...]
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    frames: tuple[FrameDescription, ...] = ()
    tools: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    prefix: str = ""
    coupled_stiffness: Group[CoupledSpring] | None = None
    transmission: Group[Transmission] | None = None
    rotor_model: str = "reduced"

    def refuse(self, where: str, reason: str) -> NoReturn:
        """Raise the error of a description that cannot be used: where, and why."""
        raise RobotDescriptionError(f"{self.source}: {self.prefix}{where.removeprefix(self.prefix)}: {reason}")

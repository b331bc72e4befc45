# SPDX-License-Identifier: Apache-2.0
"""Robot description, independent of the file format: links and joints of all types.

The readers of file formats return a :class:`Description`; :func:`eom_dynamics.robot.assembly.assemble` builds a
:class:`eom_dynamics.Robot` from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Generic, NamedTuple, NoReturn, TypeVar

import numpy as np

from .. import lie
from ..actuators.actuator import Transmission
from ..actuators.entries import Entry
from ..actuators.parameters import refuse
from ..actuators.springs import CoupledSpring
from ..arrays import Array
from ..exceptions import RobotDescriptionError
from .inertia import Inertial
from .model import STANDARD_GRAVITY, JointProperties, RobotProperties

SINGLE_TYPES = ("revolute", "continuous", "prismatic", "helical")
"""Joint types with one joint variable."""

COMPOSITE_TYPES = {
    "planar": ("x", "y", "yaw"),
    "ball": ("yaw", "pitch", "roll"),
    "floating": ("x", "y", "z", "yaw", "pitch", "roll"),
}
"""Joint types with several variables, with the row of joints that each becomes: see :func:`.assembly.components`."""

JOINT_TYPES = (*SINGLE_TYPES, *COMPOSITE_TYPES, "fixed")
"""All joint types."""

SharedElement = TypeVar("SharedElement", CoupledSpring, Transmission)


@dataclass(frozen=True, eq=False)
class JointGroup(Generic[SharedElement]):
    """Names of several joints, and the spring or transmission that they share, at ``where`` in the file.

    A part of the robot that has only some of the joints is used without an ``optional`` element.
    """

    joints: tuple[str, ...]
    element: SharedElement
    where: str
    optional: bool = False


class OriginEntries(NamedTuple):
    """Entries of a pose in robot files."""

    xyz: Annotated[Array, Entry("translation", "m", size=3, example=[0.0, 0.0, 0.3])]
    rpy: Annotated[Array, Entry("roll, pitch and yaw", "rad", size=3, example=[0.0, 0.0, 0.0])] = np.zeros(3)


class BodyEntries(NamedTuple):
    """Entries of the body of a joint in robot files, and of the base."""

    mass: Annotated[float, Entry("of the body", "kg", example=3.0)]
    center_of_mass: Annotated[Array, Entry("in the frame of the body", "m", size=3, example=[0.2, 0.0, 0.0])]
    inertia: Annotated[
        Array,
        Entry("xx xy xz yy yz zz, see inertia_reference", "kg m²", size=6, example=[0.01, 0.0, 0.0, 0.05, 0.0, 0.05]),
    ]


class PayloadEntries(NamedTuple):
    """Entries of a body at a tool, or at the body of a joint, in robot files."""

    mass: Annotated[float, Entry("of the payload", "kg", "positive", example=1.0)]
    center_of_mass: Annotated[Array, Entry("in the frame of the tool", "m", size=3, example=[0.0, 0.0, 0.05])] = (
        np.zeros(3)
    )
    inertia: Annotated[
        Array, Entry("xx xy xz yy yz zz about the centre of mass", "kg m²", size=6, example=[0.0] * 6)
    ] = np.zeros(6)


class ToolEntries(NamedTuple):
    """Entries of a tool in robot files."""

    body: Annotated[str, Entry("base, or joint that moves the body with the tool", example="elbow")]
    origin: Annotated[OriginEntries, Entry("pose of the tool in the frame of the body")]


@dataclass(frozen=True, eq=False)
class LinkDescription:
    """A link: a frame, with mass and inertia in this frame, or None without any.

    Messages about the inertia name its place in the file, ``where``, and end with ``advice``.
    """

    name: str
    inertial: Inertial | None
    where: str
    advice: str = ""


@dataclass(frozen=True)
class MimicDescription:
    """Mimic relation q = ratio * q_leader + offset, by the leader's name.

    The leader may itself be a mimic joint.
    """

    leader: Annotated[str, Entry("the joint that it follows", name="joint", example="shoulder")]
    ratio: Annotated[float, Entry("of its position to the leader's", example=1.0)] = 1.0
    offset: Annotated[float, Entry("of its position", "rad", example=0.0)] = 0.0


@dataclass(frozen=True, eq=False)
class RotorDescription:
    """Mounting of a motor's rotor, at ``where`` in the file.

    Attributes:
        carrier: name of the link that carries the rotor; None is the joint's parent.
        axis: unit vector (3,) of the spin axis in that link's frame; None is the joint's axis with all joints at 0.
    """

    where: str
    carrier: Annotated[str | None, Entry("body that carries the rotor", example="base")] = None
    axis: Annotated[Array | None, Entry("spin axis in its frame", size=3, example=[0.0, 0.0, 1.0])] = None

    def __post_init__(self) -> None:
        """Normalise the axis; raises ParameterError if it is zero."""
        if self.axis is None:
            return
        if not (length := float(np.linalg.norm(self.axis))):
            refuse("axis", "must not be zero")
        object.__setattr__(self, "axis", self.axis / length)


@dataclass(frozen=True, eq=False)
class JointDescription(JointProperties):
    """A joint between two links.

    Attributes:
        name, limits, damping, …: attributes of :class:`eom_dynamics.Joint`.
        type: one of :data:`JOINT_TYPES`.
        parent, child: names of the links.
        origin: pose (4, 4) of the child link in the parent link at q = 0.
        screw: joint screw (6,) in the child link's frame, angular part first; for a planar joint the rotation about
            the normal of its plane; for a ball joint (0, centre); unused for fixed and floating joints.
        where: location in the file, for messages.
        rotor: mounting of the rotor; None is the default.
        locked_because: why a joint that the file lets move is fixed, or None.
    """

    name: str
    type: str
    parent: str
    child: str
    origin: Array
    screw: Array
    where: str
    mimic: MimicDescription | None = None
    rotor: Annotated[
        RotorDescription | None, Entry("body that carries the rotor, and spin axis in its frame", of_motor=True)
    ] = None
    locked_because: str | None = None

    def locked(self) -> JointDescription:
        """This joint, locked at zero, or for a mimic joint where its leader is zero."""
        if self.mimic is None or self.type == "fixed":
            return replace(self, type="fixed", mimic=None)
        return replace(self, type="fixed", mimic=None, origin=self.origin @ lie.exp(self.screw, self.mimic.offset))


@dataclass(frozen=True, eq=False)
class FrameDescription:
    """A named frame on a link, with its pose (4, 4) in the link's frame and its location in the file."""

    name: str
    link: str
    pose: Array
    where: str


@dataclass(frozen=True, eq=False)
class Description(RobotProperties):
    """Links and joints of a whole robot.

    Attributes:
        name, rotor_model, joint_friction, …: attributes of :class:`eom_dynamics.Robot`.
        source: file or topic that it comes from; every message begins with it.
        links: by name.
        joints: parents before children; the order of the robot's joints.
        gravity: (3,), m/s², in the frame of the root link.
        frames: further frames on links.
        tools: names of the links or frames at which external wrenches act; by default the last body.
        assumed: assumptions made where the file says nothing, one line each.
        prefix: prefix of all names in messages, such as the name of a section.
        inertia_reference: point that the file's inertias are about, ``com`` or ``link``.
        unphysical: ``refuse`` or ``warn`` about physically inconsistent inertia, where the user does not say which.
        coupled_stiffness, transmissions: springs and transmissions of several joints; no joint has two.
        root, tip, branches: part of the robot that the file selects, see :func:`.assembly.assemble`.
        base_gravity: gravity, m/s², in the frame of the link ``root``; None takes ``gravity``.
        warnings: contents of the file that the robot lacks, one line each.
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
    inertia_reference: str = "com"
    unphysical: str = "refuse"
    coupled_stiffness: JointGroup[CoupledSpring] | None = None
    transmissions: tuple[JointGroup[Transmission], ...] = ()
    root: str | None = None
    tip: tuple[str, ...] = ()
    branches: str = "lump"
    base_gravity: Array | None = None
    warnings: tuple[str, ...] = ()

    def refuse(self, where: str, reason: str) -> NoReturn:
        """Raise RobotDescriptionError with the location and the reason."""
        raise RobotDescriptionError(self.message(where, reason))

    def message(self, where: str, reason: str) -> str:
        """The message of an error with its location and reason."""
        return f"{self.source}: {self.prefix}{where.removeprefix(self.prefix)}: {reason}"

# SPDX-License-Identifier: Apache-2.0
"""Robot description, independent of the file format: links and joints of all types, and the tree that they form.

The readers of file formats return a :class:`Description`. Its tree has a root, an order of joints, a part between a
base and its tips, and mimic relations. :func:`eom_dynamics.robot.assembly.assemble` builds a
:class:`eom_dynamics.Robot` from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Generic, NamedTuple, NoReturn, TypeVar

import numpy as np

from .. import lie
from ..actuators.actuator import Transmission
from ..actuators.parameters import Entry, refuse
from ..actuators.springs import CoupledSpring
from ..arguments import LARGEST, SMALLEST, violation
from ..arrays import Array
from ..exceptions import RobotDescriptionError
from ..spelling import close_match, listed
from .inertia import Inertial
from .model import STANDARD_GRAVITY, JointProperties, RobotProperties

SINGLE_TYPES = ("revolute", "continuous", "prismatic", "helical")
"""Joint types with a single joint variable."""

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
        Array, Entry("xx xy xz yy yz zz about the center of mass", "kg m²", size=6, example=[0.0] * 6)
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
        """Normalize the axis; raises ParameterError if it is zero."""
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
            the normal of its plane; for a ball joint (0, center); unused for fixed and floating joints.
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
        """This joint, locked at zero; a mimic joint is locked at its position with the leader at zero."""
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
        tools: names of the links or frames for external wrenches; by default the last body.
        assumed: assumptions in place of missing values of the file, one line each.
        prefix: prefix of all names in messages, such as the name of a section.
        inertia_reference: point that the file's inertias are about, ``com`` or ``link``.
        unphysical: ``refuse`` or ``warn`` about physically inconsistent bodies, unless the user specifies it; None
            refuses bodies of negative mass, and warns about others.
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
    unphysical: str | None = None
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


def depth_first(description: Description) -> list[JointDescription]:
    """Sort joints depth-first from the root, siblings in their original order."""
    return list(_in_depth(root_link(description), description.joints))


def children(joints: Iterable[JointDescription]) -> dict[str, list[JointDescription]]:
    """Joints directly below each link, by link."""
    below: dict[str, list[JointDescription]] = {}
    for joint in joints:
        below.setdefault(joint.parent, []).append(joint)
    return below


def root_link(description: Description) -> str:
    """Name of the root link, which is no joint's child; refuses links and joints that form no tree."""
    links, joints, refuse = list(description.links), description.joints, description.refuse
    mover: dict[str, JointDescription] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in description.links:
                refuse(joint.where, f"{role} link {link!r} does not exist")
        if joint.parent == joint.child:
            refuse(joint.where, f"parent and child are the same link, {joint.child!r}")
        if joint.child in mover:
            refuse(
                joint.where,
                f"child link {joint.child!r} is already the child of {mover[joint.child].name!r}; a link must have one "
                "parent joint, closed loops cannot be described",
            )
        mover[joint.child] = joint
    roots = [link for link in links if link not in mover]
    if not roots:
        refuse("links", f"no root: {_loop(mover, links[0])} form a loop" if links else "there must be at least one")
    if len(roots) > 1:
        refuse("links", f"{len(roots)} roots ({_some(roots)}); all links but one must be the child of a joint")
    reached = {roots[0]} | {joint.child for joint in _in_depth(roots[0], joints)}
    for link in links:
        if link not in reached:
            refuse("links", f"{_loop(mover, link)} form a loop")
    return roots[0]


def _in_depth(root: str, joints: Sequence[JointDescription]) -> Iterator[JointDescription]:
    below = children(joints)
    waiting = list(reversed(below.get(root, [])))
    while waiting:
        joint = waiting.pop()
        yield joint
        waiting += reversed(below.get(joint.child, []))


def _loop(mover: dict[str, JointDescription], link: str) -> str:
    visited: dict[str, None] = {}
    while link not in visited:
        visited[link] = None
        link = mover[link].parent
    names = list(visited)
    return _some(names[names.index(link) :])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


BRANCHES = ("lump", "drop")
"""How to treat branches without a tip: locked at zero with their inertia, or omitted."""


def select_subtree(description: Description, base: str, tips: Sequence[str], branches: str) -> Description:
    """Select the part of a robot from a base link to tips (links or frames); without tips, all joints below the base.

    Joints not below the base are locked at zero, and gravity is rotated into the base frame. ``branches`` in
    :data:`BRANCHES` determines the treatment of joints below the base without a tip. Mimic joints must follow
    independent joints. Raises RobotDescriptionError if a tip is unknown or not below the base.
    """
    mover = {joint.child: joint for joint in description.joints}
    to_base, link = np.eye(4), base  # pose of the base in the root's frame, all joints at zero
    while link in mover:
        to_base = mover[link].locked().origin @ to_base
        link = mover[link].parent
    links_of, reached = children(description.joints), [base]
    for link in reached:  # grows during the loop
        reached += [joint.child for joint in links_of.get(link, [])]
    carried = set(reached[1:])
    below = [joint for joint in description.joints if joint.child in carried]
    movable = _joints_on_paths(description, mover, base, tips) if tips else {joint.name for joint in below}
    movable = {
        joint.name
        for joint in below
        if joint.name in movable and (joint.mimic is None or joint.mimic.leader in movable)
    }
    joints, links, assumed = [], {base}, list(description.assumed)
    for joint in below:
        dropped = branches == "drop" and (joint.type != "fixed" or joint.locked_because is not None)
        if joint.name not in movable and (dropped or joint.parent not in links):
            assumed.append(f"joint {joint.name} is ignored, with everything below it")
            continue
        if joint.name not in movable and joint.type != "fixed":
            assumed.append(f"joint {joint.name} is locked at zero")
        joints.append(joint if joint.name in movable else joint.locked())
        links.add(joint.child)
    return replace(
        description,
        links={name: link for name, link in description.links.items() if name in links},
        joints=tuple(joints),
        gravity=to_base[:3, :3].T @ description.gravity,
        frames=tuple(frame for frame in description.frames if frame.link in links),
        assumed=tuple(assumed),
    )


def link_of(description: Description, name: str, option: str) -> str:
    """Link of this name, or the link that carries the frame of this name."""
    if name in description.links:
        return name
    frames = {frame.name: frame.link for frame in description.frames}
    if name not in frames:
        known = [*description.links, *frames]
        close = close_match(name, known)
        guess = "" if close is None else f"did you mean {close}? "
        description.refuse(option, f"no link {name!r}; {guess}known are {listed(known)}")
    return frames[name]


def _joints_on_paths(
    description: Description, mover: Mapping[str, JointDescription], base: str, tips: Sequence[str]
) -> set[str]:
    """Names of the joints between the base and the tips."""
    names: set[str] = set()
    for tip in tips:
        link = link_of(description, tip, "tip")
        while link != base:
            if link not in mover:
                description.refuse("tip", f"{tip!r} is not below the root {base!r}")
            names.add(mover[link].name)
            link = mover[link].parent
    return names


def resolve_mimics(description: Description) -> Description:
    """Make each mimic joint follow an independent joint directly.

    A mimic joint that cannot move (fixed or missing leader, or ratio 0) becomes a fixed joint at its position with the
    leader at zero.
    """
    by_name = {joint.name: joint for joint in description.joints}
    return replace(description, joints=tuple(_resolve(joint, by_name, description) for joint in description.joints))


def _resolve(
    joint: JointDescription, by_name: dict[str, JointDescription], description: Description
) -> JointDescription:
    if joint.type == "fixed":
        return replace(joint, mimic=None)
    ratio, offset, leader, chain = 1.0, 0.0, joint, [joint.name]
    while leader.mimic is not None and leader.type != "fixed":
        if leader.type not in SINGLE_TYPES:
            description.refuse(f"{leader.where}: mimic", f"a {leader.type} joint has more than one joint variable")
        ratio, offset = ratio * leader.mimic.ratio, offset + ratio * leader.mimic.offset
        name = leader.mimic.leader
        if name in chain:
            description.refuse(f"{joint.where}: mimic", f"joints mimic each other: {' -> '.join([*chain, name])}")
        _check_size(ratio, offset, [*chain, name], joint, description)
        if leader.mimic.ratio == 0:
            return _lock(joint, offset, f"the mimic ratio of {leader.name} is 0")
        if name not in by_name:
            return _lock(joint, offset, f"its mimic leader {name!r} does not exist")
        chain.append(name)
        leader = by_name[name]
    if leader is joint:
        return joint
    mimic = MimicDescription(leader.name, ratio, offset)
    if leader.type == "fixed":
        return replace(joint, mimic=mimic).locked()
    if leader.type not in SINGLE_TYPES:
        description.refuse(f"{joint.where}: mimic", f"its leader {leader.name!r} is a {leader.type} joint")
    return replace(joint, mimic=mimic)


def _check_size(
    ratio: float, offset: float, chain: list[str], joint: JointDescription, description: Description
) -> None:
    """Refuse a relation to the last joint of a chain with numbers beyond the bounds of robot descriptions."""
    whose = f" over the chain {joint.name}, {chain[1]} … {chain[-1]}: check the factors" if len(chain) > 2 else ""
    for what, value, smallest in (("multiplier", abs(ratio), SMALLEST if ratio else 0.0), ("offset", offset, 0.0)):
        if reason := violation(value, smallest=smallest, largest=LARGEST):
            description.refuse(f"{joint.where}: mimic", f"{what} {reason}{whose}")


def _lock(joint: JointDescription, offset: float, reason: str) -> JointDescription:
    where = f"{offset:g} {'m' if joint.type == 'prismatic' else 'rad'}"
    fixed = replace(joint, mimic=MimicDescription("", 1.0, offset)).locked()
    return replace(fixed, locked_because=f"fixed at {where}: {reason}")

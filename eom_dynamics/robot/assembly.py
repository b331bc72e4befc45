# SPDX-License-Identifier: Apache-2.0
"""Assembly of a robot from its description: links on fixed joints are merged into moving bodies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from .. import lie
from ..actuators.actuator import Transmission
from ..arguments import choice
from ..arrays import Array
from ..exceptions import RobotDescriptionError, RobotDescriptionWarning
from ..spelling import duplicates, hint
from .description import (
    BRANCHES,
    COMPOSITE_TYPES,
    Description,
    JointDescription,
    JointGroup,
    SharedElement,
    link_of,
    resolve_mimics,
    root_link,
    select_subtree,
)
from .inertia import Inertial, body_violation, is_rounding_of_zero
from .mass_matrix import joints_without_inertia
from .model import Frame, Joint, JointProperties, Mimic, Robot, RobotProperties, RotorMount


def components(joint: JointDescription) -> list[tuple[str, Array]]:
    """Names and screws (6,) of the single-degree-of-freedom components of a joint, from parent to child.

    Joints of COMPOSITE_TYPES are chains with massless bodies; their frames coincide with the child link's frame at q =
    0. A planar joint ``j`` becomes ``j_x``, ``j_y`` (translations along the axes of its plane) and ``j_yaw`` (rotation
    about its normal). The rotation of a ball or floating joint is Rz(yaw) Ry(pitch) Rx(roll), the URDF convention,
    which is singular at a pitch of ±pi/2. The axes are the child link's axes, rotated by the smallest angle from z to
    the normal of a planar joint.
    """
    if joint.type not in COMPOSITE_TYPES:
        return [(joint.name, joint.screw)]
    x, y, z = np.eye(3) if joint.type in ("ball", "floating") else _plane(joint.screw[:3])
    center = joint.screw[3:] if joint.type == "ball" else np.zeros(3)
    along = {"x": x, "y": y, "z": z}
    about = {"yaw": z, "pitch": y, "roll": x}
    screws = {name: lie.screw(axis, pitch=np.inf) for name, axis in along.items()}
    screws |= {name: lie.screw(axis, center) for name, axis in about.items()}
    return [(f"{joint.name}_{name}", screws[name]) for name in COMPOSITE_TYPES[joint.type]]


def _plane(normal: Array) -> Array:
    """Rows: two unit vectors in the plane, and its normal."""
    z = np.array([0.0, 0.0, 1.0])
    across = np.cross(z, normal)
    sine = float(np.linalg.norm(across))
    if sine == 0:
        return np.eye(3) if normal[2] > 0 else np.diag([1.0, -1.0, -1.0])
    R: Array = lie.exp([*(across / sine), 0.0, 0.0, 0.0], np.arctan2(sine, normal[2]))[:3, :3]
    return np.vstack([R[:, 0], R[:, 1], normal])


UNPHYSICAL = ("refuse", "warn")
"""How to treat an unphysical description: as an error, or with a warning; by default, negative masses are errors."""

# Upper bounds for any robot. The time of the checks grows with the square and the cube of these numbers.
_MOST_JOINTS, _MOST_MOVING = 5000, 500


def assemble(
    description: Description,
    *,
    root: str | None = None,
    tip: str | Sequence[str] = (),
    tools: str | Sequence[str] = (),
    branches: str | None = None,
    gravity: Array | None = None,
    unphysical: str | None = None,
) -> Robot:
    """Assemble a robot from its description; options as in :func:`.load_robot`, by default from the description.

    A body has the frame of the link moved by its joint. Links on fixed joints are merged into the body that they are
    fixed to, and remain as frames. Planar, ball and floating joints become chains of joints with one variable each,
    see :func:`components`. The base has the inertia of the root and of the links fixed to it.

    Raises RobotDescriptionError if links and joints form no tree, a name is unknown or used twice, no joint moves, or
    the description is unphysical; the message names element and rule.
    """
    branches = description.branches if branches is None else branches
    unphysical = description.unphysical if unphysical is None else unphysical
    choice(branches, "branches", BRANCHES, RobotDescriptionError)
    if unphysical is not None:
        choice(unphysical, "unphysical", UNPHYSICAL, RobotDescriptionError)
    option_tips, tool_names = _names(tip, "tip"), _names(tools, "tools")
    tips = option_tips or _names(description.tip, "tip")
    if gravity is None:
        gravity = description.base_gravity  # None: derived from the root's gravity
        if gravity is not None and root not in (None, description.root):
            raise RobotDescriptionError(
                f"{description.source}: gravity is given in the frame of {description.root}, but the base is {root}; "
                "give gravity in the frame of the base"
            )
    given_links = [("tip", name) for name in option_tips] + ([] if root is None else [("root", root)])
    root = description.root if root is None else root
    if len(description.joints) > _MOST_JOINTS:
        description.refuse("joints", f"must be at most {_MOST_JOINTS}, are {len(description.joints)}")
    _check_names(description)
    base = root_link(description)
    for option, name in given_links:
        link_of(replace(description, prefix=""), name, option)  # the option is not an entry of the file
    if root is not None:
        base = link_of(description, root, "root")
    part = select_subtree(resolve_mimics(description), base, tips, branches)
    bodies = _Bodies(part, base)
    if not bodies.joints:
        part.refuse("joints", "at least one joint must move; all are fixed")
    if len(bodies.joints) > _MOST_MOVING:
        part.refuse(
            "joints", f"at most {_MOST_MOVING} may move, {len(bodies.joints)} do; give a tip to use a part of the robot"
        )
    robot = _robot(part, bodies, tool_names or option_tips or part.tools or tips, gravity)
    for line in (*part.warnings, *bodies.rounding_warnings, *_partial_transmission_warnings(robot, part.transmissions)):
        warnings.warn(f"{part.source}: {line}", RobotDescriptionWarning, stacklevel=3)
    violations = _violations(part, bodies, robot)
    refused = {"refuse": violations, "warn": []}.get(unphysical or "", [x for x in violations if x.is_impossible])
    if refused:
        remedy = "to load it anyway, set unphysical: warn"
        raise RobotDescriptionError(*(part.message(x.where, f"{x.reason}; {remedy}") for x in refused[:20]))
    all_bodies = [("base", bodies.base), *((joint.name, joint.inertial) for joint in bodies.joints)]
    names = [name for name, body in all_bodies if part.inertia_reference == "link" and body_violation(body)]
    if names:
        reason = f"link gives physically inconsistent inertia about the center of mass ({', '.join(names)}); try com"
        violations.append(_Violation(f"{part.prefix}inertia_reference", reason))
    for x in violations:
        warnings.warn(f"{part.source}: {x.where}: {x.reason}", RobotDescriptionWarning, stacklevel=3)
    return robot


def _robot(part: Description, bodies: _Bodies, tools: Sequence[str], gravity: Array | None) -> Robot:
    """Robot of a part, with tools (default: the last body) and gravity (default: gravity of the part)."""
    frames = bodies.frames(part)
    last = [joint.child for joint in part.joints if joint.type != "fixed"][-1]
    robot = Robot(
        name=part.name,
        joints=_add_rotor_mounts(_add_mimics(bodies.joints, part), part, frames),
        gravity=part.gravity if gravity is None else gravity,
        tools=tuple(_tool(part, frames, name) for name in tools or (last,)),
        frames=tuple(frames.values()),
        merged=tuple(bodies.merged),
        assumed=(
            *part.assumed,
            *(f"joint {joint.name} is {joint.locked_because}" for joint in part.joints if joint.locked_because),
            *(() if tools else _tool_candidates(part, last)),
        ),
        base=bodies.base,
        **{field.name: getattr(part, field.name) for field in fields(RobotProperties)},
    )
    return replace(
        robot,
        coupled_stiffness=_with_joint_indices(part, robot, part.coupled_stiffness),
        transmission=_joined_transmissions([_with_joint_indices(part, robot, group) for group in part.transmissions]),
    )


def _tool_candidates(part: Description, last: str) -> tuple[str, ...]:
    """Note on links at the ends of fixed joints behind the last body, such as ``tool0``; "" without such links."""
    fixed: dict[str, list[str]] = {}
    for joint in part.joints:
        if joint.type == "fixed" and not joint.locked_because:
            fixed.setdefault(joint.parent, []).append(joint.child)
    behind, ends = [last], []
    for name in behind:  # grows during the loop
        behind += fixed.get(name, [])
        if name not in fixed and name != last:
            ends.append(name)
    if not ends:
        return ()
    choice = f"--tool {ends[0]}, or tools: {ends[0]} in a parameter file"
    return (f"the tool is {last}, the last body; fixed to it: {', '.join(ends)}; to choose one: {choice}",)


class _Violation(NamedTuple):
    """Unphysical property: location, reason, and whether no rounding or idealization explains it."""

    where: str
    reason: str
    is_impossible: bool = False


def _violations(part: Description, bodies: _Bodies, robot: Robot) -> list[_Violation]:
    """All unphysical properties."""
    violations = [_Violation(joint.where, joint.locked_because) for joint in part.joints if joint.locked_because]
    violations += bodies.violations(part)
    if massless := joints_without_inertia(robot):
        places = {name: joint.where for joint in part.joints for name, _ in components(joint)}
        reason = (
            f"the mass matrix is singular, since no mass moves with {', '.join(massless)}: give a body that moves mass "
            "off the axis, or inertia about it, or leave the joint out with a tip"
        )
        violations.append(_Violation(places[massless[0]], reason))
    return violations


class _Bodies:
    """Bodies and their joints, built up link by link."""

    def __init__(self, part: Description, base: str) -> None:
        self.joints: list[Joint] = []
        self.merged: list[str] = []
        self.rounding_warnings: list[str] = []
        self.base = self._inertial_of(part, base)
        self.places = {base: Frame(base, -1, np.eye(4))}
        for joint in part.joints:
            self._add(joint, part)

    def violations(self, part: Description) -> list[_Violation]:
        """Physically inconsistent bodies."""
        violations = []
        for i, body in enumerate((self.base, *(joint.inertial for joint in self.joints)), start=-1):
            reason = body_violation(body, about_origin=part.inertia_reference == "link")
            if reason is None:
                continue
            names = [name for name, place in self.places.items() if place.joint == i]
            inertials = {name: inertial for name in names if (inertial := part.links[name].inertial) is not None}
            first = next((name for name in inertials if body_violation(inertials[name])), next(iter(inertials)))
            merged = f" (body of the links {', '.join(inertials)})" if len(inertials) > 1 else ""
            of_base = "; it counts on a floating base only" if i < 0 else ""
            text = f"{reason}{merged}{part.links[first].advice}{of_base}"
            violations.append(_Violation(part.links[first].where, text, body.mass < 0))
        return violations

    def frames(self, part: Description) -> dict[str, Frame]:
        """All named frames: links, and frames on links."""
        frames = dict(self.places)
        for frame in part.frames:
            link = self.places[frame.link]
            frames[frame.name] = Frame(frame.name, link.joint, link.pose @ frame.pose)
        return frames

    def _inertial_of(self, part: Description, link: str) -> Inertial:
        """Mass and inertia of a link; massless if they are rounding errors of zero."""
        inertial = part.links[link].inertial
        if inertial is not None and is_rounding_of_zero(inertial):
            where = part.links[link].where
            self.rounding_warnings.append(f"{where}: mass and inertia are rounding errors, and taken as zero")
            return Inertial.massless()
        return inertial or Inertial.massless()

    def _add(self, joint: JointDescription, part: Description) -> None:
        parent = self.places[joint.parent]
        inertial = self._inertial_of(part, joint.child)
        pose = parent.pose @ joint.origin
        if joint.type != "fixed":
            self.places[joint.child] = Frame(joint.child, self._move(joint, parent.joint, pose, inertial), np.eye(4))
            return
        self.places[joint.child] = Frame(joint.child, parent.joint, pose)
        onto = "the base" if parent.joint < 0 else f"the body of {self.joints[parent.joint].name}"
        self.merged.append(f"link {joint.child} into {onto} ({inertial.mass:g} kg)")
        if parent.joint < 0:
            self.base = self.base + inertial.moved(pose)
        else:
            body = self.joints[parent.joint]
            total = body.inertial + inertial.moved(pose)
            if total.mass == 0 and np.any(total.center_of_mass):
                part.refuse(part.links[joint.child].where, f"its mass and that of the body of {body.name} add up to 0")
            self.joints[parent.joint] = body.with_inertial(total)

    def _move(self, joint: JointDescription, parent: int, pose: Array, inertial: Inertial) -> int:
        """Append the components of a joint and return the index of the last component, which moves the link."""
        chain = components(joint)
        properties = {field.name: getattr(joint, field.name) for field in fields(JointProperties) if len(chain) == 1}
        for k, (name, screw) in enumerate(chain, start=1):
            body = inertial if k == len(chain) else Inertial.massless()
            mass = body.mass, body.center_of_mass, body.about_origin
            self.joints.append(Joint(name, screw, pose, parent, *mass, **properties))
            parent, pose = len(self.joints) - 1, np.eye(4)
        return parent


def _with_joint_indices(
    part: Description, robot: Robot, group: JointGroup[SharedElement] | None
) -> tuple[tuple[int, ...], SharedElement] | None:
    """Group with its joints by index in joint vectors; None if no joint belongs to this part."""
    still = [name for name in group.joints if name not in robot.joint_names] if group is not None else []
    if group is None or len(still) == len(group.joints) or (still and group.optional):
        return None
    for name in still:
        part.refuse(group.where, f"joint {name} does not move in this part of the robot, others of the group do")
    return tuple(robot.joint_names.index(name) for name in group.joints), group.element


def _joined_transmissions(
    groups: Sequence[tuple[tuple[int, ...], Transmission] | None],
) -> tuple[tuple[int, ...], Transmission] | None:
    """Single transmission of all independent groups; None without groups."""
    present = [group for group in groups if group is not None]
    if len(present) < 2:
        return present[0] if present else None
    from scipy.linalg import block_diag  # few robots have two, and SciPy takes long to import

    joints = tuple(joint for group in present for joint in group[0])
    matrix = block_diag(*(transmission.matrix for _, transmission in present))
    actuators = [name for group, transmission in present for name in transmission.actuators or [""] * len(group)]
    return joints, Transmission(matrix, actuators)


def _partial_transmission_warnings(robot: Robot, groups: Sequence[JointGroup[Transmission]]) -> list[str]:
    """Warning lines of optional transmissions with only some moving joints."""
    still = {group: [name for name in group.joints if name not in robot.joint_names] for group in groups}
    return [
        f"{group.where} is ignored: {', '.join(names)} does not move in this part of the robot"
        for group, names in still.items()
        if group.optional and 0 < len(names) < len(group.joints)
    ]


def _add_mimics(joints: Sequence[Joint], part: Description) -> list[Joint]:
    index = {joint.name: i for i, joint in enumerate(joints)}
    followers = {joint.name: joint.mimic for joint in part.joints if joint.mimic is not None}
    mimics = {name: Mimic(index[mimic.leader], mimic.ratio, mimic.offset) for name, mimic in followers.items()}
    return [replace(joint, mimic=mimics.get(joint.name)) for joint in joints]


def _add_rotor_mounts(joints: Sequence[Joint], part: Description, frames: dict[str, Frame]) -> tuple[Joint, ...]:
    """Joints with the rotor mounts of the description; ``frames`` are the frames of links by name."""
    rotors = {joint.name: (joint.rotor, joint.parent) for joint in part.joints if joint.rotor is not None}
    if not rotors:
        return tuple(joints)
    poses: list[Array] = []  # body poses in the base frame, all joints at 0
    for joint in joints:
        poses.append((poses[joint.parent] if joint.parent >= 0 else np.eye(4)) @ joint.reference_pose)
    mounted = []
    for joint, pose in zip(joints, poses, strict=True):
        if joint.name in rotors:
            rotor, parent = rotors[joint.name]
            carrier = rotor.carrier or parent
            if carrier not in part.links:
                part.refuse(f"{rotor.where}.carrier", f"no link {carrier!r} in this part of the robot")
            place = frames[carrier]
            if rotor.axis is None:
                carrier_pose = poses[place.joint] if place.joint >= 0 else np.eye(4)
                axis = carrier_pose[:3, :3].T @ pose[:3, :3] @ joint.axis
            else:
                axis = place.pose[:3, :3] @ rotor.axis
            joint = replace(joint, rotor_mount=RotorMount(place.joint, axis))
        mounted.append(joint)
    return tuple(mounted)


def _check_names(description: Description) -> None:
    """Refuse duplicate names of joints, components of joints, links and frames."""
    where_used: dict[str, str] = {}
    for joint in description.joints:
        for name, _ in components(joint):
            if name in where_used:
                description.refuse(joint.where, f"the name {name!r} is already used by {where_used[name]}")
            where_used[name] = joint.where
    twice = duplicates(frame.name for frame in description.frames)
    for frame in description.frames:
        if frame.name in description.links or frame.name in twice:
            description.refuse(frame.where, f"the name {frame.name!r} is already used by another link or frame")


def _names(value: str | Sequence[str], option: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in duplicates(names):
        raise RobotDescriptionError(f"{option}: {name!r} is listed twice")
    return names


def _tool(part: Description, frames: dict[str, Frame], name: str) -> Frame:
    if name not in frames:
        part.refuse("tools", f"no link or frame {name!r}; {hint(name, frames)}")
    if frames[name].joint < 0:
        part.refuse("tools", f"{name!r} is fixed to the base, where a wrench has no effect on the joints")
    return frames[name]

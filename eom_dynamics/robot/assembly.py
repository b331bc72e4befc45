# SPDX-License-Identifier: Apache-2.0
"""From a description to a robot: links that move together become one body, each moved by one joint."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..drivetrain.actuator import IDEAL_ACTUATOR
from ..drivetrain.springs import AnySpring, LinearSpring, RigidSpring
from ..exceptions import RobotDescriptionError, RobotDescriptionWarning
from .composition import elements
from .description import Description, Group, JointDescription, Whole
from .following import resolved
from .graph import root_link
from .inertia import Inertial
from .mobility import massless_motion
from .model import NO_LIMITS, Frame, Joint, Mimic, Robot, RotorMount
from .part import BRANCHES, pick

Array = NDArray[np.float64]

# More joints, and more that move, than any robot has: what is checked at loading grows with their square, and cube.
_MOST_JOINTS, _MOST_MOVING = 5000, 500


def assemble(
    description: Description,
    *,
    root: str | None = None,
    tip: str | Sequence[str] = (),
    tools: str | Sequence[str] = (),
    branches: str = "lump",
    gravity: Array | None = None,
    unphysical: str = "refuse",
) -> Robot:
    """Put a robot together.

    A body's frame is that of the link that its joint moves. Links on fixed joints become part of the body that
    they are fixed to, and stay as frames. Planar and floating joints become rows of joints, see
    :mod:`eom_dynamics.robot.composition`. The base's own inertia moves nothing and is left out.

    Args:
        description: the links and joints.
        root: name of the link to be the base, instead of the description's own.
        tip: names of the links where the robot ends; by default it is all that is below the root.
        tools: names of the links or frames at which external wrenches act; by default the tips, else those that
            the description names, else the last body.
        branches: ``lump`` or ``drop`` what leads to no tip: see :data:`eom_dynamics.robot.part.BRANCHES`.
        gravity: (3,), m/s², in the frame of the base, instead of the description's.
        unphysical: ``refuse`` inertia that no body can have, and motion without mass; or ``warn`` of it.

    Raises:
        RobotDescriptionError: links and joints are no tree, a name is missing or stands there twice, nothing
            moves, or something moves without moving mass. The message names the element and the rule.
    """
    if branches not in BRANCHES:
        raise RobotDescriptionError(f"branches must be one of {', '.join(BRANCHES)}, is {branches!r}")
    if unphysical not in ("refuse", "warn"):
        raise RobotDescriptionError(f"unphysical must be one of refuse, warn, is {unphysical!r}")
    tips, tool_names = _names(tip, "tip"), _names(tools, "tools")
    if len(description.joints) > _MOST_JOINTS:
        description.refuse("joints", f"there are {len(description.joints)}, at most {_MOST_JOINTS} may be")
    _check_names(description)
    root_link(description)
    whole = resolved(description)
    doubts = [(link.where, link.objection) for link in whole.links.values() if link.objection]
    part = pick(whole, root, tips, branches)
    base = root if root is not None and root in part.links else root_link(part)
    bodies = _Bodies(part, base)
    if not bodies.joints:
        part.refuse("joints", "none of them moves")
    if len(bodies.joints) > _MOST_MOVING:
        part.refuse("joints", f"{len(bodies.joints)} of them move; at most {_MOST_MOVING} may")
    known = bodies.frames(part)
    last = [joint.child for joint in part.joints if joint.type != "fixed"][-1]
    robot = Robot(
        name=description.name,
        joints=_with_rotors(_with_mimics(bodies.joints, part), part, known),
        gravity=part.gravity if gravity is None else gravity,
        tools=tuple(_tool(part, known, name) for name in tool_names or tips or part.tools or (last,)),
        frames=tuple(known.values()),
        merged=tuple(bodies.merged),
        assumed=part.assumed,
        rotor_model=part.rotor_model,
    )
    robot = replace(
        robot,
        coupled_stiffness=_grouped(part, robot, part.coupled_stiffness),
        transmission=_grouped(part, robot, part.transmission),
    )
    if without := massless_motion(robot):
        where = {name: joint.where for joint in part.joints for name, _ in elements(joint)}
        reason = (
            f"the motion of {', '.join(without)} moves no mass, so that the mass matrix is singular: some body that "
            "moves needs mass off the axis, or inertia about it"
        )
        doubts.append((where[without[0]], reason))
    if doubts and unphysical == "refuse":
        part.refuse(*doubts[0])
    if doubts:
        shown = "; ".join(f"{where}: {reason}" for where, reason in doubts)
        warnings.warn(f"{part.source}: {shown}", RobotDescriptionWarning, stacklevel=3)
    return robot


@dataclass(frozen=True, eq=False)
class _Placed:
    """Where a link is: the body it is part of (-1: the base), and its pose (4, 4) in the body's frame."""

    body: int
    pose: Array


class _Bodies:
    """Bodies and their joints, as links are put together one by one."""

    def __init__(self, part: Description, base: str) -> None:
        self.joints: list[Joint] = []
        self.merged: list[str] = []
        self.places = {base: _Placed(-1, np.eye(4))}
        for joint in part.joints:
            self._add(joint, part)

    def frames(self, part: Description) -> dict[str, Frame]:
        """All named frames: links, and frames on links."""
        frames = {name: Frame(name, place.body, place.pose) for name, place in self.places.items()}
        for frame in part.frames:
            place = self.places[frame.link]
            frames[frame.name] = Frame(frame.name, place.body, place.pose @ frame.pose)
        return frames

    def _add(self, joint: JointDescription, part: Description) -> None:
        parent = self.places[joint.parent]
        inertial = part.links[joint.child].inertial or Inertial.nothing()
        pose = parent.pose @ joint.origin
        if joint.type != "fixed":
            self.places[joint.child] = _Placed(self._move(joint, parent.body, pose, inertial), np.eye(4))
            return
        self.places[joint.child] = _Placed(parent.body, pose)
        onto = "the base" if parent.body < 0 else f"the body of {self.joints[parent.body].name}"
        self.merged.append(f"link {joint.child} into {onto} ({inertial.mass:g} kg)")
        if parent.body >= 0:
            body = self.joints[parent.body]
            total = _inertial(body) + inertial.moved(pose)
            self.joints[parent.body] = _with_inertial(body, total)

    def _move(self, joint: JointDescription, parent: int, pose: Array, inertial: Inertial) -> int:
        """Append the joints that a joint consists of; returns the index of the last, which moves the link."""
        row = elements(joint)
        single = len(row) == 1
        for element in row:
            last = element is row[-1]
            self.joints.append(
                _with_inertial(
                    Joint(
                        name=element.name,
                        screw=element.screw,
                        reference_pose=pose,
                        parent=parent,
                        mass=0.0,
                        center_of_mass=np.zeros(3),
                        inertia_about_origin=np.zeros((3, 3)),
                        **(_spring(joint.elasticity) if single else {}),
                        rotor_inertia=joint.rotor_inertia if single else 0.0,
                        limits=joint.limits if single else NO_LIMITS,
                        damping=joint.damping if single else 0.0,
                        friction=joint.friction if single else 0.0,
                        gear_ratio=joint.gear_ratio if single else 1.0,
                        actuator=joint.actuator if single else IDEAL_ACTUATOR,
                    ),
                    inertial if last else Inertial.nothing(),
                )
            )
            parent, pose = len(self.joints) - 1, np.eye(4)
        return parent


def _spring(spring: AnySpring) -> dict[str, Any]:
    """Stiffness of a joint, and its elasticity where that is not all."""
    linear = isinstance(spring, (LinearSpring, RigidSpring))
    return {"stiffness": float(spring.rest_stiffness), "elasticity": None if linear else spring}


def _grouped(part: Description, robot: Robot, group: Group[Whole] | None) -> tuple[tuple[int, ...], Whole] | None:
    """The group with its joints by their number in joint vectors; none where none of its joints is in the part."""
    if group is None or not set(group.joints) & set(robot.joint_names):
        return None
    for name in group.joints:
        if name not in robot.joint_names:
            part.refuse(group.where, f"joint {name} does not move in this part of the robot, others of the group do")
    return tuple(robot.joint_names.index(name) for name in group.joints), group.whole


def _inertial(body: Joint) -> Inertial:
    return Inertial(body.mass, body.center_of_mass, body.inertia_about_origin)


def _with_inertial(body: Joint, inertial: Inertial) -> Joint:
    return replace(
        body,
        mass=inertial.mass,
        center_of_mass=inertial.center_of_mass,
        inertia_about_origin=inertial.about_origin,
    )


def _with_mimics(joints: Sequence[Joint], part: Description) -> tuple[Joint, ...]:
    index = {joint.name: i for i, joint in enumerate(joints)}
    mimics = {
        joint.name: Mimic(index[joint.mimic.leader], joint.mimic.ratio, joint.mimic.offset)
        for joint in part.joints
        if joint.mimic is not None
    }
    return tuple(replace(joint, mimic=mimics.get(joint.name)) for joint in joints)


def _with_rotors(joints: Sequence[Joint], part: Description, known: dict[str, Frame]) -> tuple[Joint, ...]:
    """The joints with their rotors where the description says that these spin; links by the frames of that name."""
    given = {joint.name: (joint.rotor, joint.parent) for joint in part.joints if joint.rotor is not None}
    if not given:
        return tuple(joints)
    poses: list[Array] = []  # of all bodies in the base frame, all joints at 0
    for joint in joints:
        poses.append((poses[joint.parent] if joint.parent >= 0 else np.eye(4)) @ joint.reference_pose)
    mounted = []
    for joint, pose in zip(joints, poses, strict=True):
        if joint.name not in given:
            mounted.append(joint)
            continue
        rotor, parent = given[joint.name]
        carrier = rotor.carrier or parent
        if carrier not in part.links:
            part.refuse(f"{rotor.where}.carrier", f"there is no link {carrier!r} in this part of the robot")
        place = known[carrier]
        if rotor.axis is None:
            body = poses[place.joint] if place.joint >= 0 else np.eye(4)
            axis = body[:3, :3].T @ pose[:3, :3] @ joint.axis
        else:
            axis = place.pose[:3, :3] @ rotor.axis
        mounted.append(replace(joint, rotor_mount=RotorMount(place.joint, axis)))
    return tuple(mounted)


def _check_names(description: Description) -> None:
    """Refuse names that stand there twice: of joints, parts of joints, links and frames."""
    seen: dict[str, str] = {}
    for joint in description.joints:
        for name, _ in elements(joint):
            if name in seen:
                description.refuse(joint.where, f"its name {name!r} is also that of {seen[name]}")
            seen[name] = joint.where
    for frame in description.frames:
        if frame.name in description.links or [other.name for other in description.frames].count(frame.name) > 1:
            description.refuse(frame.where, f"there is another link or frame of the name {frame.name!r}")


def _names(value: str | Sequence[str], option: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    for name in names:
        if names.count(name) > 1:
            raise RobotDescriptionError(f"{option}: {name!r} stands there twice")
    return names


def _tool(part: Description, known: dict[str, Frame], name: str) -> Frame:
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(list(known)[:20])}"
        part.refuse("tools", f"there is no link or frame {name!r}; {hint}")
    if known[name].joint < 0:
        part.refuse("tools", f"{name!r} is fixed to the base, where a wrench does no work at any joint")
    return known[name]

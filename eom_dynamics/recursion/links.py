# SPDX-License-Identifier: Apache-2.0
"""Link frames and regrouped inertias that minimize the cost of the recursion.

Three choices leave all joint efforts unchanged:

- The frame of a link may lie anywhere along its joint axis and be rotated about it. Here z is along the axis, and x
  along the common normal to the next axis unless the two are almost parallel. The step from the parent's frame is then
  a screw motion along x, followed by a screw motion along z that includes the joint motion: the modified
  Denavit-Hartenberg convention of J. J. Craig, "Introduction to Robotics".
- The motion of a revolute joint does not depend on the inertia on its axis. This part of a link's inertia (mass, first
  and second moment along z) is moved to its parent: the regrouping of M. Gautier and W. Khalil, "Direct calculation of
  minimum set of inertial parameters of serial robots", IEEE Trans. Robot. Autom. 6 (1990).
- A prismatic joint does not rotate its link, so that the entire second moment of the link is moved to its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from .. import lie
from ..actuators.friction import Friction
from ..arrays import Array
from ..jet import Jet
from ..robot import Robot
from .passive_efforts import PassiveJoint, passive_joints

# Below this sine of the angle between two axes, rounding determines their common normal. (For exactly parallel axes,
# any normal is valid.)
_NEARLY_PARALLEL = 1e-6

# Largest shift of an origin, in sizes of the robot: the common normal of nearly parallel axes can be anywhere, and
# moments about an origin at a distance of d sizes are d² times less accurate.
_FAR = 10.0

# Bound of the rounding error of entries -1, 0 and 1 of a product of a few rotation matrices.
_ROUNDING = 4e-15


@dataclass(frozen=True, eq=False)
class Moments:
    """Mass, kg, first moment (3,), kg m, and second moment, the integral of r r' dm (3, 3), kg m²."""

    mass: float
    first_moment: Array
    second_moment: Array


@dataclass(frozen=True, eq=False)
class Link:
    """A link that moves along or about the z axis of its frame.

    The parent's frame is mapped to the link's by ``rotation`` and ``translation``, followed by a rotation about z by
    ``angle + x`` (``angle`` for a prismatic joint) and a translation along z by ``offset + pitch x``, where ``x`` is
    ``ratio`` times a joint variable of the robot.

    Attributes:
        parent: index of the parent; -1 for the base.
        coordinate: index of the joint variable; ratio: factor of a mimic joint, else 1.
        rotation: (3, 3); translation: (3,), m, in the parent's frame.
        turns: whether the joint rotates the link (revolute, helical) or only translates it (prismatic).
        angle: constant rotation about z, rad; 0 for a prismatic joint.
        offset: constant translation along z, m.
        pitch: pitch, m/rad; 0 for a revolute joint, 1 for a prismatic joint.
        mass: kg; first_moment: (3,), kg m; second_moment: integral of r r' dm, (3, 3), kg m²; regrouped, in the link's
            frame and about its origin.
    """

    parent: int
    coordinate: int
    ratio: float
    rotation: Array
    translation: Array
    turns: bool
    angle: float
    offset: float
    pitch: float
    mass: float
    first_moment: Array
    second_moment: Array

    def displacement(self, states: Sequence[Sequence[Any]]) -> Jet:
        """Displacement ``x`` with its derivatives, from q, qd, … of the robot."""
        return self.ratio * Jet([state[self.coordinate] for state in states])


@dataclass(frozen=True, eq=False)
class LinkTree:
    """Links of a robot, in the order of its joints.

    Attributes:
        links: the links.
        gravity: gravitational acceleration (3,), m/s², in the base frame.
        tools: index of the link (-1: the base) of each tool, and its pose (4, 4) in the link's frame.
        base: inertia of the base, in its frame, including inertia moved from links; used only if the base moves.
        friction: joint friction of each link; empty for none.
        passive: joints with constant efforts or parallel springs.
        rotors: rotor inertia accelerated by the effort of each joint variable, kg m² or kg; empty for none.
    """

    links: tuple[Link, ...]
    gravity: Array
    tools: tuple[tuple[int, Array], ...]
    base: Moments
    friction: tuple[Friction, ...] = ()
    passive: tuple[PassiveJoint, ...] = ()
    rotors: tuple[float, ...] = ()

    @property
    def n(self) -> int:
        """Number of joint variables."""
        return 1 + max(link.coordinate for link in self.links)

    def joint_friction(self, rates: Sequence[Sequence[Any]]) -> list[Jet]:
        """Joint friction efforts, D v + c tanh(v/v_0) of a rate v, with a derivative for each of qd, qdd, ….

        A mimic joint with the rate r qd adds r times its friction to its leader's effort.
        """
        efforts = [Jet.constant(0.0, len(rates)) for _ in range(self.n)]
        for link, law in zip(self.links, self.friction, strict=False):
            velocity = link.ratio * Jet([rate[link.coordinate] for rate in rates])
            efforts[link.coordinate] = efforts[link.coordinate] + link.ratio * law.effort_jet(velocity)
        return efforts


Body = TypeVar("Body", Link, Moments)


def link_tree(robot: Robot, *, regrouped: bool = True) -> LinkTree:
    """Links of a robot, in frames with many zeros, with regrouped or original inertias."""
    return tree_in_frames(robot, link_frames(robot), regrouped=regrouped)


def tree_in_frames(robot: Robot, frames: Sequence[Array], *, regrouped: bool = True) -> LinkTree:
    """Links of a robot in specified frames.

    Args:
        frames: pose (4, 4) of each joint's link frame in the robot's body frame; z along the joint axis.
        regrouped: whether to regroup inertias.
    """
    links = []
    for i, joint in enumerate(robot.joints):
        step = joint.reference_pose @ frames[i]
        if joint.parent >= 0:
            step = lie.inverse(frames[joint.parent]) @ step
        links.append(_link(robot, i, step, frames[i]))
    # Poses of tools in the frames of their links; the base has the robot's frame.
    places = [x.pose if x.joint < 0 else lie.inverse(frames[x.joint]) @ x.pose for x in robot.tools]
    tools = tuple((tool.joint, _exact(place)) for tool, place in zip(robot.tools, places, strict=True))
    body = robot.base
    base = Moments(body.mass, body.mass * np.asarray(body.center_of_mass), _second_moment(body.about_origin))
    if regrouped:
        links, base = _regrouped(links, base)
    friction = tuple(joint.friction_law for joint in robot.joints) if robot.joint_friction else ()
    rotors = tuple(robot.rigid_rotors.tolist()) if robot.joint_rotors else ()
    return LinkTree(tuple(links), robot.gravity, tools, base, friction, passive_joints(robot), rotors)


def _second_moment(inertia: Array) -> Array:
    return 0.5 * np.trace(inertia) * np.eye(3) - inertia


def link_frames(robot: Robot) -> list[Array]:
    """Pose (4, 4) of each joint's link frame in the robot's body frame."""
    frames = []
    for joint in robot.joints:  # z along the joint axis; parallel to the body frame if possible
        e, m = joint.screw[:3], joint.screw[3:]
        frames.append(lie.pose(axis_rotation(joint.axis), np.cross(e, m) if np.any(e) else np.zeros(3)))
    # Largest length in the robot, independent of the position of its base.
    lengths = [joint.reference_pose[:3, 3] for joint in robot.joints if joint.parent >= 0]
    lengths += [joint.center_of_mass for joint in robot.joints] + [frame[:3, 3] for frame in frames]
    reach = _FAR * float(np.max(np.linalg.norm(lengths, axis=1)))
    first_child = {joint.parent: i for i, joint in reversed(list(enumerate(robot.joints)))}
    # From the tips to the base, since each frame depends on the frame of its first child; frames of tips remain.
    for i in reversed(range(len(robot.joints))):
        child = first_child.get(i)
        if child is not None:
            frames[i] = _towards(frames[i], robot.joints[child].reference_pose @ frames[child], reach)
    return frames


def axis_rotation(axis: Array) -> Array:
    """Rotation (3, 3) to axes with z along a unit vector (3,); the identity if possible."""
    if np.allclose(axis, [0, 0, 1], rtol=0, atol=_ROUNDING):
        return np.eye(3)
    x = np.cross([0.0, 0.0, 1.0], axis)
    x = x / np.linalg.norm(x) if np.linalg.norm(x) > _NEARLY_PARALLEL else np.array([1.0, 0.0, 0.0])
    x = x - axis * (x @ axis)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])


def _towards(frame: Array, child: Array, reach: float) -> Array:
    """Frame moved along and about its z axis, with x as the common normal to the child's z axis.

    Returned unchanged if the shift exceeds ``reach``.
    """
    z, origin = frame[:3, 2], frame[:3, 3]
    child_z, gap = child[:3, 2], child[:3, 3] - origin
    normal = np.cross(z, child_z)
    sine = float(np.linalg.norm(normal))
    if sine > _NEARLY_PARALLEL:
        x = normal
        # Foot of the common normal on z.
        slide = float(np.cross(gap, child_z) @ normal) / sine**2
    elif sine < _ROUNDING:
        slide = float(gap @ z)
        across = gap - slide * z
        distance = float(np.linalg.norm(across))
        x = across if distance > _ROUNDING else frame[:3, 0]
    else:
        return frame
    if abs(slide) > reach:
        return frame
    # For a short x, rounding leaves a component along z.
    x = x / np.linalg.norm(x)
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    return lie.pose(np.column_stack([x, np.cross(z, x), z]), origin + slide * z)


def _link(robot: Robot, i: int, step: Array, frame: Array) -> Link:
    """Link with the pose (4, 4) ``step`` of its frame in the parent's frame at q = 0; not yet regrouped.

    A mimic joint has a ratio and an offset.
    """
    joint, (E, e) = robot.joints[i], robot.coupling
    coordinate, shift = int(np.flatnonzero(E[i])[0]), float(e[i])
    turns = bool(np.any(joint.screw[:3]))
    rotation, translation = _exact(step)[:3, :3], _exact(step)[:3, 3]
    angle = offset = 0.0
    if turns and abs(rotation[0, 2]) < _ROUNDING:
        # Screw motion along x, then a screw motion along z, merged with the joint motion.
        angle = float(np.arctan2(-rotation[0, 1], rotation[0, 0]))
        x_turn = np.arctan2(-rotation[1, 2], rotation[2, 2])
        rotation = lie.rotation_from_rpy([x_turn, 0.0, 0.0])
        offset = float(rotation[:, 2] @ translation)
        translation = _snapped(translation - offset * rotation[:, 2])
    c = lie.inverse(frame) @ [*joint.center_of_mass, 1.0]
    about_frame = _second_moment(joint.inertia_about_origin)
    R = frame[:3, :3]
    # Steiner's theorem: second moment about the center of mass, plus second moment of the mass at the center.
    about_center = about_frame - joint.mass * np.outer(joint.center_of_mass, joint.center_of_mass)
    second_moment = R.T @ about_center @ R + joint.mass * np.outer(c[:3], c[:3])
    pitch = float(joint.screw[:3] @ joint.screw[3:]) if turns else 1.0
    return Link(
        parent=joint.parent,
        coordinate=coordinate,
        ratio=float(E[i, coordinate]),
        rotation=rotation,
        translation=translation,
        turns=turns,
        angle=angle + shift if turns else angle,
        offset=offset + pitch * shift,
        pitch=pitch,
        mass=joint.mass,
        first_moment=joint.mass * c[:3],
        second_moment=second_moment,
    )


def _regrouped(links: Sequence[Link], base: Moments) -> tuple[list[Link], Moments]:
    """Move the inertia that does not affect its joint from each link to its parent, from the tips to the base."""
    links = list(links)
    zero = np.zeros((3, 3))
    for i in reversed(range(len(links))):
        link = links[i]
        if not link.turns:
            links[i] = replace(link, second_moment=zero)
            moved = Moments(0.0, np.zeros(3), link.rotation @ link.second_moment @ link.rotation.T)
        elif link.pitch == 0:
            # The inertia on the axis equals a thin rod along z.
            m, mz, mzz = link.mass, link.first_moment[2], link.second_moment[2, 2]
            z = link.rotation[:, 2]
            p = link.translation + link.offset * z
            off_axis = link.second_moment.copy()
            off_axis[2, 2] = 0.0
            links[i] = replace(
                link, mass=0.0, first_moment=np.append(link.first_moment[:2], 0.0), second_moment=off_axis
            )
            second_moment = m * np.outer(p, p) + mz * (np.outer(p, z) + np.outer(z, p)) + mzz * np.outer(z, z)
            moved = Moments(m, m * p + mz * z, second_moment)
        else:
            continue
        if link.parent >= 0:
            links[link.parent] = with_moments(links[link.parent], moved)
        else:
            base = with_moments(base, moved)
    return links, base


def with_moments(body: Body, moved: Moments) -> Body:
    """Link or base with the added moments of another body, in its frame."""
    sums = {name: getattr(body, name) + getattr(moved, name) for name in ("mass", "first_moment", "second_moment")}
    return replace(body, **sums)


def _snapped(values: Array) -> Array:
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < _ROUNDING, nearest, values) + 0.0  # no -0.0


def _exact(pose: Array) -> Array:
    """Pose with exact entries -1, 0 or 1 (translations: 0) for entries within rounding."""
    return lie.pose(_snapped(pose[:3, :3]), np.where(np.abs(pose[:3, 3]) < _ROUNDING, 0.0, pose[:3, 3]))

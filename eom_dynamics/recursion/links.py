# SPDX-License-Identifier: Apache-2.0
"""The robot in the frames and with the inertias that make its recursion cheapest, and its efforts the same.

Three freedoms are used, none of which changes a joint effort:

- A body's frame may stand anywhere along its joint's axis and be turned about it. It is put with z along the
  axis and, where axes are skew or cross, with x along the common normal to the next axis. A step from parent
  to body is then a screw motion along x (``angle``, length) followed by one along z that includes the joint's
  own: the modified Denavit-Hartenberg convention of J. J. Craig, "Introduction to Robotics".
- What lies on the axis of a revolute joint does not feel the joint. That part of a body's inertia (mass, first
  and second moment along z) moves to its parent: the regrouping of M. Gautier and W. Khalil, "Direct
  calculation of minimum set of inertial parameters of serial robots", IEEE Trans. Robot. Autom. 6 (1990).
- A prismatic joint does not turn its body, so that the body's whole second moment moves to its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import lie
from ..robot import Joint, Robot

Array = NDArray[np.float64]

# Two axes closer to parallel than this (sine of the angle between them) have no common normal but rounding. Those
# that are exactly parallel have one at will.
_NEARLY_PARALLEL = 1e-6

# No origin moves farther than this many times the size of the robot. Moments about an origin that is d sizes away
# are d² times less exact, and the common normal of nearly parallel axes can be anywhere.
_FAR = 10.0

# Entries of products of a few rotation matrices that are meant to be -1, 0 or 1 are off by less than this.
_ROUNDING = 4e-15


@dataclass(frozen=True, eq=False)
class Link:
    """A body that moves along and about the z axis of its own frame.

    The frame of the body is reached from its parent's by ``rotation`` and ``translation``, then by a turn
    about z of ``angle + x`` (``angle`` where the joint does not turn) and a shift along z of
    ``offset + pitch x``, where ``x`` is ``ratio`` times a joint variable of the robot.

    Attributes:
        parent: index of the parent; -1 for the base.
        coordinate: index of the joint variable; ratio: 1 unless the joint follows another.
        rotation: (3, 3); translation: (3,), m, in the parent's frame.
        turns: whether the joint turns its body (revolute, helical) or only shifts it (prismatic).
        angle: rad; 0 where the joint does not turn.
        offset: m.
        pitch: m/rad; 0 if revolute. For a prismatic joint 1.
        mass: kg; first_moment: (3,), kg m; second_moment: integral of r r' dm, (3, 3), kg m²: about the
            frame's origin and along its axes, regrouped.
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


@dataclass(frozen=True, eq=False)
class LinkTree:
    """Links in the order of the robot's joints.

    Attributes:
        links: the links.
        gravity: (3,), m/s², in the base frame.
        tools: for each tool the index of its link, and its pose (4, 4) in the link's frame.
    """

    links: tuple[Link, ...]
    gravity: Array
    tools: tuple[tuple[int, Array], ...]

    @property
    def n(self) -> int:
        """Number of joint variables."""
        return 1 + max(link.coordinate for link in self.links)


def link_tree(robot: Robot) -> LinkTree:
    """The robot as links along z, with sparse frames and regrouped inertias."""
    return tree_in_frames(robot, _frames(robot))


def tree_in_frames(robot: Robot, frames: Sequence[Array], *, regrouped: bool = True) -> LinkTree:
    """The robot as links along z.

    Args:
        robot: the robot.
        frames: for each body, the pose (4, 4) of the link's frame in the body's given frame; z along the joint's axis.
        regrouped: whether to move to the parents what joints cannot feel.
    """
    links = []
    for i, joint in enumerate(robot.joints):
        step = joint.reference_pose @ frames[i]
        if joint.parent >= 0:
            step = lie.inverse(frames[joint.parent]) @ step
        links.append(_driven(_link(joint, step, frames[i]), robot, i))
    tools = tuple((tool.joint, _exact(lie.inverse(frames[tool.joint]) @ tool.pose)) for tool in robot.tools)
    return LinkTree(tuple(_regrouped(links) if regrouped else links), robot.gravity, tools)


def _driven(link: Link, robot: Robot, i: int) -> Link:
    """The link with the joint variable that moves it, from which it may stand off."""
    E, e = robot.coupling
    coordinate = int(np.flatnonzero(E[i])[0])
    shift = float(e[i])
    return replace(
        link,
        coordinate=coordinate,
        ratio=float(E[i, coordinate]),
        angle=link.angle + shift if link.turns else link.angle,
        offset=link.offset + link.pitch * shift,
    )


def _frames(robot: Robot) -> list[Array]:
    """For each body, the pose (4, 4) of the frame along its joint's axis in the body's given frame."""
    frames = [_along_axis(joint) for joint in robot.joints]
    reach = _FAR * _size(robot, frames)
    first_child = {joint.parent: i for i, joint in reversed(list(enumerate(robot.joints)))}
    # From the tip to the base: where a frame stands depends on the next axis. Without one it stays as given.
    for i in reversed(range(len(robot.joints))):
        child = first_child.get(i)
        if child is not None:
            frames[i] = _towards(frames[i], robot.joints[child].reference_pose @ frames[child], reach)
    return frames


def _size(robot: Robot, frames: list[Array]) -> float:
    """The largest length in the robot, wherever its base may stand."""
    lengths = [joint.reference_pose[:3, 3] for joint in robot.joints if joint.parent >= 0]
    lengths += [joint.center_of_mass for joint in robot.joints] + [frame[:3, 3] for frame in frames]
    return float(np.max(np.linalg.norm(lengths, axis=1)))


def _along_axis(joint: Joint) -> Array:
    """A frame with z along the joint's axis, in the body's frame; the body's own where that is such a frame."""
    e, m = joint.screw[:3], joint.screw[3:]
    axis, point = (e, np.cross(e, m)) if np.any(e) else (m, np.zeros(3))
    if np.allclose(axis, [0, 0, 1], rtol=0, atol=_ROUNDING):
        return lie.pose(np.eye(3), point)
    x = np.cross([0.0, 0.0, 1.0], axis)
    x = x / np.linalg.norm(x) if np.linalg.norm(x) > _NEARLY_PARALLEL else np.array([1.0, 0.0, 0.0])
    x = x - axis * (x @ axis)
    x = x / np.linalg.norm(x)
    return lie.pose(np.column_stack([x, np.cross(axis, x), axis]), point)


def _towards(frame: Array, child: Array, reach: float) -> Array:
    """The frame, slid along its z and turned about it until x is the common normal to the child's z axis.

    It stays as it is where it would have to slide farther than ``reach``.
    """
    z, origin = frame[:3, 2], frame[:3, 3]
    child_z, gap = child[:3, 2], child[:3, 3] - origin
    normal = np.cross(z, child_z)
    sine = float(np.linalg.norm(normal))
    if sine > _NEARLY_PARALLEL:
        x = normal
        # The foot of the common normal on z: where the gap, less a step along each axis, is along x only.
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
    # A short vector across z is mostly rounding, some of it along z.
    x = x / np.linalg.norm(x)
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    return lie.pose(np.column_stack([x, np.cross(z, x), z]), origin + slide * z)


def _link(joint: Joint, step: Array, frame: Array) -> Link:
    """The link with a given step (4, 4) from its parent's frame to its own at q = 0; not yet regrouped."""
    turns = bool(np.any(joint.screw[:3]))
    rotation, translation = _exact(step)[:3, :3], _exact(step)[:3, 3]
    angle = offset = 0.0
    if turns and abs(rotation[0, 2]) < _ROUNDING:
        # A screw along x, then one along z. The second is merged with the joint's own.
        angle = float(np.arctan2(-rotation[0, 1], rotation[0, 0]))
        x_turn = np.arctan2(-rotation[1, 2], rotation[2, 2])
        rotation = lie.rotation_from_rpy([x_turn, 0.0, 0.0])
        offset = float(rotation[:, 2] @ translation)
        translation = _snapped(translation - offset * rotation[:, 2])
    c = lie.inverse(frame) @ [*joint.center_of_mass, 1.0]
    about_given = 0.5 * np.trace(joint.inertia_about_origin) * np.eye(3) - joint.inertia_about_origin
    R = frame[:3, :3]
    # Second moments shift like products of vectors; the mass at the centre of mass carries the shift.
    about_center = about_given - joint.mass * np.outer(joint.center_of_mass, joint.center_of_mass)
    second_moment = R.T @ about_center @ R + joint.mass * np.outer(c[:3], c[:3])
    return Link(
        parent=joint.parent,
        coordinate=0,
        ratio=1.0,
        rotation=rotation,
        translation=translation,
        turns=turns,
        angle=angle,
        offset=offset,
        pitch=float(joint.screw[:3] @ joint.screw[3:]) if turns else 1.0,
        mass=joint.mass,
        first_moment=joint.mass * c[:3],
        second_moment=second_moment,
    )


def _regrouped(links: list[Link]) -> list[Link]:
    """Move to the parent what a joint cannot feel, from the tip to the base."""
    links = list(links)
    for i in reversed(range(len(links))):
        link = links[i]
        if not link.turns:
            links[i] = replace(link, second_moment=np.zeros((3, 3)))
            _add_to_parent(links, link, second_moment=link.rotation @ link.second_moment @ link.rotation.T)
        elif link.pitch == 0:
            # A rod along z with the mass, first and second moment of the body along z.
            m, mz, mzz = link.mass, link.first_moment[2], link.second_moment[2, 2]
            z = link.rotation[:, 2]
            p = link.translation + link.offset * z
            kept = link.second_moment.copy()
            kept[2, 2] = 0.0
            links[i] = replace(link, mass=0.0, first_moment=np.append(link.first_moment[:2], 0.0), second_moment=kept)
            _add_to_parent(
                links,
                link,
                mass=m,
                first_moment=m * p + mz * z,
                second_moment=m * np.outer(p, p) + mz * (np.outer(p, z) + np.outer(z, p)) + mzz * np.outer(z, z),
            )
    return links


def _add_to_parent(links: list[Link], link: Link, **moments: float | Array) -> None:
    if link.parent >= 0:
        parent = links[link.parent]
        links[link.parent] = replace(
            parent, **{name: getattr(parent, name) + moment for name, moment in moments.items()}
        )


def _snapped(values: Array) -> Array:
    nearest = np.round(values)
    return np.where(np.abs(values - nearest) < _ROUNDING, nearest, values) + 0.0  # no -0.0


def _exact(pose: Array) -> Array:
    """The pose without the rounding that hides its zeros and ones."""
    return lie.pose(_snapped(pose[:3, :3]), np.where(np.abs(pose[:3, 3]) < _ROUNDING, 0.0, pose[:3, 3]))

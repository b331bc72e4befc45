# SPDX-License-Identifier: Apache-2.0
"""Random trees with axes in all special positions that matter for the choice of link frames."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from chains import JOINT_TYPES, inertias, numbers
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from eom_dynamics import Joint, Robot, equations_of_motion, lie
from eom_dynamics.arrays import Array
from eom_dynamics.robot.inertia import steiner, symmetric

SMALL = (3e-15, 5e-15, 1e-12, 1e-7, 1.1e-6, 1e-3, 1e-2, 0.1)
"""Sines of angles, and distances in m, on both sides of each threshold of the choice of link frames."""

RIGHT_ANGLES = tuple(
    np.array([np.eye(3)[i] * s for i, s in zip(order, signs, strict=True)])
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1.0, -1.0), repeat=3)
    if np.linalg.det(np.eye(3)[list(order)]) * np.prod(signs) > 0
)
"""The 24 rotations that map coordinate axes to coordinate axes."""


class MovingTree(NamedTuple):
    """A robot, its joint variables with time derivatives (m + 2, n), and m wrenches (m, 6)."""

    robot: Robot
    states: Array
    wrench: Array

    def efforts(self) -> Array:
        """tau, taud, … (m, n) by the closed form."""
        *states, last = self.states
        return np.array(equations_of_motion(self.robot, *states, wrench=self.wrench).efforts(last))


def turn_z(angle: float) -> Array:
    return Rotation.from_euler("z", angle).as_matrix()


def tilt(sine: float) -> Array:
    """Rotation about an axis in the xy plane, neither x nor y."""
    return Rotation.from_rotvec(np.arcsin(sine) * np.array([0.6, 0.8, 0.0])).as_matrix()


def rotations() -> st.SearchStrategy[Array]:
    return numbers(3.0, 3).map(lambda v: Rotation.from_rotvec(v).as_matrix())


@st.composite
def axis_steps(draw: st.DrawFn) -> Array:
    """Pose of the next axis: parallel, intersecting, coincident, at right angles, or almost so."""
    kind = draw(st.sampled_from(["any", "parallel", "coincident", "crossing", "right angles", "almost parallel"]))
    point, turn, small = draw(numbers(0.5, 3)), turn_z(draw(st.floats(-3, 3))), draw(st.sampled_from(SMALL))
    if kind == "any":
        return lie.pose(draw(rotations()), point)
    if kind == "parallel":
        return lie.pose(draw(st.sampled_from([turn, turn @ np.diag([1.0, -1.0, -1.0])])), point)
    if kind == "coincident":
        return lie.pose(turn, [0.6 * small, 0.8 * small, point[2]])
    if kind == "crossing":
        R = draw(st.one_of(rotations(), st.just(tilt(small) @ turn)))
        return lie.pose(R, [0.0, 0.0, point[2]] + R[:, 2] * point[0])
    if kind == "right angles":
        return lie.pose(draw(st.sampled_from(RIGHT_ANGLES)), draw(st.sampled_from([0.0, 1.0])) * np.round(point))
    return lie.pose(tilt(small) @ turn, point)


@st.composite
def trees(draw: st.DrawFn, max_joints: int = 5) -> Robot:
    """Trees with body frames on their joint axes or anywhere else."""
    n = draw(st.integers(1, max_joints))
    bodies: list[Array] = []  # pose of each body frame in the frame of its axis
    joints = []
    for i in range(n):
        parent = draw(st.one_of(st.just(i - 1), st.integers(-1, i - 1)))
        bodies.append(draw(st.one_of(st.just(np.eye(4)), st.builds(lie.pose, rotations(), numbers(0.5, 3)))))
        step = draw(axis_steps()) @ bodies[i]
        joints.append(
            moved_joint(
                parent,
                draw(st.sampled_from(JOINT_TYPES)),
                body=bodies[i],
                reference_pose=lie.inverse(bodies[parent]) @ step if parent >= 0 else step,
                mass=draw(st.floats(0.5, 5.0)),
                center_of_mass=draw(numbers(0.3, 3)),
                inertia=draw(inertias()),
            )
        )
    return Robot("tree", tuple(joints), draw(numbers(10.0, 3)))


def moved_joint(
    parent: int,
    kind: str,
    body: Array,
    reference_pose: Array,
    mass: float,
    center_of_mass: Array,
    inertia: Sequence[float],
) -> Joint:
    """Joint about or along the z axis of a frame in which the body frame has the pose ``body``."""
    screw = np.array([0, 0, 0, 0, 0, 1.0]) if kind == "prismatic" else np.array([0, 0, 1.0, 0, 0, 0])
    if kind == "helical":
        screw[5] = 0.2
    return Joint(
        name=f"joint below {parent}",
        screw=lie.Ad(lie.inverse(body)) @ screw,
        reference_pose=reference_pose,
        parent=parent,
        mass=mass,
        center_of_mass=center_of_mass,
        inertia_about_origin=symmetric(*inertia) + steiner(mass, center_of_mass),
    )


def chain(steps: Sequence[tuple[ArrayLike, ArrayLike]], kind: str = "revolute") -> Robot:
    """Chain with given steps (rotation, translation) between its axes.

    The body frames are rotated and moved relative to the axes, so that no coordinate of an axis is zero.
    """
    rng = np.random.default_rng(len(steps))
    joints: list[Joint] = []
    before = np.eye(4)
    for i, (rotation, translation) in enumerate(steps):
        body = lie.pose(Rotation.from_rotvec(rng.uniform(-2, 2, 3)).as_matrix(), rng.uniform(-0.5, 0.5, 3))
        pose = lie.inverse(before) @ lie.pose(rotation, translation) @ body
        joints.append(
            moved_joint(i - 1, kind, body, pose, 2.0 + i, rng.uniform(-0.3, 0.3, 3), [0.3, 0, 0, 0.4, 0, 0.35])
        )
        before = body
    return Robot("chain", tuple(joints), np.array([1.0, -3.0, -9.0]))


@st.composite
def moving_trees(draw: st.DrawFn, orders: int, max_joints: int = 5) -> MovingTree:
    """Random tree in a random state with a wrench, for efforts with ``orders - 1`` time derivatives."""
    robot = draw(trees(max_joints))
    return MovingTree(robot, draw(numbers(2.0, (orders + 2, robot.n))), draw(numbers(5.0, (orders, 6))))

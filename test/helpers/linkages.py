# SPDX-License-Identifier: Apache-2.0
"""Planar linkages with a closed loop, and their joint angles by trigonometry."""

import numpy as np

from eom_dynamics import Joint, Robot, lie
from eom_dynamics.arrays import Array
from eom_dynamics.loops import ClosedLoopArm, CutJoint
from eom_dynamics.robot.inertia import steiner

TURN_ABOUT_Z = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def bar(name: str, parent: int, x: float, length: float, mass: float) -> Joint:
    """Bar along x with a revolute joint about z, at x on its parent; its center of mass is slightly off its axis."""
    center = np.array([0.5 * length, 0.03, 0.01])
    about_center = mass * np.diag([0.001, length**2 / 12, length**2 / 12])
    return Joint(
        name=name,
        screw=TURN_ABOUT_Z,
        reference_pose=lie.pose(np.eye(3), [x, 0.0, 0.0]),
        parent=parent,
        mass=mass,
        center_of_mass=center,
        inertia_about_origin=about_center + steiner(mass, center),
    )


def pin(predecessor: int, x: float, successor: int, y: float) -> CutJoint:
    """Revolute joint about z between points on the x axes of two bars."""
    return CutJoint(
        name="pin",
        predecessor=predecessor,
        predecessor_pose=lie.pose(np.eye(3), [x, 0.0, 0.0]),
        successor=successor,
        successor_pose=lie.pose(np.eye(3), [y, 0.0, 0.0]),
        screws=TURN_ABOUT_Z[None],
    )


GRAVITY = np.array([1.0, -9.0, 0.5])


def four_bar() -> ClosedLoopArm:
    """Four-bar linkage: crank 0.3, coupler 0.9, rocker 0.6 and ground 1.0 m; driven by its crank."""
    bars = (bar("crank", -1, 0.0, 0.3, 1.0), bar("coupler", 0, 0.3, 0.9, 2.0), bar("rocker", -1, 1.0, 0.6, 1.5))
    return ClosedLoopArm(Robot("four_bar", bars, GRAVITY), [pin(1, 0.9, 2, 0.6)], ["crank"])


def grounded_four_bar() -> ClosedLoopArm:
    """As :func:`four_bar`, with the rocker carried by the coupler, and cut at its bearing on the ground."""
    bars = (bar("crank", -1, 0.0, 0.3, 1.0), bar("coupler", 0, 0.3, 0.9, 2.0), bar("rocker", 1, 0.9, 0.6, 1.5))
    return ClosedLoopArm(Robot("grounded_four_bar", bars, GRAVITY), [pin(-1, 1.0, 2, 0.6)], ["crank"])


def five_bar() -> ClosedLoopArm:
    """Planar parallel arm with two actuated joints on the base, 0.5 m apart, and bars of 0.4 and 0.7 m."""
    bars = (
        bar("left", -1, 0.0, 0.4, 1.0),
        bar("left_forearm", 0, 0.4, 0.7, 0.8),
        bar("right", -1, 0.5, 0.4, 1.2),
        bar("right_forearm", 2, 0.4, 0.7, 0.6),
    )
    return ClosedLoopArm(Robot("five_bar", bars, GRAVITY), [pin(1, 0.7, 3, 0.7)], ["left", "right"])


def four_bar_angles(crank: float) -> Array:
    """Joint variables of the four-bar linkage by the law of cosines, with the pin above the ground."""
    pin_ground = _apex(0.3 * np.array([np.cos(crank), np.sin(crank)]), np.array([1.0, 0.0]), 0.9, 0.6)
    (coupler, rocker) = pin_ground
    return np.array([crank, coupler - crank, rocker])


def grounded_four_bar_angles(crank: float) -> Array:
    """Joint variables of :func:`grounded_four_bar`; its rocker points from the pin to the ground."""
    crank, coupler, rocker = four_bar_angles(crank)
    return np.array([crank, coupler, rocker + np.pi - coupler - crank])


def five_bar_angles(u: Array) -> Array:
    """Joint variables of the five-bar linkage, with the tool above the line between the elbows."""
    left, right = u
    elbow_left = 0.4 * np.array([np.cos(left), np.sin(left)])
    elbow_right = np.array([0.5, 0.0]) + 0.4 * np.array([np.cos(right), np.sin(right)])
    forearm_left, forearm_right = _apex(elbow_left, elbow_right, 0.7, 0.7)
    return np.array([left, forearm_left - left, right, forearm_right - right])


def _apex(a: Array, b: Array, to_a: float, to_b: float) -> tuple[float, float]:
    """Directions from a and b to the point at given distances from both, to the left of the line from a to b."""
    way = b - a
    distance = float(np.hypot(*way))
    along = np.arctan2(way[1], way[0])
    at_a = np.arccos((distance**2 + to_a**2 - to_b**2) / (2 * distance * to_a))
    at_b = np.arccos((distance**2 + to_b**2 - to_a**2) / (2 * distance * to_b))
    return along + at_a, along + np.pi - at_b

# SPDX-License-Identifier: Apache-2.0
"""The ways in which a parameter file may say where a joint's axis and body are.

All of them lead to the same two things: the pose of the body in its parent at q = 0, and the joint screw in the
body's frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import lie
from .section import Section

Array = NDArray[np.float64]

# An axis written with six digits is a unit vector to this; it is then normalised.
_UNIT_TOLERANCE = 1e-5


class Placement(NamedTuple):
    """Where a joint and its body are.

    Attributes:
        origin: pose (4, 4) of the body in its parent at q = 0.
        screw: joint screw (6,) in the body's frame, angular part first; of a planar joint its normal, of fixed
            and floating joints zero.
    """

    origin: Array
    screw: Array


def _body_screws(joint: Section, kind: str, _: Array) -> Placement:
    """Origin: the body in its parent. Screw: in the body's frame."""
    screw = _screw(joint, kind)
    return Placement(read_origin(joint), screw)


def _spatial_screws(joint: Section, kind: str, parent: Array) -> Placement:
    """Origin and screw: both in the base frame, in the reference configuration."""
    screw = _screw(joint, kind)
    body = read_origin(joint)
    return Placement(lie.inverse(parent) @ body, lie.Ad(lie.inverse(body)) @ screw)


def _dh(joint: Section, kind: str, _: Array) -> Placement:
    """Rz(theta + q) Tz(d) Tx(a) Rx(alpha): the axis is the z axis of the parent's frame; q is added to d in a slide."""
    if kind == "fixed":
        return Placement(read_origin(joint), np.zeros(6))
    a, alpha, d, theta = _dh_row(joint)
    turn, twist = lie.rotation_from_rpy([0.0, 0.0, theta]), lie.rotation_from_rpy([alpha, 0.0, 0.0])
    origin = lie.pose(turn @ twist, turn @ [a, 0.0, 0.0] + [0.0, 0.0, d])
    return Placement(origin, lie.Ad(lie.inverse(origin)) @ _along_z(joint, kind))


def _modified_dh(joint: Section, kind: str, _: Array) -> Placement:
    """Rx(alpha) Tx(a) Rz(theta + q) Tz(d): the axis is the z axis of the body's frame; q is added to d in a slide."""
    if kind == "fixed":
        return Placement(read_origin(joint), np.zeros(6))
    a, alpha, d, theta = _dh_row(joint)
    turn, twist = lie.rotation_from_rpy([0.0, 0.0, theta]), lie.rotation_from_rpy([alpha, 0.0, 0.0])
    origin = lie.pose(twist @ turn, [a, 0.0, 0.0] + twist @ [0.0, 0.0, d])
    return Placement(origin, _along_z(joint, kind))


def _dh_row(joint: Section) -> tuple[float, float, float, float]:
    with joint.section("dh") as row:
        return row.number("a"), row.number("alpha"), row.number("d"), row.number("theta")


def _along_z(joint: Section, kind: str) -> Array:
    if kind == "prismatic":
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    pitch = joint.number("pitch") if kind == "helical" else 0.0
    if kind == "helical" and pitch == 0:
        joint.refuse("pitch", "a helical joint needs a pitch; is it revolute?")
    return np.array([0.0, 0.0, 1.0, 0.0, 0.0, pitch])


def read_origin(section: Section) -> Array:
    """The pose (4, 4) that the entry ``origin`` of a section gives."""
    with section.section("origin") as origin:
        xyz = origin.vector("xyz", 3)
        rpy = origin.vector("rpy", 3)
    return lie.pose(lie.rotation_from_rpy(rpy), xyz)


def _screw(joint: Section, kind: str) -> Array:
    """Read and normalise what a joint of this type moves about or along."""
    if kind in ("fixed", "floating"):
        return np.zeros(6)
    if kind == "planar":
        normal = joint.vector("normal", 3, default=(0.0, 0.0, 1.0))
        return np.concatenate([normal / _length(joint, "normal", normal), np.zeros(3)])
    screw = joint.vector("screw", 6)
    axis, linear = screw[:3], screw[3:]
    if kind == "prismatic":
        if np.any(axis):
            joint.refuse("screw", "a prismatic joint has no angular part: its first three entries must be 0")
        axis = linear
    screw = screw / _length(joint, "screw", axis)
    pitch = float(screw[:3] @ screw[3:])
    if kind in ("revolute", "continuous") and abs(pitch) > _UNIT_TOLERANCE:
        joint.refuse("screw", f"a {kind} joint has no pitch, this one has {pitch:g} m/rad; is it helical?")
    if kind == "helical" and pitch == 0:
        joint.refuse("screw", "a helical joint needs a pitch (linear part along the axis); is it revolute?")
    return screw


def _length(joint: Section, key: str, axis: Array) -> float:
    length = float(np.linalg.norm(axis))
    if length == 0:
        joint.refuse(key, "its axis is zero; it needs a unit vector")
    if abs(length - 1) > _UNIT_TOLERANCE:
        joint.refuse(key, f"its axis must be a unit vector, has length {length:g}")
    return length


CONVENTIONS: Mapping[str, Callable[[Section, str, Array], Placement]] = MappingProxyType(
    {"body_screws": _body_screws, "spatial_screws": _spatial_screws, "dh": _dh, "modified_dh": _modified_dh}
)
"""By name: a function of a joint's section, its type, and the pose (4, 4) of its parent in the base at q = 0."""

DH_TYPES = ("revolute", "continuous", "prismatic", "helical", "fixed")
"""The types of joints that a Denavit-Hartenberg table can hold; fixed ones have an origin instead of a row."""

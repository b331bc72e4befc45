# SPDX-License-Identifier: Apache-2.0
"""Joint conventions of parameter files: body screws, spatial screws, and Denavit-Hartenberg parameters.

Each gives the pose of the body in its parent at q = 0, and the joint screw in the body's frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ... import lie
from ...arrays import Array
from ..description import COMPOSITE_TYPES
from .numbers import warn_of_degrees
from .section import Section

# Error of the length of an axis written with six digits; it is then normalised.
_UNIT_TOLERANCE = 1e-5


class Placement(NamedTuple):
    """Placement of a joint and its body.

    Attributes:
        origin: pose (4, 4) of the body in its parent at q = 0.
        screw: joint screw (6,) in the body's frame, angular part first; for a planar joint the normal, for fixed and
            floating joints zero.
    """

    origin: Array
    screw: Array


def _body_screws(joint: Section, kind: str, _: Array) -> Placement:
    """Origin in the parent's frame, screw in the body's frame."""
    screw = _screw(joint, kind)
    return Placement(read_origin(joint), screw)


def _spatial_screws(joint: Section, kind: str, parent: Array) -> Placement:
    """Origin and screw in the base frame, at q = 0."""
    screw = _screw(joint, kind)
    body = read_origin(joint)
    return Placement(lie.inverse(parent) @ body, lie.Ad(lie.inverse(body)) @ screw)


def _dh(joint: Section, kind: str, _: Array) -> Placement:
    """Rz(theta + q) Tz(d) Tx(a) Rx(alpha): axis z of the parent's frame; prismatic joints add q to d."""
    if kind == "fixed":
        return Placement(read_origin(joint), np.zeros(6))
    along_z, along_x = _dh_steps(joint)
    origin = along_z @ along_x
    return Placement(origin, lie.Ad(lie.inverse(origin)) @ _along_z(joint, kind))


def _modified_dh(joint: Section, kind: str, _: Array) -> Placement:
    """Rx(alpha) Tx(a) Rz(theta + q) Tz(d): axis z of the body's frame; prismatic joints add q to d."""
    if kind == "fixed":
        return Placement(read_origin(joint), np.zeros(6))
    along_z, along_x = _dh_steps(joint)
    return Placement(along_x @ along_z, _along_z(joint, kind))


def _dh_steps(joint: Section) -> tuple[Array, Array]:
    """Poses (4, 4) Rz(theta) Tz(d) and Rx(alpha) Tx(a) of a row."""
    with joint.section("dh") as row:
        a, alpha, d, theta = (row.number(name) for name in ("a", "alpha", "d", "theta"))
        warn_of_degrees(f"{row.source}: {row.name}", (alpha, theta))
    turn, twist = lie.rotation_from_rpy([0.0, 0.0, theta]), lie.rotation_from_rpy([alpha, 0.0, 0.0])
    return lie.pose(turn, [0.0, 0.0, d]), lie.pose(twist, [a, 0.0, 0.0])


def _along_z(joint: Section, kind: str) -> Array:
    if kind == "prismatic":
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    pitch = joint.number("pitch") if kind == "helical" else 0.0
    if kind == "helical" and pitch == 0:
        joint.refuse("pitch", "a helical joint must have a pitch; is it revolute?")
    return np.array([0.0, 0.0, 1.0, 0.0, 0.0, pitch])


def read_origin(section: Section) -> Array:
    """Pose (4, 4) from the entry ``origin`` of a section; ``rpy`` is optional (0)."""
    with section.section("origin") as origin:
        xyz = origin.vector("xyz", 3)
        rpy = origin.vector("rpy", 3, default=(0.0, 0.0, 0.0))
        warn_of_degrees(f"{origin.source}: {origin.name}: rpy", rpy.tolist())
    return lie.pose(lie.rotation_from_rpy(rpy), xyz)


def _screw(joint: Section, kind: str) -> Array:
    """Read and normalise the screw of a joint, or the normal of a planar one."""
    if kind in ("fixed", "ball", "floating"):
        return np.zeros(6)
    if kind in COMPOSITE_TYPES:
        normal = joint.vector("normal", 3, default=(0.0, 0.0, 1.0))
        return np.concatenate([normal / _length(joint, "normal", normal), np.zeros(3)])
    screw = joint.vector("screw", 6)
    axis, linear = screw[:3], screw[3:]
    if kind == "prismatic":
        if np.any(axis):
            joint.refuse("screw", "the angular part of a prismatic joint, the first three entries, must be 0")
        axis = linear
    screw = screw / _length(joint, "screw", axis)
    pitch = float(screw[:3] @ screw[3:])
    if kind in ("revolute", "continuous") and abs(pitch) > _UNIT_TOLERANCE:
        joint.refuse("screw", f"the pitch of a {kind} joint must be 0, is {pitch:g} m/rad; is it helical?")
    if kind == "helical" and pitch == 0:
        joint.refuse("screw", "a helical joint must have a pitch (linear part along the axis); is it revolute?")
    return screw


def _length(joint: Section, key: str, axis: Array) -> float:
    length = float(np.linalg.norm(axis))
    if length == 0:
        joint.refuse(key, "the axis must be a unit vector, is zero")
    if abs(length - 1) > _UNIT_TOLERANCE:
        joint.refuse(key, f"the axis must be a unit vector, has length {length:g}")
    return length


CONVENTIONS: Mapping[str, Callable[[Section, str, Array], Placement]] = MappingProxyType(
    {"body_screws": _body_screws, "spatial_screws": _spatial_screws, "dh": _dh, "modified_dh": _modified_dh}
)
"""By name, functions of a joint's section, its type, and the pose (4, 4) of its parent in the base at q = 0."""

DH_TYPES = ("revolute", "continuous", "prismatic", "helical", "fixed")
"""Joint types of a Denavit-Hartenberg table; fixed joints have an origin instead of a row."""

# SPDX-License-Identifier: Apache-2.0
"""URDF as a description of a robot: what matters to dynamics, every number and name of it checked.

Meshes, materials, collision shapes, sensors and the elements of simulators are passed over, and no path in them
is opened. An element or attribute that is not known but almost is called out, since a misspelt ``<inertial>`` is a
body without mass. Axes are normalised, as everywhere in the URDF world.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from .. import lie
from ..exceptions import RobotDescriptionError
from . import inertia as inertias
from .description import Description, JointDescription, LinkDescription, MimicDescription
from .graph import depth_first
from .inertia import Inertial
from .model import Limits
from .transmissions import Reduction, reductions
from .xml import Element, parse

Array = NDArray[np.float64]

_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")

# Known elements, and which of them stand once.
_ROBOT = ("link", "joint", "material", "transmission", "gazebo", "ros2_control", "sensor")
_LINK = ("inertial", "visual", "collision")
_INERTIAL = ("origin", "mass", "inertia")
_JOINT = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller")

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_LARGEST = 1e12


def description_from_urdf(text: str, source: str = "robot_description") -> Description:
    """Read a URDF.

    Args:
        text: the URDF.
        source: where it comes from; the start of every message.

    Returns:
        The description, its joints depth-first from the root and in the file's order where several hang on a link.

    Raises:
        RobotDescriptionError: the text is no URDF, or says something that no robot can be. The message names the
            line, the element and the rule.
    """
    root = _Node(parse(text, source), source, "")
    if root.tag != "robot":
        root.refuse(f"the root element must be <robot>, is <{root.tag}>")
    name = root.name()
    if any(tag.startswith("xacro:") for tag in root.tags()):
        root.refuse("has xacro elements: expand it with xacro first, or give the path of the .xacro file")
    root.check_tags(_ROBOT, once=())
    links = _by_name(root.all("link", "link"))
    if not links:
        root.refuse("has no <link>")
    joints = _by_name(root.all("joint", "joint"))
    geared, assumed = reductions(root.element, source)
    described = [_joint(node, geared.pop(joint, None)) for joint, node in joints.items()]
    assumed += [f"{gear.where} is left out: there is no joint {joint}" for joint, gear in geared.items()]
    described_links = {link: _link(node) for link, node in links.items()}
    whole = Description(name, source, described_links, tuple(described))
    ordered = depth_first(list(links), described, whole.refuse)
    if without := [joint.name for joint in ordered if not _has_axis(joints[joint.name], joint)]:
        assumed.append(f"axis [1 0 0], the default of URDF: {', '.join(without)}")
    return replace(whole, joints=tuple(ordered), assumed=tuple(assumed))


class _Node:
    """An element with what messages need; typed reading of its attributes."""

    def __init__(self, element: Element, source: str, where: str) -> None:
        self.element, self.tag, self._source = element, element.tag, source
        self.where = where

    def refuse(self, reason: str) -> NoReturn:
        where = f"line {self.element.line}: {self.where}" if self.where else f"line {self.element.line}"
        raise RobotDescriptionError(f"{self._source}: {where}: {reason}")

    def name(self) -> str:
        name = self.text("name").strip()
        if not name or not name.isprintable():
            self.refuse(f"the name of <{self.tag}> must be printable characters, is {name!r:.60}")
        return name

    def tags(self) -> Iterable[str]:
        """The tags of all elements in this one, and its own."""
        waiting = [self.element]
        while waiting:
            element = waiting.pop()
            yield element.tag
            waiting += element.children

    def all(self, tag: str, kind: str) -> list[_Node]:
        """The children of a tag; messages name each by its name."""
        nodes = [_Node(element, self._source, f"<{tag}>") for element in self.element.all(tag)]
        for node in nodes:
            node.where = f"{kind} {node.name()}"
        return nodes

    def child(self, tag: str) -> _Node | None:
        found = self.element.all(tag)
        if len(found) > 1:
            _Node(found[1], self._source, self.where).refuse(f"<{tag}> stands there twice")
        return _Node(found[0], self._source, f"{self.where}: <{tag}>".removeprefix(": ")) if found else None

    def needed(self, tag: str) -> _Node:
        found = self.child(tag)
        if found is None:
            self.refuse(f"<{tag}> is missing")
        return found

    def check_tags(self, known: Sequence[str], once: Sequence[str] | None = None) -> None:
        """Refuse an element that is almost one of those known, and one that stands twice but should not."""
        for element in self.element.children:
            if element.tag not in known and (close := difflib.get_close_matches(element.tag, known, n=1, cutoff=0.75)):
                _Node(element, self._source, self.where).refuse(f"unknown <{element.tag}>; did you mean <{close[0]}>?")
        for tag in known if once is None else once:
            self.child(tag)

    def check_attributes(self, known: Sequence[str]) -> None:
        for attribute in self.element.attributes:
            if attribute not in known and ":" not in attribute:
                self.refuse(f"unknown attribute {attribute!r}; known here: {', '.join(known)}")

    def __contains__(self, attribute: str) -> bool:
        return attribute in self.element.attributes

    def text(self, attribute: str) -> str:
        value = self.element.attributes.get(attribute)
        if value is None:
            self.refuse(f"attribute {attribute!r} is missing")
        return value

    def number(self, attribute: str, default: float | None = None, largest: float = _LARGEST) -> float:
        if default is not None and attribute not in self:
            return default
        return self._number(attribute, self.text(attribute).strip(), largest)

    def vector(self, attribute: str, default: Sequence[float] | None = None) -> Array:
        if default is not None and attribute not in self:
            return np.array(default, dtype=float)
        words = self.text(attribute).split()
        if len(words) != 3:
            self.refuse(f"{attribute} must be three numbers, is {self.text(attribute)!r:.60}")
        return np.array([self._number(attribute, word, _LARGEST) for word in words])

    def _number(self, attribute: str, text: str, largest: float) -> float:
        # Not float() alone: it takes 1_0, nan and digits of all scripts.
        if not text.isascii() or not _NUMBER.fullmatch(text):
            self.refuse(f"{attribute} must be {'finite' if _not_finite(text) else 'a number'}, is {text!r:.60}")
        value = float(text)
        if not abs(value) <= largest:
            self.refuse(f"{attribute} must not exceed {largest:g} in SI units, is {text!r:.60}")
        return value


def _not_finite(text: str) -> bool:
    return text.lower().lstrip("+-") in ("nan", "inf", "infinity")


def _by_name(nodes: Sequence[_Node]) -> dict[str, _Node]:
    found: dict[str, _Node] = {}
    for node in nodes:
        name = node.name()
        if name in found:
            node.refuse(f"there is another {node.tag} of this name, in line {found[name].element.line}")
        found[name] = node
    return found


def _link(node: _Node) -> LinkDescription:
    node.check_tags(_LINK, once=("inertial",))
    inertial = node.child("inertial")
    if inertial is None:
        return LinkDescription(node.name(), None, node.where)
    read, objection = _inertial(inertial)
    return LinkDescription(node.name(), read, f"line {inertial.element.line}: {inertial.where}", objection)


def _inertial(node: _Node) -> tuple[Inertial, str | None]:
    """The inertia in the link's frame, and why no body can have it."""
    node.check_tags(_INERTIAL)
    pose = _origin(node)
    mass, inertia = node.needed("mass"), node.needed("inertia")
    mass.check_attributes(("value",))
    entries = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    inertia.check_attributes(entries)
    kilograms = mass.number("value")
    if kilograms < 0:
        mass.refuse(f"mass must not be negative, is {kilograms:g}")
    about_center = inertias.symmetric(*(inertia.number(entry) for entry in entries))
    if kilograms == 0 and np.any(about_center):
        objection: str | None = "a body without mass has no inertia either: give it mass, or set its inertia to 0"
    else:
        objection = inertias.objection(about_center)
    return Inertial(kilograms, np.zeros(3), about_center).moved(pose), objection


def _origin(node: _Node) -> Array:
    origin = node.child("origin")
    if origin is None:
        return np.eye(4)
    origin.check_attributes(("xyz", "rpy"))
    zero = (0.0, 0.0, 0.0)
    return lie.pose(lie.rotation_from_rpy(origin.vector("rpy", zero)), origin.vector("xyz", zero))


def _joint(node: _Node, geared: Reduction | None) -> JointDescription:
    node.check_tags(_JOINT)
    kind = node.text("type")
    if kind not in _TYPES:
        node.refuse(f"type must be one of {', '.join(_TYPES)}, is {kind!r:.60}")
    ends = []
    for tag in ("parent", "child"):
        end = node.needed(tag)
        end.check_attributes(("link",))
        ends.append(end.text("link").strip())
    damping, friction = _dynamics(node)
    return JointDescription(
        name=node.name(),
        type=kind,
        parent=ends[0],
        child=ends[1],
        origin=_origin(node),
        screw=_screw(node, kind),
        where=node.where,
        mimic=_mimic(node),
        limits=_limits(node, kind),
        damping=damping,
        friction=friction,
        rotor_inertia=geared.rotor_inertia if geared else 0.0,
        gear_ratio=geared.ratio if geared else 1.0,
    )


def _screw(node: _Node, kind: str) -> Array:
    """The joint screw (6,); its axis runs through the origin of the child link."""
    axis = node.child("axis")
    direction = np.array([1.0, 0.0, 0.0])
    if axis is not None:
        axis.check_attributes(("xyz",))
        direction = axis.vector("xyz", direction.tolist())
        length = float(np.linalg.norm(direction))
        if length < 1e-6 and kind not in ("fixed", "floating"):
            axis.refuse("xyz must not be zero: it is the direction of the axis")
        direction = direction / (length or 1.0)
    zero = np.zeros(3)
    return np.concatenate([zero, direction] if kind == "prismatic" else [direction, zero])


def _has_axis(node: _Node, joint: JointDescription) -> bool:
    return joint.type in ("fixed", "floating") or node.child("axis") is not None


def _limits(node: _Node, kind: str) -> Limits:
    limit = node.child("limit")
    if limit is None or kind not in ("revolute", "continuous", "prismatic"):
        return Limits()
    known = ("lower", "upper", "velocity", "effort")
    for attribute in limit.element.attributes:
        if attribute not in known and (close := difflib.get_close_matches(attribute, known, n=1, cutoff=0.8)):
            limit.refuse(f"unknown attribute {attribute!r}; did you mean {close[0]!r}?")
    lower, upper = (limit.number(side, 0.0, math.inf) for side in ("lower", "upper"))
    velocity, effort = (limit.number(what, math.inf, math.inf) for what in ("velocity", "effort"))
    for what, value in (("velocity", velocity), ("effort", effort)):
        if value < 0:
            limit.refuse(f"{what} must not be negative, is {value:g}")
    # URDF has 0 for both where nothing is said, which in practice stands for no limits.
    if kind == "continuous" or ("lower" not in limit and "upper" not in limit):
        return Limits(velocity=velocity, effort=effort)
    if lower > upper:
        limit.refuse(f"lower must not exceed upper, is {lower:g} and {upper:g}")
    return Limits(lower, upper, velocity, effort)


def _dynamics(node: _Node) -> tuple[float, float]:
    dynamics = node.child("dynamics")
    if dynamics is None:
        return 0.0, 0.0
    values = dynamics.number("damping", 0.0), dynamics.number("friction", 0.0)
    for what, value in zip(("damping", "friction"), values, strict=True):
        if value < 0:
            dynamics.refuse(f"{what} must not be negative, is {value:g}")
    return values


def _mimic(node: _Node) -> MimicDescription | None:
    mimic = node.child("mimic")
    if mimic is None:
        return None
    mimic.check_attributes(("joint", "multiplier", "offset"))
    return MimicDescription(mimic.text("joint").strip(), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))

# SPDX-License-Identifier: Apache-2.0
"""URDF reader: links, joints, limits, mimic relations, transmissions, every number and name checked; xacro.

Meshes, materials, collision shapes, sensors and simulator elements are ignored, and no file that they name is
opened. Misspelt elements and attributes are refused: with a misspelt ``<inertial>``, a body would have no mass. Axes
are normalized, as usual for URDF.

Simple transmissions, one motor on one joint, are read in the forms in use::

    <transmission>                      ros_control, transmission_interface/SimpleTransmission
      <joint name="…"/> <actuator name="…"><mechanicalReduction>100</mechanicalReduction></actuator>
    <ros2_control> <transmission>       ros2_control, the same with <mechanical_reduction> in the joint
    <drake:rotor_inertia value="…"/>    with <drake:gear_ratio value="…"/>, in the actuator of the transmission

The inertia J of a rotor about its own shaft (``motorInertia``, ``drake:rotor_inertia``) is N² J on the link side of a
gear of ratio N.

Transmissions with two motors that move two joints together are read from plugins of ros_control and ros2_control,
with positions x of joints and motors, reductions n of joints and motors; others are omitted, and listed:

- ``DifferentialTransmission``: x_j1 = (x_m1/n_m1 + x_m2/n_m2) / (2 n_j1), x_j2 = (x_m1/n_m1 - x_m2/n_m2) / (2 n_j2)
- ``FourBarLinkageTransmission``: x_j1 = x_m1/(n_m1 n_j1), x_j2 = (x_m2/n_m2 - x_m1/(n_m1 n_j1)) / n_j2

The reduction of a motor is the gear ratio of its joint; the reductions of joints are in the matrix of the
:class:`eom_dynamics.actuators.actuator.Transmission`. Offsets between the zeros of motors and joints have no
effect on efforts and are not read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ... import lie
from ...actuators.actuator import Transmission
from ...arguments import warn_of_degrees
from ...arrays import Array
from ...exceptions import MissingLibraryError, RobotDescriptionError, require
from ...spelling import close_match, listed
from ..description import (
    SINGLE_TYPES,
    Description,
    JointDescription,
    JointGroup,
    LinkDescription,
    MimicDescription,
    depth_first,
)
from ..inertia import Inertial, symmetric
from ..model import ENDS, Limits
from .files import MAX_CHARACTERS, DescriptionFile, Element, package_folder, parse, refuse_special_file

_MATRICES = MappingProxyType(
    {
        "DifferentialTransmission": lambda a, b: np.array([[1 / (2 * a), 1 / (2 * a)], [1 / (2 * b), -1 / (2 * b)]]),
        "FourBarLinkageTransmission": lambda a, b: np.array([[1 / a, 0.0], [-1 / (a * b), 1 / b]]),
    }
)
"""Functions of the reductions of both joints, by plugin."""

_RATIO = ("mechanicalReduction", "mechanical_reduction", "drake:gear_ratio")
_INERTIA = ("motorInertia", "motor_inertia", "drake:rotor_inertia")


class Reduction(NamedTuple):
    """Gear ratio, rotor inertia on the link side in kg m², and the location in the file."""

    ratio: float
    rotor_inertia: float
    where: str


class Coupled(NamedTuple):
    """Matrix T (2, 2), theta = T phi, of two joints by name, with names and reductions of the motors."""

    joints: tuple[str, ...]
    actuators: tuple[str, ...]
    motors: tuple[Reduction, Reduction]
    matrix: Array
    where: str

    def unusable(self, joints: Sequence[JointDescription]) -> str | None:
        """Reason why the transmission cannot drive a robot's joints; None if it can."""
        able = {joint.name for joint in joints if joint.type in SINGLE_TYPES and joint.mimic is None}
        for name in self.joints:
            if name not in able:
                return f"{name} is not a joint with a motor of its own"
        return None if self.joints[0] != self.joints[1] else f"both joints are {self.joints[0]}"


def transmissions(robot: Element) -> tuple[dict[str, Reduction], list[Coupled], list[str]]:
    """Read the transmissions of a robot: simple ones by joint name, transmissions of two joints, notes on others.

    Raises RobotDescriptionError if a ratio is zero or not a number, an inertia is negative or not a number, or two
    transmissions drive the same joint.
    """
    reductions, pairs, left_out, driven = dict[str, Reduction](), list[Coupled](), list[str](), dict[str, str]()
    groups = [robot, *robot.all("ros2_control")]
    for element in (element for group in groups for element in group.all("transmission")):
        element.where = f"transmission {element.attributes.get('name', '')}"
        where = f"{element.where} (line {element.line})"
        joints, actuators = element.all("joint"), element.all("actuator")
        if len(joints) == 1 and len(actuators) <= 1:
            names = [joints[0].attributes.get("name", "")]
            reductions.setdefault(names[0], _reduction(element, (element, *element.children), where))
        elif coupled := _coupled(element, where):
            names = list(coupled.joints)
            pairs.append(coupled)
        else:
            left_out.append(f"{where} is ignored: it couples several joints or motors")
            continue
        for joint in dict.fromkeys(names):
            if joint in driven:
                element.refuse(f"joint {joint!r} already has {driven[joint]}")
            driven[joint] = where
    return reductions, pairs, left_out


def _coupled(element: Element, where: str) -> Coupled | None:
    """Read a coupled transmission; None if its kind is unknown or it has not two motors and two joints."""
    joints, actuators = (_by_role(element.all(kind), kind) for kind in ("joint", "actuator"))
    reductions = [_reduction(element, (joint,), where).ratio for joint in joints]
    named = (child for child in element.children if child.tag in ("type", "plugin"))
    kinds = [child.text or child.attributes.get("plugin", "") for child in named]
    matrix = _MATRICES.get(kinds[0].strip().removeprefix("transmission_interface/")) if kinds else None
    if matrix is None or len(joints) != 2 or len(actuators) != 2:
        return None
    names, actuator_names = (tuple(x.attributes.get("name", "") for x in parts) for parts in (joints, actuators))
    motors = _reduction(element, actuators[:1], where), _reduction(element, actuators[1:], where)
    return Coupled(names, actuator_names, motors, matrix(*reductions), where)


def _by_role(elements: Sequence[Element], kind: str) -> Sequence[Element]:
    """Both elements in the order of their roles, ``joint1`` and ``joint2``; in the order of the file without roles."""
    roles = {}
    for element in elements:
        texts = [child.text.strip() for child in element.all("role")]
        roles[texts[0] if texts else element.attributes.get("role", "")] = element
    named = [roles[role] for role in (f"{kind}1", f"{kind}2") if role in roles]
    return named if len(elements) == len(named) == 2 else elements


def _reduction(transmission: Element, parts: Sequence[Element], where: str) -> Reduction:
    """The reduction and rotor inertia that children of these parts of a transmission give."""
    ratio = _value(transmission, parts, _RATIO, 1.0)
    if ratio == 0:
        transmission.refuse("the reduction must not be 0")
    inertia = _value(transmission, parts, _INERTIA, 0.0, "not negative")
    return Reduction(ratio, ratio**2 * inertia, where)


def _value(
    transmission: Element, parts: Sequence[Element], tags: Sequence[str], default: float, rule: str = "finite"
) -> float:
    """Value given by children with these tags in these parts, as text or attribute ``value``.

    All that differ from the default agree.
    """
    values = [
        (child, transmission.parse(f"<{child.tag}>", child.attributes.get("value", child.text), rule))
        for part in parts
        for child in part.children
        if child.tag in tags
    ]
    # Drake models contain ROS's placeholder next to their own elements, and the reverse.
    values = [(child, value) for child, value in values if value != default]
    for child, value in values:
        (first, expected), *_ = values
        if value != expected:
            elements = f"<{first.tag}> {expected:g} (line {first.line}) and <{child.tag}> {value:g} (line {child.line})"
            transmission.refuse(f"{elements} differ: remove one of them, or give both the same value")
    return values[0][1] if values else default


_ONE_AT_A_TIME = Lock()  # xacro keeps its state in global variables


class _Arguments(dict[str, str]):
    """Arguments of a xacro file, and the names that it declares or reads."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.names = set[object]()

    def __contains__(self, name: object) -> bool:
        self.names.add(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)


def expand_xacro(path: Path, arguments: Mapping[str, str]) -> str:
    """Expand a xacro file to URDF by xacro's ``process_file``, with these values of its arguments, ``<xacro:arg>``.

    A xacro file is a program that runs with your rights, without a time limit: expand only files that you trust, and
    no file whose name comes from the network. ``$(find …)`` searches for packages as ``package://`` does.

    RobotDescriptionError if the package ``xacro`` is missing, or the file cannot be read or expanded.
    """
    try:
        require("xacro")
    except MissingLibraryError as error:
        raise RobotDescriptionError(f"{path}: {error}") from None
    refuse_special_file(path)
    xacro: Any = import_module("xacro")
    substitution: Any = import_module("xacro.substitution_args")
    mappings = _Arguments(arguments)
    with _ONE_AT_A_TIME:
        original, substitution._eval_find = substitution._eval_find, package_folder
        try:
            document = xacro.process_file(str(path), mappings=mappings, verbosity=0)
        except Exception as error:  # of xacro, its expressions, the XML parser, the file system
            reason = " ".join(str(error).split()) or type(error).__name__
            raise RobotDescriptionError(f"{path}: xacro refuses it: {reason}") from None
        finally:
            substitution._eval_find = original
    if unknown := arguments.keys() - mappings.names:
        declared = ", ".join(sorted(map(str, mappings.names))) or "none"
        raise RobotDescriptionError(f"{path}: no xacro argument {min(unknown)!r}; it has: {declared}")
    # As the command xacro writes it, so that lines have the same numbers; a document type is not accepted.
    if document.doctype is not None:
        document.replaceChild(document.createComment(""), document.doctype)
    text: str = document.toprettyxml(indent="  ")
    if len(text) > MAX_CHARACTERS:
        raise RobotDescriptionError(f"{path}: expands to {len(text)} characters, may have {MAX_CHARACTERS}")
    return text


_TYPES = ("revolute", "continuous", "prismatic", "fixed", "planar", "floating")

_ROBOT = ("link", "joint", "material", "transmission", "gazebo", "ros2_control", "sensor")
_LINK = ("inertial", "visual", "collision")
_INERTIAL = ("origin", "mass", "inertia")
_JOINT = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration", "safety_controller")
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LIMITS = (*ENDS, "velocity", "effort", "acceleration", "deceleration", "jerk")
# Limits of Drake's URDFs, by the limits that they are.
_DRAKE_LIMITS = {f"drake:{name}": name for name in ("acceleration", "jerk")}
_KNOWN_LIMITS = (*_LIMITS, *_DRAKE_LIMITS)
# The element of Drake within <robot> without an effect on motion.
_DRAKE_GEOMETRY = "drake:collision_filter_group"

XACRO_ENDING = ".xacro"

# Below this length, an axis has no direction; by how much the length of a quaternion may differ from 1.
_NO_DIRECTION, _UNIT = 1e-6, 1e-3


def description_from_urdf(text: str, source: str = "robot_description") -> Description:
    """Read a URDF from ``source``, a file or topic, which is the start of every message.

    Joints are in depth-first order from the root, those below one link in the order of the file. RobotDescriptionError
    if the text is not a URDF, or describes no robot, by the line, the element and the rule.
    """
    root = parse(text, source)
    if root.tag != "robot":
        root.refuse(f"the root element must be <robot>, is <{root.tag}>")
    robot_name = root.name()
    if any(element.tag.startswith("xacro:") for element in root.walk()):
        root.refuse("has xacro elements: expand it with xacro first, or give the path of the .xacro file")
    root.check_children(_ROBOT, once=())
    links, joints = root.named("link"), root.named("joint")
    if not links:
        root.refuse("has no <link>")
    geared, coupled, left_out = transmissions(root)
    described = [_geared(_joint(name, element), geared.pop(name, None)) for name, element in joints.items()]
    shared = []
    for transmission in coupled:
        names, where = transmission.joints, transmission.where
        if reason := transmission.unusable(described):
            left_out.append(f"{where} is ignored: {reason}")
            continue
        # For any part of the robot with both joints.
        shared.append(
            JointGroup(names, Transmission(transmission.matrix, transmission.actuators), where, optional=True)
        )
        motors = dict(zip(names, transmission.motors, strict=True))
        described = [_geared(joint, motors.get(joint.name)) for joint in described]
    assumed = list(left_out)
    assumed += [f"{gear.where} is ignored: there is no joint {joint}" for joint, gear in geared.items()]
    described_links = {name: _link(name, element) for name, element in links.items()}
    unordered = Description(robot_name, source, described_links, tuple(described))
    try:
        ordered = depth_first(unordered)
    except RobotDescriptionError as error:
        if drake := dict.fromkeys(f"<{x.tag}>" for x in root.walk() if x.tag.startswith("drake:")):
            what = f"{error}; the file has {', '.join(drake)} of Drake, which is not URDF and is not read"
            raise RobotDescriptionError(what) from None
        raise
    if soft := [name for name, joint in joints.items() if _has_soft_limits(joint)]:
        assumed.append(f"soft limits of <safety_controller> are not read: {listed(soft)}")
    turning = [joint.name for joint in ordered if joint.type not in ("fixed", "floating")]
    if default := [name for name in turning if joints[name].child("axis") is None]:
        assumed.append(f"axis [1 0 0], the default of URDF: {', '.join(default)}")
    warnings = (*left_out, *root.remarks, *_ignored_limits(joints), *_ignored_elements(root, joints))
    return replace(
        unordered, joints=tuple(ordered), assumed=tuple(assumed), transmissions=tuple(shared), warnings=warnings
    )


def _link(name: str, link: Element) -> LinkDescription:
    """A link with its inertia in its own frame."""
    link.check_children(_LINK, once=("inertial",))
    inertial = link.child("inertial")
    if inertial is None:
        return LinkDescription(name, None, link.where)
    inertial.check_children(_INERTIAL)
    pose = _origin(inertial)
    mass, inertia = inertial.needed("mass", ("value",)), inertial.needed("inertia", _MOMENTS)
    about_center = symmetric(*(inertia.number(moment) for moment in _MOMENTS))
    body = Inertial(mass.number("value"), np.zeros(3), about_center).moved(pose)
    return LinkDescription(name, body, f"line {inertial.line}: {inertial.where}")


def _origin(element: Element) -> Array:
    origin = element.child("origin", ("xyz", "rpy", "quat_xyzw"))
    if origin is None:
        return np.eye(4)
    zero = (0.0, 0.0, 0.0)
    if "quat_xyzw" in origin.attributes:  # of URDF 1.1
        if "rpy" in origin.attributes:
            origin.refuse("has rpy and quat_xyzw: give one of them")
        quaternion = origin.vector("quat_xyzw", count=4)
        if abs(np.linalg.norm(quaternion) - 1) > _UNIT:
            origin.refuse(f"quat_xyzw must have the length 1, has {np.linalg.norm(quaternion):.4g}")
        return lie.pose(lie.rotation_from_quaternion(quaternion), origin.vector("xyz", zero))
    rpy = origin.vector("rpy", zero)
    warn_of_degrees(f"{origin.source}: line {origin.line}: {origin.where}: rpy", rpy.tolist())
    return lie.pose(lie.rotation_from_rpy(rpy), origin.vector("xyz", zero))


def _joint(name: str, joint: Element) -> JointDescription:
    joint.check_children(_JOINT)
    kind = joint.word("type")
    if kind not in _TYPES:
        joint.refuse(f"type must be one of {', '.join(_TYPES)}, is {kind!r:.60}")
    parent, child = (joint.needed(end, ("link",)).word("link").strip() for end in ("parent", "child"))
    dynamics = joint.child("dynamics")
    return JointDescription(
        name=name,
        type=kind,
        parent=parent,
        child=child,
        origin=_origin(joint),
        screw=_screw(joint, kind),
        where=joint.where,
        mimic=_mimic(joint),
        limits=_limits(joint, kind),
        damping=dynamics.number("damping", 0.0, "not negative") if dynamics else 0.0,
        friction=dynamics.number("friction", 0.0, "not negative") if dynamics else 0.0,
    )


def _geared(joint: JointDescription, reduction: Reduction | None) -> JointDescription:
    """The joint with the gear and rotor of its transmission, if it has one."""
    if reduction is None:
        return joint
    return replace(joint, rotor_inertia=reduction.rotor_inertia, gear_ratio=reduction.ratio)


def _screw(joint: Element, kind: str) -> Array:
    """The joint screw (6,); its axis runs through the origin of the child link."""
    axis = joint.child("axis", ("xyz",))
    direction = np.array([1.0, 0.0, 0.0])
    if axis is not None:
        direction = axis.vector("xyz", direction.tolist())
        length = float(np.linalg.norm(direction))
        if length < _NO_DIRECTION and kind not in ("fixed", "floating"):
            axis.refuse("xyz must not be zero: it is the direction of the axis")
        direction = direction / (length or 1.0)
    zero = np.zeros(3)
    return np.concatenate([zero, direction] if kind == "prismatic" else [direction, zero])


def _ignored_limits(joints: Mapping[str, Element]) -> list[str]:
    """Attributes of <limit> that are not read, each with its joints."""
    ignored: defaultdict[str, list[str]] = defaultdict(list)
    for name, joint in joints.items():
        for attribute in [x for limit in joint.all("limit") for x in limit.attributes if x not in _KNOWN_LIMITS]:
            ignored[attribute].append(name)
    return [f"<limit>: {attribute} is ignored: {listed(names)}" for attribute, names in ignored.items()]


def _ignored_elements(root: Element, joints: Mapping[str, Element]) -> list[str]:
    """Elements of Drake that act on the motion of the robot, such as bushings and constraints."""
    parts = [(root, "")] + [(joint, f"joint {name}: ") for name, joint in joints.items()]
    acting = [
        (element, where)
        for parent, where in parts
        for element in parent.children
        if element.tag.startswith("drake:") and element.tag != _DRAKE_GEOMETRY
    ]
    return [f"line {x.line}: {where}<{x.tag}> of Drake is not read: the robot has no such part" for x, where in acting]


def _has_soft_limits(joint: Element) -> bool:
    safety = joint.child("safety_controller")
    return safety is not None and any(name in safety.attributes for name in ("soft_lower_limit", "soft_upper_limit"))


def _limits(joint: Element, kind: str) -> Limits:
    limit = joint.child("limit")
    if limit is None or kind not in ("revolute", "continuous", "prismatic"):
        return Limits()
    for attribute in limit.attributes:
        if attribute not in _KNOWN_LIMITS and (close := close_match(attribute, _LIMITS, 0.8)):
            limit.refuse(f"unknown attribute {attribute!r}; did you mean {close!r}?")

    def magnitude(name: str, rule: str = "not negative") -> float:
        return limit.number(name, math.inf, rule, largest=math.inf)

    lower, upper = (limit.number(side, 0.0, largest=math.inf) for side in ENDS)
    velocity, effort = magnitude("velocity"), magnitude("effort")
    # URDF 1.2 has these, and files of earlier versions use them; Limits have one for both directions of motion.
    rates = {name: magnitude(name, "positive") for name in ("acceleration", "deceleration", "jerk")}
    for name, of in _DRAKE_LIMITS.items():
        rates[of] = min(rates[of], magnitude(name, "positive"))
    acceleration, deceleration, jerk = rates.values()
    if deceleration != acceleration and "deceleration" in limit.attributes:
        smaller = min(acceleration, deceleration)
        limit.remark(
            f"acceleration {acceleration:g}, deceleration {deceleration:g}: the smaller one, {smaller:g}, is both"
        )
    if zero := [name for name, value in (("velocity", velocity), ("effort", effort)) if value == 0]:
        limit.remark(f"{' and '.join(zero)} 0: commands that move the joint are refused; enter the limit or remove it")
    limits = Limits(velocity=velocity, effort=effort, acceleration=min(acceleration, deceleration), jerk=jerk)
    # URDF's default for both is 0, which in practice means that there are no limits.
    if kind == "continuous" or ("lower" not in limit.attributes and "upper" not in limit.attributes):
        return limits
    if lower > upper:
        limit.refuse(f"lower must not exceed upper, is {lower:g} and {upper:g}")
    return replace(limits, lower=lower, upper=upper)


def _mimic(joint: Element) -> MimicDescription | None:
    mimic = joint.child("mimic", ("joint", "multiplier", "offset"))
    if mimic is None:
        return None
    return MimicDescription(mimic.word("joint").strip(), mimic.number("multiplier", 1.0), mimic.number("offset", 0.0))


def read_urdf_file(file: DescriptionFile) -> Description:
    """Read the text of a URDF, a ``.urdf`` file, or a ``.xacro`` file."""
    file.refuse_inertia_reference()
    if file.path is None or not file.path.name.endswith(XACRO_ENDING):
        return description_from_urdf(file.text(MAX_CHARACTERS).removeprefix("\ufeff"), file.label)
    # Lines are counted in the expanded file.
    text = file.expand(file.path, file.xacro_arguments)
    return description_from_urdf(text.removeprefix("\ufeff"), f"{file.label}: as the command xacro expands it")

# SPDX-License-Identifier: Apache-2.0
"""URDF reader: links, joints, limits, mimic relations and simple transmissions, every number and name checked.

Meshes, materials, collision shapes, sensors and simulator elements are ignored, and no file that they name is
opened. Misspelt elements and attributes are refused: with a misspelt ``<inertial>``, a body would have no mass. Axes
are normalised, as is usual for URDF.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ... import lie
from ...actuators.transmission import Transmission
from ...arguments import warn_of_degrees
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...robot.model import ENDS
from ...spelling import close_match, listed
from ..description import Description, JointDescription, JointGroup, LinkDescription, MimicDescription
from ..inertia import Inertial, symmetric
from ..model import Limits
from ..tree import depth_first
from .files import DescriptionFile
from .transmissions import Reduction, transmissions
from .xml import MAX_CHARACTERS, Element, parse

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
    """Read a URDF from ``source``, a file or topic, with which every message begins.

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
            left_out.append(f"{where} is left out: {reason}")
            continue
        # For any part of the robot with both joints.
        shared.append(JointGroup(names, Transmission(transmission.matrix), where, optional=True))
        motors = dict(zip(names, transmission.motors, strict=True))
        described = [_geared(joint, motors.get(joint.name)) for joint in described]
    assumed = list(left_out)
    assumed += [f"{gear.where} is left out: there is no joint {joint}" for joint, gear in geared.items()]
    described_links = {name: _link(name, element) for name, element in links.items()}
    unordered = Description(robot_name, source, described_links, tuple(described), unphysical="warn")
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

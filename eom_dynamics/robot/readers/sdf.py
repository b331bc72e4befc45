# SPDX-License-Identifier: Apache-2.0
"""SDFormat reader: links, joints and frames of one model, with poses relative to any of them.

The rules are those of SDFormat 1.7 and later (sdformat.org, "Pose frame semantics"): poses of links and frames start
from the model, those of joints from the child link, unless ``relative_to`` names another frame. Axes of versions up to
1.4 are along those of the model, and so are axes of 1.5 and 1.6 with ``use_parent_model_frame``. Shapes, sensors and
plugins are ignored; included and nested models are refused, since their bodies would be missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import replace

import numpy as np

from ... import lie
from ...actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from ...arrays import Array
from ...number_rules import violation
from ...spelling import hint
from .. import inertia as inertias
from ..description import Description, FrameDescription, JointDescription, LinkDescription, MimicDescription
from ..inertia import Inertial
from ..model import NO_LIMITS, STANDARD_GRAVITY, Limits
from ..tree import depth_first
from .element import Element
from .files import DescriptionFile
from .numbers import warn_of_degrees
from .xml import MAX_CHARACTERS, parse, root_tag

_MODEL, _WORLD = "__model__", "world"

_TYPES = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "screw": "helical",
    "ball": "ball",
    "fixed": "fixed",
}
"""Joint types, and their names here."""

_LINK = ("pose", "inertial", "visual", "collision", "sensor", "velocity_decay", "self_collide", "kinematic", "gravity")
_JOINT = ("pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch", "physics", "sensor")
_AXIS = ("xyz", "limit", "dynamics", "mimic", "initial_position", "use_parent_model_frame")
_LIMIT = ("lower", "upper", "effort", "velocity", "stiffness", "dissipation")
_DYNAMICS = ("damping", "friction", "spring_stiffness", "spring_reference")
_INERTIAL = ("mass", "pose", "inertia", "density", "auto_inertia_params", "fluid_added_mass")
_MIMIC = ("multiplier", "offset", "reference")
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")

# Oldest version with poses as elements, and those with axes along the model, always or with an element.
_FIRST, _AXIS_IN_MODEL, _AXIS_BY_ELEMENT = (1, 2), (1, 4), (1, 6)

# Limits that are none.
_INFINITE = ("inf", "+inf", "-inf")

# A limit of this size stands for none in SDFormat.
_UNLIMITED = 1e15


def is_sdf(text: str) -> bool:
    """Whether a text is SDFormat."""
    return root_tag(text) == "sdf"


def read_sdf_file(file: DescriptionFile) -> Description:
    """Read an SDF with one model.

    Raises:
        RobotDescriptionError: it is not SDFormat, or no robot can be described like this; the message names the line.
    """
    file.refuse_inertia_reference()
    root = parse(file.text(MAX_CHARACTERS).removeprefix("\ufeff"), file.label)
    if root.tag != "sdf":
        root.refuse(f"the root element must be <sdf>, is <{root.tag}>")
    version = _version(root)
    worlds = root.all("world")
    models = [model for place in (root, *worlds) for model in place.all("model")]
    for place in (root, *worlds, *models):
        for tag in ("include", *(("model",) if place in models else ())):
            if found := place.all(tag):
                found[0].refuse(f"a <{tag}> within the file is not read; write one model with all links and joints")
    if len(models) != 1:
        root.refuse(f"there must be one <model>, are {len(models)}")
    return _Reader(models[0], worlds, version).description()


def _version(root: Element) -> tuple[int, int]:
    """The version of SDFormat, which decides what an axis is relative to."""
    given = root.word("version")
    found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", given.strip(), re.ASCII)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if not _FIRST <= version < (2, 0):
        root.refuse(f"version must be from 1.2 to 1.x, is {given!r:.60}")
    return version


class _Reader:
    """Reads one model."""

    def __init__(self, model: Element, worlds: Sequence[Element], version: tuple[int, int]) -> None:
        self._model, self._worlds, self._version = model, worlds, version
        self._name = model.name()
        model.check_attributes(("name", "canonical_link", "placement_frame", "xmlns"))
        self._links, self._joints = model.named("link"), model.named("joint")
        self._frames = model.named("frame")
        if not self._links:
            model.refuse("has no <link>")
        self._elements = {**self._frames, **self._joints, **self._links}
        if len(self._elements) < len(self._frames) + len(self._joints) + len(self._links):
            model.refuse("a link, joint or frame has the name of another one")
        for name, element in self._elements.items():
            if name == _WORLD or (name.startswith("__") and name.endswith("__")):
                element.refuse(f"the name {name!r:.60} is reserved; rename it")
        for frame in self._frames.values():
            frame.check_attributes(("name", "attached_to"))
        self._poses: dict[str, Array] = {_MODEL: np.eye(4)}
        self._attached = {name: name for name in (_MODEL, *self._links)}
        self._warnings: list[str] = []
        self._without_inertia: list[str] = []
        self._in_model = self._world_pose()

    def description(self) -> Description:
        """The links, joints and frames."""
        links = {name: self._link(name, element) for name, element in self._links.items()}
        joints = [self._joint(name, element) for name, element in self._joints.items()]
        if any(_WORLD in (joint.parent, joint.child) for joint in joints):
            links = {_WORLD: LinkDescription(_WORLD, None, _WORLD), **links}
        assumed: tuple[str, ...] = ()
        if self._without_inertia:
            names = ", ".join(self._without_inertia)
            assumed = (f"mass 1 kg and inertia 1 kg m², the defaults of SDFormat: {names}",)
        static = self._model.child("static")
        if static is not None and _is_true(static):
            self._warnings.append("<static> true is ignored: its joints move")
        frames = tuple(
            FrameDescription(name, link, lie.inverse(self._pose_of(link, element)) @ self._pose_of(name, element), name)
            for name, element in self._frames.items()
            for link in [self._link_of(name, element)]
            if link != _MODEL
        )
        unordered = Description(
            self._name,
            self._model.source,
            links,
            tuple(joints),
            gravity=self._gravity(joints),
            frames=frames,
            assumed=assumed,
            unphysical="warn",
            warnings=tuple(self._warnings),
        )
        return replace(unordered, joints=tuple(depth_first(list(links), joints, unordered.refuse)))

    def _gravity(self, joints: Sequence[JointDescription]) -> Array:
        """Along the axes of the root, which is the world, or a link at its pose."""
        given = [element for world in self._worlds if (element := world.child("gravity")) is not None]
        gravity = _numbers(given[0], 3) if given else np.array(STANDARD_GRAVITY)
        children = {joint.child for joint in joints}
        roots = [name for name in self._links if name not in children]
        if len(roots) != 1 or any(joint.parent == _WORLD for joint in joints):
            return gravity
        turned: Array = (lie.inverse(self._pose_of(roots[0], self._model)) @ self._in_model)[:3, :3] @ gravity
        return turned

    # --- Poses --------------------------------------------------------------------------------

    def _pose_of(self, name: str, asking: Element) -> Array:
        """Pose (4, 4) of a link, joint or frame in the model."""
        chain: dict[str, Array] = {}

        def start(name: str, element: Element) -> str:
            pose = element.child("pose")
            chain[name] = _pose(pose)
            default = self._attachment(name, element)
            return (pose.attributes.get("relative_to") if pose is not None else None) or default

        found = self._poses[self._first(name, asking, self._poses, start, "poses are relative to")]
        for each, own in reversed(chain.items()):
            found = self._poses[each] = found @ own
        return found

    def _link_of(self, name: str, asking: Element) -> str:
        """The link that a frame is attached to, or the model."""
        link = self._attached[self._first(name, asking, self._attached, self._attachment, "frames are attached to")]
        self._attached[name] = link
        return link

    def _attachment(self, name: str, element: Element) -> str:
        """What a link, joint or frame is attached to."""
        if name in self._joints:
            return _text(element.needed("child"))
        return (element.attributes.get("attached_to") if name in self._frames else None) or _MODEL

    def _first(
        self, name: str, asking: Element, known: Container[str], above: Callable[[str, Element], str], what: str
    ) -> str:
        """The first known one of a name, the one above it, and so on; refuses circles and unknown names."""
        passed: dict[str, None] = {}
        while name not in known:
            if name in passed:
                asking.refuse(f"{what} each other: {_arrows([*passed, name])}")
            if name not in self._elements:
                asking.refuse(f"there is no frame {name!r:.60}; {hint(name, self._elements)}")
            asking, passed[name] = self._elements[name], None
            name = above(name, asking)
        return name

    def _world_pose(self) -> Array:
        """Pose (4, 4) of the world in the model, by the pose of the model or of the frame that is placed."""
        model = self._model
        pose, placed = model.child("pose"), model.attributes.get("placement_frame")
        other = None if pose is None else pose.attributes.get("relative_to")
        if pose is not None and other and other != _WORLD:
            pose.refuse(f"the pose of a model must be that in the world, is relative to {other!r:.60}")
        found: Array = (np.eye(4) if placed is None else self._pose_of(placed, model)) @ lie.inverse(_pose(pose))
        return found

    # --- Links and joints ---------------------------------------------------------------------

    def _link(self, name: str, link: Element) -> LinkDescription:
        link.check_children(_LINK, once=("pose", "inertial", "gravity"))
        weight = link.child("gravity")
        if weight is not None and not _is_true(weight):
            self._warnings.append(f"link {name}: <gravity> false is ignored: it has weight")
        inertial = link.child("inertial")
        if inertial is None:
            self._without_inertia.append(name)
            return LinkDescription(name, Inertial.about_center(1.0, np.zeros(3), np.eye(3)), link.where)
        inertial.check_attributes(("auto",))
        if _is_yes(inertial, "attribute 'auto'", inertial.attributes.get("auto", "false")):
            inertial.refuse("auto is not supported: write the mass and inertia")
        if inertial.child("fluid_added_mass") is not None:
            self._warnings.append(f"link {name}: <fluid_added_mass> is ignored")
        inertial.check_children(_INERTIAL)
        mass, inertia = inertial.child("mass"), inertial.child("inertia")
        values = [float(moment in ("ixx", "iyy", "izz")) for moment in _MOMENTS]
        if inertia is not None:
            inertia.check_children(_MOMENTS)
            given = [inertia.child(moment) for moment in _MOMENTS]
            values = [x if each is None else _number(each) for x, each in zip(values, given, strict=True)]
        about_center = Inertial(1.0 if mass is None else _number(mass), np.zeros(3), inertias.symmetric(*values))
        where = f"line {inertial.line}: {inertial.where}"
        return LinkDescription(name, about_center.moved(_pose(inertial.child("pose"))), where)

    def _joint(self, name: str, joint: Element) -> JointDescription:
        joint.check_children(_JOINT, once=("pose", "parent", "child", "axis"))
        kind = joint.word("type")
        if kind not in _TYPES:
            joint.refuse(f"type must be one of {', '.join(_TYPES)}, is {kind!r:.60}")
        ends = [_text(joint.needed(end)) for end in ("parent", "child")]
        parent, child = (end if end == _WORLD else self._link_of(end, joint) for end in ends)
        poses = [self._in_model if end == _WORLD else self._pose_of(end, joint) for end in (parent, child)]
        place = lie.inverse(poses[1]) @ self._pose_of(name, joint)  # of the joint in the child link
        described = JointDescription(
            name=name,
            type=_TYPES[kind],
            parent=parent,
            child=child,
            origin=lie.inverse(poses[0]) @ poses[1],
            screw=np.r_[np.zeros(3), place[:3, 3] if kind == "ball" else np.zeros(3)],
            where=joint.where,
        )
        if kind in ("fixed", "ball"):
            return described
        axis = joint.needed("axis")
        axis.check_children(_AXIS)
        R = lie.inverse(poses[1])[:3, :3] @ self._pose_of(self._axis_frame(name, axis), axis)[:3, :3]
        direction = R @ _direction(axis)
        limits = _limits(axis)
        dynamics = axis.child("dynamics")
        damping, friction, stiffness, reference = (
            0.0 if dynamics is None or (element := dynamics.child(tag)) is None else _number(element)
            for tag in _DYNAMICS
        )
        if dynamics is not None:
            dynamics.check_children(_DYNAMICS)
            for tag, value in (("damping", damping), ("friction", friction)):
                if reason := violation(value, "not negative"):
                    dynamics.refuse(f"{tag} {reason}")
        return replace(
            described,
            screw=lie.screw(direction, place[:3, 3], self._pitch(kind, joint)),
            mimic=_mimic(axis),
            limits=limits if kind != "continuous" else replace(limits, lower=-np.inf, upper=np.inf),
            damping=damping,
            friction=friction,
            parallel_spring=ParallelSpring(SignedLinearLaw(stiffness), reference) if stiffness else None,
        )

    def _axis_frame(self, name: str, axis: Element) -> str:
        """Name of the frame in which the axis is expressed; what libsdformat converts the versions up to 1.6 to."""
        old = axis.child("use_parent_model_frame")
        in_model = self._version <= _AXIS_IN_MODEL if old is None else _is_true(old)
        if old is not None and in_model and self._version > _AXIS_BY_ELEMENT:
            old.refuse('is of SDFormat 1.5 and 1.6; write <xyz expressed_in="__model__">, or that version')
        if in_model:
            return _MODEL
        xyz = axis.child("xyz")
        return (xyz.attributes.get("expressed_in") if xyz is not None else None) or name

    @staticmethod
    def _pitch(kind: str, joint: Element) -> float:
        if kind != "screw":
            return np.inf if kind == "prismatic" else 0.0
        if joint.child("screw_thread_pitch") is None:
            joint.refuse("<screw_thread_pitch>, m in a revolution, is missing")
        return _number(joint.needed("screw_thread_pitch")) / (2 * math.pi)


def _arrows(names: Sequence[str]) -> str:
    return f"{' -> '.join(names):.200}"


def _text(element: Element) -> str:
    return element.text.strip()


def _is_true(element: Element) -> bool:
    return _is_yes(element, "the text", element.text)


def _is_yes(element: Element, label: str, text: str) -> bool:
    word = text.strip().lower()
    if word not in ("0", "1", "false", "true"):
        element.refuse(f"{label} must be true or false, is {text.strip()!r:.60}")
    return word in ("1", "true")


def _number(element: Element) -> float:
    return element.parse("the text", element.text)


def _numbers(element: Element, count: int) -> Array:
    given = element.text.split()
    if len(given) != count:
        element.refuse(f"must be {count} numbers, is {element.text.strip()!r:.60}")
    return np.array([element.parse("the text", word) for word in given])


def _pose(pose: Element | None) -> Array:
    """Pose (4, 4) of an element ``pose``: x y z, and roll pitch yaw or a quaternion x y z w."""
    if pose is None:
        return np.eye(4)
    pose.check_attributes(("relative_to", "degrees", "rotation_format", "frame"))
    if pose.attributes.get("frame"):
        pose.refuse("attribute 'frame' is that of SDFormat 1.5 and 1.6; convert the file to 1.7, or write relative_to")
    form = pose.attributes.get("rotation_format", "euler_rpy")
    if form not in ("euler_rpy", "quat_xyzw"):
        pose.refuse(f"rotation_format must be euler_rpy or quat_xyzw, is {form!r:.60}")
    if not _text(pose):
        return np.eye(4)
    if form == "quat_xyzw":
        values = _numbers(pose, 7)
        if not np.any(values[3:]):
            pose.refuse("the quaternion must not be 0")
        return lie.pose(lie.rotation_from_quaternion(values[3:]), values[:3])
    values = _numbers(pose, 6)
    if _is_yes(pose, "attribute 'degrees'", pose.attributes.get("degrees", "false")):
        values[3:] = np.radians(values[3:])
    else:
        warn_of_degrees(f"{pose.source}: line {pose.line}: {pose.where}", values[3:].tolist())
    return lie.pose(lie.rotation_from_rpy(values[3:]), values[:3])


def _direction(axis: Element) -> Array:
    xyz = axis.child("xyz")
    if xyz is not None:
        xyz.check_attributes(("expressed_in",))
    direction = np.array([0.0, 0.0, 1.0]) if xyz is None else _numbers(xyz, 3)
    length = float(np.linalg.norm(direction))
    if length == 0:
        axis.refuse("<xyz> must not be zero: it is the direction of the axis")
    unit: Array = direction / length
    return unit


def _limits(axis: Element) -> Limits:
    """Limits of an axis; negative rates stand for none."""
    limit = axis.child("limit")
    if limit is None:
        return NO_LIMITS
    limit.check_children(_LIMIT)
    values = {}
    for name, unlimited in (("lower", -np.inf), ("upper", np.inf), ("velocity", np.inf), ("effort", np.inf)):
        element = limit.child(name)
        value = unlimited
        if element is not None and _text(element) not in _INFINITE:
            value = element.parse("the text", element.text, np.inf)
        is_rate = name in ("velocity", "effort")
        values[name] = unlimited if abs(value) > _UNLIMITED or (is_rate and value < 0) else value
    if values["lower"] > values["upper"]:
        limit.refuse(f"lower must not exceed upper, is {values['lower']:g} and {values['upper']:g}")
    return Limits(**values)


def _mimic(axis: Element) -> MimicDescription | None:
    """q = multiplier (q_leader - reference) + offset."""
    mimic = axis.child("mimic")
    if mimic is None:
        return None
    mimic.check_attributes(("joint", "axis"))
    mimic.check_children(_MIMIC)
    if (leading := mimic.attributes.get("axis", "axis")) != "axis":
        mimic.refuse(f"axis must be 'axis', is {leading!r:.60}: joints with a second axis are not supported")
    ratio, offset, reference = (
        default if (element := mimic.child(tag)) is None else _number(element)
        for tag, default in zip(_MIMIC, (1.0, 0.0, 0.0), strict=True)
    )
    return MimicDescription(mimic.word("joint").strip(), ratio, offset - ratio * reference)

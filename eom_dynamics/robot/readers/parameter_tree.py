# SPDX-License-Identifier: Apache-2.0
"""Read a robot from the ``robot`` section of a ROS 2 parameter tree, or add a section ``urdf`` to a loaded robot.

The section ``robot`` describes the robot itself, every entry checked, or names its URDF, xacro or MJCF file and
completes it by the entries of the section ``urdf`` of a node: docs/robots.md, "Complete a URDF". The entries are in
docs/parameter_files.md and docs/actuators.md, and all in the template of ``eom_dynamics inspect --template``,
:mod:`eom_dynamics.tools.cli.inspect`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ... import lie
from ...arguments import warn_of_degrees
from ...arrays import Array
from ...spelling import listed
from ..assembly import UNPHYSICAL, assemble
from ..description import (
    BRANCHES,
    COMPOSITE_TYPES,
    JOINT_TYPES,
    SINGLE_TYPES,
    BodyEntries,
    Description,
    FrameDescription,
    JointDescription,
    LinkDescription,
    MimicDescription,
    OriginEntries,
)
from ..formats import DESCRIBED, PARAMETER_FILE, format_of
from ..inertia import Inertial, symmetric
from ..model import STANDARD_GRAVITY, Robot
from .entries import read_part, with_entries, with_robot_entries
from .files import PACKAGE, DescriptionFile, Expand, located
from .section import Section
from .urdf import XACRO_ENDING, description_from_urdf, expand_xacro

# Error of the length of an axis written with six digits; it is then normalized.
_UNIT_TOLERANCE = 1e-5


def _screws(joint: Section, kind: str, parent: Array, *, spatial: bool = False) -> tuple[Array, Array]:
    """Origin in the parent's frame and screw in the body's frame, or both in the base frame at q = 0."""
    screw = _screw(joint, kind)
    origin = read_origin(joint)
    if spatial:
        return lie.inverse(parent) @ origin, lie.Ad(lie.inverse(origin)) @ screw
    return origin, screw


def _dh(joint: Section, kind: str, _: Array, *, modified: bool = False) -> tuple[Array, Array]:
    """Denavit-Hartenberg parameters; prismatic joints add q to d.

    Rz(theta + q) Tz(d) Tx(a) Rx(alpha), about axis z of the parent's frame; or modified, Rx(alpha) Tx(a) Rz(theta + q)
    Tz(d), about axis z of the body's frame.
    """
    if kind == "fixed":
        return read_origin(joint), np.zeros(6)
    with joint.section("dh") as row:
        a, alpha, d, theta = (row.number(name) for name in ("a", "alpha", "d", "theta"))
        warn_of_degrees(f"{row.source}: {row.name}", (alpha, theta))
    along_z = lie.pose(lie.rotation_from_rpy([0.0, 0.0, theta]), [0.0, 0.0, d])
    along_x = lie.pose(lie.rotation_from_rpy([alpha, 0.0, 0.0]), [a, 0.0, 0.0])
    pitch = joint.number("pitch") if kind == "helical" else 0.0
    if kind == "helical" and pitch == 0:
        joint.refuse("pitch", "a helical joint must have a pitch; is it revolute?")
    screw = np.array([0.0, 0.0, *([0.0, 0.0, 0.0, 1.0] if kind == "prismatic" else [1.0, 0.0, 0.0, pitch])])
    if modified:
        return along_x @ along_z, screw
    origin = along_z @ along_x
    return origin, lie.Ad(lie.inverse(origin)) @ screw


def read_origin(section: Section) -> Array:
    """Pose (4, 4) from the entry ``origin`` of a section; ``rpy`` is optional (0)."""
    with section.section("origin") as origin:
        xyz, rpy = read_part(OriginEntries, None, origin)
        warn_of_degrees(f"{origin.source}: {origin.name}: rpy", rpy.tolist())
    return lie.pose(lie.rotation_from_rpy(rpy), xyz)


def _screw(joint: Section, kind: str) -> Array:
    """Read and normalize the screw of a joint, or the normal of a planar one."""
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


CONVENTIONS: Mapping[str, Callable[[Section, str, Array], tuple[Array, Array]]] = MappingProxyType(
    {
        "body_screws": _screws,
        "spatial_screws": partial(_screws, spatial=True),
        "dh": _dh,
        "modified_dh": partial(_dh, modified=True),
    }
)
"""Functions by name, of a joint's section, its type, and the pose (4, 4) of its parent in the base at q = 0.

Each returns the pose (4, 4) of the body in its parent at q = 0, and the joint screw (6,) in the body's frame, angular
part first; for a planar joint the normal, for fixed and floating joints zero.
"""

DH_TYPES = ("revolute", "continuous", "prismatic", "helical", "fixed")
"""Joint types of a Denavit-Hartenberg table; fixed joints have an origin instead of a row."""


BASE = "base"
"""Name of the base, reserved."""


def own_description(robot: Section) -> Description:
    """Read the ``robot`` section of a robot's own file; the link that a joint moves has the name of the joint.

    Raises RobotDescriptionError if an entry is missing, unknown, of the wrong type or length or not finite; the message
    names the parameter and the reason.
    """
    with robot:
        name = robot.text("name")
        names = robot.names("joint_names")
        if BASE in names:
            robot.refuse("joint_names", f"{BASE!r} is reserved for the base")
        convention = robot.choice("convention", tuple(CONVENTIONS), default="body_screws")
        reference = robot.choice("inertia_reference", ("com", "link"), otherwise="com")
        gravity = robot.vector("gravity", 3, default=STANDARD_GRAVITY)
        unphysical = robot.choice("unphysical", UNPHYSICAL, default="refuse", otherwise="refuse")
        reader = _Reader(convention, reference, unphysical)
        robot.part("base", reader.read_base, None)
        with robot.section("joints") as joints:
            for joint_name in names:
                joints.attempt(partial(reader.read, joint_name), None)
                reader.links.setdefault(joint_name, LinkDescription(joint_name, None, joint_name))
        frames, tools = robot.attempt(partial(_tools, reader.links), ((), ()))
        if not joints.has_errors and all(joint.type == "fixed" for joint in reader.joints):
            robot.refuse("joint_names", "at least one joint must move; all are fixed")
        description = Description(
            name=name,
            source=robot.source,
            links=reader.links,
            joints=tuple(reader.joints),
            gravity=gravity,
            frames=frames,
            tools=tools,
            prefix="robot.",
            inertia_reference=reference,
            unphysical=unphysical,
        )
        # A joint that cannot be used is missing from groups.
        return with_robot_entries(description, robot, groups=not joints.has_errors)


class _Reader:
    """Reads joints one by one, parents before children."""

    def __init__(self, convention: str, reference: str, unphysical: str) -> None:
        self.joints: list[JointDescription] = []
        self.links = {BASE: LinkDescription(BASE, None, BASE)}
        self._poses = {BASE: np.eye(4)}  # in the base frame at q = 0
        self._place = CONVENTIONS[convention]
        self._types = DH_TYPES if convention in ("dh", "modified_dh") else JOINT_TYPES
        self._reference, self._unphysical = reference, unphysical

    def read_base(self, base: Section) -> None:
        self.links[BASE] = LinkDescription(BASE, self._inertial(base), f"{base.name}.inertia")

    def read(self, name: str, joints: Section) -> None:
        with joints.section(name) as joint:
            kind = joint.choice("type", self._types)
            parent = joint.attempt(self._parent, BASE)
            pose = self._poses.get(parent, np.eye(4))
            nowhere = np.eye(4), np.zeros(6)
            origin, screw = joint.attempt(lambda of: self._place(of, kind, pose), nowhere, several=True)
            inertial = self._inertial(joint) if kind != "fixed" or "mass" in joint else None
            mimic = (
                joint.part("mimic", partial(read_part, MimicDescription, None), None) if kind in SINGLE_TYPES else None
            )
            described = JointDescription(name, kind, parent, name, origin, screw, joint.name, mimic)
            if kind in SINGLE_TYPES:
                described = with_entries(described, joint, actuated=mimic is None)
            self.joints.append(described)
        self.links[name] = LinkDescription(name, inertial, f"{joint.name}.inertia", "; the order is xx xy xz yy yz zz")
        self._poses[name] = pose @ origin

    def _parent(self, joint: Section) -> str:
        """The named parent, by default the previous joint."""
        parent = joint.text("parent") if "parent" in joint else next(reversed(self.links))
        if parent not in self.links:
            joint.refuse("parent", f"must be one of {listed(self.links)}, listed before this joint, is {parent!r}")
        return parent

    def _inertial(self, joint: Section) -> Inertial:
        mass = joint.number("mass")
        if mass == 0 and "center_of_mass" not in joint and "inertia" not in joint:
            return Inertial.massless()
        if self._unphysical == "refuse":
            joint.positive("mass")
        mass, center_of_mass, moments = read_part(BodyEntries, None, joint)
        inertia = symmetric(*moments)
        if self._reference == "com":
            return Inertial.about_center(mass, center_of_mass, inertia)
        return Inertial(mass, center_of_mass, inertia)


def _tools(
    links: Mapping[str, LinkDescription], robot: Section
) -> tuple[tuple[FrameDescription, ...], tuple[str, ...]]:
    """The described frames, and the names of the tools."""
    if "tool_names" not in robot:
        return (), ()
    robot.skip("tools")
    names = robot.names("tool_names")
    frames = []
    if "tools" in robot:
        with robot.section("tools") as tools:
            for name in (name for name in names if name in tools):
                if name in links:
                    tools.refuse(name, "is the name of a body: remove this entry, or rename the tool")
                with tools.section(name) as tool:
                    body = tool.choice("body", tuple(links), otherwise=BASE)
                    frames.append(FrameDescription(name, body, read_origin(tool), tool.name))
    described = {frame.name for frame in frames}
    for name in names:
        if name not in links and name not in described:
            robot.refuse("tool_names", f"{name!r} is neither a body ({listed(links)}) nor described in tools")
    return tuple(frames), tuple(names)


def description_of_entry(robot: Section, folder: Path | None, expand: Expand) -> Description:
    """Read the file that the entry ``urdf`` of a robot's section names, with its ``xacro_arguments``.

    Relative paths start from ``folder``, the folder of the parameter file; None if the section is from no file.
    """
    path = _located(robot, "urdf", folder)
    endings = tuple(dict.fromkeys(ending for known in DESCRIBED for ending in known.endings))
    if not path.endswith(endings):
        robot.refuse("urdf", f"must be a file of {', '.join(endings)}, is {path!r:.200}")
    if not os.path.exists(path):
        robot.refuse("urdf", f"there is no file {path!r:.200}; relative paths start from the parameter file's folder")
    robot_format = format_of(path, DESCRIBED)
    assert robot_format is not None  # by its ending
    arguments: dict[str, str] = {}
    if "xacro_arguments" in robot:
        if not path.endswith(XACRO_ENDING):
            robot.refuse("xacro_arguments", "are for .xacro files; remove them")
        with robot.section("xacro_arguments") as section:
            arguments = {name: section.word(name) for name in section}
    return robot_format.read(DescriptionFile(path, Path(path), None, None, arguments, expand))


def _located(robot: Section, entry: str, folder: Path | None) -> str:
    """The path of the file of an entry, given as ``package://package/path``, or relative to the parameter file."""
    name = robot.text(entry)
    if name.startswith(PACKAGE):
        try:
            return located(name)
        except LookupError as error:
            robot.refuse(entry, str(error))
    if os.path.isabs(name):
        return name
    if folder is None:
        robot.refuse(
            entry,
            f"must be an absolute path or {PACKAGE}… in a --params-file, is {name!r:.200}; or give the node the file "
            "by -p robot_file:=FILE, from whose folder relative paths start",
        )
    return os.path.join(folder, name)


def robot_from_urdf(text: str, section: Mapping[str, Any] | None = None, source: str = "robot_description") -> Robot:
    """Build a robot from a URDF and the contents of a section ``urdf`` of a parameter tree.

    Every message about the URDF begins with ``source``, a file or topic.

    Raises:
        RobotDescriptionError: the URDF cannot be used; or an entry of the section is unknown, of the wrong type or not
            allowed, or names an unknown joint or link. The message names the element or parameter, and the reason.
    """
    return robot_with(description_from_urdf(text, source), section or {})


def robot_with(description: Description, section: Mapping[str, Any]) -> Robot:
    """Build a robot from a description and a section ``urdf``; errors as for :func:`robot_from_urdf`."""
    with Section(section, "urdf", "parameters") as additions:
        description = completed(description, additions)
    return assemble(description)


def completed(description: Description, additions: Section, folder: Path | None = None) -> Description:
    """Return a description with the entries of the section added; others remain.

    Relative paths start from ``folder``, the folder of the parameter file; None if the section is from no file.
    """
    if JOINT_LIMITS in additions:
        description = additions.attempt(partial(_with_joint_limits, description, folder), description)
    if "joints" in additions:
        with additions.section("joints") as joints:
            described = tuple(joints.attempt(partial(_with_entries, x), x) for x in description.joints)
        description = replace(description, joints=described)
    changes: dict[str, Any] = {}
    if "gravity" in additions:
        changes["base_gravity"] = additions.vector("gravity", 3)
    changes |= {name: additions.texts(name) for name in ("tip", "tools") if name in additions}
    if "root" in additions:
        changes["root"] = additions.text("root")
    for name, options in (("branches", BRANCHES), ("unphysical", UNPHYSICAL)):
        if name in additions:
            changes[name] = additions.choice(name, options, otherwise=options[0])
    return with_robot_entries(replace(description, **changes), additions)


JOINT_LIMITS = "joint_limits"
"""Entry that names a file of joint limits."""


def _with_joint_limits(description: Description, folder: Path | None, additions: Section) -> Description:
    """The description with the limits of the file that the section names."""
    from .joint_limits import with_joint_limits  # with PyYAML, which a URDF alone does not need

    return with_joint_limits(description, _located(additions, JOINT_LIMITS, folder))


def _with_entries(joint: JointDescription, joints: Section) -> JointDescription:
    """The joint with the entries of its section."""
    if joint.name not in joints:
        return joint
    if joint.type not in SINGLE_TYPES:
        joints.refuse(joint.name, f"a {joint.type} joint has no motor; remove the entry")
    if joint.mimic is not None:
        joints.refuse(joint.name, f"it mimics {joint.mimic.leader} and has no motor; remove the entry")
    with joints.section(joint.name) as section:
        return with_entries(joint, section)


def robot_from_parameters(
    parameters: Mapping[str, Any],
    source: str = "parameters",
    *,
    folder: Path | None = None,
    expand: Expand = expand_xacro,
) -> Robot:
    """Build a robot from the ``robot`` section of a parameter tree.

    A xacro file is a program that runs with your rights.

    Args:
        parameters: contents of the section, as nested mappings, numbers and lists.
        source: file or node that they come from; every message begins with it.
        folder: that relative paths of a URDF start from; None refuses relative paths.
        expand: expands the xacro file that the section names; another function for a section from the network.

    Raises:
        RobotDescriptionError: an entry is missing, unknown, of the wrong type or length or not finite, or no robot can
            be described like this. The message names the parameter and the reason.
    """
    return assemble(description_from_parameters(parameters, source, folder=folder, expand=expand))


def description_from_parameters(
    parameters: Mapping[str, Any],
    source: str = "parameters",
    *,
    folder: Path | None = None,
    expand: Expand = expand_xacro,
) -> Description:
    """Read the ``robot`` section of a parameter tree; arguments and errors as in :func:`robot_from_parameters`."""
    robot = Section(parameters, "robot", source)
    if "urdf" not in parameters:
        return own_description(robot)
    with robot:
        return completed(description_of_entry(robot, folder, expand), robot, folder)


def read_parameter_file(file: DescriptionFile) -> Description:
    """Read the robot of a parameter file."""
    from .parameter_file import find_robot  # with PyYAML, which no other format needs

    parameters, _ = find_robot(file.text(PARAMETER_FILE.largest), file.label)
    if file.inertia_reference is not None:
        if "urdf" in parameters:
            file.refuse_inertia_reference()
        parameters = {**parameters, "inertia_reference": file.inertia_reference}
    folder = file.path and file.path.parent
    return description_from_parameters(parameters, file.label, folder=folder, expand=file.expand)

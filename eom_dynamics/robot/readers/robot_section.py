# SPDX-License-Identifier: Apache-2.0
"""Robot described by the ``robot`` section of a ROS 2 parameter tree, every entry checked.

Its entries are in docs/robots.md and docs/actuators.md, and all in the template of ``eom_dynamics inspect --template``,
:mod:`eom_dynamics.tools.inspect.template`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from ...spelling import listed
from .. import inertia as inertias
from ..assembly import UNPHYSICAL
from ..description import (
    JOINT_TYPES,
    SINGLE_TYPES,
    Description,
    FrameDescription,
    JointDescription,
    LinkDescription,
    MimicDescription,
)
from ..inertia import Inertial
from ..model import STANDARD_GRAVITY
from .conventions import CONVENTIONS, DH_TYPES, Placement, read_origin
from .joint_entries import with_entries
from .robot_entries import with_robot_entries
from .section import Section

BASE = "base"
"""Name of the base, reserved."""


def own_description(robot: Section) -> Description:
    """Read the ``robot`` section of a robot's own file.

    The link that a joint moves has the name of the joint.

    Raises:
        RobotDescriptionError: an entry is missing, unknown, of the wrong type or length or not finite. The message
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
        robot.attempt(reader.read_base, None, one_entry=True)
        with robot.section("joints") as joints:
            for joint_name in names:
                joints.attempt(partial(reader.read, joint_name), None, one_entry=True)
                reader.links.setdefault(joint_name, LinkDescription(joint_name, None, joint_name))
        frames, tools = robot.attempt(partial(_tools, reader.links), ((), ()), one_entry=True)
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

    def read_base(self, robot: Section) -> None:
        if "base" in robot:
            with robot.section("base") as base:
                self.links[BASE] = replace(
                    self.links[BASE], inertial=self._inertial(base), where=f"{base.name}.inertia"
                )

    def read(self, name: str, joints: Section) -> None:
        with joints.section(name) as joint:
            kind = joint.choice("type", self._types)
            parent = joint.attempt(self._parent, BASE, one_entry=True)
            pose = self._poses.get(parent, np.eye(4))
            placement = joint.attempt(lambda of: self._place(of, kind, pose), Placement(np.eye(4), np.zeros(6)))
            inertial = self._inertial(joint) if kind != "fixed" or "mass" in joint else None
            mimic = joint.attempt(_mimic, None, one_entry=True) if kind in SINGLE_TYPES else None
            described = JointDescription(
                name=name,
                type=kind,
                parent=parent,
                child=name,
                origin=placement.origin,
                screw=placement.screw,
                where=joint.name,
                mimic=mimic,
            )
            self.joints.append(
                with_entries(described, joint, actuated=mimic is None) if kind in SINGLE_TYPES else described
            )
        self.links[name] = LinkDescription(name, inertial, f"{joint.name}.inertia", "; the order is xx xy xz yy yz zz")
        self._poses[name] = pose @ placement.origin

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
            mass = joint.positive("mass")
        center_of_mass = joint.vector("center_of_mass", 3)
        inertia = inertias.symmetric(*joint.vector("inertia", 6))
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


def _mimic(joint: Section) -> MimicDescription | None:
    if "mimic" not in joint:
        return None
    with joint.section("mimic") as mimic:
        return MimicDescription(mimic.text("joint"), mimic.number("ratio", 1.0), mimic.number("offset", 0.0))

# SPDX-License-Identifier: Apache-2.0
"""A robot from the ``robot`` section of a ROS 2 parameter tree, every entry checked.

The section, as it stands in a parameter file (units SI, angles in rad):

.. code-block:: yaml

    robot:
      name: my_arm
      joint_names: [shoulder, elbow]      # parents before children; the order of all joint vectors
      convention: body_screws             # optional; body_screws (default) | spatial_screws | dh | modified_dh
      inertia_reference: com              # inertias are about: com (centre of mass) | link (body frame)
      gravity: [0.0, 0.0, -9.80665]       # optional; gravitational acceleration in the base frame
      joints:
        shoulder:
          type: revolute                  # revolute | continuous | prismatic | helical | fixed | planar | floating
          parent: base                    # optional; by default the joint before, of the first one the base
          screw: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]   # in the body's frame, angular part first
          origin: {xyz: [0.0, 0.0, 0.3], rpy: [0.0, 0.0, 0.0]}   # body in its parent at q = 0
          mass: 2.0
          center_of_mass: [0.0, 0.0, 0.1]
          inertia: [0.01, 0.0, 0.0, 0.01, 0.0, 0.005]            # xx xy xz yy yz zz
          elasticity: {type: linear, stiffness: 1.0e4}           # optional; all types: elasticity.py beside this
          actuator: {efficiency: 0.8}     # optional; friction, loss and motor, as described there
          rotor_inertia: 0.2              # optional (0); on the link side of the gear
          rotor: {carrier: base, axis: [0.0, 0.0, 1.0]}   # optional; body that carries the rotor, axis in its frame
          gear_ratio: 100.0               # optional (1); turns of the motor for one of the joint
          damping: 0.5                    # optional (0); viscous friction
          friction: 0.1                   # optional (0); dry friction
          limits: {lower: -2.9, upper: 2.9, velocity: 2.0, effort: 80.0}   # optional, each of them; there are
                                          # acceleration, jerk and effort_rate too
        elbow:
          mimic: {joint: shoulder, ratio: -1.0, offset: 0.0}     # optional; then without motor and spring
          ...
      coupled_stiffness: {joints: [shoulder, elbow], matrix: [300.0, 20.0, 20.0, 200.0]}   # optional
      transmission: {joints: [shoulder, elbow], matrix: [0.5, 0.5, 0.5, -0.5]}             # optional
      rotor_model: reduced                # optional; reduced (default) | complete: docs/elastic_joints.md
      tool_names: [gripper]               # optional; where wrenches act: bodies, or frames on them
      tools:
        gripper: {body: elbow, origin: {xyz: [0.0, 0.0, 0.1], rpy: [0.0, 0.0, 0.0]}}

A fixed joint needs no mass, a planar one has a ``normal`` (z by default) instead of a screw. With
``spatial_screws``, ``screw`` and ``origin`` of each joint are those of the body in the base frame at q = 0. With
``dh`` and ``modified_dh``, ``dh: {a: …, alpha: …, d: …, theta: …}`` stands for both, and ``pitch`` goes with a
helical joint; the first is Rz(theta + q) Tz(d) Tx(a) Rx(alpha), the second Rx(alpha) Tx(a) Rz(theta + q) Tz(d).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..drivetrain.actuator import IDEAL_ACTUATOR
from ..drivetrain.springs import AntagonisticPair, CoupledSpring, RigidSpring
from ..drivetrain.transmission import Transmission
from ..exceptions import RobotDescriptionWarning
from . import inertia as inertias
from .assembly import assemble
from .conventions import CONVENTIONS, DH_TYPES, read_origin
from .description import (
    JOINT_TYPES,
    RIGID,
    SINGLE_TYPES,
    Description,
    FrameDescription,
    Group,
    JointDescription,
    LinkDescription,
    MimicDescription,
)
from .elasticity import read_actuator, read_elasticity, read_group, read_rotor
from .inertia import Inertial
from .model import NO_LIMITS, ROTOR_MODELS, STANDARD_GRAVITY, Limits, Robot
from .section import Section

BASE = "base"
"""The name of the base, which no joint can have."""


def robot_from_parameters(parameters: Mapping[str, Any], source: str = "parameters") -> Robot:
    """Build a robot from the ``robot`` section of a parameter tree.

    Args:
        parameters: the section's contents as nested mappings, numbers and lists.
        source: where they come from; the start of every error message.

    Raises:
        RobotDescriptionError: an entry is missing, unknown, of the wrong type or length, not finite, or
            says something that no body or joint can be. The message names the parameter and the reason.
    """
    return assemble(description_from_parameters(parameters, source))


def description_from_parameters(parameters: Mapping[str, Any], source: str = "parameters") -> Description:
    """Read the ``robot`` section of a parameter tree; arguments and errors as of :func:`robot_from_parameters`.

    Each joint has a link of its own name, the body that it moves.
    """
    with Section(parameters, "robot", source) as robot:
        name = robot.text("name")
        names = robot.names("joint_names")
        if BASE in names:
            robot.refuse("joint_names", f"{BASE!r} is the name of the base")
        convention = robot.choice("convention", tuple(CONVENTIONS), default="body_screws")
        reference = robot.choice("inertia_reference", ("com", "link"))
        gravity = robot.vector("gravity", 3, default=STANDARD_GRAVITY)
        reader = _Reader(convention, reference)
        with robot.section("joints") as joints:
            for joint_name in names:
                reader.read(joints.section(joint_name), joint_name)
        if all(joint.type == "fixed" for joint in reader.joints):
            robot.refuse("joint_names", "all of these joints are fixed; at least one must move")
        frames, tools = _tools(robot, reader.links)
        coupled, transmission = _groups(robot, reader.joints)
        rotor_model = robot.choice("rotor_model", ROTOR_MODELS, default=ROTOR_MODELS[0])
    if reference == "link":
        _warn_of_impossible(reader.links.values(), source)
    return Description(
        name=name,
        source=source,
        links=reader.links,
        joints=tuple(reader.joints),
        gravity=gravity,
        frames=frames,
        tools=tools,
        prefix="robot.",
        coupled_stiffness=coupled,
        transmission=transmission,
        rotor_model=rotor_model,
    )


class _Reader:
    """Reads joints one by one, parents before children."""

    def __init__(self, convention: str, reference: str) -> None:
        self.joints: list[JointDescription] = []
        self.links = {BASE: LinkDescription(BASE, None, BASE)}
        self._poses = {BASE: np.eye(4)}  # in the base frame at q = 0
        self._place = CONVENTIONS[convention]
        self._types = DH_TYPES if convention in ("dh", "modified_dh") else JOINT_TYPES
        self._reference = reference

    def read(self, section: Section, name: str) -> None:
        with section as joint:
            kind = joint.choice("type", self._types)
            parent = self._parent(joint)
            placement = self._place(joint, kind, self._poses[parent])
            inertial = self._inertial(joint) if kind != "fixed" or "mass" in joint else None
            mimic = _mimic(joint) if kind in SINGLE_TYPES and "mimic" in joint else None
            actuated = kind in SINGLE_TYPES and mimic is None
            self.joints.append(
                JointDescription(
                    name=name,
                    type=kind,
                    parent=parent,
                    child=name,
                    origin=placement.origin,
                    screw=placement.screw,
                    where=joint.name,
                    mimic=mimic,
                    limits=_limits(joint) if kind in SINGLE_TYPES and "limits" in joint else NO_LIMITS,
                    damping=joint.not_negative("damping", 0.0) if kind in SINGLE_TYPES else 0.0,
                    friction=joint.not_negative("friction", 0.0) if kind in SINGLE_TYPES else 0.0,
                    elasticity=read_elasticity(joint) if actuated else RIGID,
                    actuator=read_actuator(joint) if actuated else IDEAL_ACTUATOR,
                    rotor_inertia=joint.not_negative("rotor_inertia", 0.0) if actuated else 0.0,
                    gear_ratio=_gear_ratio(joint) if actuated else 1.0,
                    rotor=read_rotor(joint) if actuated else None,
                )
            )
        self.links[name] = LinkDescription(name, inertial, joint.name)
        self._poses[name] = self._poses[parent] @ placement.origin

    def _parent(self, joint: Section) -> str:
        """The named parent, or the joint before: a row of joints without parents is a chain."""
        parent = joint.text("parent") if "parent" in joint else list(self.links)[-1]
        if parent not in self.links:
            joint.refuse("parent", f"{parent!r} is none of {', '.join(self.links)}, which come before this joint")
        return parent

    def _inertial(self, joint: Section) -> Inertial:
        mass = joint.positive("mass")
        center_of_mass = joint.vector("center_of_mass", 3)
        inertia = inertias.symmetric(*joint.vector("inertia", 6))
        if reason := inertias.objection(inertia):
            joint.refuse("inertia", f"{reason}; the order is xx xy xz yy yz zz")
        if self._reference == "com":
            return Inertial.about_center(mass, center_of_mass, inertia)
        return Inertial(mass, center_of_mass, inertia)


def _warn_of_impossible(links: Iterable[LinkDescription], source: str) -> None:
    """Warn where inertias about the link frame leave less than nothing about the centre of mass.

    No error, since published results exist that were computed from such a table.
    """
    impossible = [
        link.name for link in links if link.inertial and inertias.objection(link.inertial.about_center_of_mass)
    ]
    if impossible:
        warnings.warn(
            f"{source}: robot.inertia_reference: link gives inertias about the centre of mass that no body can have "
            f"({', '.join(impossible)}); does the table refer to the centre of mass (com)?",
            RobotDescriptionWarning,
            stacklevel=4,
        )


def _tools(
    robot: Section, links: Mapping[str, LinkDescription]
) -> tuple[tuple[FrameDescription, ...], tuple[str, ...]]:
    """The frames that are described, and the names of the tools."""
    if "tool_names" not in robot:
        return (), ()
    names = robot.names("tool_names")
    frames = []
    if "tools" in robot:
        with robot.section("tools") as tools:
            for name in (name for name in names if name in tools):
                if name in links:
                    tools.refuse(name, "is also the name of a body, which is a tool without being described here")
                with tools.section(name) as tool:
                    body = tool.choice("body", tuple(links))
                    frames.append(FrameDescription(name, body, read_origin(tool), tool.name))
    for name in names:
        if name not in links and name not in [frame.name for frame in frames]:
            robot.refuse("tool_names", f"{name!r} is neither a body ({', '.join(links)}) nor described in robot.tools")
    return tuple(frames), tuple(names)


def _groups(
    robot: Section, joints: Sequence[JointDescription]
) -> tuple[Group[CoupledSpring] | None, Group[Transmission] | None]:
    """The springs between several joints, and what moves several of them together."""
    actuated = [joint for joint in joints if joint.type in SINGLE_TYPES and joint.mimic is None]
    coupled = transmission = None
    if "coupled_stiffness" in robot:
        free = [joint.name for joint in actuated if isinstance(joint.elasticity, RigidSpring)]
        coupled = read_group(robot, "coupled_stiffness", free, "without an elasticity of its own", CoupledSpring)
    if "transmission" in robot:
        single = [joint.name for joint in actuated if not isinstance(joint.elasticity, AntagonisticPair)]
        transmission = read_group(robot, "transmission", single, "with one motor", Transmission)
    return coupled, transmission


def _mimic(joint: Section) -> MimicDescription:
    with joint.section("mimic") as mimic:
        return MimicDescription(mimic.text("joint"), mimic.number("ratio", 1.0), mimic.number("offset", 0.0))


def _limits(joint: Section) -> Limits:
    with joint.section("limits") as limits:
        lower = limits.number("lower") if "lower" in limits else -math.inf
        upper = limits.number("upper") if "upper" in limits else math.inf
        if lower > upper:
            limits.refuse("lower", f"must not exceed upper, {upper:g}, is {lower:g}")
        rates = ("velocity", "effort", "acceleration", "jerk", "effort_rate")
        return Limits(lower, upper, **{rate: limits.positive(rate) for rate in rates if rate in limits})


def _gear_ratio(joint: Section) -> float:
    ratio = joint.number("gear_ratio", 1.0)
    if ratio == 0:
        joint.refuse("gear_ratio", "must not be 0")
    return ratio

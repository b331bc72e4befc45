# SPDX-License-Identifier: Apache-2.0
"""Write a robot as an MJCF model, with its series springs as joints.

The equations are those of the reduced model, M. W. Spong, "Modeling and control of elastic joint robots" (1987): in the
body of the link, a joint of the motor, theta, whose armature is the rotor's inertia, and on its axis a joint with the
spring, q - theta. The length of a tendon over both, with the name of the joint, is q.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from ... import lie
from ...actuators.parallel_springs import ParallelSpring, SignedLinearLaw
from ...actuators.springs import DampedSpring, LinearSpring
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import unused_name
from ..inertia import Inertial
from ..model import Joint, Robot
from .written import LOST, Written, has_more, left_out, losses_of_rigid, word, words

# Stands for no limit on one side; of no effect.
_UNLIMITED = 1e12

# kg m²: MuJoCo refuses bodies with less than 1e-15.
_SMALLEST = 1e-14

# Of one body in MuJoCo.
_MOST_JOINTS = 6

# Margin for rounding: MuJoCo refuses a principal moment that exceeds the sum of the others.
_TRIANGLE = 1e-12


def _is_linear(spring: ParallelSpring) -> bool:
    return spring.anchors is None and isinstance(spring.law, SignedLinearLaw)


_LOST = {
    **{what: lost for what, lost in LOST.items() if what != "springs (elasticity)"},
    "losses and constants of actuators": lambda joint: joint.mimic is None and has_more(joint.actuator, limit=True),
    "parallel springs": lambda joint: joint.parallel_spring is not None and not _is_linear(joint.parallel_spring),
    "limits of velocity": lambda joint: np.isfinite(joint.limits.velocity),
    "limits of the effort of springs": lambda joint: not joint.spring.is_rigid and np.isfinite(joint.limits.effort),
}


def robot_as_mjcf(robot: Robot) -> Written:
    """Write a robot as an MJCF model with angles in rad and a motor on each joint.

    The control of a motor is its torque before the gear; integrator and time step are those of MuJoCo's Runge-Kutta
    method and its default. There are no contacts. RobotDescriptionError if a joint is helical; if a body at the end of
    a branch, or at a fork, has no mass; or if there are more than six joints from one body with mass to the next, two
    for each with a spring.
    """
    for joint in robot.joints:
        if joint.type == "helical":
            raise RobotDescriptionError(f"{robot.name}: joint {joint.name}: MJCF has no helical joints; write YAML")
    writer = _Writer(robot)
    ET.indent(writer.root)
    return Written(f"{ET.tostring(writer.root, encoding='unicode')}\n", tuple(writer.lost))


class _Writer:
    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._leaders = {joint.mimic.joint for joint in robot.joints if joint.mimic is not None}
        self.lost = left_out(robot, _LOST)
        self._children: dict[int, list[int]] = {i: [] for i in range(-1, len(robot.joints))}
        for i, joint in enumerate(robot.joints):
            self._children[joint.parent].append(i)
        self.root = ET.Element("mujoco", model=robot.name)
        ET.SubElement(self.root, "compiler", angle="radian")
        option = ET.SubElement(self.root, "option", gravity=words(robot.gravity), integrator="RK4")
        ET.SubElement(option, "flag", contact="disable")
        self._world = ET.SubElement(self.root, "worldbody")
        self._tendons, self._equalities, self._actuators = (
            ET.SubElement(self.root, name) for name in ("tendon", "equality", "actuator")
        )
        self._bodies, self._sites = {"world"}, set[str]()
        self._names = {joint.name for joint in robot.joints}
        base = self._world
        if robot.base.mass or np.any(robot.base.about_origin):
            base = self._body(base, "base", np.eye(4), robot.base)
        self._frames(base, -1)
        for i in self._children[-1]:
            self._add(base, i, np.eye(4), [])
        # Not those on a body without mass.
        kinds = dict.fromkeys(self._bodies, "body") | dict.fromkeys(self._sites, "site")
        if tools := [tool.name for tool in robot.tools if tool.name in kinds]:
            tools_of_file = ET.SubElement(ET.SubElement(self.root, "custom"), "tuple", name="tools")
            for name in tools:
                ET.SubElement(tools_of_file, "element", objtype=kinds[name], objname=name)
        for section in (self._tendons, self._equalities, self._actuators):
            if not len(section):
                self.root.remove(section)

    def _body(self, parent: ET.Element, name: str, pose: Array, inertial: Inertial) -> ET.Element:
        name = unused_name(name, self._bodies)
        self._bodies.add(name)
        body = ET.SubElement(parent, "body", {"name": name, **_pose(pose)})
        moments, axes = np.linalg.eigh(inertial.about_center_of_mass)
        axes[:, 2] *= np.linalg.det(axes)
        moments = np.maximum(moments, _SMALLEST)
        lacks = moments[2] * (1 + _TRIANGLE) - moments[0] - moments[1]
        if lacks > 0:
            moments[0] += lacks
        if lacks > 2 * _TRIANGLE * moments[2]:
            self.lost.append(f"inertia of {name}: a principal moment is raised by {lacks:.3g} kg m², as MuJoCo needs")
        place = _pose(lie.pose(axes, inertial.center_of_mass))
        ET.SubElement(body, "inertial", {**place, "mass": word(inertial.mass), "diaginertia": words(moments)})
        return body

    def _add(self, parent: ET.Element, i: int, pose: Array, above: Sequence[tuple[int, Array]]) -> None:
        """Add the body of joint i, or if it is massless, its joint to the next body.

        The reference pose is relative to a ``pose`` (4, 4) in the parent body; joints of massless bodies before it,
        ``above``, have their screws (6,) in that frame.
        """
        joint, pose = self._robot.joints[i], pose @ self._robot.joints[i].reference_pose
        step = lie.Ad(lie.inverse(joint.reference_pose))
        chain = [*((k, step @ screw) for k, screw in above), (i, joint.screw)]
        if not joint.mass and not np.any(joint.inertia_about_origin):
            if len(self._children[i]) != 1:
                raise RobotDescriptionError(
                    f"{self._robot.name}: body of {joint.name}: has no mass, which MuJoCo refuses; write YAML"
                )
            frames = (*self._robot.frames, *self._robot.tools)
            if names := dict.fromkeys(frame.name for frame in frames if frame.joint == i):
                self.lost.append(f"frames of a body without mass are left out: {', '.join(names)}")
            return self._add(parent, self._children[i][0], pose, chain)
        at_joint = [f.name for f in self._robot.frames if f.joint == i and np.array_equal(f.pose, np.eye(4))]
        body = self._body(parent, at_joint[0] if at_joint else joint.name, pose, joint.inertial)
        before = len(body)
        for k, screw in chain:
            self._joint(body, k, screw)
        count = sum(element.tag == "joint" for element in body[before:])
        if count > _MOST_JOINTS:
            raise RobotDescriptionError(
                f"{self._robot.name}: body of {joint.name}: has {count} joints up to the one before with mass, "
                f"two for each with a spring, MuJoCo takes {_MOST_JOINTS}; write YAML"
            )
        self._frames(body, i)
        for child in self._children[i]:
            place = self._robot.joints[child].reference_pose[:3, 3]
            if length := float(np.linalg.norm(place)):
                shown = {"type": "capsule", "fromto": f"0 0 0 {words(place)}", "size": word(0.1 * length), "mass": "0"}
                ET.SubElement(body, "geom", {**shown, "contype": "0", "conaffinity": "0"})
            self._add(body, child, np.eye(4), [])
        return None

    def _frames(self, body: ET.Element, i: int) -> None:
        """Add frames and tools of a body as sites, but for the frame that is the body itself."""
        for frame in (*self._robot.frames, *self._robot.tools):
            is_body = frame.name == body.get("name", "world") and np.array_equal(frame.pose, np.eye(4))
            if frame.joint == i and not is_body and frame.name not in self._sites:
                self._sites.add(frame.name)
                ET.SubElement(body, "site", {"name": frame.name, **_pose(frame.pose)})

    def _joint(self, body: ET.Element, i: int, screw: Array) -> None:
        """Add a joint with the screw (6,) in its body, its spring, and its motor."""
        joint = self._robot.joints[i]
        axis = screw[:3] if np.any(screw[:3]) else screw[3:]
        place = {"type": "hinge", "pos": words(np.cross(screw[:3], screw[3:])), "axis": words(axis)}
        if not np.any(screw[:3]):
            place = {"type": "slide", "axis": words(axis)}
        of_link = _passive(joint)
        effort = {"actuatorfrcrange": _range(-joint.limits.effort, joint.limits.effort)}
        stiffness = self._stiffness(i)
        driven = joint.name
        if not stiffness:
            total = dict(zip(("damping", "frictionloss"), losses_of_rigid(joint), strict=True))
            moved = {**of_link, **total, "armature": joint.rotor_inertia}
            if "springlength" in moved:
                moved["springref"] = moved.pop("springlength")
            limit = effort if np.isfinite(joint.limits.effort) else {}
            ET.SubElement(body, "joint", {"name": joint.name, **place, **_limits(joint), **limit, **_given(moved)})
        else:
            driven, spring = (unused_name(f"{joint.name}_{part}", self._names) for part in ("motor", "spring"))
            self._names |= {driven, spring}
            damping = joint.spring.damping if isinstance(joint.spring, DampedSpring) else 0.0
            elastic = _given({"stiffness": stiffness, "damping": damping})
            friction, armature = joint.actuator.friction, joint.rotor_inertia
            losses = {"damping": float(friction.viscous), "frictionloss": float(friction.coulomb)}
            ET.SubElement(body, "joint", {"name": driven, **place, **_given(losses | {"armature": armature})})
            ET.SubElement(body, "joint", {"name": spring, **place, **elastic})
            both = ET.SubElement(self._tendons, "fixed", {"name": joint.name, **_limits(joint), **_given(of_link)})
            for part in (driven, spring):
                ET.SubElement(both, "joint", joint=part, coef="1.0")
        if joint.mimic is not None:
            leader = {"joint1": joint.name, "joint2": self._robot.joints[joint.mimic.joint].name}
            terms = words([joint.mimic.offset, joint.mimic.ratio, 0.0, 0.0, 0.0])
            ET.SubElement(self._equalities, "joint", {**leader, "polycoef": terms})
            return
        torque = float(joint.actuator.motor.torque_limit)
        limit = {"forcerange": _range(-torque, torque)} if np.isfinite(torque) else {}
        motor = {"name": joint.name, "joint": driven, "gear": word(joint.gear_ratio)}
        ET.SubElement(self._actuators, "motor", {**motor, **limit})

    def _stiffness(self, i: int) -> float:
        """Stiffness of the series spring, 0 for a rigid joint; adds a line where it is not the whole spring."""
        joint = self._robot.joints[i]
        if joint.spring.is_rigid or joint.mimic is not None:
            return 0.0
        stiffness = joint.stiffness
        has_stiffness = 0 < stiffness < np.inf
        if not has_stiffness or not joint.rotor_inertia or i in self._leaders:
            reason = "it has no stiffness without load" if not has_stiffness else "its rotor has no inertia"
            if has_stiffness and joint.rotor_inertia:
                reason = "a mimic joint follows it; write YAML"
            self.lost.append(f"joint {joint.name}: its spring is left out: {reason}")
            return 0.0
        if not isinstance(joint.spring, LinearSpring | DampedSpring):
            self.lost.append(
                f"joint {joint.name}: of its {joint.spring.kind} spring, the stiffness without load is written"
            )
        return stiffness


def _passive(joint: Joint) -> dict[str, float]:
    """Damping, friction and parallel spring of the link."""
    passive = {"damping": joint.damping, "frictionloss": joint.friction}
    spring = joint.parallel_spring
    if spring is not None and _is_linear(spring) and isinstance(spring.law, SignedLinearLaw):
        passive |= {"stiffness": spring.law.constant, "springlength": spring.rest_position}
    return passive


def _given(values: dict[str, float]) -> dict[str, str]:
    return {name: word(value) for name, value in values.items() if value}


def _limits(joint: Joint) -> dict[str, str]:
    bounds = joint.limits.lower, joint.limits.upper
    return {"range": _range(*bounds)} if np.any(np.isfinite(bounds)) else {}


def _range(lower: float, upper: float) -> str:
    return words(np.clip([lower, upper], -_UNLIMITED, _UNLIMITED))


def _pose(pose: Array) -> dict[str, str]:
    x, y, z, w = lie.quaternion(pose[:3, :3])
    return {"pos": words(pose[:3, 3]), "quat": words([w, x, y, z])}

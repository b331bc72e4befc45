# SPDX-License-Identifier: Apache-2.0
"""Write a robot as an MJCF model, with its series springs as joints.

The equations follow the reduced model, M. W. Spong, "Modeling and control of elastic joint robots" (1987). The body of
the link has a motor joint theta with the rotor inertia as armature, and on its axis a joint with the spring, q - theta.
The length of a tendon over both, with the name of the joint, is q.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping

import numpy as np

from ... import lie
from ...actuators.parallel_springs import SignedLinearLaw
from ...actuators.springs import DampedSpring
from ...arrays import Array
from ...exceptions import RobotDescriptionError
from ...spelling import unused_name
from ..inertia import Inertial
from ..model import Joint, Robot
from . import LOST, Written, attributes, has_more, left_out, losses_of_rigid, word, words

_LINEAR = ("linear", "damped")  # kinds of springs


def _parallel_spring(joint: Joint) -> tuple[float, float] | None:
    """Stiffness and rest position of a linear parallel spring."""
    spring = joint.parallel_spring
    if spring is None or spring.anchors is not None or not isinstance(spring.law, SignedLinearLaw):
        return None
    return spring.law.constant, spring.rest_position


def _stiffness(joint: Joint) -> float:
    """Stiffness of the series spring to write; 0 without a spring."""
    is_elastic = joint.mimic is None and joint.rotor_inertia and not joint.spring.is_rigid
    return joint.stiffness if is_elastic and 0 < joint.stiffness < np.inf else 0.0


_LOST = {
    **LOST,
    "springs (elasticity)": lambda joint: joint.mimic is None and not joint.spring.is_rigid and not _stiffness(joint),
    "nonlinear terms of springs": lambda joint: _stiffness(joint) and joint.spring.kind not in _LINEAR,
    "losses and constants of actuators": lambda joint: joint.mimic is None and has_more(joint.actuator, limit=True),
    "parallel springs": lambda joint: joint.parallel_spring is not None and _parallel_spring(joint) is None,
    "limits of velocity": lambda joint: "velocity" in joint.limits.known,
    "limits of the effort of springs": lambda joint: not joint.spring.is_rigid and "effort" in joint.limits.known,
}


def robot_as_mjcf(robot: Robot) -> Written:
    """Write a robot as an MJCF model with angles in rad, without contacts, and with a motor on each joint.

    The control of a motor is its torque before the gear. Raises RobotDescriptionError if a joint is helical, a body has
    no mass, or a mimic joint follows a joint with a spring.
    """
    for joint in robot.joints:
        reason = "MJCF has no helical joints" if joint.type == "helical" else ""
        reason = reason if joint.mass else "its body has no mass, which MuJoCo refuses"
        if joint.mimic is not None and _stiffness(robot.joints[joint.mimic.joint]):
            reason = "it follows a joint with a spring"
        if reason:
            raise RobotDescriptionError(f"{robot.name}: joint {joint.name}: {reason}; write YAML")
    lost = left_out(robot, _LOST)
    root = ET.Element("mujoco", model=robot.name)
    ET.SubElement(root, "compiler", angle="radian")
    option = ET.SubElement(root, "option", gravity=words(robot.gravity), integrator="RK4")
    ET.SubElement(option, "flag", contact="disable")
    bodies = [ET.SubElement(root, "worldbody")]  # body of the base, then of the joints
    sections = {name: ET.SubElement(root, name) for name in ("tendon", "equality", "actuator")}
    if robot.base.mass:
        bodies[0] = _add_body(bodies[0], unused_name("base", robot.joint_names), np.eye(4), robot.base, lost)
    for joint in robot.joints:
        bodies.append(_add_body(bodies[joint.parent + 1], joint.name, joint.reference_pose, joint.inertial, lost))
        _add_joint(bodies[-1], joint, robot, sections)
        if joint.parent >= 0 and (length := float(np.linalg.norm(joint.reference_pose[:3, 3]))):
            line = {"fromto": f"0 0 0 {words(joint.reference_pose[:3, 3])}", "size": word(0.1 * length), "mass": "0"}
            ET.SubElement(bodies[joint.parent + 1], "geom", {"type": "capsule", **line})
    names = {body.get("name") for body in bodies}
    for frame in {x.name: x for x in (*robot.frames, *robot.tools) if x.name not in names}.values():
        ET.SubElement(bodies[frame.joint + 1], "site", {"name": frame.name, **_pose(frame.pose)})
    tools = ET.SubElement(ET.SubElement(root, "custom"), "tuple", name="tools")
    for tool in robot.tools:
        ET.SubElement(tools, "element", objtype="body" if tool.name in names else "site", objname=tool.name)
    ET.indent(root)
    return Written(f"{ET.tostring(root, encoding='unicode')}\n", tuple(lost))


def _add_body(parent: ET.Element, name: str, pose: Array, inertial: Inertial, lost: list[str]) -> ET.Element:
    """Add a body to its parent, and a line to ``lost`` if MuJoCo would refuse its inertia."""
    body = ET.SubElement(parent, "body", {"name": name, **_pose(pose)})
    moments, axes = np.linalg.eigh(inertial.about_center_of_mass)
    axes[:, 2] *= np.linalg.det(axes)
    moments = np.maximum(moments, 1e-14)  # kg m²: MuJoCo refuses less than 1e-15
    # MuJoCo refuses a principal moment above the sum of the other two; with a margin for rounding.
    lacks = moments[2] * (1 + 1e-12) - moments[0] - moments[1]
    moments[0] += max(lacks, 0.0)
    if lacks > 2e-12 * moments[2]:
        lost.append(f"inertia of {name}: a principal moment is raised by {lacks:.3g} kg m², as MuJoCo needs")
    place = _pose(lie.pose(axes, inertial.center_of_mass))
    ET.SubElement(body, "inertial", {**place, "mass": word(inertial.mass), "diaginertia": words(moments)})
    return body


def _add_joint(body: ET.Element, joint: Joint, robot: Robot, sections: Mapping[str, ET.Element]) -> None:
    """Add a joint to its body, with spring and motor."""
    axis, driven = joint.screw[:3], joint.name
    place = {"type": "hinge", "pos": words(np.cross(axis, joint.screw[3:])), "axis": words(axis)}
    if not np.any(axis):
        place = {"type": "slide", "axis": words(joint.screw[3:])}
    parallel, rest = _parallel_spring(joint) or (0.0, 0.0)
    of_link = _range("range", joint.limits.lower, joint.limits.upper) | attributes(stiffness=parallel)
    if stiffness := _stiffness(joint):
        driven, spring = f"{joint.name}_motor", f"{joint.name}_spring"
        friction = joint.actuator.friction
        losses = attributes(damping=float(friction.viscous), frictionloss=float(friction.coulomb))
        ET.SubElement(body, "joint", {"name": driven, **place, **losses, "armature": word(joint.rotor_inertia)})
        damping = joint.spring.damping if isinstance(joint.spring, DampedSpring) else 0.0
        ET.SubElement(body, "joint", {"name": spring, **place, **attributes(stiffness=stiffness, damping=damping)})
        of_link |= attributes(damping=joint.damping, frictionloss=joint.friction, springlength=rest)
        both = ET.SubElement(sections["tendon"], "fixed", {"name": joint.name, **of_link})
        for part in (driven, spring):
            ET.SubElement(both, "joint", joint=part, coef="1.0")
    else:
        damping, loss = losses_of_rigid(joint)
        of_link |= _range("actuatorfrcrange", -joint.limits.effort, joint.limits.effort)
        of_link |= attributes(damping=damping, frictionloss=loss, springref=rest, armature=joint.rotor_inertia)
        ET.SubElement(body, "joint", {"name": driven, **place, **of_link})
    if joint.mimic is not None:
        terms, leader = [joint.mimic.offset, joint.mimic.ratio, 0.0, 0.0, 0.0], robot.joints[joint.mimic.joint].name
        ET.SubElement(sections["equality"], "joint", joint1=joint.name, joint2=leader, polycoef=words(terms))
        return
    torque = float(joint.actuator.motor.torque_limit)
    motor = {"name": joint.name, "joint": driven, "gear": word(joint.gear_ratio)}
    ET.SubElement(sections["actuator"], "motor", motor | _range("forcerange", -torque, torque))


def _range(name: str, lower: float, upper: float) -> dict[str, str]:
    limited = np.isfinite(lower) or np.isfinite(upper)
    return {name: words(np.clip([lower, upper], -1e12, 1e12))} if limited else {}  # one side without limit


def _pose(pose: Array) -> dict[str, str]:
    x, y, z, w = lie.quaternion(pose[:3, :3])
    return {"pos": words(pose[:3, 3]), "quat": words([w, x, y, z])}

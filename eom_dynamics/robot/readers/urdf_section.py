# SPDX-License-Identifier: Apache-2.0
"""Read a robot from a URDF and a section of ROS 2 parameters that complete it, every entry checked.

The section as in a parameter file; each entry is optional:

.. code-block:: yaml

    urdf:
      root: torso                         # this and the next five as in eom_dynamics.load_robot
      tip: [left_hand, right_hand]        # or a single name
      tools: left_gripper
      branches: lump
      unphysical: warn
      gravity: [0.0, 0.0, -9.80665]       # in the frame of the base
      joints:                             # joints of the URDF, with entries as in a robot's parameter file
        shoulder:
          elasticity: {type: linear, stiffness: 1.0e4}
          rotor_inertia: 0.2              # replaces that of a <transmission>
          rotor: {carrier: torso, axis: [0.0, 0.0, 1.0]}   # link that carries the rotor, axis in its frame
      rotor_model: reduced                # or complete: docs/elastic_joints.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..assembly import UNPHYSICAL, assemble
from ..description import SINGLE_TYPES, JointDescription
from ..model import ROTOR_MODELS, Robot
from ..subtree import BRANCHES
from .elasticity import read_actuator, read_rotor, read_spring
from .section import Section
from .urdf import description_from_urdf


def robot_from_urdf(text: str, section: Mapping[str, Any] | None = None, source: str = "robot_description") -> Robot:
    """Build a robot from a URDF.

    Args:
        text: the URDF.
        section: contents of the ``urdf`` section of a parameter tree, see above.
        source: file or topic of the URDF; every message about it begins with it.

    Raises:
        RobotDescriptionError: the URDF cannot be used; or an entry of the section is unknown, of the wrong type or
            not allowed, or names an unknown joint or link. The message names the element or the parameter, and the
            reason.
    """
    description = description_from_urdf(text, source)
    with Section(section or {}, "urdf", "parameters") as options:
        if "joints" in options:
            with options.section("joints") as joints:
                description = replace(
                    description, joints=tuple(_with_motor(joint, joints) for joint in description.joints)
                )
        rotor_model = options.choice("rotor_model", ROTOR_MODELS, default=ROTOR_MODELS[0])
        description = replace(description, rotor_model=rotor_model)
        gravity = options.vector("gravity", 3) if "gravity" in options else None
        part: dict[str, Any] = {name: options.texts(name) for name in ("tip", "tools") if name in options}
        if "root" in options:
            part["root"] = options.text("root")
        branches = options.choice("branches", BRANCHES, default="lump")
        unphysical = options.choice("unphysical", UNPHYSICAL, default="warn")
    return assemble(description, branches=branches, unphysical=unphysical, gravity=gravity, **part)


def _with_motor(joint: JointDescription, joints: Section) -> JointDescription:
    """The joint with the motor and spring of its section."""
    if joint.name not in joints:
        return joint
    if joint.type not in SINGLE_TYPES:
        joints.refuse(joint.name, f"a {joint.type} joint has no motor; remove the entry")
    if joint.mimic is not None:
        joints.refuse(joint.name, f"it mimics {joint.mimic.leader} and has no motor; remove the entry")
    with joints.section(joint.name) as motor:
        return replace(
            joint,
            spring=read_spring(motor),
            actuator=read_actuator(motor),
            rotor_inertia=motor.not_negative("rotor_inertia", joint.rotor_inertia),
            rotor=read_rotor(motor),
        )

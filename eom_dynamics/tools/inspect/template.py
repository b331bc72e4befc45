# SPDX-License-Identifier: Apache-2.0
"""Loadable templates of parameter files: of a robot, or of springs and motors for a URDF."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ...robot import Robot

TEMPLATE = """\
# Robot for eom_dynamics: load_robot("my_arm.yaml"), or a node's --params-file my_arm.yaml.
# SI units, angles rad. Entries that are commented out are optional, with their defaults or an example.
/**:
  ros__parameters:
    robot:
      # A URDF, or another file, instead of all below, completed by entries of its joints: docs/robots.md
      # urdf: package://my_arm_description/urdf/my_arm.urdf.xacro
      name: my_arm
      joint_names: [shoulder, elbow]        # parents before children; the order of all joint vectors
      # convention: body_screws             # body_screws | spatial_screws | dh | modified_dh
      inertia_reference: com                # inertias are about: com (centre of mass) | link (origin of the body)
      # gravity: [0.0, 0.0, -9.80665]       # gravitational acceleration in the frame of the base
      # unphysical: refuse                  # refuse | warn about physically inconsistent inertia
      # rotor_model: reduced                # reduced | complete: docs/elastic_joints.md
      # command_period: 1.0e-3              # time from one command of the drives to the next, s; 0: unknown
      # drive_delay: 0.0                    # time from a command to its effect on the motors, s
      # drive_interpolation: none           # none: the drives hold a command | linear: docs/command_lead.md
      # drive_feedback_delay: {position: 0.0, velocity: 0.0}   # age of what the drives compare with references, s
      # uncertainty: {stiffness: 0.02, mass: 0.05, rotor_inertia: 0.1}   # relative standard deviations; 0: unknown
      # compensated_by_robot: [gravity, friction]   # efforts that the robot adds itself: also coriolis, payload
      # base: {mass: 4.0, center_of_mass: [0.0, 0.0, 0.05], inertia: [0.02, 0.0, 0.0, 0.02, 0.0, 0.03]}   # floating
      joints:
        shoulder:
          type: revolute                    # revolute, continuous, prismatic, helical, fixed, planar, ball or floating
          # parent: base                    # body that the joint is on: base, or the name of a joint before it
          screw: [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]     # axis in the body's frame; prismatic: 0.0, 0.0, 0.0 and the axis
          origin: {xyz: [0.0, 0.0, 0.3]}    # of the body in its parent at q = 0; rpy: [0.0, 0.0, 0.0] if not given
          mass: 3.0
          center_of_mass: [0.2, 0.0, 0.0]   # in the body's frame
          inertia: [0.01, 0.0, 0.0, 0.05, 0.0, 0.05]    # xx xy xz yy yz zz
          # limits: {lower: -2.9, upper: 2.9, velocity: 2.0, effort: 80.0, acceleration: 10.0, jerk: 500.0,
          #          effort_rate: 1000.0}
          # damping: 0.0                    # viscous friction of the joint, N m s/rad
          # friction: 0.0                   # dry friction of the joint, N m
          # constant_effort: 0.0            # joint effort that holds against a constant load, N m
          # parallel_spring: {type: linear, stiffness: 20.0, rest_position: 0.0}     # beside the motor
          # elasticity: {type: linear, stiffness: 1.0e+4}     # spring; rigid if not given; all types: docs/actuators.md
          # rotor_inertia: 0.2              # on the link side of the gear, kg m^2
          # gear_ratio: 100.0               # motor revolutions per joint revolution
          # rotor: {carrier: base, axis: [0.0, 0.0, 1.0]}     # body that carries the rotor, spin axis in its frame
          # actuator:
          #   friction: {viscous: 0.5, coulomb: 0.5, static: 0.6, presliding_distance: 1.0e-4}   # distance: rad
          #   efficiency: 0.9               # of the gear
          #   torque_constant: 0.05         # N m/A, of the motor
          #   resistance: 0.5               # ohm
          #   limits: {torque: 1.0, speed: 500.0, current: 20.0, voltage: 48.0}
          # drive: {side: motor, sign: 1, units_per_turn: 1.0, offset: 0.0, effort: torque}   # units: docs/robots.md
        elbow:
          type: revolute
          screw: [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
          origin: {xyz: [0.4, 0.0, 0.0], rpy: [0.0, 0.0, 0.0]}
          mass: 2.0
          center_of_mass: [0.15, 0.0, 0.0]
          inertia: [0.005, 0.0, 0.0, 0.02, 0.0, 0.02]
          # mimic: {joint: shoulder, ratio: 1.0, offset: 0.0}   # follows another joint; has no motor and no spring
      # coupled_stiffness: {joints: [shoulder, elbow], matrix: [300.0, 20.0, 20.0, 200.0]}
      # transmission: {joints: [shoulder, elbow], matrix: [0.5, 0.5, 0.5, -0.5]}
      tool_names: [gripper]                 # where wrenches act; the last body if not given
      tools:
        gripper: {body: elbow, origin: {xyz: [0.3, 0.0, 0.0]}}
      # payloads:                           # bodies added at a joint's body or a tool, in its frame
      #   gripper: {mass: 1.0, center_of_mass: [0.0, 0.0, 0.05], inertia: [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
"""

_DRIVES = "".join(
    line for line in TEMPLATE.splitlines(keepends=True) if re.search("# (command|drive|compensated)_", line)
)


_ACTUATOR = TEMPLATE[TEMPLATE.index("          # actuator:") : TEMPLATE.index("        elbow:")]


def completion(robot: Robot, urdf: str, options: Mapping[str, Any]) -> str:
    """Return a parameter file that names a URDF or xacro file, to fill in with its springs and motors.

    Args:
        urdf: its path, absolute or relative to the parameter file.
        options: other entries, such as ``tip``.
    """
    joints = [
        f"""\
        {_quoted(joint.name)}:
          gear_ratio: {joint.gear_ratio!r}                   # motor revolutions per joint revolution
          rotor_inertia: {joint.rotor_inertia!r}                # on the link side of the gear, {inertia_unit}
          # elasticity: {{type: linear, stiffness: 1.0e+4}}     # {stiffness_unit}; all types: docs/actuators.md
          # constant_effort: 0.0            # that holds against a constant load, {effort_unit}
          # parallel_spring: {{type: linear, stiffness: 20.0}}     # {stiffness_unit}, beside the motor
          # limits: {{acceleration: 10.0, jerk: 500.0, effort_rate: 1000.0}}     # those of the URDF remain
{_ACTUATOR}"""
        for joint in robot.independent_joints
        for inertia_unit, stiffness_unit, effort_unit in [
            ("kg", "N/m", "N") if joint.type == "prismatic" else ("kg m^2", "N m/rad", "N m")
        ]
    ]
    others = "".join(f"      {name}: {json.dumps(value)}\n" for name, value in options.items())
    return f"""\
# Springs and motors of {robot.name}: load_robot(…) of this file, or a node's --params-file. SI units, angles rad.
# Entries that are commented out are examples: give those of your motors, and remove the others. docs/robots.md
/**:
  ros__parameters:
    robot:
      urdf: {_quoted(urdf)}
{others}{_DRIVES}      joints:
{"".join(joints)}"""


def _quoted(text: str) -> str:
    """Quote a text unless YAML reads it as such."""
    plain = re.fullmatch(r"[A-Za-z_/][\w./-]*", text) and len(text) > 1 and text.lower() not in _NOT_TEXT
    return text if plain else json.dumps(text)


_NOT_TEXT = ("yes", "no", "true", "false", "on", "off", "null")

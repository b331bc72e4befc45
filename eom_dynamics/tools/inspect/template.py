# SPDX-License-Identifier: Apache-2.0
"""Loadable templates of parameter files: of a robot, or of springs and motors for a URDF."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ...robot import Robot

# Without the line of its license.
_, TEMPLATE = resources.files(__package__).joinpath("template.yaml").read_text(encoding="utf-8").split("\n", 1)
"""Parameter file of a robot with all entries, most of them commented out."""

_DRIVES = "".join(re.findall(r"^ +# (?:command|drive|compensated)_.*\n", TEMPLATE, re.MULTILINE))
_ACTUATOR = TEMPLATE[TEMPLATE.index("          # actuator:") : TEMPLATE.index("        elbow:")]


def completion(robot: Robot, urdf: str, options: Mapping[str, Any]) -> str:
    """Return a parameter file that names a URDF, and other entries such as ``tip``, to fill in springs and motors."""
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
    plain = re.fullmatch(r"(?!(yes|no|true|false|on|off|null)$)[a-z_/][\w./-]+", text, re.IGNORECASE)
    return text if plain else json.dumps(text)

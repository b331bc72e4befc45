# SPDX-License-Identifier: Apache-2.0
"""Show what a robot's file says: its joints and bodies, gravity, and what was assumed where the file is silent.

Shows also how many operations one state costs.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..exceptions import RobotDescriptionWarning
from ..kernel.programs import PROGRAMS
from ..robot import Joint, Robot, load_robot, packaged_robots
from .tables import columns, cost_rows

SUMMARY = "show what a robot's file says"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument(
        "robot", metavar="ROBOT", help=f"a packaged robot ({', '.join(packaged_robots())}) or a parameter file (.yaml)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON; a rigid joint's stiffness is null")


def run(options: argparse.Namespace) -> int:
    """Print the robot; returns the exit code.

    Raises:
        RobotDescriptionError: the robot cannot be loaded.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = load_robot(options.robot)
    description = describe(robot)
    description["warnings"] = [str(warning.message) for warning in caught]
    print(json.dumps(description, indent=2) if options.json else _text(description))
    return 0


def describe(robot: Robot) -> dict[str, Any]:
    """The robot as JSON takes it; SI units, and None for the stiffness of a rigid joint.

    The operations are those of one state, for each program of :data:`eom_dynamics.kernel.programs.PROGRAMS`.
    """
    return {
        "name": robot.name,
        "total_mass": float(np.sum([joint.mass for joint in robot.joints])),
        "gravity": robot.gravity.tolist(),
        "joints": [
            {
                "name": joint.name,
                "type": joint.type,
                "axis": _axis(joint),
                "mass": joint.mass,
                "stiffness": joint.stiffness if np.isfinite(joint.stiffness) else None,
                "rotor_inertia": joint.rotor_inertia,
            }
            for joint in robot.joints
        ],
        "operations": {name: program(robot).costs() for name, program in PROGRAMS.items()},
        "assumed": _assumed(robot),
    }


def _axis(joint: Joint) -> list[float]:
    """Unit vector (3,) that the joint turns about or slides along, in the body's frame."""
    angular, linear = joint.screw[:3], joint.screw[3:]
    axis: list[float] = (angular if np.any(angular) else linear).tolist()
    return axis


def _assumed(robot: Robot) -> list[str]:
    """What no entry of the file says."""
    rigid = [joint.name for joint in robot.joints if np.isinf(joint.stiffness)]
    massless = [joint.name for joint in robot.joints if joint.rotor_inertia == 0]
    assumed = [f"rigid, without a spring: {', '.join(rigid)}"] if rigid else []
    if massless:
        assumed.append(f"no rotor inertia: {', '.join(massless)}")
    return [*assumed, f"an external wrench acts on the last body, that of {robot.joints[-1].name}"]


def _text(description: dict[str, Any]) -> str:
    joints = description["joints"]
    units = dict.fromkeys(("N/m", "kg") if joint["type"] == "prismatic" else ("N m/rad", "kg m²") for joint in joints)
    stiffness_unit, inertia_unit = (" or ".join(unit) for unit in zip(*units, strict=True))
    header = ("joint", "type", "axis", "mass [kg]", f"stiffness [{stiffness_unit}]", f"rotor inertia [{inertia_unit}]")
    rows = [
        (
            joint["name"],
            joint["type"],
            _vector(joint["axis"]),
            f"{joint['mass']:g}",
            "rigid" if joint["stiffness"] is None else f"{joint['stiffness']:g}",
            f"{joint['rotor_inertia']:g}",
        )
        for joint in joints
    ]
    return "\n".join(
        [
            f"{description['name']}: {len(joints)} joints, {description['total_mass']:g} kg, "
            f"gravity {_vector(description['gravity'])} m/s²",
            "",
            *columns([header, *rows], right_from=3),
            "",
            *columns(cost_rows(description["operations"]), right_from=1),
            "",
            *(f"assumed: {line}" for line in description["assumed"]),
            *(f"warning: {line}" for line in description["warnings"]),
        ]
    )


def _vector(values: Sequence[float]) -> str:
    return "[" + " ".join(f"{value:g}" for value in values) + "]"

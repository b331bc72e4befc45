# SPDX-License-Identifier: Apache-2.0
"""Show what a robot's file says: its joints and bodies, gravity, and what was assumed where the file is silent."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..exceptions import RobotDescriptionWarning
from ..robot import Joint, Robot, load_robot, packaged_robots

SUMMARY = "show what a robot's file says"

# Below this, in m/rad, a screw is read as that of a revolute joint.
_NO_PITCH = 1e-5


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
    """The robot as JSON takes it; SI units, and None for the stiffness of a rigid joint."""
    return {
        "name": robot.name,
        "total_mass": float(np.sum([joint.mass for joint in robot.joints])),
        "gravity": robot.gravity.tolist(),
        "joints": [
            {
                "name": joint.name,
                "type": joint_type(joint),
                "axis": _axis(joint),
                "mass": joint.mass,
                "stiffness": joint.stiffness if np.isfinite(joint.stiffness) else None,
                "rotor_inertia": joint.rotor_inertia,
            }
            for joint in robot.joints
        ],
        "assumed": _assumed(robot),
    }


def joint_type(joint: Joint) -> str:
    """The type of a joint by its screw: revolute, prismatic or helical."""
    angular, linear = joint.screw[:3], joint.screw[3:]
    if not np.any(angular):
        return "prismatic"
    return "helical" if abs(angular @ linear) > _NO_PITCH else "revolute"


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
            *_columns([header, *rows], right_from=3),
            "",
            *(f"assumed: {line}" for line in description["assumed"]),
            *(f"warning: {line}" for line in description["warnings"]),
        ]
    )


def _vector(values: Sequence[float]) -> str:
    return "[" + " ".join(f"{value:g}" for value in values) + "]"


def _columns(rows: Sequence[Sequence[str]], right_from: int) -> list[str]:
    """Rows as lines with aligned columns, those of numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i >= right_from else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]

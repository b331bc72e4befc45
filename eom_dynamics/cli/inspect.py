# SPDX-License-Identifier: Apache-2.0
"""Show what a robot's description says: its tree, joints, bodies, limits and tools, what was merged and assumed.

Shows also how many operations one state costs.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..exceptions import RobotDescriptionWarning
from ..kernel.programs import PROGRAMS
from ..robot import Joint, Robot, load_robot, packaged_robots
from ..robot.part import BRANCHES
from ..robot.reach import reach
from ..terminal import printable
from .tables import columns, cost_rows

SUMMARY = "show what a robot's description says"

# What takes time with the square of the number of joints: for more joints than this it is left out, before it takes
# longer than anybody waits.
_SQUARE = ("mass_matrix", "effort_partials")
_MOST_JOINTS = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of the command."""
    parser.add_argument(
        "robot",
        metavar="ROBOT",
        help=f"a packaged robot ({', '.join(packaged_robots())}), a parameter file (.yaml), a .urdf or a .xacro file",
    )
    parser.add_argument("--root", metavar="LINK", help="take this link for the base")
    parser.add_argument("--tip", metavar="LINK", action="append", default=[], help="end at this link (may be repeated)")
    parser.add_argument(
        "--tool", metavar="LINK", action="append", default=[], help="a wrench acts at this link (may be repeated)"
    )
    parser.add_argument("--branches", choices=BRANCHES, default="lump", help="what becomes of all that leads to no tip")
    parser.add_argument(
        "--unphysical", choices=("refuse", "warn"), default="refuse", help="of inertia no body can have"
    )
    parser.add_argument(
        "--xacro", metavar="NAME:=VALUE", action="append", default=[], help="argument of a xacro file (may be repeated)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON; what is infinite is null")


def run(options: argparse.Namespace) -> int:
    """Print the robot; returns the exit code.

    Raises:
        RobotDescriptionError: the robot cannot be loaded.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RobotDescriptionWarning)
        robot = load_robot(
            options.robot,
            root=options.root,
            tip=options.tip,
            tools=options.tool,
            branches=options.branches,
            unphysical=options.unphysical,
            xacro_arguments=dict(argument.partition(":=")[::2] for argument in options.xacro),
        )
    description = describe(robot)
    description["warnings"] = [str(warning.message) for warning in caught]
    print(json.dumps(description, indent=2) if options.json else _text(description))
    return 0


def describe(robot: Robot) -> dict[str, Any]:
    """The robot as JSON takes it; SI units, and None for what is infinite or not there.

    The operations are those of one state, for each program of :data:`eom_dynamics.kernel.programs.PROGRAMS` (None
    for those that take too long to count).
    """
    return {
        "name": robot.name,
        "independent_joints": robot.n,
        "total_mass": float(np.sum([joint.mass for joint in robot.joints])),
        "gravity": robot.gravity.tolist(),
        "joints": [_joint(robot, joint) for joint in robot.joints],
        "tools": [
            {
                "name": tool.name,
                "body": robot.joints[tool.joint].name,
                "reach": reach(robot, tool) if robot.n <= _MOST_JOINTS else None,
            }
            for tool in robot.tools
        ],
        "operations": {
            name: program(robot).costs() if robot.n <= _MOST_JOINTS or name not in _SQUARE else None
            for name, program in PROGRAMS.items()
        },
        "merged": list(robot.merged),
        "assumed": [*robot.assumed, *_assumed(robot)],
    }


def _joint(robot: Robot, joint: Joint) -> dict[str, Any]:
    limits, mimic = joint.limits, joint.mimic
    return {
        "name": joint.name,
        "type": joint.type,
        "parent": robot.joints[joint.parent].name if joint.parent >= 0 else None,
        "axis": _axis(joint),
        "mass": joint.mass,
        "mimic": mimic and {"joint": robot.joints[mimic.joint].name, "ratio": mimic.ratio, "offset": mimic.offset},
        "limits": {
            "lower": _finite(limits.lower),
            "upper": _finite(limits.upper),
            "velocity": _finite(limits.velocity),
            "effort": _finite(limits.effort),
        },
        "stiffness": _finite(joint.stiffness),
        "rotor_inertia": joint.rotor_inertia,
        "gear_ratio": joint.gear_ratio,
        "damping": joint.damping,
        "friction": joint.friction,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _axis(joint: Joint) -> list[float]:
    """Unit vector (3,) that the joint turns about or slides along, in the body's frame."""
    angular, linear = joint.screw[:3], joint.screw[3:]
    axis: list[float] = (angular if np.any(angular) else linear).tolist()
    return axis


def _assumed(robot: Robot) -> list[str]:
    """What no entry of the description says."""
    joints = robot.independent_joints
    rigid = [joint.name for joint in joints if np.isinf(joint.stiffness)]
    massless = [joint.name for joint in joints if joint.rotor_inertia == 0]
    unlimited = [joint.name for joint in joints if np.isinf(joint.limits.lower) and np.isinf(joint.limits.upper)]
    lines = (("rigid, without a spring", rigid), ("no rotor inertia", massless), ("no limits of position", unlimited))
    return [
        *(
            f"{what}: {', '.join(names) if len(names) < len(joints) else 'all joints'}"
            for what, names in lines
            if names
        ),
        f"an external wrench acts at {' and at '.join(tool.name for tool in robot.tools)}",
    ]


def _text(description: Mapping[str, Any]) -> str:
    joints = description["joints"]
    counted = {name: costs for name, costs in description["operations"].items() if costs is not None}
    uncounted = [name for name in description["operations"] if name not in counted]
    units = dict.fromkeys(("N/m", "kg") if joint["type"] == "prismatic" else ("N m/rad", "kg m²") for joint in joints)
    stiffness_unit, inertia_unit = (" or ".join(unit) for unit in zip(*units, strict=True))
    header = (
        *("joint", "type", "axis", "limits", "velocity", "effort", "mass [kg]"),
        *(f"stiffness [{stiffness_unit}]", f"rotor inertia [{inertia_unit}]"),
    )
    rows = [
        (
            _branch(joints, joint) + joint["name"],
            joint["type"] if joint["mimic"] is None else _following(joint["mimic"]),
            _vector(joint["axis"]),
            _limits(joint["limits"]),
            *(_or(joint["limits"][what], "-") for what in ("velocity", "effort")),
            f"{joint['mass']:g}",
            _or(joint["stiffness"], "rigid"),
            f"{joint['rotor_inertia']:g}",
        )
        for joint in joints
    ]
    lines = [
        f"{description['name']}: {description['independent_joints']} joints, {description['total_mass']:g} kg, "
        f"gravity {_vector(description['gravity'])} m/s²",
        "",
        *columns([header, *rows], right_from=4),
        "",
        *(
            f"tool {tool['name']}, moved by {tool['body']}: "
            + (
                f"its reach is not searched for more than {_MOST_JOINTS} joints"
                if tool["reach"] is None
                else f"reaches {tool['reach']:.3g} m from the base"
            )
            for tool in description["tools"]
        ),
        "",
        *columns(cost_rows(counted), right_from=1),
        *(f"{name}: not counted for more than {_MOST_JOINTS} joints" for name in uncounted),
        "",
        *(f"merged: {line}" for line in description["merged"]),
        *(f"assumed: {line}" for line in description["assumed"]),
        *(f"warning: {line}" for line in description["warnings"]),
    ]
    return "\n".join(map(printable, lines))


def _branch(joints: Sequence[Mapping[str, Any]], joint: Mapping[str, Any]) -> str:
    """The lines that lead to a joint in a drawing of the tree; a row of joints is not indented."""
    parents = {other["name"]: other["parent"] for other in joints}
    children: dict[str | None, list[str]] = {}
    for other in joints:
        children.setdefault(other["parent"], []).append(other["name"])
    lines, name = "", joint["name"]
    branches = children[parents[name]]
    lines = "" if len(branches) == 1 else "└─" if name == branches[-1] else "├─"
    name = parents[name]
    while name is not None:
        branches = children[parents[name]]
        if len(branches) > 1:
            lines = ("  " if name == branches[-1] else "│ ") + lines
        name = parents[name]
    return lines


def _following(mimic: Mapping[str, Any]) -> str:
    offset = f" {mimic['offset']:+g}" if mimic["offset"] else ""
    return f"= {mimic['ratio']:g} {mimic['joint']}{offset}"


def _limits(limits: Mapping[str, float | None]) -> str:
    lower, upper = limits["lower"], limits["upper"]
    return "-" if lower is None and upper is None else f"{_or(lower, '-inf')} … {_or(upper, 'inf')}"


def _or(value: float | None, without: str) -> str:
    return without if value is None else f"{value:g}"


def _vector(values: Sequence[float]) -> str:
    return "[" + " ".join(f"{value:g}" for value in values) + "]"

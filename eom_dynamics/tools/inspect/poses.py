# SPDX-License-Identifier: Apache-2.0
"""Where the tools of a robot are in a configuration."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ... import lie
from ...arrays import Array
from ...kinematics import Kinematics
from ...robot import Robot
from ...terminal import printable
from ..text_tables import columns


def tool_poses(robot: Robot, q: Array) -> dict[str, Any]:
    """Return the poses of the tools, ready for JSON.

    Args:
        robot: the robot.
        q: joint variables (n,), rad or m.

    Raises:
        StateError: q has the wrong length or is not finite.
    """
    kinematics = Kinematics(robot)
    tools = []
    for tool in robot.tools:
        C = kinematics.pose(q, tool.name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # gimbal lock, of which the table cannot tell
            rpy = lie.euler_angles("xyz", C[:3, :3])
        tools.append(
            {
                "name": tool.name,
                "position": C[:3, 3].tolist(),
                "quaternion": lie.quaternion(C[:3, :3]).tolist(),
                "rpy": rpy.tolist(),
                "manipulability": float(kinematics.manipulability(q, frame=tool.name)),
            }
        )
    return {"q": q.tolist(), "tools": tools}


def as_table(poses: Mapping[str, Any]) -> str:
    """Return the poses of :func:`tool_poses` as a table."""
    header = ("tool", "position [m]", "quaternion x y z w", "roll pitch yaw [rad]", "manipulability")
    rows = [
        (
            tool["name"],
            *(_numbers(tool[key]) for key in ("position", "quaternion", "rpy")),
            f"{tool['manipulability']:.4g}",
        )
        for tool in poses["tools"]
    ]
    return "\n".join(map(printable, columns([header, *rows], right_from=4)))


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value + 0.0:.6f}" for value in values)

# SPDX-License-Identifier: Apache-2.0
"""The same robot under other names, such as the left one of two equal arms."""

from __future__ import annotations

from dataclasses import replace

from .model import Robot


def with_prefix(robot: Robot, prefix: str) -> Robot:
    """Return a robot whose joints (with them its motors), tools and frames have a prefix before their names.

    Args:
        robot: the robot; it is not changed.
        prefix: such as ``left_``; empty for the same robot.
    """
    if not prefix:
        return robot
    return replace(
        robot,
        joints=tuple(replace(joint, name=f"{prefix}{joint.name}") for joint in robot.joints),
        tools=tuple(replace(tool, name=f"{prefix}{tool.name}") for tool in robot.tools),
        frames=tuple(replace(frame, name=f"{prefix}{frame.name}") for frame in robot.frames),
    )

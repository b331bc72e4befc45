# SPDX-License-Identifier: Apache-2.0
"""Fields of ``Payload`` as a payload."""

from __future__ import annotations

from typing import Any

from ..robot import Payload, Robot


def read_payload(message: Any, robot: Robot) -> Payload:
    """The payload of a message, of a tool of the robot.

    Raises:
        RobotDescriptionError: no rigid body has this mass and inertia, or the robot has no such tool.
    """
    body = message.inertia
    inertia = (body.ixx, body.ixy, body.ixz, body.iyy, body.iyz, body.izz)
    payload = Payload(body.m, (body.com.x, body.com.y, body.com.z), inertia, message.tool)
    payload.tool_index(robot)
    return payload

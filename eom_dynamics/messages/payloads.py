# SPDX-License-Identifier: Apache-2.0
"""Fields of ``Payload`` as a payload."""

from __future__ import annotations

from typing import Any

from ..robot import Payload


def read_payload(message: Any) -> Payload:
    """The payload of a message; RobotDescriptionError where no rigid body has this mass and inertia."""
    body = message.inertia
    inertia = (body.ixx, body.ixy, body.ixz, body.iyy, body.iyz, body.izz)
    return Payload(body.m, (body.com.x, body.com.y, body.com.z), inertia, message.tool)

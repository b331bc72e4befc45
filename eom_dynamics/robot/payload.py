# SPDX-License-Identifier: Apache-2.0
"""Payload: a rigid body carried by a tool, passed to the dynamics at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import LARGEST, real_array, violation
from ..arrays import Array
from ..exceptions import RobotDescriptionError, StateError
from ..lie import inverse
from ..spelling import hint, shown
from .inertia import Inertial, body_violation, symmetric
from .model import Robot, frames_by_name

_SIX = ("xx", "xy", "xz", "yy", "yz", "zz")


@dataclass(frozen=True, eq=False)
class Payload:
    """Payload: a rigid body carried by a tool of a robot.

    >>> import eom_dynamics as eom
    >>> eom.Payload(2.0, [0, 0, 0.1]).parameters.round(3).tolist()
    [2.0, 0.0, 0.0, 0.2, 0.02, 0.0, 0.0, 0.02, 0.0, 0.0]

    Attributes:
        mass: mass, kg.
        center_of_mass: center of mass (3,) in this frame, m; by default its origin.
        inertia: inertia (3, 3), or xx, xy, xz, yy, yz, zz (6,), about the center of mass and along the axes of the
            frame, kg m²; by default a point mass.
        tool: name of the tool, or of another frame of the same body; empty for the first tool.

    Raises RobotDescriptionError if mass and inertia are physically inconsistent, or a value has the wrong shape or
    exceeds 1e12.
    """

    mass: float
    center_of_mass: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike = (0.0,) * 6
    tool: str = ""

    def __post_init__(self) -> None:
        try:
            mass = float(real_array(self.mass, "mass", ()))
            center = real_array(self.center_of_mass, "center_of_mass", (3,))
            entries = real_array(self.inertia, "inertia")
            if entries.shape not in ((6,), (3, 3)):
                raise StateError(f"inertia must have shape (3, 3), or be {', '.join(_SIX)}, has shape {entries.shape}")
            inertia = symmetric(*entries.tolist()) if entries.ndim == 1 else entries
            if not np.array_equal(inertia, inertia.T):
                raise StateError("inertia must be symmetric")
        except StateError as error:
            raise RobotDescriptionError(f"payload: {error}") from None
        if not isinstance(self.tool, str):
            raise RobotDescriptionError(f"payload: tool must be the name of a tool, is {shown(self.tool)}")
        checked: dict[str, float | Array] = {"mass": mass, "center_of_mass": center, "inertia": inertia}
        for name, value in checked.items():
            if reason := violation(float(np.max(np.abs(value))), largest=LARGEST):  # the bound of robot descriptions
                raise RobotDescriptionError(f"payload: {name} {reason}")
        # About the center of mass: there, the inertia is exactly the argument.
        if impossible := body_violation(Inertial(mass, np.zeros(3), inertia)):
            raise RobotDescriptionError(f"payload: {impossible}")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def body(self) -> Inertial:
        """Mass and inertia in the payload's frame."""
        return Inertial.about_center(self.mass, np.asarray(self.center_of_mass), np.asarray(self.inertia))

    @property
    def parameters(self) -> Array:
        """Inertial parameters (10,): mass, first moment and inertia. Efforts are linear in them.

        The moments are about the origin of the frame: x, y, z; xx, xy, xz, yy, yz, zz; kg, kg m, kg m².
        """
        return self.body.parameters

    def at_tool(self, robot: Robot) -> tuple[int, Array]:
        """Index in ``robot.tools`` of the carrying tool, and the payload's parameters in the tool frame.

        Raises RobotDescriptionError if the robot has no frame of this name, or no tool on the body of the frame.
        """
        for k, tool in enumerate(robot.tools):
            if self.tool in ("", tool.name):
                return k, self.parameters
        known = frames_by_name(robot)
        frame = known.get(self.tool)
        if frame is None:
            raise RobotDescriptionError(
                f"payload: {robot.name} has no frame {shown(self.tool)}; {hint(self.tool, known)}"
            )
        for k, tool in enumerate(robot.tools):
            if tool.joint == frame.joint:
                return k, self.body.moved(inverse(tool.pose) @ frame.pose).parameters
        raise RobotDescriptionError(
            f"payload: the body of {shown(self.tool)} has no tool: list it in tools in the file of {robot.name}"
        )


PayloadLike: TypeAlias = Payload | Sequence[Payload] | Sequence[ArrayLike]
"""Payload, several payloads at different tools, or (P, Pd, Pdd): :func:`payload_parameters` and time derivatives."""


def payload_parameters(robot: Robot, payloads: Sequence[Payload]) -> Array:
    """Payload parameters (10,) at a robot's tool, or (k, 10) at k > 1 tools; payloads at the same tool add up."""
    parameters = np.zeros((len(robot.tools), 10))
    for payload in payloads:
        tool, at_tool = payload.at_tool(robot)
        parameters[tool] += at_tool
    return parameters.reshape(payload_shape(robot))


def payload_shape(robot: Robot) -> tuple[int, ...]:
    """Shape of payload parameters: (10,), or (k, 10) for k > 1 tools."""
    count = len(robot.tools)
    return (10,) if count == 1 else (count, 10)


def with_parameters(robot: Robot, parameters: Array) -> Robot:
    """Robot with payloads of :func:`payload_parameters` merged into the bodies that carry them."""
    joints, base = list(robot.joints), robot.base
    for tool, row in zip(robot.tools, parameters.reshape(-1, 10), strict=True):
        m, h = float(row[0]), row[1:4]
        moved = Inertial(m, h / m if m else h, symmetric(*row[4:].tolist())).moved(tool.pose)
        if tool.joint < 0:
            base = base + moved
            continue
        joint = joints[tool.joint]
        joints[tool.joint] = joint.with_inertial(joint.inertial + moved)
    return replace(robot, joints=tuple(joints), base=base)

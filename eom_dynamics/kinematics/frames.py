# SPDX-License-Identifier: Apache-2.0
"""Look-up of frames by name."""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.functions import Signature, Vector, derivatives
from ..exceptions import StateError
from ..robot import Frame, Robot
from ..spelling import hint, shown
from ..states import derivative_names


def named_frame(robot: Robot, frames: Mapping[str, Frame], name: str | None) -> Frame:
    """The frame with this name; for None the first tool of the robot.

    Raises:
        StateError: there is no such frame.
    """
    if name is None:
        return robot.tools[0]
    if not isinstance(name, str) or name not in frames:
        raise StateError(f"{robot.name} has no frame {shown(name)}; {hint(str(name), frames)}")
    return frames[name]


def signature_of(method: str, states: tuple[Vector, ...], orders: int, columns: int) -> Signature:
    """Signature of a pose, motion, Jacobian or centre of mass, with time derivatives.

    Args:
        method: name of the quantity, also with ``_derivatives``.
        states: the configuration and its rates.
        orders: number of rates.
        columns: number of entries of a rate.
    """
    pose = Vector("C", (4, 4), "pose of the frame, m")
    quantity = method.removesuffix("_derivatives")
    name, shape, about = {
        "pose": ("V", (6,), ""),
        "motion": ("V", (6,), "body twist of the frame, rad/s and m/s"),
        "jacobian": ("J", (6, columns), "maps rates to the twist of the frame"),
        "center_of_mass": ("c", (3,), "centre of mass, m"),
        "center_of_mass_jacobian": ("J", (3, columns), "maps rates to the velocity of the centre of mass"),
    }[quantity]
    first = (pose,) if quantity in ("pose", "motion") else ()
    names = derivative_names(name, orders + 1 - len(first))
    results = (*first, *(derivatives(names, len(names), shape, about) if names else ()))
    return Signature(states, results, result_type=tuple if len(results) > 1 else None)

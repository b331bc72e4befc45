# SPDX-License-Identifier: Apache-2.0
"""Look-up of frames by name, and of the compiled functions that are kept for each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..exceptions import StateError
from ..robot import Frame, Robot
from ..spelling import hint, shown

Key: TypeAlias = tuple[object, ...]
"""Quantity, and what else its program depends on, such as the frame."""


def frames_by_name(robot: Robot) -> dict[str, Frame]:
    """Tools, other frames, and the bodies of joints by name; a tool comes before a frame, and this before a body."""
    bodies = [Frame(joint.name, i, np.eye(4)) for i, joint in enumerate(robot.joints)]
    return {frame.name: frame for frame in (*bodies, *robot.frames[::-1], *robot.tools[::-1])}


def named_frame(robot: Robot, frames: Mapping[str, Frame], name: str | None) -> Frame:
    """The frame of a name among these; for None the first tool of the robot.

    Raises:
        StateError: there is no such frame.
    """
    if name is None:
        return robot.tools[0]
    if not isinstance(name, str) or name not in frames:
        raise StateError(f"{robot.name} has no frame {shown(name)}; {hint(str(name), frames)}")
    return frames[name]


def kept_call(calls: Mapping[Key, Callable[..., Any]], key: Key) -> Callable[..., Any] | None:
    """The function that is kept for a key; None if there is none, or if the key has something unhashable.

    In the place of a name this is something that :func:`named_frame` refuses, as it does any other.
    """
    try:
        return calls.get(key)
    except TypeError:
        return None

# SPDX-License-Identifier: Apache-2.0
"""Measured positions of the joints, from ``sensor_msgs/JointState``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from .joint_order import places


def read_positions(state: Any, names: Sequence[str]) -> Array:
    """Positions (n,) of the joints of these names; the message may have others.

    Raises:
        StateError: a joint is missing or listed twice, or its position is not finite.
    """
    index = places(names, state.name, field="joint_states.name", kind="joint", others=True)
    position = np.array(state.position)
    if len(position) != len(state.name) or not np.all(np.isfinite(position[index])):
        raise StateError("joint_states.position must have a finite number for each name")
    return np.asarray(position[index], dtype=float)

# SPDX-License-Identifier: Apache-2.0
"""Measured positions of the joints, from ``sensor_msgs/JointState``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from .joint_order import shown


class JointPositions:
    """Latest position of each joint of a robot; several publishers may each provide some of them."""

    def __init__(self, names: Sequence[str]) -> None:
        """Know no position of these joints yet."""
        self._names = tuple(names)
        self._positions: dict[str, float] = dict.fromkeys(self._names, np.nan)

    def update(self, state: Any) -> bool:
        """Take the finite positions of a message; return whether all joints are known."""
        for name, position in zip(state.name, state.position, strict=False):
            if name in self._positions and np.isfinite(position):
                self._positions[name] = float(position)
        return all(np.isfinite(position) for position in self._positions.values())

    def read(self) -> Array:
        """Positions (n,), rad or m.

        Raises:
            StateError: a position is not known.
        """
        positions = np.array([self._positions[name] for name in self._names])
        unknown = [shown(name) for name, x in zip(self._names, positions, strict=True) if not np.isfinite(x)]
        if unknown:
            raise StateError(f"joint_states: the position of {', '.join(unknown)} is not known yet")
        return positions

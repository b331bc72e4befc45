# SPDX-License-Identifier: Apache-2.0
"""Measured motion: positions of the joints from ``sensor_msgs/JointState``, and tolerances of control_msgs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from .joint_order import shown_name


class JointPositions:
    """Latest position of each joint of a robot; several publishers may each provide some of them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._positions: dict[str, float] = dict.fromkeys(names, np.nan)

    def update(self, state: Any) -> bool:
        """Take the finite positions of a message; return whether all joints are known."""
        for name, position in zip(state.name, state.position, strict=False):
            if name in self._positions and np.isfinite(position):
                self._positions[name] = float(position)
        return all(map(np.isfinite, self._positions.values()))

    def read(self) -> Array:
        """Positions (n,), rad or m.

        Raises:
            StateError: a position is not known.
        """
        if unknown := [shown_name(name) for name, x in self._positions.items() if not np.isfinite(x)]:
            raise StateError(f"joint_states: the position of {', '.join(unknown)} is not known yet")
        return np.array(list(self._positions.values()))


_QUANTITIES = ("position", "velocity", "acceleration")


@dataclass(frozen=True)
class JointTolerances:
    """Allowed deviations by quantity.

    Attributes:
        names: joints.
        allowed: (3, n), of position, velocity and acceleration; infinite without a tolerance.
    """

    names: tuple[str, ...]
    allowed: Array

    @classmethod
    def read(cls, field: str, entries: Sequence[Any], names: Sequence[str]) -> JointTolerances:
        """Read a field of ``control_msgs/JointTolerance``: zero and negative values mean no tolerance.

        Raises:
            StateError: a joint is unknown, or a number is not finite.
        """
        allowed = np.full((len(_QUANTITIES), len(names)), np.inf)
        for k, entry in enumerate(entries):
            if entry.name not in names:
                raise StateError(f"{field}[{k}]: the robot has no joint {shown_name(entry.name)}")
            for i, quantity in enumerate(_QUANTITIES):
                value = getattr(entry, quantity)
                if not np.isfinite(value):
                    raise StateError(f"{field}[{k}].{quantity} (joint {shown_name(entry.name)}) is {value}")
                allowed[i, names.index(entry.name)] = value if value > 0 else np.inf
        return cls(tuple(names), allowed)

    @property
    def any(self) -> bool:
        """Whether there is a tolerance."""
        return bool(np.isfinite(self.allowed).any())

    def violation(self, error: Sequence[Array]) -> str:
        """Describe the worst violation; empty if there is none.

        Args:
            error: deviations (n,) of position, velocity and acceleration, or the first of them; NaN if unknown.
        """
        rows = np.abs(np.array([*error, *[np.full(len(self.names), np.nan)] * (len(_QUANTITIES) - len(error))]))
        with np.errstate(over="ignore"):  # beyond any tolerance
            ratio = np.nan_to_num(rows / self.allowed, nan=0.0, posinf=np.inf)
        i, joint = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        if not ratio[i, joint] > 1:
            return ""
        return (
            f"{_QUANTITIES[i]} of {self.names[joint]} deviates by {rows[i, joint]:.3g}, tolerance "
            f"{self.allowed[i, joint]:.3g}"
        )

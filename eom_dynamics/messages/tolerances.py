# SPDX-License-Identifier: Apache-2.0
"""Joint tolerances of control_msgs: allowed deviations of a measured motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from .joint_order import shown

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
                raise StateError(f"{field}[{k}]: the robot has no joint {shown(entry.name)}")
            for i, quantity in enumerate(_QUANTITIES):
                value = getattr(entry, quantity)
                if not np.isfinite(value):
                    raise StateError(f"{field}[{k}].{quantity} (joint {shown(entry.name)}) is {value}")
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

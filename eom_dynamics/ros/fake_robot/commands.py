# SPDX-License-Identifier: Apache-2.0
"""Commands in the robot's order of motors. Every one of them is checked here, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exceptions import StateError

Array = NDArray[np.float64]


class MotorOrder:
    """Brings fields of messages, whose motors may stand in any order, into the robot's."""

    def __init__(self, names: Sequence[str]) -> None:
        """The names of the m motors."""
        self._names = tuple(names)
        self._last: list[str] = []
        self._index: NDArray[np.intp] | None = None

    def read(self, field: str, given: Sequence[str], **values: Any) -> list[Array]:
        """Values by the names of their fields, each (m,) in the robot's order.

        Args:
            field: what holds the names, for messages.
            given: the names; empty for the robot's own order.
            values: of the fields, the first of which must not be empty; the others are then zero.

        Raises:
            StateError: a motor is unknown, missing or named twice, a field has another length, or a number is not
                finite.
        """
        # A stream repeats its names.
        if list(given) != self._last:
            self._index = self._matched(field, list(given))
            self._last = list(given)
        first = next(iter(values))
        return [self._checked(name, value, required=name == first) for name, value in values.items()]

    def _checked(self, field: str, value: Any, *, required: bool) -> Array:
        m = len(self._names)
        if not len(value) and not required:
            return np.zeros(m)
        if len(value) != m:
            raise StateError(f"{field} has {len(value)} entries, must have {m}{'' if required else ' or none'}")
        array = np.array(value, dtype=float)
        if self._index is not None:
            array = array[self._index]
        if not np.all(np.isfinite(array)):
            bad = int(np.flatnonzero(~np.isfinite(array))[0])
            raise StateError(f"{field} of {self._names[bad]} is {array[bad]}")
        return array

    def _matched(self, field: str, given: list[str]) -> NDArray[np.intp] | None:
        if not given or given == list(self._names):
            return None
        for place, name in enumerate(given):
            if name not in self._names:
                raise StateError(
                    f"{field}[{place}]: there is no motor {name!r:.60}; there are {', '.join(self._names)}"
                )
            if name in given[:place]:
                raise StateError(f"{field}[{place}]: motor {name!r} stands there twice")
        missing = [name for name in self._names if name not in given]
        if missing:
            raise StateError(f"{field}: {', '.join(missing)} missing; each motor must be there once")
        return np.array([given.index(name) for name in self._names])

# SPDX-License-Identifier: Apache-2.0
"""A trajectory that takes over from another one while that is under way, without a step in any of four derivatives."""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import TrajectoryError
from ..states import STATE_NAMES
from .spline import Spline
from .trajectory import Trajectory

Array = NDArray[np.float64]

START_TOLERANCE = 0.01
"""How far from where the joints are sent a trajectory may begin, rad or m; that of MoveIt before it executes."""


class Shifted:
    """A trajectory that runs later."""

    def __init__(self, trajectory: Trajectory, by: float) -> None:
        """Take a trajectory, and by how much later it runs, s."""
        self._trajectory, self._by = trajectory, by
        self.n, self.start, self.end = trajectory.n, trajectory.start + by, trajectory.end + by

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """As of :class:`Trajectory`."""
        return self._trajectory.derivatives(np.asarray(t, dtype=float) - self._by, order)


class Handover:
    """A trajectory until some time, and from then on another one.

    From the state of the first one at that time, a polynomial of degree nine leads to the state of the second one at
    its next knot, where nothing but position to snap counts: the whole is C⁴.
    """

    def __init__(self, old: Trajectory, new: Spline, begin: float, at: float, names: Sequence[str] = ()) -> None:
        """Hand over from ``old`` to ``new``.

        Args:
            old: the trajectory under way, or that has ended and stands still.
            new: the next one; its own time 0 is ``begin``.
            begin: in the time of ``old``, s.
            at: when to hand over, s, in the time of ``old``; not before ``begin``.
            names: of the joints, for errors.

        Raises:
            TrajectoryError: at that time ``new`` is not where ``old`` is, or has ended.
        """
        self.n, self.start = old.n, old.start
        self.end = new.end + begin
        own = at - begin
        after = new.times[new.times > own]
        state = old.derivatives(at)
        if own >= new.start:
            away = np.abs(new.derivatives(own, 0)[0] - state[0])
            if np.max(away) > START_TOLERANCE:
                joint = int(np.argmax(away))
                raise TrajectoryError(
                    f"{names[joint] if names else f'joint {joint}'} begins {away[joint]:.3g} rad or m from where it is "
                    f"commanded to be at that time, may be {START_TOLERANCE:g}"
                )
        if not len(after):
            raise TrajectoryError("it has ended before it begins")
        joined = float(after[0]) + begin
        ends = np.stack([state, new.derivatives(after[0], len(STATE_NAMES) - 1)], axis=1)
        # Each with the time that it begins at. Flat, since trajectories may take over many times a second.
        pieces: tuple[tuple[float, Trajectory], ...] = ((-math.inf, old),)
        if isinstance(old, Handover):
            pieces = tuple(piece for piece in old._pieces if piece[0] < at)
        self._pieces: tuple[tuple[float, Trajectory], ...]
        self._pieces = (*pieces, (at, Spline([at, joined], ends)), (joined, Shifted(new, begin)))

    def from_then_on(self, t: float) -> Trajectory:
        """A trajectory that is the same at ``t`` and later, without what is over by then."""
        first = self._place(t)
        if not first:
            return self
        if first == len(self._pieces) - 1:
            return self._pieces[-1][1]
        rest = copy.copy(self)
        rest._pieces = self._pieces[first:]
        return rest

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """As of :class:`Trajectory`."""
        times = np.asarray(t, dtype=float)
        if times.ndim == 0:
            return self._pieces[self._place(float(times))][1].derivatives(times, order)
        rows = [self.derivatives(time, order) for time in times]
        return tuple(np.array(column).reshape(len(times), self.n) for column in zip(*rows, strict=True))

    def _place(self, t: float) -> int:
        """Which piece it is at a time; the first one also before it begins."""
        return max(bisect_right(self._pieces, t, key=itemgetter(0)) - 1, 0)

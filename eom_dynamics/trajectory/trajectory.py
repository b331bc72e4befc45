# SPDX-License-Identifier: Apache-2.0
"""What every trajectory is: a motion of n joints between two times, with its time derivatives."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..exceptions import TrajectoryError
from ..states import STATE_NAMES

Array = NDArray[np.float64]

_LARGEST_COUNT = 100_000_000
"""No samples beyond these many: 28 GB of states for seven joints. A larger number is a mistake in a unit."""


class Trajectory(Protocol):
    """A motion q(t) of n joints, four times continuously differentiable."""

    @property
    def n(self) -> int:
        """Number of joints."""
        ...

    @property
    def start(self) -> float:
        """First time, s; -inf where there is none."""
        ...

    @property
    def end(self) -> float:
        """Last time, s; inf where there is none."""
        ...

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives up to ``order``, at one time or at times (N,), s.

        Returns:
            ``order`` + 1 arrays, each (n,) for one time and (N, n) for N of them. Before ``start`` and after
            ``end`` the joints stand still where they are at that time.
        """
        ...


class Samples(NamedTuple):
    """States of a motion at some times.

    Attributes:
        t: (N,), s.
        q, qd, qdd, qddd, qdddd: (N, n), rad or m, and per s, s², s³, s⁴.
    """

    t: Array
    q: Array
    qd: Array
    qdd: Array
    qddd: Array
    qdddd: Array


class Scaled:
    """A trajectory run s times as slowly, from the same start.

    The k-th derivative is that of the other, over s^k.
    """

    def __init__(self, trajectory: Trajectory, s: float | None) -> None:
        """Take a trajectory with a start, and the scaling s > 0 of its duration; None, for there is none, is refused.

        Raises:
            TrajectoryError: s is not a positive number, or the trajectory has no start.
        """
        if s is None:
            raise TrajectoryError("there is no time scaling: no slowing brings this trajectory within its limits")
        if not (np.isfinite(s) and s > 0):
            raise TrajectoryError(f"a time scaling must be a positive number, is {s}")
        if not np.isfinite(trajectory.start):
            raise TrajectoryError("a trajectory without a start cannot be scaled in time")
        self.trajectory, self.s = trajectory, float(s)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.trajectory.n

    @property
    def start(self) -> float:
        """First time, s."""
        return self.trajectory.start

    @property
    def end(self) -> float:
        """Last time, s."""
        return self.start + self.s * (self.trajectory.end - self.start)

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """As of :class:`Trajectory`."""
        at = np.asarray(t, dtype=float)
        # Rounding must not step over the end, where derivatives may be other than zero.
        inner = np.where(at == self.end, self.trajectory.end, self.start + (at - self.start) / self.s)
        return tuple(x / self.s**k for k, x in enumerate(self.trajectory.derivatives(inner, order)))


def sample_times(trajectory: Trajectory, rate: float) -> Array:
    """Times (N,) in s from the start of a trajectory to its end, 1/``rate`` apart; the end itself is the last.

    The last step is the shorter one where the duration is no multiple of the others.

    Raises:
        TrajectoryError: the rate is not a positive number, or the trajectory has no start or end.
    """
    if not (np.isfinite(rate) and rate > 0):
        raise TrajectoryError(f"rate must be a positive number of Hz, is {rate}")
    duration = trajectory.end - trajectory.start
    if not np.isfinite(duration):
        raise TrajectoryError("a trajectory without start or end cannot be sampled as a whole; give times")
    if duration * rate > _LARGEST_COUNT:
        raise TrajectoryError(f"{duration:g} s at {rate:g} Hz are more than {_LARGEST_COUNT} samples; lower the rate")
    # A step less than a millionth of the others is rounding of the duration.
    count = max(int(np.ceil(duration * rate - 1e-6)), int(duration > 0))
    t = trajectory.start + np.arange(count + 1) / rate
    t[-1] = trajectory.end
    return t


def sample(trajectory: Trajectory, rate: float) -> Samples:
    """The states of a trajectory from its start to its end at ``rate``, Hz; errors as of :func:`sample_times`."""
    t = sample_times(trajectory, rate)
    return Samples(t, *trajectory.derivatives(t, len(STATE_NAMES) - 1))

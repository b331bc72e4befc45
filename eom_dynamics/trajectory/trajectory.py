# SPDX-License-Identifier: Apache-2.0
"""The protocol of trajectories, their time scaling and sampling."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import positive
from ..arrays import STATE_NAMES, Array
from ..exceptions import TrajectoryError

_LARGEST_COUNT = 100_000_000
"""Largest number of samples: 28 GB of states for seven joints. A larger number is due to a wrong unit."""


class Interval(Protocol):
    """Time interval of a trajectory of joints or of a tool."""

    @property
    def start(self) -> float:
        """First time, s; -inf if there is none."""
        ...

    @property
    def end(self) -> float:
        """Last time, s; inf if there is none."""
        ...


class Trajectory(Interval, Protocol):
    """A motion q(t) of n joints, four times continuously differentiable."""

    @property
    def n(self) -> int:
        """Number of joints."""
        ...

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives up to ``order``, at a time or at times (N,), s.

        Returns:
            ``order`` + 1 arrays, each (n,) for a time or (N, n) for N times. Before ``start`` and after ``end`` the
            joints are at rest in their first and last position.
        """
        ...


class Samples(NamedTuple):
    """States of a motion at given times.

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
    """A trajectory slowed down by the factor s, from the same start: its k-th derivative decreases by s^k."""

    def __init__(self, trajectory: Trajectory, s: float | None) -> None:
        """Scale the duration of a trajectory by s > 0.

        Raises:
            TrajectoryError: s is not a positive number, or None as from :attr:`.Verdict.time_scaling`; or the
                trajectory has no start.
        """
        if s is None:
            raise TrajectoryError("there is no time scaling: the trajectory violates its limits at any speed")
        self.trajectory, self.s = trajectory, positive(s, "time scaling", TrajectoryError)
        if not np.isfinite(trajectory.start):
            raise TrajectoryError("a trajectory without a start cannot be scaled in time")
        self.n, self.start = trajectory.n, trajectory.start
        self.end = self.start + self.s * (trajectory.end - self.start)

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its time derivatives, see :class:`Trajectory`."""
        at = np.asarray(t, dtype=float)
        # Rounding must not exceed the end, after which derivatives are zero.
        inner = np.where(at == self.end, self.trajectory.end, self.start + (at - self.start) / self.s)
        return tuple(x / self.s**k for k, x in enumerate(self.trajectory.derivatives(inner, order)))


def sample_times(trajectory: Interval, rate: float) -> Array:
    """Times (N,) in s from the start of a trajectory to its end, at ``rate`` in Hz.

    The last time is the end; the last step is shorter if the duration is not a multiple of the others.

    Raises:
        TrajectoryError: the rate is not a positive number, there are too many samples, or the trajectory has no start
            or end.
    """
    rate = positive(rate, "rate", TrajectoryError)
    duration = trajectory.end - trajectory.start
    if not np.isfinite(duration):
        raise TrajectoryError("a trajectory without start or end requires times of samples")
    if duration * rate > _LARGEST_COUNT:
        raise TrajectoryError(f"{duration:g} s at {rate:g} Hz are more than {_LARGEST_COUNT} samples; lower the rate")
    # A last step of less than a millionth of the others is due to rounding.
    count = max(int(np.ceil(duration * rate - 1e-6)), int(duration > 0))
    with np.errstate(over="ignore"):
        t = trajectory.start + np.arange(count + 1) / rate
    t[-1] = trajectory.end
    return t


def sample(trajectory: Trajectory, rate: float) -> Samples:
    """States of a trajectory from its start to its end at ``rate`` in Hz; errors as in :func:`sample_times`."""
    t = sample_times(trajectory, rate)
    return Samples(t, *trajectory.derivatives(t, len(STATE_NAMES) - 1))

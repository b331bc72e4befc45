# SPDX-License-Identifier: Apache-2.0
"""The fastest motion along a path, as a spline, and a check of its limits."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.limits import LimitCheck
from ...exceptions import StateError, TrajectoryError
from ..planned_path import WaypointPath
from ..quantities import Load, derivatives_for_limits, quantities, ratios
from ..trajectory import ORDERS, PER_PIECE, Spline, Trajectory, sample
from . import SETTINGS
from .path import GeometricPath, SquaredSpeed, chain, divided, time_derivatives

# Nodes and weights of Gauss-Legendre quadrature on 0 … 1.
_GAUSS, _WEIGHTS = (0.5 * x for x in np.polynomial.legendre.leggauss(6))
_GAUSS = _GAUSS + 0.5


class ActiveLimit(NamedTuple):
    """Interval of a motion whose speed is determined by a limit.

    Attributes:
        start, end: s.
        quantity: one of :data:`.UNITS`.
        name: of the joint or motor.
    """

    start: float
    end: float
    quantity: str
    name: str

    def __str__(self) -> str:
        return f"{self.start:.3f} to {self.end:.3f} s: {self.quantity} of {self.name}"


class FastestMotion(Spline):
    """Result of :func:`.minimum_time`: a :class:`.Spline` of degree nine from rest to rest.

    Attributes:
        parameters: parameters of the given path at the knots (K,).
        computing_time: s.
        waypoints: the path through waypoints with their parameters and tolerance; None along a trajectory.
    """

    def __init__(
        self,
        arm: ElasticArm,
        limits: LimitCheck,
        motion: Spline,
        parameters: Array,
        computing_time: float,
        waypoints: WaypointPath | None,
    ) -> None:
        """Store the motion along the path."""
        vars(self).update(vars(motion))
        self._arm, self._limits = arm, limits
        self.parameters, self.computing_time, self.waypoints = parameters, computing_time, waypoints

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.end - self.start

    def times_at(self, parameters: ArrayLike) -> Array:
        """Times of parameters of the given path, s; exact at the knots of a given spline."""
        return np.asarray(np.interp(np.asarray(parameters, dtype=float), self.parameters, self.t))

    @cached_property
    def waypoint_times(self) -> Array:
        """Times (K,) of given waypoints, s; empty along a trajectory."""
        if self.waypoints is None:
            return np.zeros(0)
        wanted, t = self.waypoints.positions, self.times_at(self.waypoints.parameters)
        piece = np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2)
        for _ in range(SETTINGS.passes):
            q, rate = self.derivatives(t, 1)
            step = np.sum((wanted - q) * rate, axis=1) / np.maximum(np.sum(rate**2, axis=1), np.finfo(float).tiny)
            t = np.clip(t + step, self.t[piece], self.t[piece + 1])
        return np.asarray(np.maximum.accumulate(t))

    @cached_property
    def active(self) -> tuple[ActiveLimit, ...]:
        """Active limits of joints and motors, in order of time; computed at first access."""
        samples = sample(self, motion_rate(self, SETTINGS.active_rate))
        names = [(quantity, name) for quantity in self._limits.quantities for name in self._limits.names[quantity]]
        used = ratios(quantities(self._arm, Load(samples[1:]), self._limits), self._limits) >= SETTINGS.active
        spans = []
        for column, (quantity, name) in enumerate(names):
            edges = np.diff(np.concatenate([[0], used[:, column].astype(int), [0]]))
            for first, after in zip(np.flatnonzero(edges > 0), np.flatnonzero(edges < 0), strict=True):
                spans.append(ActiveLimit(float(samples.t[first]), float(samples.t[after - 1]), quantity, name))
        return tuple(sorted(spans))


def motion_rate(motion: Trajectory, rate: float) -> float:
    """Sample rate, Hz, reduced for long motions, which have long pieces."""
    return min(rate, SETTINGS.most_samples / (motion.end - motion.start))


def places_of(path: GeometricPath, speed: SquaredSpeed) -> tuple[Array, Array]:
    """Increasing σ (K,) of the knots of motions, and places (K - 1, 6) between them that determine their times."""
    counts = np.full(len(speed.knots) - 1, SETTINGS.motion_pieces)
    counts[[0, -1]] = SETTINGS.motion_end_pieces
    sigma = divided(speed.knots, counts)
    passed = np.searchsorted(sigma, path.breaks)
    # Move the nearest knot to each knot of a given spline.
    nearer = passed - (path.breaks - sigma[passed - 1] < sigma[passed] - path.breaks)
    inside = (nearer > 0) & (nearer < len(sigma) - 1)
    sigma[nearer[inside]] = path.breaks[inside]
    return sigma, sigma[:-1, np.newaxis] + np.diff(sigma)[:, np.newaxis] * _GAUSS


def motion_of(path: GeometricPath, speed: SquaredSpeed, c: Array, places: tuple[Array, ...]) -> tuple[Array, ...]:
    """Times (K,), states (5, K, n) and σ (K,) at the knots of the motion with this squared speed."""
    sigma, inner = places
    pace = 1 / np.sqrt(speed.values(c, inner.ravel(), 1).reshape(inner.shape))
    times = np.append(0.0, np.cumsum(np.diff(sigma) * (pace @ _WEIGHTS)))
    kept = _apart(times, SETTINGS.shortest_piece)
    times, sigma = times[kept], sigma[kept]
    q, by_sigma = path.derivatives(sigma)
    states = np.empty((ORDERS, *q.shape))
    states[0], states[1:] = q, chain(by_sigma, time_derivatives(speed.values(c, sigma)))
    return times, states, sigma


def _apart(times: Array, least: float) -> list[int]:
    """Indices of increasing times, the first and the last among them, at least so far apart."""
    kept = [0]
    for i in range(1, len(times) - 1):
        if times[i] - times[kept[-1]] >= least and times[-1] - times[i] >= least:
            kept.append(i)
    return [*kept, len(times) - 1]


class ViolatedInstants(NamedTuple):
    """Instants t (N,), s, of a motion beyond limits, with the largest utilizations (N,).

    ``quantities`` are indices among the limited quantities; ``pieces`` are indices of the pieces of these instants.
    """

    t: Array
    used: Array
    quantities: NDArray[np.intp]
    pieces: NDArray[np.intp]


def violated_instants(
    arm: ElasticArm, bound: LimitCheck, motion: Spline, rate: float, pieces: NDArray[np.intp], most: float
) -> ViolatedInstants:
    """Instants in pieces of a motion with a utilization above ``most``, sampled at ``rate`` or more.

    Utilizations between the samples follow from parabolas through three of them; samples are closer if parabolas may
    miss a violation.
    """
    order, violated = derivatives_for_limits(arm, bound), []
    columns = [i for i, name in enumerate(bound.quantities) for _ in bound.names[name]] or [0]
    # Few different numbers, each a power of two times the least one.
    steps = np.diff(motion.t)[pieces]
    counts = PER_PIECE * 2 ** np.ceil(np.log2(np.maximum(steps * rate / PER_PIECE, 1.0))).astype(int)
    pending = [(int(parts), pieces[counts == parts]) for parts in np.unique(counts)]
    for parts, some in pending:
        t, states = motion.in_pieces(parts, order, some)
        load = Load(tuple(x.reshape(t.size, -1) for x in states))
        try:
            values = ratios(quantities(arm, load, bound), bound)
        except StateError as error:
            raise TrajectoryError(f"the springs cannot follow: {error}; reduce the limits of effort") from error
        used = np.max(values, axis=1).reshape(t.shape)
        before, middle, after = used[:-2], used[1:-1], used[2:]
        slope, bend = 0.5 * (after - before), 2 * middle - before - after
        peak = (np.abs(slope) <= bend) & (bend > 0) & (middle > SETTINGS.near_limit)
        missed = SETTINGS.missed * np.abs(np.diff(used, 3, axis=0))
        used[1:-1][peak] += 0.5 * slope[peak] ** 2 / bend[peak]
        missed += np.max([used[k : len(used) - 3 + k] for k in range(4)], axis=0)
        unsure = (np.max(used, axis=0) <= most) & (np.max(missed, axis=0) > most + SETTINGS.missable)
        if parts < SETTINGS.finest * PER_PIECE and np.any(unsure):
            pending.append((SETTINGS.closer * parts, some[unsure]))
        k, piece = np.nonzero(used > most)
        worst = np.take(columns, np.argmax(values[k * len(some) + piece], axis=1))
        violated.append(ViolatedInstants(t[k, piece], used[k, piece], worst, some[piece]))
    t, used, quantity, over = (np.concatenate(column) for column in zip(*violated, strict=True))
    return ViolatedInstants(t, used, quantity, np.unique(over))

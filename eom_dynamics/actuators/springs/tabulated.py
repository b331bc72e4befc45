# SPDX-License-Identifier: Apache-2.0
"""Measured spring: a smooth monotone curve through a table of deflections and efforts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ...arrays import Array
from ..checks import refuse, row
from .base import Parameter
from .memoryless import MemorylessSpring
from .polynomial import polynomial_at, polynomial_slopes, polynomials_at, same_length
from .root_finding import increasing_root


@dataclass(eq=False)
class TabulatedSpring(MemorylessSpring, kind="tabulated"):
    """Monotone C² curve through a table, straight beyond its ends.

    The curve is a :mod:`.monotone_quintic`.

    Attributes:
        delta, tau: the table, (m,), rad or m and N m or N; one that starts at (0, 0) is mirrored.
    """

    delta: Annotated[Array, Parameter("deflections", row)]
    tau: Annotated[Array, Parameter("efforts", row, scales=True)]

    def __post_init__(self) -> None:
        """Fit the curve.

        Raises:
            ParameterError: the table is not two rows of the same length, at least two, is not finite, not increasing,
                or lacks (0, 0).
        """
        super().__post_init__()
        x, y = self.delta, self.tau
        _check(x, y)
        if x[0] == 0:
            x, y = np.concatenate([-x[:0:-1], x]), np.concatenate([-y[:0:-1], y])
        # Not at the top: it takes a second to import SciPy's splines, and few robots have tables.
        from .monotone_quintic import monotone_quintic

        curve = monotone_quintic(x, y)
        energy = curve.antiderivative()
        # Of each interval, by power of the distance from its left end, lowest first.
        self._set(x, y, curve.c[::-1].T, energy.c[::-1].T - np.eye(1, 7) * energy(0.0), curve(x[[0, -1]], 1))

    @classmethod
    def stacked(cls, springs: Sequence[Any]) -> TabulatedSpring:
        """One spring of many, short tables padded with infinite points."""
        longest = max(len(spring.delta) for spring in springs)
        one = cls.__new__(cls)
        one._set(
            *(
                np.stack([_padded(getattr(spring, name), longest - missing, fill) for spring in springs])
                for name, missing, fill in (
                    ("delta", 0, np.inf),
                    ("tau", 0, np.inf),
                    ("_effort", 1, 0.0),
                    ("_energy", 1, 0.0),
                    ("_ends", longest - 2, 0.0),
                )
            )
        )
        return one

    def scaled(self, factor: float) -> TabulatedSpring:
        """The spring with ``factor`` times the effort at every deflection."""
        one = self.__class__.__new__(self.__class__)
        one._set(self.delta, *(factor * x for x in (self.tau, self._effort, self._energy, self._ends)))
        return one

    def _set(self, delta: Array, tau: Array, effort: Array, energy: Array, ends: Array) -> None:
        """Take a table (…, m), coefficients (…, m - 1, 6) and (…, m - 1, 7), and slopes (…, 2) at its ends."""
        self.delta, self.tau, self._effort, self._energy, self._ends = delta, tau, effort, energy, ends
        powers = np.arange(1, effort.shape[-1])
        self._stiffness = effort[..., 1:] * powers
        self._rate = self._stiffness[..., 1:] * powers[:-1]
        self._derivatives = same_length(effort, self._stiffness, self._rate)
        self._first = delta[..., 0]
        # Stacked tables are padded with infinite points.
        last = np.argmax(np.where(np.isfinite(delta), delta, -np.inf), axis=-1)
        self._last_interval = last - 1
        self._last, self._last_tau = (np.take_along_axis(x, last[..., None], -1)[..., 0] for x in (delta, tau))
        with np.errstate(invalid="ignore"):
            self._intervals = delta[..., :-1], np.diff(delta), tau[..., :-1], np.diff(tau)
        self._row = np.arange(len(delta)) if delta.ndim > 1 else None

    def effort(self, delta: Array) -> Array:
        """Value of the curve."""
        inside, beyond, stiffness = self._split(delta)
        return self._at(self._effort, inside) + stiffness * beyond

    def stiffness(self, delta: Array) -> Array:
        """First derivative of the curve."""
        return self._at(self._stiffness, self._split(delta)[0])

    def stiffness_rate(self, delta: Array) -> Array:
        """Second derivative of the curve, zero beyond the table."""
        inside, beyond, _ = self._split(delta)
        return np.where(beyond == 0, self._at(self._rate, inside), 0.0)

    def slopes(self, delta: Array, order: int) -> list[Array]:
        """Derivatives of the curve; from the third on they jump at the table's points, and are those on the right."""
        inside, beyond, stiffness = self._split(delta)
        i = self._interval(self.delta, inside)
        curve = polynomial_slopes(self._pick(self._effort, i), inside - self._pick(self.delta, i), order)
        line = [stiffness, *([np.zeros_like(stiffness)] * order)]
        return [np.where(beyond == 0, x, y) for x, y in zip(curve, line, strict=False)]

    def energy(self, delta: Array) -> Array:
        """Integral of the curve."""
        inside, beyond, stiffness = self._split(delta)
        return self._at(self._energy, inside) + beyond * (self._at(self._effort, inside) + 0.5 * stiffness * beyond)

    def inverse(self, tau: Array) -> Array:
        """By Halley's method within an interval of the table."""
        return self._inverse(np.asarray(tau, dtype=float))[0]

    def inverse_with_slopes(self, tau: Array) -> tuple[Array, Array, Array]:
        """The inverse, with both slopes by one evaluation."""
        delta, curve, distance, beyond = self._inverse(tau)
        _, stiffness, rate = polynomials_at(curve, distance)
        if np.any(beyond):
            rate = np.where(beyond == 0, rate, 0.0)
        return delta, stiffness, rate

    def _inverse(self, tau: Array) -> tuple[Array, Array, Array, Array]:
        """Deflection, coefficients of its interval, distance from the interval's left end, effort beyond the table."""
        within = np.minimum(np.maximum(tau, self.tau[..., 0]), self._last_tau)
        i = self._interval(self.tau, within)
        left, width, low, height = (self._pick(x, i) for x in self._intervals)
        curve = self._pick(self._derivatives, i)
        distance = increasing_root(
            lambda x: polynomials_at(curve, x), within, (np.zeros_like(width), width), (within - low) / height * width
        )
        beyond = tau - within
        delta = left + distance
        if np.any(beyond):
            delta = delta + beyond / np.where(beyond < 0, self._ends[..., 0], self._ends[..., 1])
        return delta, curve, distance, beyond

    def _split(self, delta: Array) -> tuple[Array, Array, Array]:
        """Deflection clipped to the table, the rest of it, and the stiffness beyond that end."""
        inside = np.clip(delta, self._first, self._last)
        beyond = delta - inside
        return inside, beyond, np.where(beyond < 0, self._ends[..., 0], self._ends[..., 1])

    def _at(self, coefficients: Array, delta: Array) -> Array:
        i = self._interval(self.delta, delta)
        return polynomial_at(self._pick(coefficients, i), delta - self._pick(self.delta, i))

    def _interval(self, points: Array, x: Array) -> Any:
        """Index of the interval of increasing points (…, m) that contains x (…); the last includes its right end."""
        passed = np.sum(np.asarray(x)[..., np.newaxis] >= points[..., 1:-1], axis=-1)
        return np.minimum(passed, self._last_interval)

    def _pick(self, array: Array, i: Any) -> Array:
        """Entries of intervals i, of stacked tables row by row."""
        return array[i] if self._row is None else array[self._row, i]


def _padded(array: Array, length: int, fill: float) -> Array:
    """The array, its first axis padded to a length."""
    return np.concatenate([array, np.full((length - len(array), *array.shape[1:]), fill)])


def _check(delta: Array, tau: Array) -> None:
    for name, values in (("deflections", delta), ("efforts", tau)):
        if values.ndim != 1 or len(values) < 2:
            refuse(name, f"must be a list of at least two numbers, is {values}")
        if not np.all(np.diff(values) > 0):
            refuse(name, "must increase from each point of the table to the next: the spring is not monotone")
    if len(delta) != len(tau):
        refuse("efforts", f"must have as many entries as deflections, {len(delta)}; has {len(tau)}")
    at_rest = np.flatnonzero(delta == 0)
    if len(at_rest) != 1 or tau[at_rest[0]] != 0:
        refuse("deflections", "the table must have the point (0, 0), where the spring is at rest")
    if at_rest[0] == len(delta) - 1:
        refuse("deflections", "the table must have points above 0")

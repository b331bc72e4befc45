# SPDX-License-Identifier: Apache-2.0
"""Measured spring: a smooth monotone curve through a table of deflections and efforts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Annotated, NamedTuple

import numpy as np

from ...arrays import Array, Scalar
from ...elementary import index, lookup, root, select
from ...jet import Jet
from ...jet_functions import inverted
from ..parameters import refuse, row
from .base import MemorylessSpring, Parameter
from .hardening import polynomial_at
from .interpolation import hermite_derivatives, monotone_quintic


class _Pieces(NamedTuple):
    """Polynomials of the curve: below the table, in each interval, and above.

    Each polynomial is about the end of its interval nearest to zero, to avoid cancellation near zero.

    Attributes:
        x, y: points between the pieces (m,).
        origin: origins of the polynomials (m + 1,).
        effort, energy: coefficients (m + 1, 6) and (m + 1, 7) of powers of the distance from the origin, lowest first.
        width: interval widths (m + 1,), negative left of the origin; unit width beyond the table.
        inverse_rise: inverse rise (m + 1,) of the effort along the width.
        shape: coefficients (m + 1, 4) of the first four powers for unit width and rise; all five sum up to one.
    """

    x: Array
    y: Array
    origin: Array
    effort: Array
    energy: Array
    width: Array
    inverse_rise: Array
    shape: Array


@dataclass(frozen=True, eq=False)
class TabulatedSpring(MemorylessSpring, kind="tabulated"):
    """Monotone C² curve through a table, straight beyond its ends.

    The curve is a :func:`.monotone_quintic`. Derivatives from the third on jump at the points of the table.

    Attributes:
        delta, tau: the table, (m,), rad or m and N m or N; a table that starts at (0, 0) is mirrored.
    """

    delta: Annotated[Array, Parameter("deflections", row)]
    tau: Annotated[Array, Parameter("efforts", row, scales=True)]

    def __post_init__(self) -> None:
        """Check the table; ParameterError unless both rows have equal length, are finite, increase, and have (0, 0)."""
        super().__post_init__()
        delta, tau = self.delta, self.tau
        for name, values in (("deflections", delta), ("efforts", tau)):
            if values.ndim != 1 or len(values) < 2:
                refuse(name, f"must be a list of at least two numbers, is {values}")
            if len(values) > _MOST_POINTS:
                refuse(name, f"must have at most {_MOST_POINTS} entries, has {len(values)}; leave out some")
            if not np.all(np.diff(values) > 0):
                refuse(name, "must increase from each point of the table to the next: the spring is not monotone")
        if len(delta) != len(tau):
            refuse("efforts", f"must have as many entries as deflections, {len(delta)}; has {len(tau)}")
        with np.errstate(all="ignore"):
            slopes = np.diff(tau) / np.diff(delta)
        if not np.all((slopes > 1 / _STEEPEST) & (slopes < _STEEPEST)):
            steps = f"by {1 / _STEEPEST:g} to {_STEEPEST:g} per unit of the deflection"
            refuse("efforts", f"must rise between all points {steps}")
        at_rest = np.flatnonzero(delta == 0)
        if len(at_rest) != 1 or tau[at_rest[0]] != 0:
            refuse("deflections", "the table must have the point (0, 0), where the spring is at rest")
        if at_rest[0] == len(delta) - 1:
            refuse("deflections", "the table must have points above 0")

    def law(self, delta: Jet) -> Jet:
        """Value of the curve."""
        at = index(delta[0], self._pieces.x)
        return polynomial_at(_columns(at, self._pieces.effort), delta - lookup(at, self._pieces.origin))

    def energy_law(self, delta: Scalar) -> Scalar:
        """Integral of the curve."""
        at = index(delta, self._pieces.x)
        return polynomial_at(_columns(at, self._pieces.energy), delta - lookup(at, self._pieces.origin))

    def inverse_jet(self, tau: Jet) -> Jet:
        """Deflection by the interval's polynomial, scaled to unit width and rise."""
        pieces = self._pieces
        at = index(tau[0], pieces.y)
        slope, *others = _columns(at, pieces.shape)
        last = 1.0 - slope - others[0] - others[1] - others[2]
        width = lookup(at, pieces.width)
        rise = (tau - lookup(at, pieces.effort[:, 0])) * lookup(at, pieces.inverse_rise)
        share = rise[0]
        # Exact at both ends, and in the slope at the first.
        first = share / (slope + (1.0 - slope) * share)
        distance = root(_rise, share, (0.0 * share, select(share - 1.0, share, 1.0)), first, [slope, *others, last])
        return inverted(_rise, distance, rise, [slope, *others, last]) * width + lookup(at, pieces.origin)

    @cached_property
    def _pieces(self) -> _Pieces:
        x, y = self.delta, self.tau
        mirrored = x[0] == 0
        if mirrored:
            x, y = np.concatenate([-x[:0:-1], x]), np.concatenate([-y[:0:-1], y])
        first = int(np.flatnonzero(x == 0)[0])
        slope, bend = monotone_quintic(x, y)
        if mirrored:
            # Exactly odd.
            slope[:first], bend[:first], bend[first] = slope[:first:-1], -bend[:first:-1], 0.0
        ends = np.stack([np.arange(len(x) - 1), np.arange(1, len(x))])
        origin, other = np.where(x[:-1] < 0, ends[::-1], ends)
        width, values = x[other] - x[origin], np.stack([y, slope, bend])
        terms = hermite_derivatives(list(values[:, origin]), list(values[:, other]), width)
        line = np.zeros((2, 6))
        line[:, 0], line[:, 1] = y[[0, -1]], slope[[0, -1]]
        inside = np.stack([term / (factorial(k) * width**k) for k, term in enumerate(terms)], axis=1)
        effort = np.vstack([line[:1], inside, line[1:]])
        energy = np.column_stack([np.zeros(len(effort)), effort / np.arange(1, 7)])
        for k in range(first + 2, len(effort)):
            energy[k, 0] = energy[k - 1, 0] + polynomial_at(energy[k - 1, 1:].tolist(), width[k - 2]) * width[k - 2]
        for k in range(first - 1, -1, -1):
            energy[k, 0] = energy[k + 1, 0] + polynomial_at(energy[k + 1, 1:].tolist(), width[k]) * width[k]
        width = np.concatenate([[-1.0], width, [1.0]])
        inverse_rise = 1 / np.concatenate([-slope[:1], y[other] - y[origin], slope[-1:]])
        shape = effort[:, 1:5] * width[:, np.newaxis] ** np.arange(1, 5) * inverse_rise[:, np.newaxis]
        shape[[0, -1]] = 1.0, 0.0, 0.0, 0.0  # exactly, or a fifth power would remain
        places = np.concatenate([x[:1], x[origin], x[-1:]])
        return _Pieces(x, y, places, effort, energy, width, inverse_rise, shape)


def _rise(distance: Jet, *powers: Scalar) -> Jet:
    """Polynomial of the distance from a piece's origin, without constant term."""
    return distance * polynomial_at(powers, distance)


def _columns(at: Scalar, coefficients: Array) -> Sequence[Scalar]:
    """Coefficients of the piece at an index."""
    return [lookup(at, column) for column in coefficients.T]


# The curve's linear program takes memory and time of the second and third power of the number.
_MOST_POINTS = 1000

# Maximum slope, so that powers of the deflection do not overflow.
_STEEPEST = 1e50

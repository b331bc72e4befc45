# SPDX-License-Identifier: Apache-2.0
"""Spring laws as curves to fit: initial values, bounds, and the resulting spring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from ..actuators.parameters import LARGEST, ParameterError, not_negative, positive
from ..actuators.springs import SPRINGS, AntagonisticPair, DampedSpring, LinearSpring, Spring, TabulatedSpring
from ..arrays import Array
from .exceptions import IdentificationError

# Least share of the effort's slope that a table keeps in each interval, as its own curve does.
_LEAST_SLOPE = 0.02

# A side of a table whose deflections reach less far than this share of the other is mirrored.
_ONE_SIDED = 0.3


class DeclaredLaw:
    """A law whose parameters p are those of a spring class, all positive or zero.

    Attributes:
        start: first values by name.
        bounds: (lower, upper) by name.
    """

    def __init__(self, kind: type[Spring], delta: Array, stiffness: float, fixed: tuple[str, ...] = ()) -> None:
        self._kind: Any = kind
        self._delta = delta
        first = kind.first_values(stiffness, float(np.max(np.abs(delta))))
        declared = {name: entry for name, entry in kind.parameters().items() if name not in fixed}
        self._attributes = list(declared)
        self.start = {entry.name: first[attribute] for attribute, entry in declared.items()}
        self.bounds = {
            entry.name: (1e-9 * first[attribute] if entry.check is positive else 0.0, np.inf)
            for attribute, entry in declared.items()
        }

    def spring(self, p: Array) -> Spring:
        """The spring, as in a robot file."""
        return self._kind(**dict(zip(self._attributes, p, strict=True)))

    def effort(self, p: Array) -> Array:
        """Efforts (N,) at the recorded deflections, N m or N."""
        return self._summed(p, lambda spring: spring.load(self._delta))

    def slope(self, p: Array) -> Array:
        """Derivatives (N,) of the efforts with respect to the deflection, N m/rad or N/m."""
        return self._summed(p, lambda spring: spring.tangent(self._delta))

    def _summed(self, p: Array, of: Callable[[Spring], Array]) -> Array:
        """Over both motors of a pair; NaN where parameters contradict each other, from where the fit steps back."""
        try:
            x = of(self.spring(p))
        except ParameterError:
            return np.full(len(self._delta), np.nan)
        return x if self._delta.ndim == 1 else np.sum(x, axis=-1)


class _Pair(DeclaredLaw):
    """An antagonistic pair, whose nominal stiffness is commanded, not identified: that of the recording, on average."""

    def __init__(self, kind: type[Spring], delta: Array, stiffness: float) -> None:
        super().__init__(kind, delta, stiffness, ("nominal",))

    def spring(self, p: Array) -> Spring:
        """The pair, at least so stiff that neither spring is slack without load."""
        given = dict(zip(self._attributes, p, strict=True))
        # The efforts of deflections do not depend on the nominal stiffness.
        pair = self._kind(**given, nominal=LARGEST)
        stiffness = float(np.mean(np.sum(pair.tangent(self._delta), axis=-1)))
        return self._kind(**given, nominal=max(float(pair.least_stiffness(0.0)), stiffness))


class DampedLaw(DeclaredLaw):
    """A linear spring with a damper; the damping is fitted by all laws."""

    damping = 0.0

    def spring(self, p: Array) -> Spring:
        """The damped spring, or the linear one where no damping was found."""
        return DampedSpring(p[0], self.damping) if self.damping > 0 else LinearSpring(p[0])


class Table:
    """Natural cubic spline through table points, as in :class:`.TabulatedSpring` where it is monotone.

    It is used like :class:`DeclaredLaw`. The parameters are the efforts' increments from each point to the next, which
    are positive.
    """

    def __init__(self, delta: Array, effort: Array, points: int) -> None:
        low, high = min(float(np.min(delta)), 0.0), max(float(np.max(delta)), 0.0)
        self.mirrored = min(-low, high) < _ONE_SIDED * max(-low, high)
        reach = max(-low, high)
        below = 0 if self.mirrored else max(1, round((points - 1) * -low / (high - low)))
        above = points - 1 if self.mirrored else max(1, points - 1 - below)
        x = np.concatenate(
            [np.linspace(low, 0, below + 1)[:-1], np.linspace(0, reach if self.mirrored else high, above + 1)]
        )
        self.x, self._zero = x, below
        slope = _secant(delta, effort)
        # d tau_j of each parameter: increments add up on the way from (0, 0).
        sums = np.zeros((len(x), len(x) - 1))
        for j in range(len(x)):
            first, last = sorted((j, below))
            sums[j, first:last] = 1.0 if j > below else -1.0
        self._sums = sums
        nodes, rows = (
            (np.concatenate([-x[:0:-1], x]), np.concatenate([-sums[:0:-1], sums])) if self.mirrored else (x, sums)
        )
        curves = CubicSpline(nodes, rows, bc_type="natural")
        inside = np.clip(delta, nodes[0], nodes[-1])
        beyond = (delta - inside)[:, np.newaxis]
        ends = np.where(beyond < 0, curves(nodes[0], 1), curves(nodes[-1], 1))
        self._basis, self._slopes = curves(inside) + beyond * ends, curves(inside, 1)
        self.start = {f"effort[{i}]": slope * float(width) for i, width in enumerate(np.diff(x))}
        self.bounds = {name: (_LEAST_SLOPE * value, np.inf) for name, value in self.start.items()}

    def effort(self, p: Array) -> Array:
        """Efforts of the curve, straight beyond its ends."""
        return self._basis @ p

    def slope(self, p: Array) -> Array:
        """Slopes of the curve."""
        return self._slopes @ p

    def spring(self, p: Array) -> Spring:
        """The tabulated spring."""
        return TabulatedSpring(self.x, self._sums @ p)

    def table(self, p: Array, covariance: Array) -> tuple[Array, Array, Array]:
        """Deflections, efforts and standard deviations of the efforts, each (m,)."""
        return self.x, self._sums @ p, np.sqrt(np.einsum("ij,jk,ik->i", self._sums, covariance, self._sums))


def laws() -> dict[str, type[Spring]]:
    """Identifiable springs by law name: the ``type`` in robot files, but ``table`` for ``tabulated``.

    These are all registered springs whose parameters are numbers, and tables.
    """
    known = {"table" if kind is TabulatedSpring else name: kind for name, kind in SPRINGS.items()}
    # The usual ones come first in errors and help.
    names = dict.fromkeys((*_USUAL, *known))
    return {name: known[name] for name in names if _can_be_fitted(known[name])}


_USUAL = ("linear", "damped", "cubic", "table", "exponential")


def _can_be_fitted(kind: type[Spring]) -> bool:
    declared = kind.parameters().values()
    numbers = bool(declared) and all(entry.check in (positive, not_negative) for entry in declared)
    if kind.is_damped or len(kind.motors) > 1 or kind.is_variable:
        return numbers and (kind is DampedSpring or issubclass(kind, AntagonisticPair))
    return numbers or kind is TabulatedSpring


def law_of(name: str, delta: Array, effort: Array, points: int) -> DeclaredLaw | Table:
    """The law with this name, with initial values from deflections (N,), of a pair (N, 2), and efforts (N,).

    Raises:
        IdentificationError: the name is unknown, or the deflections have the wrong shape.
    """
    kind = laws().get(name)
    if kind is None:
        raise IdentificationError(f"law must be one of {', '.join(laws())}, is {name!r}")
    pair = len(kind.motors) > 1
    if delta.ndim != (2 if pair else 1):
        raise IdentificationError(f"law {name} takes deflections {'(N, 2)' if pair else '(N,)'}, got {delta.shape}")
    if kind is TabulatedSpring:
        return Table(delta, effort, points)
    stiffness = _secant(np.sum(delta, axis=-1) if pair else delta, effort)
    if kind is DampedSpring:
        return DampedLaw(LinearSpring, delta, stiffness)
    return (_Pair if pair else DeclaredLaw)(kind, delta, stiffness)


def _secant(delta: Array, effort: Array) -> float:
    """Slope of the line through the data, without offset of either.

    Raises:
        IdentificationError: the spring does not deflect, or efforts fall with the deflection.
    """
    x, y = delta - np.mean(delta), effort - np.mean(effort)
    square = float(x @ x)
    if not square > 0:
        raise IdentificationError("the spring does not deflect in this recording")
    slope = float(x @ y) / square
    if not slope > 0:
        raise IdentificationError("efforts fall with the deflection; check the signs: deflection is motor minus link")
    return slope

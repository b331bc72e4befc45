# SPDX-License-Identifier: Apache-2.0
"""Bounded nonlinear least squares, with a covariance that allows for correlated residuals.

Recorded signals are filtered, so that their errors are correlated in time, and the textbook covariance s² (JᵀJ)⁻¹ is
wrong. With the power density S(f) of the errors, and J = U C with orthonormal columns U of transforms U(f), it is

    C⁻¹ (mean over f of S(f) U(f) U(f)ᴴ) C⁻ᵀ,    S = (k * |e(f)|²) / (N - k * |U(f)|²) / (1 - 2/n),

for errors that do not depend on the regressors. k * averages over neighboring frequencies by Parzen's lag window,
which keeps S positive: D. W. K. Andrews, "Heteroskedasticity and autocorrelation consistent covariance matrix
estimation", Econometrica 59 (1991). The fit takes the share |U(f)|²/N of the errors out of the residuals e. Motions are
slow, so that this share is far above p/N at their frequencies, and deviations by the usual N - p are too small. n are
the degrees of freedom of the average; n/(n - 2) is the variance of Student's distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, irfft, next_fast_len, rfft
from scipy.optimize import least_squares
from scipy.signal.windows import parzen

from ...arguments import all_finite
from ...arrays import Array
from ...correlation import correlation_time
from ..recording import IdentificationError

_LAGS = 8  # length of the lag window in correlation times; at one of these, its weight is 0.92
_INSEPARABLE = 0.998  # error correlation of parameters that are reported as inseparable
_RANK = 1e-9  # singular value, over the largest one, of the Jacobian with columns of length 1 that is rounding
_AT_BOUND = 1e-3  # distance of a parameter at its bound, in standard deviations
SIGNIFICANT = 3.0  # distance of a significant parameter from zero, in standard deviations


@dataclass(frozen=True, eq=False)
class CurveEstimate:
    """Values (p,) of named parameters with their covariance (p, p), and the minimized residual (N,).

    The covariance is zero for parameters at a bound, and infinite on the diagonal for parameters without effect. The
    number of independent residuals is N divided by their correlation time in samples.
    """

    names: tuple[str, ...]
    values: Array
    covariance: Array
    residual: Array
    correlation_time: float
    at_bound: tuple[str, ...] = ()

    @property
    def std(self) -> Array:
        """Standard deviations (p,)."""
        return np.sqrt(np.diag(self.covariance))

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.names.index(name)])

    def by_name(self) -> dict[str, tuple[float, float]]:
        """Value and standard deviation by name."""
        return dict(zip(self.names, zip(self.values.tolist(), self.std.tolist(), strict=True), strict=True))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Parameters that are not identifiable from the data, one line each."""
        parameters, std = self.by_name(), self.std
        lines = [f"{name}: no effect on these data" for name, (_, s) in parameters.items() if np.isinf(s)]
        lines += [f"{name}: stopped at its bound {self[name]:g}" for name in self.at_bound]
        for name, (value, s) in parameters.items():
            if 0 < s < np.inf and abs(value) < SIGNIFICANT * s:
                lines.append(f"{name}: {value:.3g} ± {s:.2g} is not distinguishable from zero")
        known = np.flatnonzero(np.isfinite(std) & (std > 0))
        for i in known:
            for j in known[known < i]:
                rho = self.covariance[i, j] / (std[i] * std[j])
                if abs(rho) > _INSEPARABLE:
                    lines.append(f"{self.names[j]} and {self.names[i]}: inseparable, correlation {rho:.4f}")
        return tuple(lines)


def curve_fit(
    residual: Callable[[Array], Array],
    start: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]],
    *,
    independent: bool = False,
) -> CurveEstimate:
    """Minimize the sum of squares of a residual by SciPy's trust-region method.

    Args:
        residual: function of the parameters (p,) that gives (N,).
        start: first values by name, in the order of the parameters.
        bounds: (lower, upper) by name; infinite by default.
        independent: whether errors of the samples are independent, as at frequencies of a spectrum.

    Raises:
        IdentificationError: there are fewer samples than parameters, a number is not finite, or the residual is not
            finite next to the solution.
    """
    names = tuple(start)
    low, high = np.array([bounds.get(name, (-np.inf, np.inf)) for name in names]).T
    first = np.clip(np.array(list(start.values()), dtype=float), low, high)
    errors = residual(first)
    if len(errors) <= len(names):
        raise IdentificationError(f"{len(errors)} samples do not determine {len(names)} parameters; record more")
    if not all_finite(errors):
        raise IdentificationError("the recording has entries that are not finite; leave those samples out")
    try:
        solution = least_squares(residual, first, bounds=(low, high), x_scale="jac", xtol=1e-12, ftol=1e-12, gtol=1e-12)
    except ValueError:
        # Differences for derivatives exist on one side only.
        raise IdentificationError("the best parameters are next to impossible values; choose a simpler law") from None
    if not all_finite(solution.x):
        raise IdentificationError("the fit diverged; check units and signs of the recording")
    # The method stays strictly within the bounds. Closer than this share of a standard deviation is at them.
    length = np.linalg.norm(solution.jac, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = _AT_BOUND * np.sqrt(np.mean(solution.fun**2)) / length
    near = np.fmax(np.where(length > 0, near, 0.0), _AT_BOUND**2 * np.abs(solution.x))
    values = np.where(solution.x - low <= near, low, np.where(high - solution.x <= near, high, solution.x))
    stopped = (values == low) | (values == high)
    covariance, time = _covariance(solution.jac, solution.fun, stopped, independent)
    at_bound = tuple(name for name, at in zip(names, stopped, strict=True) if at)
    return CurveEstimate(names, values, covariance, solution.fun, time, at_bound)


def _covariance(J: Array, residual: Array, stopped: NDArray[np.bool_], independent: bool) -> tuple[Array, float]:
    """Covariance (p, p) of the solution, and the correlation time of the residuals."""
    count, p = J.shape
    covariance, length = np.zeros((p, p)), np.linalg.norm(J, axis=0)
    idle = (length == 0) & ~stopped
    covariance[idle, idle] = np.inf
    free = np.flatnonzero(~stopped & ~idle)
    time = 1.0 if independent else float(correlation_time([residual[:, np.newaxis]])[0])
    if not len(free):
        return covariance, time
    u, s, vt = np.linalg.svd(J[:, free] / length[free], full_matrices=False)
    # Directions determined by rounding alone get the variance of the least significant singular value.
    half = vt.T / np.maximum(s, _RANK * s[0]) / length[free, np.newaxis]
    lags = 1 if independent else max(1, min(int(np.ceil(_LAGS * time)), count // 4))
    size = next_fast_len(count + lags, real=True)
    window = np.roll(np.pad(parzen(2 * lags - 1), (0, size - 2 * lags + 1)), 1 - lags)

    def power(x: Array) -> Array:
        """Power of the columns of x (N, k), smoothed over frequencies."""
        products = irfft(np.sum(np.square(np.abs(rfft(x, size, axis=0))), axis=1), size)
        return np.asarray(rfft(window * products).real)

    # Variance of the averages over the squares of their means; an error over its deviation has Student's distribution.
    square = fft(np.square(window)).real
    spread = (square[0] + square[2 * np.arange(size // 2 + 1) % size]) / count
    density = power(residual[:, np.newaxis]) / np.maximum((count - power(u)) * (1 - spread), 1)
    correlated = irfft(density[:, np.newaxis] * rfft(u, size, axis=0), size, axis=0)[:count]
    covariance[np.ix_(free, free)] = half @ (u.T @ correlated) @ half.T
    return covariance, time

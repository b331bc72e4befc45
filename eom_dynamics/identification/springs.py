# SPDX-License-Identifier: Apache-2.0
"""Joint stiffness, damping and hysteresis from both sides of the spring.

    tau = f(delta; p) + D deltad + h tanh(deltad / v_h) + o,    delta = theta - q,

by least squares, with the law f of a kind of :mod:`eom_dynamics.actuators.springs`. The loop between loading and
unloading is 2 h wide; the sensor's offset is o. Deflections are noisy, too: with standard deviations s_delta and s_tau
of both, each residual is divided by sqrt(s_tau² + f'² s_delta²), the effective variance (J. Orear, "Least squares when
both variables have uncertainties", Am. J. Phys. 50, 1982), which for a line is total least squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..actuators.parameters import ParameterError
from ..actuators.springs import CoupledSpring, Spring
from ..arrays import Array
from .curve_fit import CurveEstimate, curve_fit
from .exceptions import IdentificationError
from .sampling import LowPass, checked, cutoff_of, longest, noise_level, of_one_motion, rate_of
from .spring_laws import DampedLaw, Table, law_of

# Below this share of its RMS, the rate of the deflection counts as a reversal.
_REVERSAL = 0.05

_HALF_WIDTH = "hysteresis"


@dataclass(frozen=True, eq=False)
class SpringFit:
    """An identified spring.

    Attributes:
        spring: for the robot file.
        law: name of the law.
        parameters: value and standard deviation by name, in N m/rad and so on (N/m): those of the law, ``damping`` D,
            ``offset`` o.
        hysteresis: width 2 h of the loop between loading and unloading, and its standard deviation, N m or N.
        table: deflections, efforts and their standard deviations, each (m,), of a table; else None.
        residual: RMS of effort minus model, N m or N.
        relative: residual over the RMS of the effort about its mean.
        samples: independent ones among those used.
        undetermined: what is not identifiable from the data, a line each.
    """

    spring: Spring
    law: str
    parameters: dict[str, tuple[float, float]]
    hysteresis: tuple[float, float]
    table: tuple[Array, Array, Array] | None
    residual: float
    relative: float
    samples: int
    undetermined: tuple[str, ...]

    @property
    def stiffness(self) -> tuple[float, float] | None:
        """Stiffness without load and its standard deviation where it is a parameter; None for tables and pairs."""
        return self.parameters.get("stiffness") if len(self.spring.motors) == 1 else None


@dataclass(frozen=True, eq=False)
class CoupledSpringFit:
    """An identified stiffness matrix.

    Attributes:
        spring: for the robot file.
        std: standard deviations (g, g) of its entries, N m/rad (N/m).
        offset: of the efforts (g,), N m or N.
        residual: RMS of efforts minus model (g,), N m or N.
        undetermined: what is not identifiable from the data, a line each.
    """

    spring: CoupledSpring
    std: Array
    offset: Array
    residual: Array
    undetermined: tuple[str, ...]


def fit_spring(
    deflection: ArrayLike,
    deflection_rate: ArrayLike,
    effort: ArrayLike,
    law: str = "linear",
    *,
    damping: bool = True,
    hysteresis: bool = True,
    offset: bool = True,
    noise: tuple[float, float] | None = None,
    points: int = 9,
) -> SpringFit:
    """Fit the spring of one joint.

    Args:
        deflection: (N,), motor minus link, both on the link side of the gear, rad or m; (N, 2) of an antagonistic pair.
        deflection_rate: (N,), rad/s or m/s; not read for a pair.
        effort: on the link (N,), N m or N.
        law: ``linear``, ``cubic``, ``table``, ``damped`` (linear; the robot file gets the damper, too), or any other
            type of spring of robot files with one motor, or an antagonistic pair, whose parameters are numbers.
        damping, hysteresis, offset: whether to fit D, h and o; a pair has an offset alone.
        noise: standard deviations of deflection and effort; by default the deflection is exact.
        points: number of points of a table, at least 3.

    Raises:
        IdentificationError: the law is unknown, shapes differ, a number is not finite, the spring does not deflect, or
            efforts fall with the deflection.
    """
    delta, deltad, tau = _shaped(deflection, deflection_rate, effort)
    if points < 3:
        raise IdentificationError(f"points must be at least 3, is {points}")
    curve = law_of(law, delta, tau, points)
    own = len(curve.start)
    losses = _losses(deltad if delta.ndim == 1 else np.zeros_like(tau), damping, hysteresis)
    extra = losses | ({"offset": np.ones_like(tau)} if offset else {})
    columns = np.stack(list(extra.values()), axis=-1) if extra else np.zeros((len(tau), 0))

    def residual(p: Array) -> Array:
        return tau - curve.effort(p[:own]) - columns @ p[own:]

    def weighted(p: Array) -> Array:
        if noise is None:
            return residual(p)
        # Relative to the standard deviation of the effort.
        return residual(p) / np.asarray(np.sqrt(1 + np.square(curve.slope(p[:own]) * noise[0] / noise[1])))

    nonnegative = {"damping": (0.0, np.inf), _HALF_WIDTH: (0.0, np.inf)}
    start = {**curve.start, **dict.fromkeys(extra, 0.0)}
    estimate = curve_fit(weighted, start, curve.bounds | nonnegative, raw=residual)
    p, table = estimate.values[:own], None
    if isinstance(curve, Table):
        table = curve.table(p, estimate.covariance[:own, :own])
    if isinstance(curve, DampedLaw):
        curve.damping = estimate["damping"] if damping else 0.0
    errors = estimate.residual
    half, half_std = estimate.by_name().get(_HALF_WIDTH, (0.0, 0.0))
    return SpringFit(
        curve.spring(p),
        law,
        {name: entry for name, entry in estimate.by_name().items() if name != _HALF_WIDTH},
        (2 * half, 2 * half_std),
        table,
        float(np.sqrt(np.mean(errors**2))),
        float(np.std(errors) / np.std(tau)),
        int(len(tau) / estimate.correlation_time),
        _undetermined(estimate, curve.start, delta),
    )


def fit_springs(
    t: ArrayLike,
    theta: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike,
    law: str | tuple[str, ...] = "linear",
    *,
    cutoff: float | None = None,
    starts: Sequence[int] = (),
    **options: Any,
) -> tuple[SpringFit, ...]:
    """Fit the springs of all joints of a recording.

    All signals pass the same zero-phase low-pass filter, and noise levels are those of the recording.

    Args:
        t: times (N,), s, in even steps.
        theta, q: motor positions on the link side of the gears, and link positions, (N,) or (N, n), rad or m.
        tau: efforts on the links, N m or N.
        law: of all joints, or of each.
        cutoff: of the filter, Hz; by default from the noise of the deflection's rate.
        starts: samples at which the second and further motions of a joined recording begin.
        options: of :func:`fit_spring`.

    Raises:
        IdentificationError: as for :func:`fit_spring`, or times are not even; with the number of the joint.
    """
    period, signals = checked(t, {"theta": theta, "q": q, "tau": tau})
    columns = [np.atleast_2d(x.T) for x in signals.values()]
    laws = (law,) * len(columns[0]) if isinstance(law, str) else law
    if len(laws) != len(columns[0]):
        raise IdentificationError(f"law must be one, or one of each of {len(columns[0])} joints, has {len(laws)}")
    fits, part = [], longest(len(columns[0][0]), starts)
    for joint, (motor, link, effort, own) in enumerate(zip(*columns, laws, strict=True)):
        raw = motor - link
        low_pass = LowPass(period, cutoff_of(period, raw[part], 1) if cutoff is None else cutoff)
        rows = of_one_motion(len(raw), starts, low_pass.reach + 2, low_pass.decimation)
        delta, deltad, tau = (low_pass.thinned(x)[rows] for x in (raw[2:-2], rate_of(raw, period), effort[2:-2]))
        noise = (noise_level(raw[part]), noise_level(effort[part]))
        try:
            fits.append(fit_spring(delta, deltad, tau, own, noise=noise if noise[1] > 0 else None, **options))
        except IdentificationError as error:
            raise IdentificationError(f"joint {joint}: {error}") from None
    return tuple(fits)


def fit_coupled_spring(deflection: ArrayLike, effort: ArrayLike) -> CoupledSpringFit:
    """Fit the symmetric stiffness matrix of g joints, tau = K delta + o.

    Args:
        deflection: (N, g), rad or m.
        effort: (N, g), N m or N.

    Raises:
        IdentificationError: shapes differ, a number is not finite, or no positive definite matrix explains the data.
    """
    delta, tau = np.asarray(deflection, dtype=float), np.asarray(effort, dtype=float)
    if delta.ndim != 2 or delta.shape != tau.shape:
        raise IdentificationError(f"deflection and effort must both have shape (N, g), have {delta.shape}, {tau.shape}")
    count, g = delta.shape
    places = [(i, j) for i in range(g) for j in range(i, g)]
    names = [f"matrix[{i},{j}]" for i, j in places]
    A = np.zeros((g, count, len(places) + g))
    for k, (i, j) in enumerate(places):
        A[i, :, k] = delta[:, j]
        A[j, :, k] = delta[:, i]
    for i in range(g):
        A[i, :, len(places) + i] = 1.0
    flat, target = A.reshape(g * count, -1), tau.T.ravel()
    start = dict(
        zip([*names, *(f"offset[{i}]" for i in range(g))], np.linalg.lstsq(flat, target, rcond=None)[0], strict=True)
    )
    estimate = curve_fit(lambda p: target - flat @ p, start, {})
    K, std = np.zeros((2, g, g))
    for (i, j), value, s in zip(places, estimate.values, estimate.std, strict=False):
        K[i, j] = K[j, i] = value
        std[i, j] = std[j, i] = s
    try:
        spring = CoupledSpring(K)
    except ParameterError as error:
        raise IdentificationError(f"no coupled spring: {error}; check signs, or record more deflection") from None
    residual = np.sqrt(np.mean(estimate.residual.reshape(g, count) ** 2, axis=1))
    return CoupledSpringFit(spring, std, estimate.values[len(places) :], residual, estimate.undetermined)


def _shaped(deflection: ArrayLike, rate: ArrayLike, effort: ArrayLike) -> tuple[Array, Array, Array]:
    delta, deltad, tau = (np.asarray(x, dtype=float) for x in (deflection, rate, effort))
    if (
        tau.ndim != 1
        or delta.shape not in (tau.shape, (*tau.shape, 2))
        or (delta.ndim == 1 and deltad.shape != tau.shape)
    ):
        raise IdentificationError(
            f"deflection, its rate and effort must have one shape (N,), have {delta.shape}, {deltad.shape}, {tau.shape}"
        )
    for name, x in (("deflection", delta), ("effort", tau)):
        if not np.all(np.isfinite(x)):
            raise IdentificationError(f"{name} must be finite; leave those samples out")
    return delta, deltad, tau


def _losses(deltad: Array, damping: bool, hysteresis: bool) -> dict[str, Array]:
    """Columns of D and h."""
    speed = float(np.sqrt(np.mean(deltad**2)))
    if not speed > 0:
        return {}
    columns = {"damping": deltad} if damping else {}
    return columns | ({_HALF_WIDTH: np.tanh(deltad / (_REVERSAL * speed))} if hysteresis else {})


def _undetermined(estimate: CurveEstimate, law: dict[str, float], delta: Array) -> tuple[str, ...]:
    lines = list(estimate.undetermined)
    if delta.ndim == 1 and not (np.min(delta) < 0 < np.max(delta)) and "offset" in estimate.names:
        lines.append(
            "offset: all deflections have one sign, so the offset and the effort near zero depend on the assumed law"
        )
    if "cubic" in estimate.at_bound:
        lines.append("cubic: the data do not harden; a softening spring is a table")
    return tuple(lines)

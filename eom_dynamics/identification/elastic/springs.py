# SPDX-License-Identifier: Apache-2.0
"""Joint stiffness and damping from both sides of the spring.

    tau = f(delta; p) + D deltad + o + h/2 tanh(deltad / v_h),    delta = theta - q,

by least squares, with the law f of a kind of :mod:`eom_dynamics.actuators.springs` and the sensor's offset o. The last
term is the hypothesis of hysteresis, a loop of width h between loading and unloading. Robot files do not support it; a
note reports it if it explains part of the residual. Deflections have noise as well: with standard deviations s_delta
and s_tau, each residual is divided by sqrt(s_tau² + f'² s_delta²), the effective variance (J. Orear, "Least squares
when both variables have uncertainties", Am. J. Phys. 50, 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

from ...actuators.parameters import ParameterError, positive
from ...actuators.springs import DampedSpring, LinearSpring, Spring, TabulatedSpring
from ...arguments import choice, real_array
from ...arrays import Array
from ...robot import Joint, Robot
from ...spelling import hint
from ..recording import IdentificationError
from ..sampling import LowPass, cutoff_of, even_signals, longest, noise_level, of_one_motion, rate_of
from .curve_fit import SIGNIFICANT, CurveEstimate, curve_fit
from .options import laws

_LEAST_SLOPE = 0.02  # share of the effort's slope that a table keeps in each interval, as its own curve does
_ONE_SIDED = 0.3  # a side of a table with deflections below this share of the other side is mirrored
_REVERSAL = 0.05  # below this share of its RMS, the rate of the deflection counts as a reversal

_WIDTH = "hysteresis"
_POINTS = 9  # points of a table


class DeclaredLaw:
    """Law with the parameters p of a spring class, all positive or zero.

    Attributes:
        start: first values by name.
        bounds: (lower, upper) by name.
    """

    def __init__(self, kind: type[Spring], delta: Array, stiffness: float) -> None:
        self._kind: Any = kind
        self._delta = delta
        first = kind.first_values(stiffness, float(np.max(np.abs(delta))))
        declared = kind.parameters()
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
        return self._of(p, lambda spring: spring.load(self._delta))

    def slope(self, p: Array) -> Array:
        """Derivatives (N,) of the efforts with respect to the deflection, N m/rad or N/m."""
        return self._of(p, lambda spring: spring.tangent(self._delta))

    def _of(self, p: Array, values: Callable[[Spring], Array]) -> Array:
        """Values of the spring; NaN for contradicting parameters, which the fit avoids."""
        try:
            return values(self.spring(p))
        except ParameterError:
            return np.full(len(self._delta), np.nan)


class Table:
    """Natural cubic spline through table points, as in :class:`.TabulatedSpring` if it is monotone.

    It is used like :class:`DeclaredLaw`. The parameters are the efforts' increments from each point to the next, which
    are positive.
    """

    def __init__(self, delta: Array, effort: Array, points: int) -> None:
        low, high = min(float(np.min(delta)), 0.0), max(float(np.max(delta)), 0.0)
        mirrored = min(-low, high) < _ONE_SIDED * max(-low, high)
        low, high = (0.0, max(-low, high)) if mirrored else (low, high)
        below = max(1, round((points - 1) * -low / (high - low))) if low < 0 else 0
        above, slope = max(1, points - 1 - below), _secant(delta, effort)
        self.x = x = np.append(np.linspace(low, 0, below + 1)[:-1], np.linspace(0, high, above + 1))
        # d tau_j of each parameter: increments add up on the way from (0, 0).
        rows, columns = np.indices((len(x), len(x) - 1))
        sums = 1.0 * ((below <= columns) & (columns < rows)) - 1.0 * ((rows <= columns) & (columns < below))
        self._sums, nodes, efforts = sums, x, sums
        if mirrored:
            nodes, efforts = np.append(-x[:0:-1], x), np.append(-sums[:0:-1], sums, axis=0)
        curves = CubicSpline(nodes, efforts, bc_type="natural")
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


def law_of(name: str, delta: Array, effort: Array) -> DeclaredLaw | Table:
    """The law with this name, with initial values from deflections and efforts (N,)."""
    choice(name, "law", laws(), IdentificationError)
    kind = laws()[name]
    if kind is TabulatedSpring:
        return Table(delta, effort, _POINTS)
    # The damping is fitted with all laws.
    return DeclaredLaw(LinearSpring if kind is DampedSpring else kind, delta, _secant(delta, effort))


def _secant(delta: Array, effort: Array) -> float:
    """Slope of the line through the data, without offset of either."""
    x, y = delta - np.mean(delta), effort - np.mean(effort)
    square = float(x @ x)
    if not square > 0:
        raise IdentificationError("the spring does not deflect in this recording")
    slope = float(x @ y) / square
    if not slope > 0:
        raise IdentificationError("efforts fall with the deflection; check the signs: deflection is motor minus link")
    return slope


@dataclass(frozen=True, eq=False)
class SpringFit:
    """An identified spring.

    Attributes:
        spring: for the robot file.
        law: name of the law.
        parameters: value and standard deviation by name, in N m/rad and so on (N/m): of the law, ``damping`` D,
            ``offset`` o.
        table: deflections, efforts and their standard deviations, each (m,), of a table; else None.
        residual: RMS of effort minus model, N m or N.
        relative: residual over the RMS of the effort about its mean.
        samples: number of independent samples.
        undetermined: unidentifiable parameters, and hysteresis that explains the residual, a line each.
        covariance: of stiffness and cubic term, if identified from motor efforts.
    """

    spring: Spring
    law: str
    parameters: dict[str, tuple[float, float]]
    table: tuple[Array, Array, Array] | None
    residual: float
    relative: float
    samples: int
    undetermined: tuple[str, ...]
    covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def stiffness(self) -> tuple[float, float] | None:
        """Stiffness without load with its standard deviation, if it is a parameter; None for tables."""
        return self.parameters.get("stiffness")

    def scale_deviation(self, delta: Array) -> float:
        """Standard deviation of the efforts at deflections (N,) over these, both by their mean squares."""
        slopes = delta[:, np.newaxis] ** [1, 3][: len(self.covariance)]
        return float(np.sqrt(np.sum((slopes @ self.covariance) * slopes) / np.sum(self.spring.load(delta) ** 2)))


def fit_spring(
    deflection: ArrayLike,
    deflection_rate: ArrayLike,
    effort: ArrayLike,
    law: str = "linear",
    *,
    noise: tuple[float, float] | None = None,
) -> SpringFit:
    """Fit the spring of one joint.

    Args:
        deflection: (N,), motor minus link, both on the link side of the gear, rad or m.
        deflection_rate: (N,), rad/s or m/s.
        effort: on the link (N,), N m or N.
        law: ``linear``, ``cubic``, ``table``, ``damped`` (linear, with the damper in the robot file), or any other type
            of spring of robot files with one motor and numeric parameters.
        noise: standard deviations of deflection and effort; by default the deflection is exact.

    Raises:
        IdentificationError: the law is unknown, shapes differ, a number is not finite, the spring does not deflect, or
            efforts fall with the deflection.
    """
    delta, deltad, tau = _shaped(deflection, deflection_rate, effort)
    curve = law_of(law, delta, tau)
    count = len(curve.start)
    # In a table of a spring loaded to one side, the part without data can represent any offset.
    fixed = isinstance(curve, Table) and not np.min(delta) < 0 < np.max(delta)
    extra = {} if fixed else {"offset": np.ones_like(tau)}
    speed = float(np.sqrt(np.mean(deltad**2)))
    if speed > 0:
        extra = {"damping": deltad, _WIDTH: 0.5 * np.tanh(deltad / (_REVERSAL * speed)), **extra}
    columns = np.stack(list(extra.values()), axis=-1) if extra else np.zeros((len(tau), 0))

    def residual(p: Array) -> Array:
        return tau - curve.effort(p[:count]) - columns @ p[count:]

    def weighted(p: Array) -> Array:
        if noise is None:
            return residual(p)
        # Relative to the standard deviation of the effort.
        return residual(p) / np.asarray(np.sqrt(1 + np.square(curve.slope(p[:count]) * noise[0] / noise[1])))

    bounds = curve.bounds | dict.fromkeys(("damping", _WIDTH), (0.0, np.inf))
    estimate = curve_fit(weighted, curve.start | dict.fromkeys(extra, 0.0), bounds)
    p, parameters, errors = estimate.values[:count], estimate.by_name(), residual(estimate.values)
    loop = _hysteresis(*parameters.pop(_WIDTH, (0.0, 0.0)), float(np.ptp(tau)))
    spring, (damper, _) = curve.spring(p), parameters.get("damping", (0.0, 0.0))
    return SpringFit(
        DampedSpring(p[0], damper) if law == "damped" and damper > 0 else spring,
        law,
        parameters,
        curve.table(p, estimate.covariance[:count, :count]) if isinstance(curve, Table) else None,
        float(np.sqrt(np.mean(errors**2))),
        float(np.std(errors) / np.std(tau)),
        int(len(tau) / estimate.correlation_time),
        (*_undetermined(estimate, delta), *loop),
    )


def spring_of_joint(
    t: ArrayLike, theta: ArrayLike, q: ArrayLike, tau: ArrayLike, law: str = "linear", *, starts: Sequence[int] = ()
) -> SpringFit:
    """Fit the spring of a joint to recorded positions of motor and link (N,), and efforts on the link (N,).

    All signals pass the same zero-phase low-pass filter; its cut-off follows from the noise of the deflection's rate.
    ``starts`` are the first samples of the second and further motions of a joined recording. Raises
    IdentificationError as :func:`fit_spring`, or if times (N,), s, are not even.
    """
    period, signals = even_signals(t, {"theta": theta, "q": q, "tau": tau})
    raw, effort = signals["theta"] - signals["q"], signals["tau"]
    part = longest(len(raw), starts)
    low_pass = LowPass(period, cutoff_of(period, raw[part], 1))
    rows = of_one_motion(len(raw), starts, low_pass.reach + 2, low_pass.decimation)
    delta, deltad, load = (low_pass.thinned(x)[rows] for x in (raw[2:-2], rate_of(raw, period), effort[2:-2]))
    noise = (noise_level(raw[part]), noise_level(effort[part]))
    return fit_spring(delta, deltad, load, law, noise=noise if noise[1] > 0 else None)


def _shaped(deflection: ArrayLike, rate: ArrayLike, effort: ArrayLike) -> tuple[Array, Array, Array]:
    recorded = {"deflection": deflection, "deflection_rate": rate, "effort": effort}
    delta, deltad, tau = (real_array(x, name, error=IdentificationError) for name, x in recorded.items())
    if tau.ndim != 1 or not delta.shape == deltad.shape == tau.shape:
        raise IdentificationError(
            f"deflection, its rate and effort must have one shape (N,), have {delta.shape}, {deltad.shape}, {tau.shape}"
        )
    return delta, deltad, tau


def _undetermined(estimate: CurveEstimate, delta: Array) -> tuple[str, ...]:
    lines = [line for line in estimate.undetermined if _WIDTH not in line]
    if not np.min(delta) < 0 < np.max(delta) and "offset" in estimate.names:
        lines.append(
            "offset: all deflections have one sign, so the offset and the effort near zero depend on the assumed law"
        )
    if "cubic" in estimate.at_bound:
        lines.append("cubic: the data do not harden; a softening spring is a table")
    return tuple(lines)


def _hysteresis(width: float, deviation: float, efforts: float) -> tuple[str, ...]:
    """Line on the loop between loading and unloading, if it explains a part of the residual efforts.

    ``width`` and ``efforts``, their range, are in N m or N. The coefficient is tested: without the loop, it
    is beyond three of its standard deviations once in several hundred recordings.
    """
    if not 0 < SIGNIFICANT * deviation < width:
        return ()
    return (
        f"hysteresis: a loop between loading and unloading, {width / efforts:.2%} of the range of efforts, explains a "
        f"part of the residual ({width / deviation:.1f} standard deviations); robot files do not support it",
    )


def with_springs(robot: Robot, fits: Mapping[str, SpringFit]) -> Robot:
    """The robot with identified springs, by joint; raises IdentificationError for a joint that it does not have."""
    return with_joints(robot, fits, lambda joint, fit: replace(joint, spring=fit.spring))


_Fit = TypeVar("_Fit")


def with_joints(robot: Robot, fits: Mapping[str, _Fit], change: Callable[[Joint, _Fit], Joint]) -> Robot:
    """Return the robot with joints changed by their fits; raises IdentificationError for unknown names."""
    for name in fits:
        if name not in robot.joint_names:
            raise IdentificationError(f"{robot.name} has no joint {name}; {hint(name, robot.joint_names)}")
    return replace(robot, joints=tuple(change(x, fits[x.name]) if x.name in fits else x for x in robot.joints))

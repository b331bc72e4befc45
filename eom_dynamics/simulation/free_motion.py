# SPDX-License-Identifier: Apache-2.0
"""Integration of motions with a free body: pose on SE(3), joint variables, and quasi-velocities.

A body that is free to move has the pose C in SE(3) and the twist V, dC/dt = C V^. A step starts from a chart around the
present pose, C(t) = C exp(x) with x = 0 at its start, in which the motion is a differential equation of vectors,

    x' = J_r(x)⁻¹ V,    q' = qd,    nu' = a(t, C exp(x), q, nu),    nu = (V, qd),

with the right Jacobian J_r of the exponential. Any method for vectors becomes one of the same order on the group, and
the result remains a pose: H. Munthe-Kaas, "High order Runge-Kutta methods on manifolds", Applied Numerical Mathematics
29 (1999).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import lie
from ..arguments import checked_pose
from ..arrays import Array, times
from ..exceptions import SimulationError, StateError
from ..spelling import shown
from ..states import real_array
from .integrators import ADAPTIVE, FIXED_STEP, check_method, even_steps, integrated, output_times

Acceleration: TypeAlias = Callable[[float, Array, Array, Array], ArrayLike]
"""Rates (6 + n,) of the quasi-velocities from time (s), pose (4, 4), joint variables (n,) and quasi-velocities."""

# Angle of the chart, rad, at which SciPy's integrators go on from a new one; its limit is 2 pi.
_TURN = 2.0


class FreeMotion(NamedTuple):
    """Motion of a free body at T times.

    Attributes:
        t: (T,) s.
        pose: (T, 4, 4) of the free body.
        q: (T, n) joint variables, rad or m.
        nu: (T, 6 + n) twist of the free body, in its frame, angular part first, then joint velocities.
    """

    t: Array
    pose: Array
    q: Array
    nu: Array


def simulate_free_motion(
    acceleration: Acceleration,
    t: ArrayLike,
    pose: ArrayLike,
    nu: ArrayLike,
    q: ArrayLike = (),
    *,
    method: str = "DOP853",
    step: float | None = None,
    relative_tolerance: float = 1e-13,
    absolute_tolerance: float = 1e-14,
) -> FreeMotion:
    """Integrate the motion of a free body, alone or with joints.

    Args:
        acceleration: rates of the quasi-velocities, finite.
        t: times (T,) of the result, increasing, s; at most 1e7 s from first to last.
        pose: (4, 4) at the first time.
        nu: (6 + n,) at the first time.
        q: (n,) at the first time, rad or m.
        method, step: integrator, and step of those of fixed step, s, as for :func:`simulate`; velocities are those of
            nu with every method.
        relative_tolerance, absolute_tolerance: of one step of SciPy's methods.

    Raises:
        SimulationError: a fixed step is too long, the steps of SciPy's integrator become too small, or the acceleration
            is NaN or infinite.
        StateError: an argument has the wrong shape or is not finite, the pose is none, the times are too far apart,
            there would be too many steps, or a tolerance is not positive.
        ValueError: the method is unknown, or a step is missing or superfluous.
        TypeError: ``acceleration`` is not a function.
    """
    if not callable(acceleration):
        raise TypeError(f"acceleration must be a function of time, pose, q and nu, is {shown(acceleration)}")
    check_method(method, step, relative_tolerance=relative_tolerance, absolute_tolerance=absolute_tolerance)
    moments = output_times(t, step)
    C, joints, velocity = (real_array(x, name) for x, name in ((pose, "pose"), (q, "q"), (nu, "nu")))
    if C.shape != (4, 4) or np.ndim(q) != 1 or velocity.shape != (6 + joints.size,):
        raise StateError(
            f"pose, q and nu must have shapes (4, 4), (n,) and (6 + n,), have {C.shape}, {joints.shape}, "
            f"{velocity.shape}"
        )
    checked_pose(C, "pose")
    tolerances = {"rtol": relative_tolerance, "atol": absolute_tolerance}
    poses, rows = [C], [np.concatenate([joints, velocity])]
    for start, end in pairwise(moments.tolist()):
        if method in ADAPTIVE:
            C, y = _by_scipy(acceleration, C, rows[-1], start, end, method=method, **tolerances)
        else:
            assert step is not None
            C, y = _by_steps(acceleration, C, rows[-1], start, end, method, step)
        poses.append(C)
        rows.append(y)
    n = len(joints)
    states = np.array(rows)
    return FreeMotion(moments, np.array(poses), states[:, :n], states[:, n:])


class _Chart:
    """The differential equation of (x, q, nu) in the chart around a pose."""

    def __init__(self, acceleration: Acceleration, C: Array, n: int) -> None:
        self._acceleration, self._C, self._n = acceleration, C, n

    def rate(self, now: float, y: Array) -> Array:
        """Time derivative of y (6 + n + 6 + n,)."""
        x, q, nu = np.split(y, [6, 6 + self._n])
        returned = self._acceleration(now, self.pose(x), q, nu)
        rate = np.asarray(returned)
        if rate.shape != nu.shape or rate.dtype.kind not in "biuf":
            kind = rate.shape if rate.dtype.kind in "biuf" else repr(returned)[:60]
            raise StateError(f"acceleration must return shape {nu.shape}, returns {kind}")
        if not np.isfinite(rate).all():
            raise SimulationError(f"at {now:.6g} s: acceleration returns rates that are not finite")
        return np.concatenate([times(lie.right_jacobian_inverse(x), nu[:6]), nu[6:], rate])

    def pose(self, x: Array) -> Array:
        """C exp(x)."""
        return self._C @ lie.exp(x)


def _by_scipy(
    acceleration: Acceleration, C: Array, row: Array, start: float, end: float, **options: object
) -> tuple[Array, Array]:
    """Pose, and joint variables with quasi-velocities, at the end."""

    def turned(_: float, y: Array) -> float:
        return float(y[:3] @ y[:3]) - _TURN**2

    turned.terminal = True  # type: ignore[attr-defined]
    now = start
    while True:
        chart = _Chart(acceleration, C, len(row) // 2 - 3)
        y = np.concatenate([np.zeros(6), row])
        solution = integrated("", chart.rate, (now, end), y, events=turned, **options)
        now, y = float(solution.t[-1]), solution.y[:, -1]
        C, row = chart.pose(y[:6]), y[6:]
        if solution.status == 0:
            return C, row


def _by_steps(
    acceleration: Acceleration, C: Array, row: Array, start: float, end: float, method: str, step: float
) -> tuple[Array, Array]:
    """Pose, and joint variables with quasi-velocities, at the end."""
    count, n = even_steps(start, end, step), len(row) // 2 - 3
    h = (end - start) / count
    for j in range(count):
        chart = _Chart(acceleration, C, n)

        y = np.concatenate([np.zeros(6), row])
        after = FIXED_STEP[method](chart.rate, start + j * h, y, h)
        if not np.all(np.isfinite(after)) or np.linalg.norm(after[:3]) >= np.pi:
            raise SimulationError(f"at {start + j * h:.6g} s a step of {h:.3g} s is too long")
        C, row = chart.pose(after[:6]), after[6:]
    return C, row

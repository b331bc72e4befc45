# SPDX-License-Identifier: Apache-2.0
"""Fastest motions along a path by other libraries: toppra and copp-py, both from PyPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.robot.model import Limits
from eom_dynamics.trajectory import Samples, Spline
from eom_dynamics.trajectory.fastest.path import chain

GRID, RATE = 1000, 10_000.0

# Densities of copp's grids at the ends of a path, the first one that its solver accepts: 1 - share of a uniform one.
_SHARES = (0.99, 0.9, 0.0)


class SteppedMotion:
    """Motion along a path, at rest after its end, with constant acceleration of the parameter between nodes.

    Its derivatives leave out the impulses of jerk at the nodes.

    Attributes:
        n, start, end: as those of a trajectory, s.
    """

    def __init__(self, path: Spline, nodes: Array, speed: Array) -> None:
        """Set parameters of the path and speeds there, each (K,)."""
        self._path, self._nodes, self._speed, self.n = path, nodes, speed, path.n
        steps = 2 * np.diff(nodes) / (speed[1:] + speed[:-1])
        self._times = np.append(0.0, np.cumsum(steps))
        self._acceleration = np.diff(speed) / steps
        self.start, self.end = 0.0, float(self._times[-1])

    def derivatives(self, t: ArrayLike, order: int = 4) -> tuple[Array, ...]:
        """q and its derivatives, as those of a trajectory."""
        at = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), self.start, self.end)
        piece = np.clip(np.searchsorted(self._times, at, side="right") - 1, 0, len(self._acceleration) - 1)
        since, speed, sdd = at - self._times[piece], self._speed[piece], self._acceleration[piece]
        s = self._nodes[piece] + speed * since + 0.5 * sdd * since**2
        rest = np.zeros_like(at)
        found = along(self._path, s, np.array([speed + sdd * since, sdd, rest, rest]) * (at == t))
        return tuple(x if np.ndim(t) else x[0] for x in found[: order + 1])


def along(path: Spline, s: Array, derivatives: Array) -> Array:
    """Position and its four derivatives (5, N, n) by the path's parameter (N,) and its derivatives (4, N)."""
    q, *by_s = path.derivatives(np.clip(s, path.start, path.end))
    return np.concatenate([q[np.newaxis], chain(np.array(by_s), derivatives)])


def toppra(arm: ElasticArm, path: Spline, limits: Mapping[str, Limits]) -> SteppedMotion:
    """Motion by TOPP-RA for limits of velocity, acceleration and effort."""
    from toppra import algorithm, constraint, setup_logging
    from toppra.interpolator import AbstractGeometricPath

    setup_logging("ERROR")

    class Path(AbstractGeometricPath):
        dof = arm.robot.n
        path_interval = np.array([path.start, path.end])
        waypoints = None

        def __call__(self, s: Any, order: int = 0) -> np.ndarray:
            return path.derivatives(s, 2)[order]

    velocity, acceleration, effort = (
        np.outer(_largest(arm, limits, name), [-1.0, 1.0]) for name in ("velocity", "acceleration", "effort")
    )
    scheme = constraint.DiscretizationType.Interpolation
    constraints = [
        constraint.JointVelocityConstraint(velocity),
        constraint.JointTorqueConstraint(
            lambda q, qd, qdd: arm.dynamics.effort(q, qd, qdd),
            effort,
            np.zeros(arm.robot.n),
            discretization_scheme=scheme,
        ),
    ]
    if np.all(np.isfinite(acceleration)):
        constraints.append(constraint.JointAccelerationConstraint(acceleration, discretization_scheme=scheme))
    grid = np.linspace(path.start, path.end, GRID + 1)
    found = algorithm.TOPPRA(constraints, Path(), gridpoints=grid, solver_wrapper="seidel")
    _, speed, _ = found.compute_parameterization(0.0, 0.0)
    return SteppedMotion(path, grid, speed)


def copp(arm: ElasticArm, path: Spline, limits: Mapping[str, Limits]) -> Samples:
    """Samples, from start to end, of copp's motion by TOPP3-SOCP for limits of velocity, acceleration, jerk and effort.

    Its grid is denser at the ends of the path, where it otherwise loses up to 3 % of the duration.
    """
    import copp_py

    for share in _SHARES:
        uniform = np.linspace(0.0, 1.0, GRID + 1)
        s = path.start + (path.end - path.start) * (uniform - share / (2 * np.pi) * np.sin(2 * np.pi * uniform))
        robot = copp_py.Robot(arm.robot.n, capacity=len(s), inverse_dynamics=arm.dynamics.effort)
        robot.append_s(s)
        *lower, third = path.derivatives(s, 3)
        robot.set_q(*lower, 0, dddq=third)
        for name in ("velocity", "acceleration", "jerk", "effort"):
            largest = _largest(arm, limits, name)
            if np.all(np.isfinite(largest)):
                add = getattr(robot, f"add_{'torque' if name == 'effort' else name}_limits")
                add(largest, -largest, start_idx_s=0, length=len(s))
        second = copp_py.solver.topp2_ra
        a = second.solve(second.Problem(robot.constraints, idx_s_interval=(0, GRID), a_boundary=(0.0, 0.0)))
        third_order = copp_py.solver.topp3_socp
        options = copp_py.clarabel.Options(allow_almost_solved=True)
        try:
            profile = third_order.solve(third_order.Problem(robot.constraints, a), options)
        except copp_py.CoppError:
            continue
        duration, times = copp_py.interpolation.s_to_t_topp3(s, profile)
        t = np.append(np.arange(0.0, duration, 1 / RATE), duration)
        at = copp_py.interpolation.t_to_s_topp3_samples(s, profile, times, t)
        return _of_profile(path, s, profile, times, t, at)
    raise RuntimeError("copp finds no motion on any of its grids")


def _of_profile(path: Spline, grid: Array, profile: Any, times: Array, t: Array, s: Array) -> Samples:
    """Samples of copp's profile: sdd is linear in s between nodes, and in time in the first and last interval."""
    a, b, step = profile.a, profile.b, np.diff(grid)
    piece = np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(step) - 1)
    slope, ahead = (np.diff(b) / step)[piece], s - grid[piece]
    sdd = b[piece] + slope * ahead
    sd = np.sqrt(np.maximum(a[piece] + (b[piece] + sdd) * ahead, 0.0))
    sddd = slope * sd
    for end, sign, inner in ((0, 1.0, 1), (-1, -1.0, -2)):
        inside = piece == (0 if end == 0 else len(step) - 1)
        jerk = 6 * step[end] / abs(times[inner] - times[end]) ** 3
        since = np.abs(t[inside] - times[end])
        sd[inside], sdd[inside], sddd[inside] = 0.5 * jerk * since**2, sign * jerk * since, jerk
    return Samples(t, *along(path, s, np.array([sd, sdd, sddd, np.zeros_like(t)])))


def _largest(arm: ElasticArm, limits: Mapping[str, Limits], name: str) -> Array:
    return np.array([getattr(limits[joint], name) for joint in arm.robot.joint_names])

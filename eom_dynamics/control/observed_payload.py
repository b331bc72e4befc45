# SPDX-License-Identifier: Apache-2.0
"""Payload estimation from external efforts: mass and center of mass at rest in a few poses, or along a motion."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..correlation import correlation_time
from ..dynamics import Dynamics
from ..elastic import ElasticArm
from ..exceptions import StateError
from ..robot import Payload
from ..spelling import hint
from .contact_thresholds import ContactThresholds
from .external_effort import ExternalEffortObserver
from .settings import LONGEST_GAP

# Duration of a block, s; joint motion that ends a pose, rad or m; number of poses per computation.
_BLOCK, _POSE, _CHUNK = 0.02, 0.02, 1000

# Poses per matrix product: few enough that BLAS starts no threads, which would disturb the setpoint stream.
_PRODUCTS = 32

LONGEST_TIME = 600.0
"""Length of the recorded blocks of samples, s."""

# Units of mass and first moment, kg and kg m, and deviations of moments of inertia, kg m^2. A direction is undetermined
# below this ratio of squared efforts to the largest: the tool turns by 3 degrees or less.
_UNITS, _UNDETERMINED = np.array([1.0, *[0.1] * 9]), 1e-5


class ObservedPayload(NamedTuple):
    """Payload that explains external efforts, with standard deviations.

    Attributes:
        payload: mass and center of mass in the tool frame, as a point mass.
        mass_deviation: standard deviation of the mass, kg.
        center_deviation: (3,) standard deviation of the center of mass, m.
        undetermined: (k, 3) undetermined directions of the center of mass in the tool frame, along which it is zero:
            the direction of gravity in a single pose, or the normal of a planar arm.
        unexplained: (n,) RMS residual of the external efforts, N m or N.
        thresholds: (n,) RMS contact thresholds in the same poses; infinite if unknown.
    """

    payload: Payload
    mass_deviation: float
    center_deviation: Array
    undetermined: Array
    unexplained: Array
    thresholds: Array

    def __str__(self) -> str:
        rows = zip("xyz", np.asarray(self.payload.center_of_mass), self.center_deviation, strict=True)
        center = ", ".join(f"{axis} {1e3 * x:.1f} ± {1e3 * deviation:.1f} mm" for axis, x, deviation in rows)
        unknown = "".join(f", not determined along {x.round(3).tolist()}" for x in self.undetermined)
        return f"{self.payload.tool}: {self.payload.mass:.4g} ± {self.mass_deviation:.2g} kg, center {center}{unknown}"


class EffortBlocks:
    """Means of external efforts and motion over blocks of 20 ms or of the sample period, for the last ten minutes.

    Efforts of a first-order observer are delayed by 1/w: their rate over the block, times 1/w, is added.
    """

    def __init__(self, observer: ExternalEffortObserver) -> None:
        self._late, self._n = (observer.order == 1) / observer.bandwidth, observer.arm.robot.n
        self._closed: deque[Array] = deque(maxlen=round(LONGEST_TIME / _BLOCK))
        self.clear()

    def clear(self) -> None:
        """Clear all samples."""
        self._closed.clear()
        self._first, self._sum, self._last = np.zeros(0), np.zeros(0), -np.inf

    def add(self, t: float, q: Array, qd: Array, external: Array) -> None:
        """Add a sample: time, s, link motion and external efforts, (n,)."""
        row, n = np.concatenate([[1.0, t], q, qd, external]), self._n
        if not 0 < t - self._last <= LONGEST_GAP / 1e9:
            self._first, self._sum = row, row.copy()
        elif t - self._first[1] < _BLOCK:
            self._sum += row
        else:
            rate, mean = (row - self._first)[2 + n :] / (t - self._first[1]), self._sum / self._sum[0]
            mean[2 + 2 * n :] += self._late * rate[n:]
            self._closed.append(np.concatenate([self._sum[:1], mean[1:], rate[:n]]))
            self._first, self._sum = row, row.copy()
        self._last = t

    def since(self, t: float = -np.inf) -> list[Array]:
        """Rows of the blocks from time t on: number of samples, time, q, qd, external efforts and qdd."""
        return [x for x in self._closed if x[1] >= t]


def estimate_payload(
    observer: ExternalEffortObserver, t: ArrayLike, *motion: ArrayLike, tool: str | None = None, **sensors: ArrayLike
) -> ObservedPayload:
    """Estimate the payload of a tool from a recording, see :meth:`.ExternalEffortObserver.observe`.

    See :func:`payload_of_efforts`. Recordings at rest in several poses may follow each other with gaps, which restart
    the observer.

    Args:
        observer: the observer; it is reset.
        t, motion, sensors: the recording.
        tool: name of the tool; by default the first tool.
    """
    observer.reset()
    observed, blocks = observer.observe(t, *motion, payload=None, **sensors), EffortBlocks(observer)
    rows = (x[observed.settled] for x in (np.asarray(t, dtype=float), observed.q, observed.qd, observed.external))
    for row in zip(*rows, strict=True):
        blocks.add(*row)
    return payload_of_efforts(observer, blocks.since(), tool or "")


def payload_of_efforts(
    observer: ExternalEffortObserver,
    blocks: Sequence[Array],
    tool: str = "",
    carried: Array | None = None,
    thresholds: ContactThresholds | None = None,
) -> ObservedPayload:
    """Estimate the payload of a tool from external efforts by generalized least squares.

    External efforts are linear in mass and first moment of the payload, in its moments of inertia (0.1 kg m^2), in
    errors of the robot's inertial parameters, and in noise. Deviations of the errors are ``uncertainty.mass`` of the
    robot file, for single parameters and for all masses together. The noise of a pose has the deviation of the
    residuals, of ``effort_spread`` at rest, and for ``motor`` sensors of Coulomb friction.

    Args:
        observer: observer of the efforts.
        blocks: efforts and motion from :class:`EffortBlocks`.
        tool: name of the tool; empty: the first tool.
        carried: (k, 10) payloads of all tools in the observer.
        thresholds: contact thresholds of the observer.

    Raises:
        StateError: the poses do not determine the mass, or no mass explains the efforts.
    """
    arm = observer.arm
    robot = arm.robot
    names = [frame.name for frame in robot.tools]
    if tool and tool not in names:
        raise StateError(f"tool: {robot.name} has no tool {tool!r}; {hint(tool, names)}")
    place = names.index(tool) if tool else 0
    count, q, qd, external, qdd = _poses(observer, blocks)
    chunks = [slice(k, k + _CHUNK) for k in range(0, len(q), _CHUNK)]
    rows = np.concatenate([_rows(arm, place, q[k], qd[k], qdd[k], external[k]) for k in chunks])
    fit = _fitted(rows, count, _at_rest(observer))
    covariance = fit.covariance * np.outer(_UNITS[:4], _UNITS[:4])
    if fit.undetermined[:, 0].any():
        raise StateError(f"the poses do not determine the mass at {names[place]}; add poses away from singularities")
    x = fit.payload * _UNITS[:4] + (np.zeros(4) if carried is None else carried[place, :4])
    m, h, mass = float(x[0]), x[1:], float(np.sqrt(covariance[0, 0]))
    if not m > mass:
        raise StateError(f"no mass explains the efforts: {m:.3g} ± {mass:.2g} kg")
    slope = np.hstack([-h[:, np.newaxis] / m**2, np.eye(3) / m])
    center = np.sqrt(np.diag(slope @ covariance @ slope.T))
    limits = thresholds.limits(qd, q) if thresholds else np.full_like(qd, np.inf)
    left, limit = (np.sqrt(np.mean(x**2, axis=0)) for x in (fit.left, limits))
    return ObservedPayload(Payload(m, h / m, tool=names[place]), mass, center, fit.undetermined[:, 1:], left, limit)


def _rows(arm: ElasticArm, place: int, q: Array, qd: Array, qdd: Array, external: Array) -> Array:
    """Efforts (K, n, 5 + P): columns of mass and first moment, external efforts, columns of errors of deviation 1."""
    bare, columns, tools = arm.dynamics.effort(q, qd, qdd), [], len(arm.robot.tools)
    for k, unit in enumerate(_UNITS):
        P = np.zeros((tools, 10))
        P[place, k] = unit
        columns.append(bare - arm.dynamics.effort(q, qd, qdd, payload=[P if tools > 1 else P[0]]))
    parts = np.stack([*columns[:4], external], axis=-1), _error_columns(arm.dynamics, q, qd, qdd)
    return np.concatenate([*parts, np.stack(columns[4:], axis=-1)], axis=-1)


def _error_columns(dynamics: Dynamics, q: Array, qd: Array, qdd: Array) -> Array:
    """Efforts (N, n, P) of unit errors of the inertial parameters, scaled by ``uncertainty.mass`` of the robot file.

    Errors are of single parameters, in units of mass and radius of gyration of the link, and of all masses together.
    """
    Y, pi = dynamics.regressor(q, qd, qdd), dynamics.inertial_parameters
    rows = pi.reshape(-1, 10)
    radius = np.sqrt(np.maximum(rows[:, [4, 7, 9]].sum(axis=1), 0) / (2 * np.maximum(rows[:, 0], 1e-300)))
    powers = radius[:, np.newaxis] ** [0, 1, 1, 1, 2, 2, 2, 2, 2, 2]
    columns = np.concatenate([Y * (rows[:, :1] * powers).ravel(), (Y @ pi)[..., np.newaxis]], axis=-1)
    return np.asarray(dynamics.robot.uncertainty.mass * columns)


def _poses(observer: ExternalEffortObserver, blocks: Sequence[Array]) -> tuple[Array, ...]:
    """Number of samples (K,), q, qd, external efforts and qdd (K, n); blocks near one pose are merged."""
    if not blocks:
        raise StateError(
            f"no external efforts in this time: samples must be at most {LONGEST_GAP / 1e9:g} s apart, for more "
            f"than {observer.settling:.2g} s without a change of the payload"
        )
    rows = np.array(blocks)
    q, starts = rows[:, 2 : 2 + (rows.shape[1] - 2) // 4], [0]
    for k in range(1, len(rows)):
        if np.abs(q[k] - q[starts[-1]]).max() > _POSE:
            starts.append(k)
    samples = np.add.reduceat(rows[:, :1], starts)
    means = np.add.reduceat(rows[:, :1] * rows[:, 2:], starts) / samples
    return samples[:, 0], *np.split(means, 4, axis=1)


class _Fit(NamedTuple):
    payload: Array  # (4,), in units
    covariance: Array  # (4, 4)
    undetermined: Array  # (k, 4) directions; small entries are zero
    left: Array  # (K, n)


def _fitted(rows: Array, count: Array, at_rest: Array) -> _Fit:
    """Generalized least squares of external efforts, by rows (K, n, 5 + P) of :func:`_rows`."""
    K, n, _ = rows.shape
    squares = np.zeros((n, rows.shape[-1], rows.shape[-1]))
    for k in range(0, K, _PRODUCTS):
        part = rows[k : k + _PRODUCTS].transpose(1, 0, 2)
        squares += part.transpose(0, 2, 1) @ part
    variance = np.full(n, np.mean(rows[..., 4] ** 2) + 1e-12)
    for _ in range(5):
        N = np.tensordot(1 / variance, squares, axes=1)
        # Errors are marginalized.
        G = np.linalg.solve(N[5:, 5:] + np.eye(len(N) - 5), N[5:, :5])
        S = N[:5, :5] - N[:5, 5:] @ G
        values, V = np.linalg.eigh(N[:4, :4])
        determined = values > _UNDETERMINED * values[-1]
        V, undetermined = V[:, determined], V[:, ~determined].T
        covariance = V @ np.linalg.inv(V.T @ S[:4, :4] @ V) @ V.T
        payload = covariance @ S[:4, 4]
        left = rows @ np.concatenate([-payload, [1.0], G[:, :4] @ payload - G[:, 4]])
        square = count @ left**2 / np.sum(count) * K * n / max(K * n - np.count_nonzero(determined), 1)
        # A tenth of the mean of all joints is added, because a few poses determine the variance of one joint poorly.
        variance = (square + 0.1 * np.mean(square)) * correlation_time([left]) + at_rest**2 + 1e-12
    return _Fit(payload, covariance, np.where(np.abs(undetermined) > 0.01, undetermined, 0.0), left)


def _at_rest(observer: ExternalEffortObserver) -> Array:
    """Deviations (n,) of efforts at rest by robot file and sensors, N m or N."""
    deviations = []
    for joint, sensors in zip(observer.arm.robot.independent_joints, observer.sensors, strict=True):
        spread = float(joint.effort_spread.at(np.zeros(1))[0]) if joint.effort_spread else 0.0
        dry = np.max(joint.actuator.friction.coulomb) if sensors == "motor" else 0.0
        deviations.append(np.hypot(spread, dry))
    return np.array(deviations)

# SPDX-License-Identifier: Apache-2.0
"""Contact by external efforts: thresholds for a rate of false alarms, the link that is touched, and causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import positive, real_array
from ..arrays import Array
from ..exceptions import StateError
from ..kinematics import Kinematics
from ..robot import Robot
from ..robot.model import EffortSpread
from ..robot.task_space import poses_within_limits
from ..spelling import listed, shown
from .external_effort import ExternalEffortObserver

CAUSES = {
    (True, False): "contact",
    (False, True): "motor: friction, gear or current",
    (True, True): "contact, and the motor",
}
"""Causes by two conditions: the link residual, and the motor residual, exceed their thresholds."""

_LARGE = 50.0  # N or N m; a direction is unobservable if efforts of this size stay within thresholds

_POSES, _PERIOD = 100, 1e-3  # positions; between samples, s

SENSOR, UNKNOWN = "sensor of the spring's effort, or a gear that slips", "contact, friction, gear or sensor"
"""Causes of opposite residuals, and of an unobserved motor residual."""


class Contact(NamedTuple):
    """External efforts beyond thresholds.

    Attributes:
        causes: cause by joint name, for joints whose residual exceeds its threshold: one of :data:`CAUSES`,
            :data:`SENSOR`, or :data:`UNKNOWN`.
        links: candidate links, from the base to the tip: one wrench on such a link explains all external efforts within
            the thresholds. The first link is the most likely. Empty without a candidate, for example for two contacts.
        frame: frame of the wrench.
        wrench: (6,) least-squares wrench of the environment on the robot at this frame, moment first, along the axes of
            the frame, N m and N; without unobservable components.
        unseen: (k, 6) unobservable wrench directions: 50 N or N m along them stay within the thresholds.
    """

    causes: dict[str, str]
    links: tuple[str, ...]
    frame: str
    wrench: Array
    unseen: Array

    def __str__(self) -> str:
        joints = "; ".join(f"{joint}: {cause}" for joint, cause in self.causes.items())
        links = listed(self.links) if self.links else "no single link"
        unseen = f", {len(self.unseen)} of 6 directions are not seen" if len(self.unseen) else ""
        return f"{joints}; explained by {links}; wrench at {self.frame} {np.round(self.wrench, 2).tolist()}{unseen}"


class ContactThresholds:
    """Thresholds of external efforts for a number of false alarms per hour, from the spread of a robot's efforts.

    Errors of the model and noise of efforts, with correlation times, pass the filter of the observer; white noise of
    velocities passes by w M, of order 2 by 2 w M. Samples at 1 kHz of Gaussian noise with the correlation c from one to
    the next cross x standard deviations in 4 T(x, a) of all samples, a² = (1 - c)/(1 + c), with the T of D. B. Owen
    (Ann. Math. Stat. 27, 1956); each of n joints has 1/n of the alarms.

    Attributes:
        observer: the observer.
        false_alarms: per hour.
        level: (n,) x of each joint.
        passed: (n, 2) shares of the deviations of errors and of noise of efforts that pass the filter.
    """

    def __init__(
        self,
        observer: ExternalEffortObserver,
        false_alarms: float = 1.0,
        *,
        spread: Sequence[EffortSpread] | None = None,
    ) -> None:
        """Set thresholds.

        Args:
            observer: the observer.
            false_alarms: per hour.
            spread: of each joint; by default ``effort_spread`` of the robot file, which ``identify`` writes.

        Raises:
            StateError: the spread of a joint is unknown, or the rate of false alarms is impossible.
        """
        if not isinstance(observer, ExternalEffortObserver):
            raise TypeError(f"observer must be an ExternalEffortObserver, is {shown(observer)}")
        robot = observer.arm.robot
        self.observer, self.false_alarms = observer, positive(false_alarms, "false_alarms")
        self._kinematics, self.spread = Kinematics(robot), _spread(robot, spread)
        rows = zip(self.spread, observer.bandwidth.tolist(), strict=True)
        times = [(x.correlation_time, x.noise_time, w) for x, w in rows]
        parts = np.array([[_passed(T, w, observer.order) for T in row] for *row, w in times])
        sizes = np.array([[np.sqrt(np.mean(np.square(x.deviation))), x.noise] for x in self.spread])
        rate, variance = (np.sum(np.square(sizes * parts[..., k]), axis=1) for k in (1, 0))
        self.passed = parts[..., 0]
        self._largest = self._of_velocities(poses_within_limits(robot, _POSES)).max(axis=0)
        white = np.square(self._largest)
        # Half of the mean squared change from one sample to the next.
        change = np.minimum((0.5 * _PERIOD**2 * rate + white) / (variance + white), 1)
        self.level = self._crossed(np.sqrt(change / (2 - change)))

    def _crossed(self, a: Array) -> Array:
        """Levels (n,) for the false alarms."""
        from scipy.special import owens_t

        rate = 4 * 3600 * len(a) / _PERIOD
        if (most := rate * float(owens_t(0, a).min())) <= self.false_alarms:
            raise StateError(f"false_alarms must be less than {most:.3g} per hour, is {self.false_alarms:g}")
        low, high = np.zeros_like(a), np.full_like(a, 30.0)
        for _ in range(50):
            x = (low + high) / 2
            more = rate * owens_t(x, a) > self.false_alarms
            low, high = np.where(more, x, low), np.where(more, high, x)
        return high

    def _of_velocities(self, q: Array) -> Array:
        """Deviations (…, n) of the residual by noise of velocities, at positions (…, n)."""
        noise = np.array([x.velocity_noise for x in self.spread])
        if not noise.any():
            return np.zeros_like(q)
        squares = np.square(self.observer.arm.dynamics.mass_matrix(q)) @ np.square(noise)
        return np.asarray(self.observer.order * self.observer.bandwidth * np.sqrt(squares))

    def limits(self, qd: ArrayLike, q: ArrayLike | None = None) -> Array:
        """Thresholds (…, n) of external efforts at joint velocities (…, n), N m or N.

        Noise of velocities counts as at positions ``q`` (…, n), by default as at the worst of 100 within the limits.
        """
        v = real_array(qd, "qd")
        velocity = self._largest if q is None else self._of_velocities(real_array(q, "q", v.shape))
        errors = np.stack([x.at(v[..., i]) for i, x in enumerate(self.spread)], axis=-1)
        return np.asarray(self.level * np.hypot(self.passed[:, 0] * errors, np.hypot(self._noise, velocity)))

    @property
    def _noise(self) -> Array:
        return np.asarray(self.passed[:, 1] * [x.noise for x in self.spread])

    def rows(self) -> tuple[Array, Array, Array]:
        """Thresholds of errors at speeds, each (n, K), and of noise (n,); their squares add up to squared limits."""
        count = max(len(x.velocity) for x in self.spread)
        padding = [x.velocity[-1] + 1 + np.arange(count - len(x.velocity)) for x in self.spread]
        speeds = np.array([[*x.velocity, *more] for x, more in zip(self.spread, padding, strict=True)])
        errors = np.stack([x.at(v) for x, v in zip(self.spread, speeds, strict=True)])
        shares = (self.level * self.passed[:, 0])[:, np.newaxis]
        return speeds, shares * errors, self.level * np.hypot(self._noise, self._largest)

    def detection_time(self, efforts: ArrayLike, qd: ArrayLike | None = None, q: ArrayLike | None = None) -> float:
        """Time until a step of external efforts (n,) exceeds the first threshold, s; infinite if it never does.

        Velocities ``qd`` (n,) are zero by default; default positions as for :meth:`limits`.
        """
        n = self.observer.arm.robot.n
        size = np.abs(real_array(efforts, "efforts", (n,)))
        shares = self.limits(np.zeros(n) if qd is None else qd, q) / np.maximum(size, 1e-300)
        seen = shares < 1
        times = [
            _reached(x, self.observer.order) / w
            for x, w in zip(shares[seen], self.observer.bandwidth[seen], strict=True)
        ]
        return min(times, default=np.inf)

    def contact(self, frame: str | None = None) -> Contact | None:
        """Contact in the last sample of the observer; None within thresholds, and until the observer has settled.

        Motor residuals have the thresholds of their joints.

        Args:
            frame: frame of the wrench; by default the first tool.
        """
        q, qd = self.observer.motion
        limits, external, motor = self.limits(qd, q), self.observer.external, self.observer.spring_residual
        beyond, by_motor = np.abs(external) > limits, np.abs(motor) > limits
        if not self.observer.settled or not (beyond | by_motor).any():
            return None
        names = self.observer.arm.robot.joint_names
        causes = {}
        for i in np.flatnonzero(beyond | by_motor).tolist():
            opposite = abs(external[i] + motor[i]) <= limits[i]
            cause = SENSOR if beyond[i] and by_motor[i] and opposite else CAUSES[bool(beyond[i]), bool(by_motor[i])]
            causes[names[i]] = UNKNOWN if np.isnan(motor[i]) else cause
        at = self._kinematics.frame(frame).name
        wrench, unseen = seen_wrench(self._kinematics.jacobian(q, at), external, limits)
        return Contact(causes, self._touched(q, external, limits) if beyond.any() else (), at, wrench, unseen)

    def prepare(self) -> None:
        """Compile the Jacobians of :meth:`contact`, or load them from the cache, so that it does not have to."""
        for link in (None, *self._links()):
            self._kinematics.jacobian(np.zeros(self.observer.arm.robot.n), link)

    def _links(self) -> list[str]:
        links = {frame.joint: frame.name for frame in reversed(self.observer.arm.robot.frames) if frame.joint >= 0}
        return [link for _, link in sorted(links.items())]

    def _touched(self, q: Array, external: Array, limits: Array) -> tuple[str, ...]:
        """Links on which a single wrench explains the efforts, weighted by the thresholds."""
        links = []
        for link in self._links():
            rows = self._kinematics.jacobian(q, link).T / limits[:, np.newaxis]
            wrench = np.linalg.lstsq(rows, external / limits, rcond=None)[0]
            if (np.abs(rows @ wrench - external / limits) <= 1).all():
                links.append(link)
        return tuple(links)

    def __str__(self) -> str:
        n = self.observer.arm.robot.n
        rest, fast = (self.limits(np.full(n, v)) for v in (0.0, 1.0))
        lines = [f"{self.false_alarms:g} false alarms per hour; at rest, at 1 rad/s or m/s, time to detect twice that:"]
        for i, name in enumerate(self.observer.arm.robot.joint_names):
            late = _reached(0.5, self.observer.order) / self.observer.bandwidth[i]
            lines.append(f"  {name}: {rest[i]:.3g}, {fast[i]:.3g}, {1e3 * late:.3g} ms")
        return "\n".join(lines)


def seen_wrench(J: Array, external: Array, limits: Array) -> tuple[Array, Array]:
    """Least-squares wrench (6,) of external efforts (n,) for Jacobian J (6, n), weighted by the thresholds.

    Returns:
        Wrench without its unobservable components, and the unobservable directions (k, 6): 50 N or N m along them stay
        within the thresholds.
    """
    U, values, V = np.linalg.svd(J.T / limits[:, np.newaxis])
    values = np.pad(values, (0, 6 - min(len(values), 6)))
    seen = int(np.count_nonzero(values * _LARGE >= 1))
    return V[:seen].T @ (U[:, :seen].T @ (external / limits) / values[:seen]), V[seen:]


def _spread(robot: Robot, spread: Sequence[EffortSpread] | None) -> tuple[EffortSpread, ...]:
    """Spread of all joints, given or of the robot."""
    spreads = [joint.effort_spread for joint in robot.independent_joints] if spread is None else list(spread)
    if len(spreads) != robot.n:
        raise StateError(f"spread must have an entry for each of {robot.n} joints, has {len(spreads)}")
    if missing := [name for name, x in zip(robot.joint_names, spreads, strict=True) if x is None]:
        remedy = "write one by identify (in Python, also spread=…)"
        raise StateError(f"{listed(missing)}: no effort_spread in the file; {remedy}")
    return tuple(x for x in spreads if x is not None)


def _passed(T: float, w: float, order: int) -> tuple[float, float]:
    """Deviation of filtered noise, and of its rate, relative to the noise with correlation time T before the filter.

    With the states of the filter and the noise e, de/dt = -e/T + white noise, the covariance solves A P + P A' + B = 0.
    """
    a = 1 / T
    second = [[-2 * w, 1, 2 * w], [-w * w, 0, w * w], [0, 0, -a]]
    A = np.array([[-w, w], [0, -a]] if order == 1 else second)
    n = len(A)
    B = np.zeros((n, n))
    B[-1, -1] = 2 * a  # so that e has the variance 1
    eye = np.eye(n)
    P = np.linalg.solve(np.kron(A, eye) + np.kron(eye, A), -B.ravel()).reshape(n, n)
    return float(np.sqrt(P[0, 0])), float(np.sqrt(A[0] @ P @ A[0]))


def _reached(share: float, order: int) -> float:
    """Time, in units of 1/w, until the step response first reaches ``share`` (below 1)."""
    if order == 1:
        return float(-np.log1p(-share))
    low, high = 0.0, 1.0  # 1 - (1 - x) exp(-x) is 1 at x = 1
    for _ in range(60):
        x = 0.5 * (low + high)
        low, high = (x, high) if 1 - (1 - x) * np.exp(-x) < share else (low, x)
    return high

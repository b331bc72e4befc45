# SPDX-License-Identifier: Apache-2.0
"""Limits of an excitation as smooth constraints on peaks: joints, motors, spheres; information.

With efforts W beta + noise, W (K n, P) the regressor at K samples, rows divided by the standard deviations of the
noise, the information matrix is W^T W, and its inverse the covariance of the least-squares estimate. D-optimal motions
have the largest determinant: the smallest volume of the confidence ellipsoid, in any units of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr

from ..arguments import mapping, real_array
from ..arrays import MOTION, Array
from ..elastic import ElasticArm
from ..elastic.limits import GivenLimits, arm_limits, joint_limits
from ..exceptions import StateError, TrajectoryError
from ..kinematics import Kinematics
from ..robot import Robot
from ..robot.model import ENDS, frames_by_name
from ..trajectory.quantities import Load, quantities
from .links.regressor import Regressor, random_states
from .sampling import column_lengths

BASE = "base"  # name of the base, unless a frame of the robot has it
_POSTURES = 500  # random postures that decide which spheres always meet

KINEMATIC = MOTION[:4]
"""Quantities that are linear in the parameters of a series, by order of differentiation."""

SHARPNESS = 100.0
"""Sharpness of the smooth maximum: above the largest of K equal values by log(K)/SHARPNESS of the limit."""

_NOT_REALISABLE = 10.0  # ratio to the limit for a motion that the springs cannot realize


class Spheres:
    """Spheres that cover the bodies of a robot, with a clearance to keep between them, m.

    Each of the ``pairs`` of bodies, such as ``shoulder/hand``, counts, except neighbors, connected by a joint and
    with spheres that may overlap, and pairs that ``always`` meet in random postures, such as two bodies of a wrist.
    """

    def __init__(self, robot: Robot, spheres: Mapping[str, ArrayLike], clearance: float = 0.0) -> None:
        """Attach spheres: by name of a body, link, tool or ``base``, rows (k, 4) of center x, y, z there and radius, m.

        Raises:
            TrajectoryError: a frame is unknown, or a row is not four numbers with a positive radius.
        """
        self.robot, self.clearance = robot, float(clearance)
        self._kinematics = Kinematics(robot)
        frames = frames_by_name(robot)
        bodies: dict[int, list[Array]] = {}
        for name, values in mapping(spheres, "spheres", "names of frames", TrajectoryError).items():
            if name not in frames and name != BASE:
                raise TrajectoryError(f"spheres of unknown frame {name!r}; {robot.name} has {', '.join(frames)}")
            body, pose = (frames[name].joint, frames[name].pose) if name in frames else (-1, np.eye(4))
            rows = _rows(name, values)
            if body >= 0:  # to the frame with the name of the body's joint, mostly the frame of the body itself
                pose = np.linalg.inv(frames[robot.joints[body].name].pose) @ pose
            rows[:, :3] = rows[:, :3] @ pose[:3, :3].T + pose[:3, 3]
            bodies.setdefault(body, []).append(rows)
        self._spheres = {body: np.concatenate(rows) for body, rows in sorted(bodies.items())}
        self._pairs = [(i, j) for i in self._spheres for j in self._spheres if i < j and robot.joints[j].parent != i]
        q = np.random.default_rng(0).uniform(-np.pi, np.pi, (_POSTURES, robot.n))
        meeting = np.all(self.ratios(q) > 1, axis=0)
        names = ["/".join(map(self._name, pair)) for pair in self._pairs]
        self.always, self.pairs = tuple(compress(names, meeting)), tuple(compress(names, ~meeting))
        self._pairs = list(compress(self._pairs, ~meeting))

    def ratios(self, q: Array) -> Array:
        """Sum of radii and clearance over distance (K, pairs) of the two closest spheres, for positions (K, n).

        A ratio above 1 is a violation.
        """
        return self._evaluate(q, partials=False)[0]

    def partials(self, q: Array) -> Array:
        """Derivatives (pairs, K, n) of the ratios with respect to q."""
        return self._evaluate(q, partials=True)[1]

    def _evaluate(self, q: Array, *, partials: bool) -> tuple[Array, Array]:
        used = {body for pair in self._pairs for body in pair}
        centers = {body: self._centers(body, q) for body in used}
        moving = {body: self._name(body) for body in used if body >= 0 and partials}
        jacobians = {body: self._kinematics.jacobian(q, name, "world_aligned") for body, name in moving.items()}
        ratios = np.empty((len(q), len(self._pairs)))
        slopes = np.zeros((len(self._pairs), *q.shape))
        rows = np.arange(len(q))
        for c, (i, j) in enumerate(self._pairs):
            apart = centers[i][0][:, :, np.newaxis] - centers[j][0][:, np.newaxis]
            reach = self._spheres[i][:, np.newaxis, 3] + self._spheres[j][:, 3] + self.clearance
            distance = np.maximum(np.linalg.norm(apart, axis=-1), 1e-9)
            shares = (reach / distance).reshape(len(q), -1)
            worst = np.argmax(shares, axis=1)
            ratios[:, c] = shares[rows, worst]
            if not partials:
                continue
            a, b = np.divmod(worst, len(self._spheres[j]))
            direction = apart[rows, a, b] / distance[rows, a, b, np.newaxis]
            for body, sphere, sign in ((i, a, 1.0), (j, b, -1.0)):
                if body < 0:
                    continue
                J, lever = jacobians[body], centers[body][1][rows, sphere]
                # The center moves with v + omega x lever; u . (omega x lever) = omega . (lever x u).
                along = np.einsum("ka,kan->kn", direction, J[:, 3:])
                along += np.einsum("ka,kan->kn", np.cross(lever, direction), J[:, :3])
                slopes[c] -= sign * (ratios[:, c] / distance[rows, a, b])[:, np.newaxis] * along
        return ratios, slopes

    def _centers(self, body: int, q: Array) -> tuple[Array, Array]:
        """Centers in the base frame, and from the origin of the body, each (K, k, 3)."""
        local = self._spheres[body][:, :3]
        if body < 0:
            fixed = np.broadcast_to(local, (len(q), *local.shape))
            return fixed, fixed
        pose = self._kinematics.pose(q, self._name(body))
        levers = local @ np.swapaxes(pose[:, :3, :3], 1, 2)
        return levers + pose[:, np.newaxis, :3, 3], levers

    def _name(self, body: int) -> str:
        return BASE if body < 0 else self.robot.joints[body].name


def _rows(name: str, values: ArrayLike) -> Array:
    rows = np.copy(real_array(values, f"spheres of {name!r}", error=TrajectoryError))
    if rows.ndim != 2 or rows.shape[1] != 4 or not len(rows) or np.any(rows[:, 3] <= 0):
        raise TrajectoryError(f"spheres of {name!r} must be rows x, y, z, radius in m, with a positive radius")
    return rows


def with_limits(robot: Robot, limits: GivenLimits) -> Robot:
    """Return the robot with other joint limits; errors as of :func:`.joint_limits`.

    Raises:
        TrajectoryError: a limit is not a positive number, or a range is empty.
    """
    of_joints = joint_limits(robot, limits)
    for name, new in of_joints.items():
        for quantity, value in vars(new).items():
            if quantity not in ENDS and value <= 0:
                raise TrajectoryError(f"{name}: limit {quantity} must be positive, is {value:g}")
        if new.lower >= new.upper:
            raise TrajectoryError(f"{name}: lower {new.lower:g} must be less than upper {new.upper:g}")
    return replace(robot, joints=tuple(replace(joint, limits=of_joints[joint.name]) for joint in robot.joints))


class ExcitationLimits:
    """Limits of joints and motors, as ratios of values to limits.

    Attributes:
        arm: the arm.
        share: share of each limit that may be used; of ranges of positions, about their middle.
        middle, half: (n,) middle of the range of each joint's position, and half its width, rad or m.
        largest: (3, n) largest velocity, acceleration and jerk of the joint and of joints that mimic it.
        spheres: that must keep their distance, or None.
        names: quantity and name of each ratio.
    """

    def __init__(self, arm: ElasticArm, share: float, spheres: Spheres | None = None) -> None:
        """Read the limits; spheres add the limit that bodies must not overlap.

        Raises TrajectoryError if a joint has no range of positions, or no limit of its velocity or the speed of its
        motor.
        """
        self.arm, self.share, limits = arm, float(share), arm_limits(arm)
        lower, upper, largest = limits.of_leaders
        self._speed_limited = np.zeros(arm.robot.n, dtype=bool)
        self._speed_limited[arm.motor_joint[limits.largest["motor_speed"] < np.inf]] = True
        if arm.transmission is not None:
            joints = list(arm.transmission.joints)
            self._speed_limited[joints] = np.all(self._speed_limited[joints])
        self._require(lower, upper, largest)
        self.middle, self.half = (lower + upper) / 2, share * (upper - lower) / 2
        self.largest = share * largest
        self._efforts = {
            name: (np.flatnonzero(most < np.inf), share * most[most < np.inf])
            for name, most in limits.largest.items()
            if name not in KINEMATIC and limits.limited(name)
        }
        self._effort_count = sum(len(most) for _, most in self._efforts.values())
        # Limits by order of differentiation and joint, and the places of finite limits; all of positions are finite.
        self._limits = np.vstack([self.half, self.largest])
        self._kinematic = np.nonzero(self._limits < np.inf)
        kinematic = [(KINEMATIC[k], arm.robot.joint_names[i]) for k, i in zip(*self._kinematic, strict=True)]
        efforts = [(name, limits.names[name][i]) for name, (which, _) in self._efforts.items() for i in which]
        self.spheres = spheres
        self.names = (*kinematic, *efforts, *(("distance", pair) for pair in (spheres.pairs if spheres else ())))

    @property
    def velocity(self) -> Array:
        """(n,) velocity limit of each joint, or of its motor, rad/s or m/s."""
        limits = self.largest[0].copy()
        np.minimum.at(limits, self.arm.motor_joint, self.share * self.arm.motor.speed_limit / abs(self.arm.gear_ratio))
        return limits

    def ratios(self, states: Array) -> Array:
        """Signed ratios of values to limits (K, number of limits), for q … qdddd (5, K, n); NaN for unknown values."""
        centered, (k, i) = states[:4].copy(), self._kinematic
        centered[0] -= self.middle
        kinematic = np.ascontiguousarray((centered / self._limits[:, np.newaxis])[k, :, i].T)
        spheres = [self.spheres.ratios(states[0])] if self.spheres else []
        return np.concatenate([kinematic, self._effort_ratios(states), *spheres], axis=1)

    def _effort_ratios(self, states: Array) -> Array:
        """Ratios of efforts and motors."""
        if not self._efforts:
            return np.zeros((states.shape[1], 0))
        try:
            values = quantities(self.arm, Load(tuple(states)))
        except StateError:
            return np.full((states.shape[1], self._effort_count), _NOT_REALISABLE)
        return np.concatenate([values[name][:, which] / most for name, (which, most) in self._efforts.items()], axis=1)

    def effort_partials(self, states: Array) -> Array:
        """Derivatives (C, 5, K, n) of C effort and motor ratios with respect to q … qdddd, by finite differences."""
        (orders, samples, n), size = states.shape, self._effort_count
        result = np.zeros((size, orders, samples, n))
        for k in range(orders):
            step = _STEP * max(1.0, float(np.max(np.abs(states[k]))))
            shifted = np.repeat(states[:, np.newaxis], 2 * n, axis=1)
            for j in range(n):
                shifted[k, 2 * j, :, j] += step
                shifted[k, 2 * j + 1, :, j] -= step
            ratios = self._effort_ratios(shifted.reshape(orders, -1, n)).reshape(n, 2, samples, size)
            result[:, k] = np.transpose((ratios[:, 0] - ratios[:, 1]) / (2 * step), (2, 1, 0))
        return np.nan_to_num(result)

    def partials(self, states: Array) -> Array:
        """Derivatives (C, 5, K, n) of all ratios with respect to q … qdddd."""
        k, i = self._kinematic
        kinematic = np.zeros((len(k), *states.shape))
        kinematic[np.arange(len(k)), k, :, i] = 1 / self._limits[k, i, np.newaxis]
        distances = np.zeros((len(self.spheres.pairs) if self.spheres else 0, *states.shape))
        if self.spheres:
            distances[:, 0] = self.spheres.partials(states[0])
        return np.concatenate([kinematic, self.effort_partials(states), distances])

    def _require(self, lower: Array, upper: Array, largest: Array) -> None:
        present = [lower > -np.inf, upper < np.inf, (largest[0] < np.inf) | self._speed_limited]
        absent = np.logical_not(present)
        if absent.any():
            joints = list(compress(self.arm.robot.joint_names, np.any(absent, axis=0)))
            missing = list(compress(("lower", "upper", "velocity"), np.any(absent, axis=1)))
            verb = "has" if len(joints) == 1 else "have"
            raise TrajectoryError(
                f"{self.arm.robot.name}: excite needs limits: {', '.join(joints)} {verb} no {', '.join(missing)}; give "
                f"them in the robot's file, or by {', '.join(f'--{quantity}' for quantity in missing)}"
            )


def smooth_maximum(ratios: Array) -> tuple[Array, Array]:
    """Smooth upper bound (C,) of the magnitudes of K values (K, C), and its derivatives (K, C) by the values.

    The function of G. Kreisselmeier and R. Steinhauser, "Systematic control design by optimizing a vector performance
    index", IFAC Symposium on Computer Aided Design of Control Systems (1979): log(sum of exp(s |x|))/s. It exceeds the
    largest magnitude by log(2 K)/s at most.
    """
    both = SHARPNESS * np.nan_to_num(np.concatenate([ratios, -ratios]))
    top = np.max(both, axis=0)
    weights = np.exp(both - top)
    total = np.sum(weights, axis=0)
    plus, minus = np.split(weights / total, 2)
    return (top + np.log(total)) / SHARPNESS, plus - minus


_STATES = 4  # random states that decide on independent columns, per column

_INDEPENDENT = 1e-7

# Step of central differences, as a share of 1 rad or m, or of the largest rate: errors of truncation and of rounding
# are at 1e-10. Without friction, the regressor is quadratic in qd and linear in qdd, and only rounding is left.
_STEP = 1e-5

_NORM = 8  # exponent of the norms that replace the largest and the smallest singular value


class Information(NamedTuple):
    """Information of a motion.

    Attributes:
        log_det: of the information matrix W^T W/K of a sample, rows of W in units of the noise of the efforts,
            parameters in SI units. It is comparable among motions of a robot only.
        condition: condition number of W, columns in SI units.
        scaled_condition: condition number of W with columns of unit length, which no units influence.
        smallest: smallest singular value of W/sqrt(K).
    """

    log_det: float
    condition: float
    scaled_condition: float
    smallest: float

    @classmethod
    def of(cls, W: Array, samples: int) -> Information:
        """Information of a regressor (K n, P) at K samples."""
        values = np.linalg.svd(W / np.sqrt(samples), compute_uv=False)
        scaled = float(np.linalg.cond(W / column_lengths(W)))
        with np.errstate(divide="ignore"):
            return cls(float(2 * np.sum(np.log(values))), float(values[0] / values[-1]), scaled, float(values[-1]))


class InformationModel:
    """Model of the information on a robot's base parameters and further joint terms.

    The noise (n,) of efforts, N m or N, is known up to a common factor. ``columns`` are the independent columns of the
    regressor: the rotor inertia of a joint, for example, often adds to the inertia of its body.
    """

    def __init__(self, regressor: Regressor, noise: Array) -> None:
        """Find the independent columns by QR with pivoting, in random states."""
        self.regressor, self.noise = regressor, noise
        count = len(regressor.names)
        W = regressor(*random_states(regressor.robot.n, _STATES * count, seed=1997)).reshape(-1, count)
        R, order = qr(W / column_lengths(W), mode="r", pivoting=True)
        self.columns: NDArray[np.intp] = np.sort(order[: np.sum(np.abs(np.diag(R)) > _INDEPENDENT)])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(self.regressor.names[k] for k in self.columns)

    def matrix(self, states: Array) -> Array:
        """W (K n, P) of q, qd, qdd (3, K, n)."""
        Y = self.regressor(*states)[..., self.columns] / self.noise[:, np.newaxis]
        return Y.reshape(-1, len(self.columns))

    def information(self, states: Array) -> Information:
        """Information of samples q, qd, qdd (3, K, n)."""
        return Information.of(self.matrix(states), states.shape[1])

    def cost(self, states: Array, condition_weight: float) -> tuple[float, Array]:
        """-log det(W^T W/K)/P + condition_weight log(condition number of W), and its gradient (3, K, n) by the states.

        Both are functions f of the singular values s of W = U S V^T, and the differential is <U f'(S) V^T, dW>. For
        the condition number, norms of s and 1/s replace the extreme values, because they are differentiable for
        coincident values.
        """
        _, samples, n = states.shape
        W = self.matrix(states) / np.sqrt(samples)
        Q, R = np.linalg.qr(W)
        U, s, Vt = np.linalg.svd(R)
        if not s[-1] > np.finfo(float).tiny:
            return np.inf, np.zeros_like(states)
        parameters = len(s)
        high, low = (s / s[0]) ** _NORM, (s[-1] / s) ** _NORM
        condition = np.log(s[0] / s[-1]) + (np.log(np.sum(high)) + np.log(np.sum(low))) / _NORM
        value = float(-2 * np.sum(np.log(s)) / parameters + condition_weight * condition)
        slope = -2 / (parameters * s) + condition_weight * (high / np.sum(high) - low / np.sum(low)) / s
        of_W = ((Q @ (U * slope)) @ Vt).reshape(samples, n, -1) / (self.noise[:, np.newaxis] * np.sqrt(samples))
        gradient = np.empty_like(states)
        for k in range(3):
            step = _STEP * max(1.0, float(np.max(np.abs(states[k]))) if k else 1.0)
            for j in range(n):
                shifted = np.repeat(states[:, np.newaxis], 2, axis=1)
                shifted[k, 0, :, j] += step
                shifted[k, 1, :, j] -= step
                Y = self.regressor(*shifted.reshape(3, -1, n))[..., self.columns].reshape(2, samples, n, -1)
                gradient[k, :, j] = np.einsum("kip,kip->k", of_W, Y[0] - Y[1]) / (2 * step)
        return value, gradient

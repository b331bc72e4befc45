# SPDX-License-Identifier: Apache-2.0
"""Contradictions between recordings and the robot's file.

Measured efforts are regressed on the efforts that the file predicts and on terms of the joint, such as friction,
joint by joint. A contradiction beyond the effect of wrong masses (sign, unit, joint order, lag) invalidates the fit, if
its correction predicts held-out blocks of the recording better, at a level of 1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, compress

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray
from scipy.special import fdtri

from ...arrays import Array
from ...correlation import correlation_time
from ...recursion import PARAMETERS
from ..recording import REST, Recording
from ..sampling import column_lengths, least_squares, sum_of_squares
from .consistent import Unknowns, column_basis, consistent_solution, free_bodies, project_out
from .equations import DEPENDENT
from .filtering import FilteredSamples
from .regressor import Regressor
from .verification import Score

SAMPLES = 2000  # samples that decide
_LEVEL, _BLOCKS = 0.01, 4  # level of tests, and blocks of a recording that are predicted
_PREDICTED = 0.05  # minimum share of a prediction's squares that other terms do not explain
_BALANCED = 0.3  # minimum prediction relative to the effect of shifted masses; smaller predictions are no evidence
SURE, _MOST = 5.0, 5.0  # minimum standard deviations of a known factor; maximum factor by wrong masses
_AGREES = 1.0  # standard deviations of friction power within which it agrees with the sign of the masses
_ASIDE = 2.0  # all factors are above this, or all below its inverse, if efforts of all joints are in another unit
_BEYOND_LIMIT = 5.0  # ratio of the RMS of efforts to the limit that no wrong friction explains
_ONE_JOINT = 40.0  # factor of another unit of one joint alone: degrees and hundreds are, a missing tool is not
MUCH_BETTER = 0.4  # share of the unexplained squares that is left by the right reading of a recording
_DEGREE = 5  # degree of the polynomial of the position that stands for any spring: gas springs are no cubics
_FINEST = 1e-6  # noise of efforts, relative to them, that is the least
_LEAST_FREE = 0.2  # share of a joint's samples beyond the number of parameters, for the rest to show noise
_ROUNDING = 1e-9  # below this share of its length, the residual of a column on others is rounding
_SHORTEST = 3.0  # minimum duration of motion, s; noise may explain shorter motions
_NOISE = 0.9  # minimum unexplained share of the efforts of most joints in a recording of another robot
_HALF = 0.5**0.5  # minimum unexplained share for a payload, if the file explains the rest: half of the squares


@dataclass(frozen=True)
class Contradiction:
    """Contradiction between a recording and the robot's file: joints with wrong efforts, the error, and a remedy."""

    joints: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class HypothesisTest:
    """Squared errors of held-out efforts without and with a hypothesis, by block (K,).

    ``independent`` is the number of independent samples in all blocks.
    """

    without: Array
    having: Array
    independent: float

    @property
    def ratio(self) -> float:
        """Ratio F of the mean squares."""
        return float(np.sum(self.without) / max(float(np.sum(self.having)), 1e-300))

    @property
    def critical(self) -> float:
        """The ratio that chance exceeds in one of a hundred recordings."""
        free = max(self.independent, 1.0)
        return float(fdtri(free, free, 1 - _LEVEL))

    @property
    def holds(self) -> bool:
        """True if the hypothesis predicts better, at 1 % and in most of at least three blocks."""
        better = int(np.sum(self.having < self.without))
        return len(self.having) >= 3 and better > len(self.having) / 2 and self.ratio > self.critical

    def __str__(self) -> str:
        better, count = int(np.sum(self.having < self.without)), len(self.having)
        return (
            f"held-out squared errors are {self.ratio:.2g} times smaller so, {self.critical:.3g} at 1 %, "
            f"in {better} of {count} blocks"
        )


def contradictions(
    regressor: Regressor, samples: Sequence[FilteredSamples], file: Array, payload: str | None = None
) -> list[Contradiction]:
    """Contradictions between samples and the file's parameters x (P,), without consequences of others.

    Efforts that a ``payload`` on the body of this joint explains are not compared with the file.
    """
    check = _Check(regressor, samples, file, payload)
    if not check.known.any():
        return []
    signs = check.signs_and_units()
    # A wrong sign of all joints may look like swapped joints.
    if any(len(sign.joints) == regressor.robot.n and "sign" in sign.words for sign in signs):
        return signs
    return check.swapped() or signs


class _Check:
    """Least squares of efforts on predictions of the file and terms of each joint."""

    def __init__(
        self, regressor: Regressor, samples: Sequence[FilteredSamples], file: Array, payload: str | None
    ) -> None:
        self._regressor, self._joint_names = regressor, regressor.robot.joint_names
        step = max(1, sum(map(len, samples)) // SAMPLES)
        self._part = part = FilteredSamples.joined([x[::step] for x in samples])
        # Gravity contributes equally to all terms except the joint's.
        self._terms = [x for x in ("viscous", "coulomb", "rotor_inertia", "offset") if x in regressor.terms]
        bases = np.reshape([part.bases[name] for name in self._terms], (-1, *part.tau.shape))
        self._bases: Array = np.moveaxis(bases, 0, -1)
        self._inertial = np.where(np.arange(len(file)) < regressor.inertial, file, 0.0)
        self._bodies = free_bodies(regressor.dynamics.inertial_parameters)
        self._columns = regressor.inertial_columns(part.q, part.qd, part.qdd)
        self._by_file = regressor.inertial_efforts(part.q, part.qd, part.qdd, self._inertial)
        self.known = part.used.sum(axis=0) > 4 * (1 + len(self._terms))
        names = [each.name for each in regressor.robot.joints]
        body = names.index(payload) if payload in names else None
        # Efforts of a payload, and of each body's mass shifted by its radius of gyration.
        self._payload = np.zeros((*part.tau.shape, 0)) if body is None else self._of_body(body)
        shifted = [self._of_body(k)[..., 1:4] * x for k, x in enumerate(_moments(regressor)) if x > 0]
        self._shifted = np.concatenate(shifted, axis=-1) if shifted else np.zeros((*part.tau.shape, 0))
        joints = np.flatnonzero(self.known).tolist()
        self.judged = self.known & np.isin(np.arange(len(self.known)), [j for j in joints if self._predicts(j)])

    def _of_body(self, body: int) -> Array:
        """Efforts (N, n, 10) by each inertial parameter of a body."""
        columns = slice(PARAMETERS * body, PARAMETERS * (body + 1))
        return np.asarray(self._columns @ self._regressor.base.combinations[:, columns])

    def _others(self, rows: NDArray[np.bool_], j: int) -> Array:
        """Columns of joint j that are no prediction of the file: terms of the joint, and of a payload."""
        return np.column_stack([self._bases[rows, j], self._payload[rows, j]])

    def _predicts(self, j: int) -> bool:
        """Return whether the file predicts enough of the efforts of joint j to judge them.

        A joint that the file balances proves nothing: the least shift of a mass changes all of its efforts.
        """
        rows = self._part.used[:, j]
        x, *shifted = project_out(
            self._others(rows, j), np.column_stack([self._by_file[rows, j], self._shifted[rows, j]])
        ).T
        rest = project_out(self._bases[rows, j], self._by_file[rows, j])
        return sum_of_squares(x) > max(
            _PREDICTED * sum_of_squares(rest), _BALANCED**2 * sum_of_squares(np.array(shifted))
        )

    def swapped(self) -> list[Contradiction]:
        """Pairs of joints that look swapped: efforts, or all columns, of one explain the other's."""
        names, part = self._joint_names, self._part
        for j, k in combinations(np.flatnonzero(self.judged).tolist(), 2):
            order = np.arange(len(names))
            order[[j, k]] = k, j
            q, qd, qdd = (x[:, order] for x in (part.q, part.qd, part.qdd))
            swapped = self._regressor.inertial_efforts(q, qd, qdd, self._inertial)
            least = min(self._squares(i, self._by_file, i, i) for i in (j, k))
            pairs = ((j, k), (k, j))
            efforts = [self._squares(i, self._by_file, other, i) for i, other in pairs]
            both = [self._squares(i, swapped, other, other) for i, other in pairs]
            for what, squares in (("efforts of ", efforts), ("", both)):
                if np.max(squares) < MUCH_BETTER * least and (test := self._swap(pairs, what, swapped)).holds:
                    words = f"{what}{names[j]} and {names[k]} look swapped; check the order of joints in the recording"
                    return [Contradiction((names[j], names[k]), f"{words} ({test})")]
        return []

    def _swap(self, pairs: Sequence[tuple[int, int]], what: str, swapped: Array) -> HypothesisTest:
        """Test whether efforts, or whole columns, belong to the other joint."""
        joints = []
        for i, other in pairs:
            rows, tau = self._part.used[:, i] & self._part.used[:, other], self._part.tau
            if what:
                without, having = tau[:, i] - self._by_file[:, i], tau[:, other] - self._by_file[:, i]
            else:
                without, having = tau[:, other] - self._by_file[:, other], tau[:, other] - swapped[:, i]
            joints.append((rows, self._others(rows, i if what else other), without[rows], having[rows]))
        return held_out(joints)

    def _squares(self, j: int, predicted: Array, measured: int, terms: int) -> float:
        """Sum of squares that predictions (N, n) of joint j and bases of ``terms`` leave of efforts ``measured``."""
        rest = self._part.tau[:, measured] - predicted[:, j]
        rows = self._part.used[:, j]
        return sum_of_squares(project_out(self._others(rows, terms), rest[rows]))

    def signs_and_units(self) -> list[Contradiction]:
        """Factors of the efforts that are negative, or far from one."""
        factors = [self._factor(j) if judged else (np.nan, np.inf) for j, judged in enumerate(self.judged)]
        factor, deviation = np.array(factors).T
        with np.errstate(invalid="ignore"):
            size, noise = np.abs(factor), SURE * deviation
            known = size > noise
            off_scale = known & ((size - noise > _MOST) | (size + noise < 1 / _MOST))
            # A wrong center of mass explains more at a joint that hardly feels gravity than at all of them.
            if off_scale.sum() <= self.judged.sum() / 2:
                off_scale = known & ((size - noise > _ONE_JOINT) | (size + noise < 1 / _ONE_JOINT))
                for j in np.flatnonzero(size > _MOST).tolist():
                    as_recorded, converted = self._costs(j, (1.0, size[j]))
                    off_scale[j] |= converted < MUCH_BETTER * as_recorded
        return self._signs(known & (factor < 0)) + self._units(size, off_scale, known) + self._beyond_limits(known)

    def _signs(self, doubtful: NDArray[np.bool_]) -> list[Contradiction]:
        """Efforts of the opposite sign, if efforts of any joint (n,) look like it, or its friction drives it.

        Wrong masses can reverse the effort of a joint with little gravity load, but friction never drives a joint. If
        the friction of any joint is significant, the friction of a joint with the opposite sign must drive it.
        """
        joints = np.flatnonzero(self.known).tolist()
        names, power = self._joint_names, np.zeros(len(self.known))
        power[joints] = [self._friction_power(j) for j in joints]
        if not doubtful.any() and not np.any(power < -SURE):
            return []
        costs = np.ones((len(names), 2))
        costs[joints] = [self._costs(j, (1.0, -1.0)) for j in joints]
        negative, positive = (costs[:, 1 - k] < MUCH_BETTER * costs[:, k] for k in (0, 1))
        if np.any(np.abs(power) > SURE):
            negative, positive = negative & (power < -_AGREES), positive | (power > _AGREES)
        if not negative.any():
            return []
        wrong = names if not positive.any() else tuple(compress(names, negative))
        option = "--effort-scale -1" if wrong == names else " ".join(f"--effort-scale {name}=-1" for name in wrong)
        tests = [self._sign(names.index(name)) for name in wrong]
        without, having = (np.sum([getattr(x, side) for x in tests], axis=0) for side in ("without", "having"))
        test = HypothesisTest(without, having, sum(x.independent for x in tests))
        words = f"efforts of {', '.join(wrong)} have the opposite sign of the file's prediction: {option} turns them"
        return [Contradiction(wrong, f"{words} ({test})")] if test.holds else []

    def _units(self, size: Array, off_scale: NDArray[np.bool_], known: NDArray[np.bool_]) -> list[Contradiction]:
        """Efforts in other units, of the joints (n,) with factors ``off_scale``, far from one."""
        if not off_scale.any():
            return []
        names = tuple(compress(self._joint_names, off_scale))
        # Most joints, and all others in the same direction: currents have a different factor for each joint.
        aside = np.all(size[known] < 1 / _ASIDE) or np.all(size[known] > _ASIDE)
        everywhere = bool(off_scale.sum() > self.judged.sum() / 2 and aside)
        typical = float(np.exp(np.mean(np.log(size[off_scale]))))
        alike = bool(np.all(np.abs(np.log(size[off_scale] / typical)) < np.log(2.0)))
        listed = ", ".join(f"{name} {x:.2g}" for name, x in zip(names, size[off_scale], strict=True))
        remedy = "--effort-scale JOINT=X converts them"
        if alike and everywhere:
            remedy = f"--effort-scale {1 / float(f'{typical:.0e}'):g} if they are in another unit"
        if typical < 1:
            remedy += ", with X of torque constant times gear ratio if they are motor currents, A"
        # Other masses explain other efforts of all joints, but not of some, as joints have their masses in common.
        test = self._by_factors(size, off_scale) if everywhere else self._with_scales(np.where(off_scale, size, 1.0))
        words = f"efforts are in another unit, by factors of the file's prediction of {listed}: {remedy} ({test})"
        return [Contradiction(self._joint_names if everywhere else names, words)] if test.holds else []

    def _by_factors(self, size: Array, which: NDArray[np.bool_]) -> HypothesisTest:
        """Test of factors (n,) of the file's prediction in the efforts of some joints (n,)."""
        used, tau, file = self._part.used, self._part.tau, self._by_file
        return held_out(
            [
                (used[:, j], self._others(used[:, j], j), *((tau - x * file)[used[:, j], j] for x in (1.0, size[j])))
                for j in np.flatnonzero(which).tolist()
            ]
        )

    def _beyond_limits(self, predicted: NDArray[np.bool_]) -> list[Contradiction]:
        """Efforts far beyond the limits of joints that the file does not predict, such as balanced wrists.

        Limits of a file are placeholders if efforts of ``predicted`` joints (n,) exceed them as well.
        """
        part, names = self._part, self._joint_names
        limit = np.array([joint.limits.effort for joint in self._regressor.robot.independent_joints])
        squares = np.sum(np.square(np.where(part.used, part.tau, 0.0)), axis=0)
        rms = np.sqrt(squares / np.maximum(part.used.sum(axis=0), 1))
        with np.errstate(invalid="ignore"):
            beyond = self.known & (limit > 0) & (rms > _BEYOND_LIMIT * limit)
        if np.any(self.known & predicted & (rms > limit)):
            return []
        return [
            Contradiction(
                (names[j],),
                f"efforts of {names[j]} have an RMS of {rms[j]:.3g}, and the file a limit of {limit[j]:.3g}: they are "
                f"in another unit, which --effort-scale {names[j]}=X converts, or the limit is wrong",
            )
            for j in np.flatnonzero(beyond & ~predicted).tolist()
        ]

    def _with_scales(self, scales: Array) -> HypothesisTest:
        """Test of efforts recorded at scales (n,) by least squares of all joints, which have their masses in common."""
        part, n = self._part, len(scales)
        terms, spread = self._bases.shape[-1], np.nanstd(part.tau, axis=0)
        squares = np.zeros((2, _BLOCKS))
        for which, scale in enumerate((np.ones(n), scales)):
            blocks = []
            for rows in np.array_split(np.arange(len(part)), _BLOCKS):
                stacked = []
                for j in np.flatnonzero(self.known).tolist():
                    at = rows[part.used[rows, j]]
                    alone = np.zeros((len(at), n * terms))
                    alone[:, j * terms : (j + 1) * terms] = self._bases[at, j]
                    block = np.column_stack([self._columns[at, j], alone, part.tau[at, j] / scale[j]])
                    stacked.append(block * scale[j] / max(spread[j], 1e-300))
                blocks.append(np.concatenate(stacked))
            errors = []
            for b, block in enumerate(blocks):
                others = np.concatenate(blocks[:b] + blocks[b + 1 :])
                x = least_squares(others[:, :-1], others[:, -1], DEPENDENT)
                errors.append(block[:, :-1] @ x - block[:, -1])
                squares[which, b] = sum_of_squares(errors[-1])
        time = float(correlation_time([x[:, np.newaxis] for x in errors])[0])
        return HypothesisTest(squares[0], squares[1], sum(map(len, errors)) / time)

    def _friction_power(self, j: int) -> float:
        """Mean power that friction takes from joint j, negative if it drives, in its standard deviations.

        It is for any masses and any effort that depends on the position.
        """
        friction = [k for k, name in enumerate(self._terms) if name in ("viscous", "coulomb")]
        if not friction:
            return 0.0
        rows, terms, position, weight = self._of_joint(j)
        others = np.column_stack([self._columns[rows, j], position, np.delete(terms, friction, axis=1)])
        A = project_out(others, terms[:, friction])
        A[:, column_lengths(A) < _ROUNDING * column_lengths(terms[:, friction])] = 0.0
        inverse = np.linalg.pinv(A.T @ A)
        power = np.mean(terms[:, friction] * self._part.qd[rows, j, np.newaxis], axis=0)
        taken, deviation = float(power @ inverse @ A.T @ self._part.tau[rows, j]), np.sqrt(power @ inverse @ power)
        return weight * taken / float(deviation) if deviation > 0 else 0.0

    def _costs(self, j: int, scales: Sequence[float]) -> list[float]:
        """Costs of joint j's efforts, if they were recorded at each of these scales, for a plausible robot.

        Its inertias are physically consistent, at a distance from the file that counts, friction does not drive it, and
        a spring may act in parallel to the motor.
        """
        _, equations, free = self._equations(j)
        upper = np.asarray(np.linalg.qr(equations, mode="r"))
        costs = []
        for scale in scales:
            R, tau = scale * upper[:, :-1], upper[:, -1]
            x, distance = self._consistent(R, tau, free)
            costs.append(0.5 * sum_of_squares(R @ x - tau) + distance)
        return costs

    def _equations(self, j: int) -> tuple[NDArray[np.bool_], Array, int]:
        """Rows of joint j, its weighted equations, columns and efforts, and the number of terms of any sign."""
        rows, terms, position, weight = self._of_joint(j)
        columns = [self._columns[rows, j], terms, position, self._part.tau[rows, j]]
        return rows, weight * np.column_stack(columns), position.shape[1]

    def _consistent(self, R: Array, tau: Array, free: int) -> tuple[Array, float]:
        """Parameters and terms of a robot as there can be for equations of a joint, and its distance from the file."""
        K, k = self._regressor.base.combinations, len(self._terms) + free
        lower = np.full(k, -np.inf)
        lower[[name != "offset" for name in self._terms] + free * [False]] = 0.0
        unknowns = Unknowns(self._bodies, K, lower, np.zeros(k), np.full(k, np.inf))
        solution = consistent_solution(unknowns, R, tau, 1.0, draft=True)
        return np.append(K @ solution.parameters, solution.terms), solution.distance

    def _sign(self, j: int) -> HypothesisTest:
        """Test of efforts of joint j with the opposite sign."""
        rows, equations, free = self._equations(j)
        blocks, squares = np.array_split(equations, _BLOCKS), np.zeros((2, _BLOCKS))
        for k, block in enumerate(blocks):
            upper = np.asarray(np.linalg.qr(np.concatenate(blocks[:k] + blocks[k + 1 :]), mode="r"))
            for which, scale in enumerate((1.0, -1.0)):
                x, _ = self._consistent(scale * upper[:, :-1], upper[:, -1], free)
                squares[which, k] = sum_of_squares(scale * block[:, :-1] @ x - block[:, -1])
        # Equations are weighted by the noise of independent samples.
        time = float(correlation_time([equations[:, -1:] - np.mean(equations[:, -1])])[0])
        return HypothesisTest(squares[0], squares[1], rows.sum() / time)

    def _of_joint(self, j: int) -> tuple[NDArray[np.bool_], Array, Array, float]:
        """Rows of joint j, its terms and Chebyshev polynomials of its position, and a weight: one over the noise.

        The noise is the residual of all parameters and a function of the position, with its correlation. The weight is
        0 if the residual does not determine it.
        """
        rows = self._part.used[:, j]
        terms, tau, q = (x[rows, j] for x in (self._bases, self._part.tau, self._part.q))
        low, high = np.min(q), np.max(q)
        position = chebvander((2 * q - low - high) / max(high - low, 1e-9), _DEGREE)[:, 1:]
        position = np.column_stack([position, self._payload[rows, j]])
        basis = column_basis(np.column_stack([terms, position, self._columns[rows, j]]))
        free = len(tau) - basis.shape[1]
        if free < _LEAST_FREE * len(tau):
            return rows, terms, position, 0.0
        noise = tau - basis @ (basis.T @ tau)
        size = max(float(np.sqrt(sum_of_squares(noise) / free)), _FINEST * float(np.std(tau)))
        return rows, terms, position, 1 / (size * float(np.sqrt(correlation_time([noise[:, np.newaxis]])[0])))

    def _factor(self, j: int) -> tuple[float, float]:
        """Factor of the file's prediction in the efforts of a joint, and its standard deviation."""
        rows = self._part.used[:, j]
        both = np.column_stack([self._by_file[rows, j], self._part.tau[rows, j]])
        x, y = project_out(self._others(rows, j), both).T
        if not sum_of_squares(x) > 1e-12 * sum_of_squares(both[:, 0]):
            return np.nan, np.inf
        factor = float(x @ y / sum_of_squares(x))
        residual = y - factor * x
        time = float(correlation_time([residual[:, np.newaxis]])[0])
        return factor, float(np.sqrt(sum_of_squares(residual) / sum_of_squares(x) * time / len(y)))


def held_out(joints: Sequence[tuple[NDArray[np.bool_], Array, Array, Array]]) -> HypothesisTest:
    """Test a hypothesis by the rows of joints, their columns, and efforts less predictions without and with it."""
    squares, independent = np.zeros((2, _BLOCKS)), 0.0
    for rows, columns, *rests in joints:
        time = 1.0
        for which, rest in enumerate(rests):
            errors = []
            for block in np.array_split(np.arange(rows.sum()), _BLOCKS):
                others = np.setdiff1d(np.arange(rows.sum()), block, assume_unique=True)
                factors = np.linalg.lstsq(columns[others], rest[others], rcond=None)[0]
                errors.append(rest[block] - columns[block] @ factors)
            squares[which] += np.array([sum_of_squares(x) for x in errors]) / max(sum_of_squares(rests[0]), 1e-300)
            time = max(time, float(correlation_time([np.concatenate(errors)[:, np.newaxis]])[0]))
        independent += rows.sum() / time
    return HypothesisTest(squares[0], squares[1], independent)


def lost_joints(regressor: Regressor, samples: Sequence[FilteredSamples], counts: Array) -> list[str]:
    """Lines on joints that move and have efforts, but none is usable; ``counts`` (n,) are the used efforts."""
    lines = []
    for j in np.flatnonzero(counts == 0).tolist():
        moves = any(np.ptp(part.q[:, j]) > REST for part in samples)
        known = sum(int(np.isfinite(part.measured[:, j]).sum()) for part in samples)
        if moves and known:
            missing = sum(len(part) for part in samples) - known
            why = "gaps between them are too long for the filter" if missing else "all are saturated or near reversals"
            lines.append(
                f"{regressor.robot.joint_names[j]} is lost: {known:,} of {known + missing:,} efforts were recorded, "
                f"but {why}; its friction and rotor stay as in the file"
            )
    return lines


def too_short(training: Sequence[Recording], validation: Sequence[Recording]) -> list[Contradiction]:
    """A contradiction if there is too little motion to judge a fit by."""
    duration = sum(recording.cleaned().duration for recording in training)
    if validation or duration >= _SHORTEST:
        return []
    return [Contradiction((), f"{duration:.2g} s of motion are too little to judge a fit by; record for longer")]


def unexplained(score: Score, payload: str | None) -> list[Contradiction]:
    """A contradiction if parameters, or a payload on the body of a joint, do not explain the efforts of most joints."""
    what, most = ("parameters of this robot explain", _NOISE) if payload is None else ("payload explains", _HALF)
    with np.errstate(invalid="ignore"):
        residual = score.relative
    if not np.isfinite(residual).any() or np.nanmedian(residual) < most:
        return []
    return [Contradiction((), f"no {what} the efforts of most joints; check topic, joints, units and signs")]


def _moments(regressor: Regressor) -> Array:
    """First moments (B,) of the bodies, kg m, shifted by their radii of gyration."""
    pi = regressor.dynamics.inertial_parameters.reshape(-1, PARAMETERS)
    mass = np.maximum(pi[:, 0], 1e-12)
    second = 0.5 * (pi[:, 4] + pi[:, 7] + pi[:, 9]) - np.sum(np.square(pi[:, 1:4]), axis=1) / mass
    return np.where(pi[:, 0] > 0, np.sqrt(np.maximum(second, 0.0) * mass), 0.0)

# SPDX-License-Identifier: Apache-2.0
"""Checks of recordings and fits: contradictions with the robot's file, and notes on unidentifiable parameters.

Measured efforts are regressed on the efforts that the file predicts and on terms of the joint, such as friction,
joint by joint. A contradiction beyond what wrong masses explain (sign, unit, joint order, lag) is a reason not to
trust the fit, if it predicts held-out blocks of the recording better, at a level of 1 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from ...arrays import Array
from ...correlation import correlation_time
from ...recursion import PARAMETERS
from ...robot import Robot
from ..recording import REST, IdentificationError, Recording
from ..sampling import column_lengths, least_squares
from .consistent import Unknowns, column_basis, consistent_solution, free_bodies
from .equations import DEPENDENT, TrainingData, others, predictions, training_data, weighted
from .filtering import Filter, FilteredSamples, filter_recording
from .regressor import Regressor
from .verification import Score

_SAMPLES = 2000  # samples that decide
_LEVEL, _BLOCKS = 0.01, 4  # level of tests, and blocks of a recording that are predicted
_PREDICTED = 0.05  # least share of a prediction's squares that other terms leave, for it to be judged
_BALANCED = 0.3  # prediction below this share of what shifted masses would add: nothing can be judged by it
_SURE, _MOST = 5.0, 5.0  # standard deviations beyond which a factor is known, and factors that wrong masses explain
_AGREES = 1.0  # standard deviations of the power of friction at which it agrees with the sign of the masses
_ASIDE = (
    2.0  # efforts of all joints are in another unit only if every factor is above this, or every one below its inverse
)
_BEYOND_LIMIT = 5.0  # ratio of the RMS of efforts to the limit that no wrong friction explains
_ONE_JOINT = 40.0  # factor of another unit of one joint alone: degrees and hundreds are, a missing tool is not
_MUCH_BETTER = 0.4  # share of the unexplained squares that is left by the right reading of a recording
_DEGREE = 5  # degree of the polynomial of the position that stands for any spring: gas springs are no cubics
_FINEST = 1e-6  # noise of efforts, relative to them, that is the least
_LEAST_FREE = 0.2  # share of a joint's samples beyond the number of parameters, for the rest to show noise
_ROUNDING = 1e-9  # below this share of its length, the residual of a column on others is rounding
_LONGEST_LAG, _LEAST_LAG = 0.5, 0.008  # largest lag that is looked for, and the least that is named, s
_WITHOUT_LAG = 0.8  # share of squares that is left without a lag
_REVERSAL = 0.05  # rate of an effort, relative to its RMS, below which a loop turns over
_TOO_LATE = 0.02  # lag that shifts masses and friction by more than the noise, s
_SHORTEST = 3.0  # duration of motion below which a fit that explains it may be of noise, s
_NOISE = 0.9  # unexplained share of the efforts of most joints above which the recording is not of this robot
_HALF = 0.5**0.5  # the same for a payload, where the file explains the rest: half of the squares
_NAMED = 6  # base parameters that are named


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
        return float(f_distribution.ppf(1 - _LEVEL, free, free))

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

    Nor does the file judge efforts that a ``payload`` on the body of this joint explains.
    """
    check = _Check(regressor, samples, file, payload)
    if not check.known.any():
        return []
    signs = check.signs_and_units()
    # A wrong sign everywhere may look like swapped joints, too.
    if any(len(sign.joints) == regressor.robot.n and "sign" in sign.words for sign in signs):
        return signs
    return check.swapped() or signs


class _Check:
    """Least squares of efforts on predictions of the file and terms of each joint."""

    def __init__(
        self, regressor: Regressor, samples: Sequence[FilteredSamples], file: Array, payload: str | None
    ) -> None:
        self._regressor, self._joint_names = regressor, regressor.robot.joint_names
        step = max(1, sum(map(len, samples)) // _SAMPLES)
        self._part = part = FilteredSamples.joined([x[::step] for x in samples])
        # Gravity's part is the same for all terms but the joint's.
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
        x, *shifted = _project_out(
            self._others(rows, j), np.column_stack([self._by_file[rows, j], self._shifted[rows, j]])
        ).T
        rest = _project_out(self._bases[rows, j], self._by_file[rows, j])
        return _square(x) > max(_PREDICTED * _square(rest), _BALANCED**2 * _square(np.array(shifted)))

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
                if np.max(squares) < _MUCH_BETTER * least and (test := self._swap(pairs, what, swapped)).holds:
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
        return _held_out(joints)

    def _squares(self, j: int, predicted: Array, measured: int, terms: int) -> float:
        """Sum of squares that predictions (N, n) of joint j and bases of ``terms`` leave of efforts ``measured``."""
        rest = self._part.tau[:, measured] - predicted[:, j]
        rows = self._part.used[:, j]
        return _square(_project_out(self._others(rows, terms), rest[rows]))

    def signs_and_units(self) -> list[Contradiction]:
        """Factors of the efforts that are negative, or far from one."""
        factors = [self._factor(j) if judged else (np.nan, np.inf) for j, judged in enumerate(self.judged)]
        factor, deviation = np.array(factors).T
        with np.errstate(invalid="ignore"):
            size, noise = np.abs(factor), _SURE * deviation
            known = size > noise
            off_scale = known & ((size - noise > _MOST) | (size + noise < 1 / _MOST))
            # A wrong centre of mass explains more at a joint that hardly feels gravity than at all of them.
            if off_scale.sum() <= self.judged.sum() / 2:
                off_scale = known & ((size - noise > _ONE_JOINT) | (size + noise < 1 / _ONE_JOINT))
                for j in np.flatnonzero(size > _MOST).tolist():
                    as_recorded, converted = self._costs(j, (1.0, size[j]))
                    off_scale[j] |= converted < _MUCH_BETTER * as_recorded
        return self._signs(known & (factor < 0)) + self._units(size, off_scale, known) + self._beyond_limits(known)

    def _signs(self, doubtful: NDArray[np.bool_]) -> list[Contradiction]:
        """Efforts of the opposite sign, if efforts of any joint (n,) look like it, or its friction drives it.

        Masses that are wrong can turn the effort of a joint that hardly feels gravity, but no friction drives: where
        the friction of any joint shows, the friction of a joint with the opposite sign must drive it.
        """
        joints = np.flatnonzero(self.known).tolist()
        names, power = self._joint_names, np.zeros(len(self.known))
        power[joints] = [self._friction_power(j) for j in joints]
        if not doubtful.any() and not np.any(power < -_SURE):
            return []
        costs = np.ones((len(names), 2))
        costs[joints] = [self._costs(j, (1.0, -1.0)) for j in joints]
        negative, positive = (costs[:, 1 - k] < _MUCH_BETTER * costs[:, k] for k in (0, 1))
        if np.any(np.abs(power) > _SURE):
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
        # Of most joints, and of all others in the same direction: currents have another factor at each joint.
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
        return _held_out(
            [
                (used[:, j], self._others(used[:, j], j), *((tau - x * file)[used[:, j], j] for x in (1.0, size[j])))
                for j in np.flatnonzero(which).tolist()
            ]
        )

    def _beyond_limits(self, predicted: NDArray[np.bool_]) -> list[Contradiction]:
        """Efforts far beyond the limits of joints whose efforts the file does not predict, such as balanced wrists.

        Limits of a file are placeholders where efforts of ``predicted`` joints (n,) are beyond them, too.
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
                squares[which, b] = _square(errors[-1])
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
        A = _project_out(others, terms[:, friction])
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
            costs.append(0.5 * _square(R @ x - tau) + distance)
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
                squares[which, k] = _square(scale * block[:, :-1] @ x - block[:, -1])
        # Equations are weighted by the noise of independent samples.
        time = float(correlation_time([equations[:, -1:] - np.mean(equations[:, -1])])[0])
        return HypothesisTest(squares[0], squares[1], rows.sum() / time)

    def _of_joint(self, j: int) -> tuple[NDArray[np.bool_], Array, Array, float]:
        """Rows of joint j, its terms and Chebyshev polynomials of its position, and a weight: one over the noise.

        The noise is what all parameters and a function of the position leave, with its correlation. The weight is 0 if
        they leave nothing to tell it by.
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
        size = max(float(np.sqrt(_square(noise) / free)), _FINEST * float(np.std(tau)))
        return rows, terms, position, 1 / (size * float(np.sqrt(correlation_time([noise[:, np.newaxis]])[0])))

    def _factor(self, j: int) -> tuple[float, float]:
        """Factor of the file's prediction in the efforts of a joint, and its standard deviation."""
        rows = self._part.used[:, j]
        both = np.column_stack([self._by_file[rows, j], self._part.tau[rows, j]])
        x, y = _project_out(self._others(rows, j), both).T
        if not _square(x) > 1e-12 * _square(both[:, 0]):
            return np.nan, np.inf
        factor = float(x @ y / _square(x))
        residual = y - factor * x
        time = float(correlation_time([residual[:, np.newaxis]])[0])
        return factor, float(np.sqrt(_square(residual) / _square(x) * time / len(y)))


def _held_out(joints: Sequence[tuple[NDArray[np.bool_], Array, Array, Array]]) -> HypothesisTest:
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
            squares[which] += np.array([_square(x) for x in errors]) / max(_square(rests[0]), 1e-300)
            time = max(time, float(correlation_time([np.concatenate(errors)[:, np.newaxis]])[0]))
        independent += rows.sum() / time
    return HypothesisTest(squares[0], squares[1], independent)


def lost_joints(regressor: Regressor, samples: Sequence[FilteredSamples], counts: Array) -> list[str]:
    """Lines on joints that move and have efforts, but no usable ones; ``counts`` (n,) are the used ones."""
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


def delay_test(data: TrainingData, late: float) -> HypothesisTest:
    """Test of efforts that are ``late``, s, by least squares of all joints with and without that delay."""
    moved = [recording.without_delay(late) for recording in data.recordings]
    squares, scale, independent = np.zeros((2, len(data.systems))), np.zeros(data.regressor.robot.n), 0.0
    for which, having in enumerate((data, training_data(data.regressor, data.file, moved, data.filter))):
        whole, count = weighted(having.system, data.file), min(len(data.systems), len(having.systems))
        scale = np.nan_to_num(1 / np.square(whole.sigma)) if not which else scale
        for k in range(count):
            x = weighted(others(having.systems, k), data.file).x
            squares[which, k] = scale @ (having.systems[k].squares(x) / np.maximum(having.systems[k].counts, 1))
        errors = [predictions(data.regressor, part, whole.x) - part.tau for part in having.samples]
        kept = [np.where(part.used, x, 0.0) for part, x in zip(having.samples, errors, strict=True)]
        independent = float(np.sum(having.system.counts / correlation_time(kept)))
    return HypothesisTest(squares[0, :count], squares[1, :count], independent)


def spring_loops(regressor: Regressor, recordings: Sequence[Recording], using: Filter, late: float) -> list[str]:
    """A note on hysteresis that explains efforts as well as a delay of ``late``, s; none if the delay does it better.

    Efforts of springs by their deflections lack the loop between loading and unloading, as if they were late by a part
    of each motion, or early. The loop is a step with the sign of the rate of the efforts.
    """
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    samples = [
        x for motion in excerpts for x in filter_recording(motion, regressor.terms, replace(using, decimate=False))
    ]
    part = max(samples, key=len)
    step = round(late / float(part.t[1] - part.t[0]))
    rows = np.arange(abs(step), len(part) - abs(step))[:: max(1, len(part) // _SAMPLES)]
    Y = regressor.inertial_columns(part.q[rows], part.qd[rows], part.qdd[rows])
    delayed, looped, loops = 0.0, 0.0, list[str]()
    for j, name in enumerate(regressor.robot.joint_names):
        rate = np.gradient(np.nan_to_num(part.tau[:, j]))
        loop = np.tanh(rate / max(_REVERSAL * float(np.sqrt(np.mean(rate**2))), 1e-300))
        used = part.used[rows, j] & np.isfinite(part.tau[rows, j]) & np.isfinite(part.tau[rows + step, j])
        at = rows[used]
        A = column_basis(np.column_stack([Y[used, j], *(part.bases[term][at, j] for term in regressor.terms)]))
        if len(at) < 4 * A.shape[1]:
            continue
        now, then, h = _project_out(A, np.column_stack([part.tau[at, j], part.tau[at + step, j], loop[at]])).T
        half = float(h @ now / max(_square(h), 1e-300))
        spread = max(float(np.var(part.tau[at, j])) * len(at), 1e-300)
        delayed, looped = delayed + _square(then) / spread, looped + _square(now - half * h) / spread
        if _square(now - half * h) < _WITHOUT_LAG * _square(now):
            loops.append(f"{name} {2 * abs(half) / float(np.ptp(part.tau[at, j])):.1%}")
    if not loops or looped > delayed:
        return []
    return [
        f"hysteresis of springs, a loop between loading and unloading, explains the efforts better than a delay of "
        f"{1e3 * late:.0f} ms, in shares of the range of efforts: {', '.join(loops)}; robot files have none"
    ]


def bending_links(data: TrainingData, x: Array) -> list[str]:
    """A note on links that bend: efforts have -1/w² times the second derivative of the efforts predicted by x."""
    regressor, bending = data.regressor, list[str]()
    samples = [part for part in data.samples if len(part) > 2]
    step = max(1, sum(map(len, samples)) // _SAMPLES)
    rigid = [regressor.inertial_efforts(part.q, part.qd, part.qdd, x) for part in samples]
    for _ in range(2):
        rigid = [np.gradient(y, part.t, axis=0) for y, part in zip(rigid, samples, strict=True)]
    part, bends = FilteredSamples.joined(samples)[::step], np.concatenate(rigid)[::step]
    Y = regressor.inertial_columns(part.q, part.qd, part.qdd)
    for j, name in enumerate(regressor.robot.joint_names):
        rows = part.used[:, j]
        A = np.column_stack([Y[rows, j], *(part.bases[term][rows, j] for term in regressor.terms)])
        if rows.sum() < 4 * A.shape[1]:
            continue
        tau = part.tau[rows, j]
        bend, rest = _project_out(A, np.column_stack([bends[rows, j], tau])).T
        factor = float(bend @ rest / max(_square(bend), 1e-300))
        test = _held_out([(rows, A, tau, tau - factor * bends[rows, j])])
        if factor < 0 and test.holds and test.ratio > 1 / _WITHOUT_LAG:
            bending.append(f"{name}, at about {1 / (2 * np.pi * np.sqrt(-factor)):.2g} Hz ({test})")
    return [f"links, or gears, bend behind {'; '.join(bending)}: robot files have rigid links"] if bending else []


def lag_notes(late: float, left: float, test: HypothesisTest | None = None) -> tuple[list[Contradiction], list[str]]:
    """A contradiction or a note on efforts delayed by ``late``, s; ``left`` as from :func:`lag`."""
    if not late or not (test is None or test.holds):
        return [], []
    when = "late" if late > 0 else "early"
    words = f"efforts are {when} by {1e3 * abs(late):.0f} ms; --effort-delay {late:.2g} moves them"
    words += f" ({test})" if test is not None else ""
    return ([Contradiction((), words)], []) if abs(late) > _TOO_LATE and left < _MUCH_BETTER else ([], [words])


def unexplained(score: Score, payload: str | None) -> list[Contradiction]:
    """A contradiction if parameters, or a payload on the body of a joint, do not explain the efforts of most joints."""
    what, most = ("parameters of this robot explain", _NOISE) if payload is None else ("payload explains", _HALF)
    with np.errstate(invalid="ignore"):
        residual = score.relative
    if not np.isfinite(residual).any() or np.nanmedian(residual) < most:
        return []
    return [Contradiction((), f"no {what} the efforts of most joints; check topic, joints, units and signs")]


def lag(regressor: Regressor, recordings: Sequence[Recording], using: Filter) -> tuple[float, float]:
    """Delay of the efforts, s, and the fraction of squared residuals left when it is removed; 0 and 1 if negligible.

    The delay of all efforts with which least squares explain them best, if that is much better than without, beyond the
    noise of as many independent samples as the filter leaves.
    """
    nothing, whole = (0.0, 1.0), replace(using, decimate=False)
    excerpts = [part for recording in recordings for part in recording.excerpts()]
    samples = [part for motion in excerpts for part in filter_recording(motion, regressor.terms, whole)]
    part = max(samples, key=len, default=None)
    if part is None or len(part) < 3:
        return nothing
    period = float(part.t[1] - part.t[0])
    reach = min(round(_LONGEST_LAG / period), len(part) // 6)
    rows = np.arange(reach, len(part) - reach)
    if not len(rows) or reach < 2:
        return nothing
    stride = max(1, len(rows) // _SAMPLES)
    rows = rows[::stride]
    independent = min(1.0, 2 * using.cutoff * period * stride)  # filtered samples are not
    Y = regressor.inertial_columns(part.q[rows], part.qd[rows], part.qdd[rows])
    steps = np.unique(np.linspace(-reach, reach, 2 * min(reach, 100) + 1).round().astype(int))
    now, squares, likelihood = int(np.argmin(np.abs(steps))), np.zeros(len(steps)), np.zeros(len(steps))
    for j in range(regressor.robot.n):
        used = part.used[rows, j] & np.all([np.isfinite(part.tau[rows + step, j]) for step in steps], axis=0)
        at = rows[used]
        b = np.column_stack([part.tau[at + step, j] for step in steps])
        basis = column_basis(np.column_stack([Y[used, j], *(part.bases[name][at, j] for name in regressor.terms)]))
        free = independent * len(at) - basis.shape[1]
        if free <= 0:
            continue
        rest = np.sum(np.square(b - basis @ (basis.T @ b)), axis=0)
        squares += rest / np.sum(np.square(b - b.mean(axis=0)), axis=0).mean()
        likelihood += free * np.log(np.maximum(rest, 1e-300) / max(rest[now], 1e-300))
    best = int(np.argmin(squares))
    better = squares[best] <= _WITHOUT_LAG * squares[now] and likelihood[best] < -(_SURE**2)
    if not 0 < best < len(steps) - 1 or not better:
        return nothing
    left, middle, right = squares[best - 1 : best + 2]
    shift = 0.5 * (left - right) / max(left - 2 * middle + right, 1e-300)
    late = float(period * (steps[best] + shift * (steps[best + 1] - steps[best])))
    return (late, float(squares[best] / squares[now])) if abs(late) > _LEAST_LAG else nothing


def _moments(regressor: Regressor) -> Array:
    """First moments (B,) of the bodies, kg m, shifted by their radii of gyration."""
    pi = regressor.dynamics.inertial_parameters.reshape(-1, PARAMETERS)
    mass = np.maximum(pi[:, 0], 1e-12)
    second = 0.5 * (pi[:, 4] + pi[:, 7] + pi[:, 9]) - np.sum(np.square(pi[:, 1:4]), axis=1) / mass
    return np.where(pi[:, 0] > 0, np.sqrt(np.maximum(second, 0.0) * mass), 0.0)


def _project_out(known: Array, columns: Array) -> Array:
    """Columns (N,) or (N, k) less their projections on others (N, m)."""
    basis = column_basis(known)
    return np.asarray(columns - basis @ (basis.T @ columns))


def _square(x: Array) -> float:
    return float(np.sum(np.square(x)))


def recording_notes(robot: Robot, training: Sequence[Recording], validation: Sequence[Recording]) -> list[str]:
    """Notes on recordings; raises IdentificationError for useless ones, or another robot's.

    Training recordings alone decide which parameters are identifiable.
    """
    notes, names = [], robot.joint_names
    for k, recording in enumerate((*training, *validation)):
        if recording.joint_names != names:
            raise IdentificationError(
                f"{recording.name}: has the joints {', '.join(recording.joint_names)}, the robot {', '.join(names)}"
            )
        clean = recording.cleaned()
        lines, motions = list(clean.notes), sum(1 for _ in clean.motions())
        if motions > recording.pieces:
            separate = motions - recording.pieces + 1  # held-out blocks separate the others
            lines.append(f"pauses, lost samples or jumps of the clock separate {separate} motions")
        still, silent = (np.asarray(x) for x in (np.ptp(clean.q, axis=0) <= REST, np.isnan(clean.tau).all(axis=0)))
        if still.all():
            where = "" if k < len(training) else " in the validation data"
            raise IdentificationError(
                f"{recording.name}: no joint moves{where}; record a motion, as of eom_dynamics excite"
            )
        if silent.all():
            raise IdentificationError(
                f"{recording.name}: efforts are missing or the same throughout; record them in JointState.effort, "
                "or in columns effort.NAME of a table, or name their topic, --effort-topic"
            )
        if k < len(training):
            words = "does not move; its friction and the inertias that only its motion excites are not identifiable"
            lines += [f"{name} {words}" for name in compress(names, still)]
            words = "has no effort, or the same throughout; its equations are not used"
        else:
            words = "has no effort in the validation data, or the same throughout; it is not validated"
        lines += [f"{name} {words}" for name in compress(names, silent)]
        notes += [f"{recording.name}: {line}" for line in lines]
    return list(dict.fromkeys(notes))


def base_parameters_without_data(regressor: Regressor, deviations: Array) -> list[str]:
    """Note on base parameters with infinite standard deviations (P,)."""
    infinite = list(compress(regressor.names, ~np.isfinite(deviations[: regressor.inertial])))
    if not infinite:
        return []
    listed = f"{'; '.join(infinite[:_NAMED])}{' …' if len(infinite) > _NAMED else ''}"
    share = f"{len(infinite)} of {regressor.inertial} base parameters"
    return [f"{share} are not identifiable and stay close to the file: {listed}"]


def doubtful_terms(
    robot: Robot, terms: Mapping[str, Array], deviations: Mapping[str, Array], of_file: Mapping[str, NDArray[np.bool_]]
) -> list[str]:
    """Notes on terms (n,) by name that are not identifiable or as small as their standard deviation."""
    lines = []
    for name, values in terms.items():
        unknown = np.isinf(deviations[name])
        weak = ~unknown & (np.abs(values) < deviations[name])
        for which, what in (
            (unknown & of_file[name], "not identifiable from these data: as in the file"),
            (unknown & ~of_file[name], "not identifiable from these data but with inertias or other terms together"),
            (weak, "within one standard deviation of zero"),
        ):
            if names := list(compress(robot.joint_names, which)):
                one = len(names) == 1
                plural = "s" if name == "offset" and not one else ""
                lines.append(f"{name}{plural} of {', '.join(names)} {'is' if one else 'are'} {what}")
    return lines

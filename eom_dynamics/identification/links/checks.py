# SPDX-License-Identifier: Apache-2.0
"""Checks of recordings and fits: contradictions with the robot's file, and notes on what is not identifiable.

Measured efforts are regressed on the efforts that the file predicts, joint by joint, beside terms of the joint's own,
such as friction. A contradiction beyond what wrong masses explain (sign, unit, joint order, lag) is a reason not to
trust the fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

from ...arrays import Array
from ...robot import Robot
from ..recording import IdentificationError, Recording
from ..sampling import correlation_time
from .consistent import Unknowns, column_basis, free_bodies, solve
from .filtering import REST, Filter, FilteredSamples, filter_recording
from .regressor import Regressor
from .verification import Score

# Samples that decide.
_SAMPLES = 2000

# Standard deviations of a factor beyond which it is known, and the range of factors that wrong masses explain.
_SURE, _MOST = 5.0, 5.0

# Factor beyond which the unit of one joint alone is another one: degrees and hundreds are, a missing tool is not.
_ONE_JOINT = 40.0

# Share of the unexplained squares that is left by another reading of the recording, below which it is the right one.
_MUCH_BETTER = 0.4

# Degree of the polynomial of the position that stands for any spring: the force of a gas spring is not a cubic.
_DEGREE = 5

# Noise of efforts, relative to them, that is the least.
_FINEST = 1e-6

# Largest lag that is looked for, s; the least that is named, s; and the share of squares that is left without it.
_LONGEST_LAG, _LEAST_LAG, _WITHOUT_LAG = 0.2, 0.008, 0.8

# s: a lag that shifts masses and friction by more than the noise.
_TOO_LATE = 0.02

# s of motion, below which a fit that explains it may be of noise.
_SHORTEST = 3.0

# Share of the efforts of most joints that any parameters leave unexplained, if they are not of this robot.
_NOISE = 0.9


@dataclass(frozen=True)
class Contradiction:
    """Contradiction between a recording and the robot's file: whose efforts are wrong, in what way, and what to do."""

    joints: tuple[str, ...]
    words: str


def contradictions(regressor: Regressor, samples: Sequence[FilteredSamples], file: Array) -> list[Contradiction]:
    """Contradictions between samples and the file's parameters x (P,), without those that others explain."""
    check = _Check(regressor, samples, file)
    if not check.known.any():
        return []
    signs = check.signs_and_units()
    # A wrong sign everywhere may look like swapped joints, too.
    if any(len(each.joints) == regressor.robot.n and "sign" in each.words for each in signs):
        return signs
    return check.swapped() or signs


class _Check:
    """Least squares of efforts on predictions of the file and terms of each joint."""

    def __init__(self, regressor: Regressor, samples: Sequence[FilteredSamples], file: Array) -> None:
        self._regressor, self._robot = regressor, regressor.robot
        step = max(1, sum(map(len, samples)) // _SAMPLES)
        parts = [part[::step] for part in samples]
        self._q, self._qd, self._qdd, self._tau = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("q", "qd", "qdd", "tau")
        )
        self._used = np.concatenate([part.used for part in parts])
        # Gravity's part is the same for all terms that are not of the joint's own.
        names = self._names = [
            name for name in ("viscous", "coulomb", "rotor_inertia", "offset") if name in regressor.terms
        ]
        own = [np.concatenate([part.bases[name] for part in parts]) for name in names]
        self._own = np.stack(own, axis=-1) if own else np.zeros((*self._tau.shape, 0))
        inertial = file.copy()
        inertial[regressor.inertial :] = 0.0
        self._inertial = inertial
        self._bodies = free_bodies(regressor.dynamics.inertial_parameters)
        self._columns = regressor.inertial_columns(self._q, self._qd, self._qdd)
        self._by_file = self._predicted(self._q, self._qd, self._qdd)
        self.known = self._used.sum(axis=0) > 4 * (1 + self._own.shape[-1])

    def _predicted(self, q: Array, qd: Array, qdd: Array) -> Array:
        return self._regressor.inertial_efforts(q, qd, qdd, self._inertial)

    def _squares(self, j: int, predicted: Array, tau: Array, own: Array | None = None) -> float:
        """Sum of squares of joint j's efforts (N,) that a prediction and terms of its own leave."""
        rows = self._used[:, j]
        A = (self._own[:, j] if own is None else own)[rows]
        rest = (tau - predicted)[rows]
        return float(np.sum(np.square(rest - A @ np.linalg.lstsq(A, rest, rcond=None)[0]))) if A.size else _square(rest)

    def swapped(self) -> list[Contradiction]:
        """Pairs of joints whose efforts, or all of whose columns, explain each other's."""
        names = self._robot.joint_names
        for j, k in combinations(np.flatnonzero(self.known).tolist(), 2):
            before = [self._squares(i, self._by_file[:, i], self._tau[:, i]) for i in (j, k)]
            efforts = [
                self._squares(j, self._by_file[:, j], self._tau[:, k]),
                self._squares(k, self._by_file[:, k], self._tau[:, j]),
            ]
            order = np.arange(len(names))
            order[[j, k]] = k, j
            at = self._predicted(*(x[:, order] for x in (self._q, self._qd, self._qdd)))
            both = [
                self._squares(j, at[:, j], self._tau[:, k], self._own[:, k]),
                self._squares(k, at[:, k], self._tau[:, j], self._own[:, j]),
            ]
            for what, squares in (("efforts of ", efforts), ("", both)):
                if all(s < _MUCH_BETTER * b for s, b in zip(squares, reversed(before), strict=True)) and all(
                    s < _MUCH_BETTER * b for s, b in zip(squares, before, strict=True)
                ):
                    words = f"{what}{names[j]} and {names[k]} look swapped; check the order of joints in the recording"
                    return [Contradiction((names[j], names[k]), words)]
        return []

    def signs_and_units(self) -> list[Contradiction]:
        """Factors of the efforts that are negative, or far from one."""
        n = self._robot.n
        factor, deviation = np.full(n, np.nan), np.full(n, np.inf)
        for j in np.flatnonzero(self.known).tolist():
            factor[j], deviation[j] = self.factor(j)
        with np.errstate(invalid="ignore"):
            known = np.abs(factor) > _SURE * deviation
            far = known & _beyond(factor, deviation, _MOST)
            # A wrong centre of mass explains more at a joint that hardly feels gravity than at all of them.
            if far.sum() <= known.sum() / 2:
                far = known & _beyond(factor, deviation, _ONE_JOINT)
                for j in np.flatnonzero(np.abs(factor) > _MOST).tolist():
                    as_recorded, converted = self._costs(j, (1.0, abs(factor[j])))
                    far[j] |= converted < _MUCH_BETTER * as_recorded
        found = self._signs(known & (factor < 0))
        if far.any():
            found.append(self._units(factor, far, known))
        return found

    def _signs(self, doubtful: NDArray[np.bool_]) -> list[Contradiction]:
        """Efforts of the opposite sign, if those of any joint (n,) look like it, or its friction drives it."""
        joints = np.flatnonzero(self.known).tolist()
        if not doubtful.any() and not any(self._friction_drives(j) for j in joints):
            return []
        names = self._robot.joint_names
        costs = np.ones((len(names), 2))
        costs[joints] = [self._costs(j, (1.0, -1.0)) for j in joints]
        negative, positive = (costs[:, 1 - k] < _MUCH_BETTER * costs[:, k] for k in (0, 1))
        if not negative.any():
            return []
        wrong = names if not positive.any() else tuple(compress(names, negative))
        option = "--effort-scale -1" if wrong == names else " ".join(f"--effort-scale {name}=-1" for name in wrong)
        words = f"efforts of {', '.join(wrong)} have the opposite sign of the file's prediction: {option} turns them"
        return [Contradiction(wrong, words)]

    def _units(self, factor: Array, far: Array, sure: Array) -> Contradiction:
        size = np.abs(factor)
        everywhere = np.all(far[sure])
        names = self._robot.joint_names if everywhere else tuple(compress(self._robot.joint_names, far))
        typical = float(np.exp(np.mean(np.log(size[far]))))
        alike = bool(np.all(np.abs(np.log(size[far] / typical)) < np.log(2.0)))
        listed = ", ".join(
            f"{n} {x:.2g}" for n, x in zip(compress(self._robot.joint_names, far), size[far], strict=True)
        )
        if alike and everywhere:
            remedy = f"--effort-scale {1 / float(f'{typical:.0e}'):g} if they are in another unit"
        else:
            remedy = "--effort-scale JOINT=X converts them"
        if typical < 1:
            remedy += ", with X of torque constant times gear ratio if they are motor currents, A"
        words = f"efforts are another unit's, by factors of the file's prediction of {listed}: {remedy}"
        return Contradiction(names, words)

    def _friction_drives(self, j: int) -> bool:
        """Whether friction surely drives joint j, for any masses and any effort that depends on the position."""
        friction = [k for k, name in enumerate(self._names) if name in ("viscous", "coulomb")]
        if not friction:
            return False
        rows, own, position, weight = self._of_joint(j)
        others = np.column_stack([self._columns[rows, j], position, np.delete(own, friction, axis=1)])
        A = _without(others, own[:, friction])
        inverse = np.linalg.pinv(A.T @ A)
        power = np.mean(own[:, friction] * self._qd[rows, j, np.newaxis], axis=0)
        taken = float(power @ inverse @ A.T @ self._tau[rows, j])
        return taken < -_SURE * np.sqrt(float(power @ inverse @ power)) / weight

    def _costs(self, j: int, scales: Sequence[float]) -> list[float]:
        """Costs of joint j's efforts, if they were recorded at each of these scales, for a robot as there can be.

        That is one of physically consistent inertias, with the distance from those of the file, friction that does not
        drive it, and a spring beside the motor.
        """
        rows, own, position, weight = self._of_joint(j)
        equations = weight * np.column_stack([self._columns[rows, j], own, position, self._tau[rows, j]])
        upper = np.asarray(np.linalg.qr(equations, mode="r"))
        K, k = self._regressor.base.combinations, own.shape[1] + position.shape[1]
        lower = np.full(k, -np.inf)
        lower[[name != "offset" for name in self._names] + position.shape[1] * [False]] = 0.0
        unknowns = Unknowns(self._bodies, K, lower, np.zeros(k), np.full(k, np.inf))
        costs = []
        for scale in scales:
            R, tau = scale * upper[:, :-1], upper[:, -1]
            found = solve(unknowns, R, tau, 1.0, draft=True)
            left = _square(R @ np.append(K @ found.parameters, found.terms) - tau)
            pairs = zip(self._bodies.priors, found.relative, strict=True)
            costs.append(0.5 * left + sum(prior.of_relative(X) for prior, X in pairs))
        return costs

    def _of_joint(self, j: int) -> tuple[NDArray[np.bool_], Array, Array, float]:
        """Rows of joint j, its terms and Chebyshev polynomials of its position, and a weight: one over the noise.

        The noise is what all parameters and a function of the position leave, with its correlation.
        """
        rows = self._used[:, j]
        own, tau = self._own[rows, j], self._tau[rows, j]
        low, high = np.min(self._q[rows, j]), np.max(self._q[rows, j])
        position = chebvander((2 * self._q[rows, j] - low - high) / max(high - low, 1e-9), _DEGREE)[:, 1:]
        noise = _without(np.column_stack([own, position, self._columns[rows, j]]), tau[:, np.newaxis])
        size = max(float(np.std(noise)), _FINEST * float(np.std(tau)))
        return rows, own, position, 1 / (size * float(np.sqrt(correlation_time([noise])[0])))

    def factor(self, j: int) -> tuple[float, float]:
        """Factor of the file's prediction in the efforts of a joint, and its standard deviation."""
        rows = self._used[:, j]
        own, tau = self._own[rows, j], self._tau[rows, j]
        x = _without(own, self._by_file[rows, j][:, np.newaxis])[:, 0]
        y = _without(own, tau[:, np.newaxis])[:, 0]
        if not _square(x) > 1e-12 * _square(self._by_file[rows, j]):
            return np.nan, np.inf
        factor = float(x @ y / _square(x))
        residual = y - factor * x
        time = float(correlation_time([residual[:, np.newaxis]])[0])
        return factor, float(np.sqrt(_square(residual) / _square(x) * time / len(y)))


def too_short(training: Sequence[Recording], validation: Sequence[Recording]) -> list[Contradiction]:
    """A contradiction if there is too little motion to judge a fit by."""
    duration = sum(each.cleaned().duration for each in training)
    if validation or duration >= _SHORTEST:
        return []
    return [Contradiction((), f"{duration:.2g} s of motion are too little to judge a fit by; record for longer")]


def lag_notes(late: float, left: float) -> tuple[list[Contradiction], list[str]]:
    """A contradiction or a note on efforts delayed by ``late``, s; ``left`` as from :func:`lag`."""
    if not late:
        return [], []
    when = "late" if late > 0 else "early"
    words = f"efforts are {when} by {1e3 * abs(late):.0f} ms; --effort-delay {late:.2g} moves them"
    return ([Contradiction((), words)], []) if abs(late) > _TOO_LATE and left < _MUCH_BETTER else ([], [words])


def unexplained(score: Score) -> list[Contradiction]:
    """A contradiction if nothing explains the efforts of most joints."""
    with np.errstate(invalid="ignore"):
        left = score.of_fit / score.spread
    if not np.isfinite(left).any() or np.nanmedian(left) < _NOISE:
        return []
    return [Contradiction((), "no parameters of this robot explain the efforts of most joints; check topic and joints")]


def lag(regressor: Regressor, recordings: Sequence[Recording], using: Filter) -> tuple[float, float]:
    """Delay of the efforts, s, and the fraction of squared residuals left when it is removed; 0 and 1 if negligible.

    The delay of all efforts with which least squares explain them best, if that is much better than without.
    """
    whole = replace(using, decimate=False)
    excerpts = [part for each in recordings for part in each.excerpts()]
    samples = [part for each in excerpts for part in filter_recording(each, regressor.terms, whole)]
    part = max(samples, key=len, default=None)
    if part is None or len(part) < 3:
        return 0.0, 1.0
    period = float(part.t[1] - part.t[0])
    reach = round(_LONGEST_LAG / period)
    rows = np.arange(reach, len(part) - reach)
    if not len(rows) or reach < 2:
        return 0.0, 1.0
    rows = rows[:: max(1, len(rows) // _SAMPLES)]
    Y = regressor.inertial_columns(part.q[rows], part.qd[rows], part.qdd[rows])
    steps = np.unique(np.linspace(-reach, reach, 2 * min(reach, 40) + 1).round().astype(int))
    squares = np.zeros(len(steps))
    for j in range(regressor.robot.n):
        used = part.used[rows, j]
        if used.sum() < 2 * Y.shape[-1]:
            continue
        A = np.column_stack([Y[used, j], *(part.bases[name][rows[used], j] for name in regressor.terms)])
        b = np.column_stack([part.tau[rows[used] + step, j] for step in steps])
        if np.isnan(b).any():
            continue
        rest = _without(A, b)
        squares += np.sum(np.square(rest), axis=0) / np.sum(np.square(b - b.mean(axis=0)), axis=0).mean()
    best, now = int(np.argmin(squares)), int(np.argmin(np.abs(steps)))
    if not 0 < best < len(steps) - 1 or squares[best] > _WITHOUT_LAG * squares[now]:
        return 0.0, 1.0
    left, middle, right = squares[best - 1 : best + 2]
    shift = 0.5 * (left - right) / max(left - 2 * middle + right, 1e-300)
    late = period * (steps[best] + shift * (steps[best + 1] - steps[best]))
    return (float(late), float(squares[best] / squares[now])) if abs(late) > _LEAST_LAG else (0.0, 1.0)


def _without(own: Array, columns: Array) -> Array:
    """Columns (N, k) less their projections on others (N, m)."""
    basis = column_basis(own)
    return np.asarray(columns - basis @ (basis.T @ columns))


def _beyond(factor: Array, deviation: Array, most: float) -> NDArray[np.bool_]:
    """Which factors (n,) are surely larger than the most, or smaller than its inverse."""
    size = np.abs(factor)
    return np.asarray((size - _SURE * deviation > most) | (size + _SURE * deviation < 1 / most))


def _square(x: Array) -> float:
    return float(np.sum(np.square(x)))


# Base parameters that are named.
_NAMED = 6


def recording_notes(robot: Robot, recordings: Iterable[Recording]) -> list[str]:
    """Notes on recordings; raises IdentificationError for useless ones, or another robot's."""
    notes = [f"{recording.name}: {note}" for recording in recordings for note in _notes(robot, recording)]
    return list(dict.fromkeys(notes))


def _notes(robot: Robot, recording: Recording) -> list[str]:
    if recording.joint_names != robot.joint_names:
        raise IdentificationError(
            f"{recording.name}: has the joints {', '.join(recording.joint_names)}, the robot "
            f"{', '.join(robot.joint_names)}"
        )
    clean = recording.cleaned()
    notes = list(clean.notes)
    motions = list(clean.motions())
    if len(motions) > recording.pieces:
        notes.append(f"pauses or jumps of the clock separate {len(motions)} motions")
    still = np.ptp(clean.q, axis=0) <= REST
    silent = np.asarray(np.isnan(clean.tau).all(axis=0))
    if still.all():
        raise IdentificationError(f"{recording.name}: no joint moves")
    if silent.all():
        raise IdentificationError(
            f"{recording.name}: efforts are missing or the same throughout; record them in JointState.effort, "
            "or in columns effort.NAME of a table, or name their topic, --effort-topic"
        )
    notes += [
        f"{name} does not move; its friction and the inertias that only its motion excites are not identifiable"
        for name in compress(robot.joint_names, still)
    ]
    notes += [
        f"{name} has no effort, or the same throughout; its equations are not used"
        for name in compress(robot.joint_names, silent)
    ]
    return notes


def base_parameters_without_data(regressor: Regressor, deviations: Array) -> list[str]:
    """Note on base parameters with infinite standard deviations (P,)."""
    names = regressor.names[: regressor.inertial]
    infinite = [name for name, s in zip(names, deviations, strict=False) if not np.isfinite(s)]
    if not infinite:
        return []
    listed = f"{'; '.join(infinite[:_NAMED])}{' …' if len(infinite) > _NAMED else ''}"
    return [
        f"{len(infinite)} of {regressor.inertial} base parameters are not identifiable and stay close to the file: "
        f"{listed}"
    ]


def doubtful_terms(
    robot: Robot,
    terms: Mapping[str, Array],
    deviations: Mapping[str, Array],
    of_file: Mapping[str, NDArray[np.bool_]],
) -> list[str]:
    """Notes on terms (n,) by name that are not identifiable or as small as their standard deviation."""
    lines = []
    for name, values in terms.items():
        unknown = ~np.isfinite(deviations[name])
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

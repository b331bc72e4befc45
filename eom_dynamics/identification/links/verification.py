# SPDX-License-Identifier: Apache-2.0
"""Verification: efforts predicted by a robot's feedforward, compared with recorded efforts.

All figures come from the feedforward of a robot alone, :meth:`eom_dynamics.ElasticArm.feedforward`, so that they hold
for everyone who loads its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from ...arrays import Array
from ...correlation import correlation_time
from ...elastic import ElasticArm
from ...robot import Robot
from ...robot.model import EffortSpread
from ..recording import Recording, TooFewSamplesError
from ..sampling import PER_PERIOD, LowPass, mean_of_known, root_mean_square, whiteness
from .filtering import Filter, FilteredMotion, filtered_motion

WORSE = 1.05
"""Ratio of RMS errors, identified over given robot, beyond which a prediction is worse."""

_NEGLIGIBLE = 0.01  # added RMS error, relative to the spread of efforts, of a prediction that is as good: noise level

_CHUNK = 50_000  # samples that are evaluated together, as a compromise of speed and memory
_SPEEDS = 4  # of the spread of efforts
_DERIVATIVES = 4  # positions, and the time derivatives that a feedforward takes
_PERIODS = 3  # periods of the cut-off in the shortest motion


@dataclass(frozen=True, eq=False, kw_only=True)
class EffortErrors:
    """Prediction errors of efforts, by joint (n,), N m or N; NaN without efforts.

    Attributes:
        before, after: filtered RMS of predicted less measured efforts, by the given and the identified robot.
        spread: standard deviation of the measured efforts.
    """

    before: Array
    after: Array
    spread: Array

    @property
    def worse(self) -> NDArray[np.bool_]:
        """Joints (n,) with a larger RMS error of the identified robot: by 5 %, and by 1 % of the spread."""
        with np.errstate(invalid="ignore"):
            added = self.after - self.before
            return np.asarray((self.after > WORSE * self.before) & (added > _NEGLIGIBLE * self.spread))

    @property
    def ratio(self) -> float:
        """RMS errors after over before, geometric mean of the joints; NaN without efforts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.after / self.before
        known = ratio[np.isfinite(ratio)]
        return float(np.exp(np.mean(np.log(np.maximum(known, 1e-12))))) if len(known) else np.nan

    @property
    def relative(self) -> Array:
        """RMS residual after, relative to the standard deviation of the measured efforts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.after / self.spread)


@dataclass(frozen=True, eq=False, kw_only=True)
class Score(EffortErrors):
    """Prediction errors of the feedforward of two robots, the given and the identified, by joint (n,).

    Attributes:
        before_unfiltered, unfiltered: as ``before`` and ``after``, for unfiltered recorded efforts, N m or N.
        whiteness: fraction of that residual's autocorrelations within the band of white noise; 0.95 for white noise,
            0.65 to 0.95 for white noise that passed the filter.
        samples: number of them.
        spreads: spread of the errors of the identified robot by speed, and unfiltered noise; None without efforts.
    """

    before_unfiltered: Array
    unfiltered: Array
    whiteness: Array
    spreads: tuple[EffortSpread | None, ...]
    samples: int


def feedforward_efforts(arm: ElasticArm, states: Sequence[Array], *, motor_side: bool) -> Array:
    """Feedforward efforts (N, n) of joints, or summed over each joint's motors, N m or N, for q … qdddd (N, n)."""
    parts = []
    for start in range(0, len(states[0]), _CHUNK):
        command = arm.feedforward(*(np.ascontiguousarray(x[start : start + _CHUNK]) for x in states))
        if not motor_side:
            parts.append(command.tau)
        elif len(arm.motor_joint) == arm.robot.n:
            parts.append(command.motor_effort)
        else:  # two motors pull at one joint
            parts.append(command.motor_effort @ (arm.motor_joint[:, np.newaxis] == np.arange(arm.robot.n)))
    return np.concatenate(parts)


class ScoringData:
    """Recordings for scores of robots, filtered once."""

    def __init__(
        self, recordings: Sequence[Recording], using: Filter, before: Robot, *, motor_side: bool, periods: float = 0.0
    ) -> None:
        """Filter the recordings, and predict their efforts by the robot that was given.

        Raises TooFewSamplesError if the filter leaves no motion, or fewer than ``periods`` periods of the cut-off.
        """
        motions = [motion for recording in recordings for motion in recording.cleaned().motions()]
        filtered = [filtered_motion(motion, using, _DERIVATIVES) for motion in motions]
        self._motions = [motion for motion in filtered if motion.inner.stop > motion.inner.start]
        left = sum((x.inner.stop - x.inner.start) * x.recorded.period for x in self._motions)
        if not self._motions or left < periods / using.cutoff:
            raise TooFewSamplesError(
                f"{recordings[0].name}: too short for a cut-off of {using.cutoff:.3g} Hz; its filter needs "
                f"{(_PERIODS + periods) / using.cutoff:.3g} s at least"
            )
        self._motor_side, self._using = motor_side, using
        self._before = self._efforts(before)

    def _efforts(self, robot: Robot) -> list[Array]:
        """Efforts (N, n) that a robot's feedforward predicts for each motion, filter transients included."""
        arm = ElasticArm(robot)
        return [feedforward_efforts(arm, motion.states, motor_side=self._motor_side) for motion in self._motions]

    def _spreads(self, errors: Sequence[Array], raw: Sequence[Array]) -> tuple[EffortSpread | None, ...]:
        """Spreads of errors (N, n) of each motion, in quarters of the samples by speed, and of noise of ``raw`` errors.

        The noise, removed by the filter, has the correlation time of equal noise behind a first-order filter of four
        times the cut-off: the part that passes an observer's filter matters more than the rest near the cut-off.
        """
        speed = np.abs(np.concatenate([motion.states[1][motion.inner] for motion in self._motions]))
        joined, spreads = np.concatenate(errors), list[EffortSpread | None]()
        fast = [np.nan_to_num(x - y) for x, y in zip(raw, errors, strict=True)]
        period, w = self._motions[0].recorded.period, 8 * np.pi * self._using.cutoff
        kept = np.exp(-w * period)
        passed = np.concatenate([lfilter([1 - kept], [1, -kept], x, axis=0) for x in fast])
        through = root_mean_square(passed) / np.maximum(root_mean_square(np.concatenate(fast)), 1e-300)
        share = np.clip(through, 1e-3, 0.99) ** 2
        # Filters may also add to errors, by friction that is not smooth.
        more = np.square(root_mean_square(np.concatenate(raw))) - np.square(root_mean_square(joined))
        noise = np.sqrt(np.maximum(np.nan_to_num(more), 0.0))
        slow = 0.5 * period * correlation_time([np.nan_to_num(x) for x in errors])
        of_velocity = root_mean_square(np.concatenate([_ripple(x, w / (2 * np.pi)) for x in self._motions]))
        rows_of = np.column_stack([slow, noise, share / (w * (1 - share)), of_velocity]).tolist()
        for v, error, (T, *noises) in zip(speed.T, joined.T, rows_of, strict=True):
            known = np.flatnonzero(np.isfinite(error))
            parts = np.array_split(known[np.argsort(v[known], kind="stable")], _SPEEDS)
            rows = {float(np.median(v[x])): float(np.sqrt(np.mean(error[x] ** 2))) for x in parts if len(x)}
            usable = rows and min(rows.values()) > 0
            spreads.append(EffortSpread((*rows,), (*rows.values(),), T, *noises) if usable else None)
        return tuple(spreads)

    def score(self, robot: Robot, bias: Array) -> Score:
        """Compare predictions of the given robot, and of an identified one, with recorded efforts.

        Predictions are for filtered motion. Errors are filtered like the efforts, so that correct friction that jumps
        at a reversal causes no error, and unfiltered. The sensor ``bias`` (n,) is subtracted.
        """
        parts = []
        for motion, before, after in zip(self._motions, self._before, self._efforts(robot), strict=True):
            raw = motion.recorded.tau - bias
            measured = motion.smooth(raw)
            errors = (*map(motion.smooth, (before - raw, after - raw)), before - raw, after - raw)
            parts.append([x[motion.inner] for x in (measured, *errors)])
        joined = [np.concatenate(x) for x in zip(*parts, strict=True)]
        absent, mean_effort = np.isnan(joined[0]).all(axis=0), mean_of_known(joined[0])
        spacing = max(1, round(1 / (PER_PERIOD * self._using.cutoff * self._motions[0].recorded.period)))
        # Missing efforts of a joint with others count as zero.
        left = [np.where(absent, np.nan, np.nan_to_num(part[2]))[::spacing] for part in parts]
        names = ("before", "after", "before_unfiltered", "unfiltered")
        return Score(
            **dict(zip(names, map(root_mean_square, joined[1:]), strict=True)),
            spread=root_mean_square(joined[0] - mean_effort),
            whiteness=whiteness(left),
            samples=len(joined[0]),
            spreads=self._spreads([part[2] for part in parts], [part[4] for part in parts]),
        )


def _ripple(motion: FilteredMotion, cutoff: float) -> Array:
    """White noise (N, n) of recorded velocities, from frequencies above a cut-off; zero without recorded velocities."""
    period, qd = motion.recorded.period, motion.recorded.qd
    if qd is None:
        return np.zeros_like(motion.states[1][motion.inner])
    cutoff = min(cutoff, 0.25 / period)
    high = qd - LowPass(period, cutoff).whole(np.nan_to_num(qd))
    return np.asarray(np.nan_to_num(high)[motion.inner] / np.sqrt(1 - 2 * cutoff * period))

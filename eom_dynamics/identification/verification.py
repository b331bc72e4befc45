# SPDX-License-Identifier: Apache-2.0
"""Verification: efforts predicted by a robot's feedforward, against recorded ones.

All figures are those of a robot by itself, :meth:`eom_dynamics.ElasticArm.feedforward`, so that they hold for everyone
who loads its file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import Array
from ..elastic import ElasticArm
from ..robot import Robot
from .exceptions import IdentificationError
from .filtering import Filter, filtered_motion
from .joint_terms import TERMS
from .recording import Recording
from .residuals import Score, score
from .sampling import PER_PERIOD

# Samples that are evaluated at once: enough for speed, few enough for memory.
_CHUNK = 50_000

# Positions, and the time derivatives that a feedforward takes.
_DERIVATIVES = 4

# Periods of the cut-off in the shortest motion.
_PERIODS = 3


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
    """Recordings on which robots are scored, filtered once."""

    def __init__(self, recordings: Sequence[Recording], using: Filter, given: Robot, *, motor_side: bool) -> None:
        """Filter the recordings, and predict their efforts by the robot that was given.

        Raises:
            IdentificationError: a recording has too few samples.
        """
        whole = replace(using, decimate=False)
        motions = [motion for recording in recordings for motion in recording.cleaned().motions()]
        filtered = [filtered_motion(motion, whole, _DERIVATIVES) for motion in motions]
        self._motions = [each for each in filtered if each.inner.stop > each.inner.start]
        if not self._motions:
            raise IdentificationError(
                f"{recordings[0].name}: too short for a cut-off of {using.cutoff:.3g} Hz, whose filter needs "
                f"{_PERIODS / using.cutoff:.3g} s at least"
            )
        self._motor_side, self._using = motor_side, using
        self._given = self._efforts(given)

    def _efforts(self, robot: Robot) -> list[Array]:
        """Efforts (N, n) that a robot's feedforward predicts for each motion, filter transients included."""
        arm = ElasticArm(robot)
        return [feedforward_efforts(arm, each.states, motor_side=self._motor_side) for each in self._motions]

    def score(self, robot: Robot, not_in_file: Mapping[str, Array]) -> Score:
        """Compare predictions of the robot that was given, and of another one, with recorded efforts.

        They are predictions for filtered motion, beside efforts that are filtered in the same way, and unfiltered ones.

        Args:
            robot: that was found.
            not_in_file: terms (n,) by name that the fit knows besides, and no robot has. Of these, an offset is a bias
                of the sensors, which is taken out of what was recorded.
        """
        terms = dict(not_in_file)
        bias, parts = terms.pop("offset", np.zeros(robot.n)), []
        for motion, before, after in zip(self._motions, self._given, self._efforts(robot), strict=True):
            raw, inner = motion.recorded.tau - bias, motion.inner
            measured = motion.smooth(raw)
            errors = [x - y for y in (measured, raw) for x in (before, after)]
            state = self._using.motion(motion.states, np.nan_to_num(motion.smooth(motion.recorded.tau)))
            besides = [values * TERMS[name].basis(state) for name, values in terms.items()]
            of_fit = motion.smooth(errors[3] + sum(besides, np.zeros_like(state.qd)))
            parts.append([x[inner] for x in (measured, *errors, of_fit)])
        return score(parts, max(1, round(1 / (PER_PERIOD * self._using.cutoff * self._motions[0].recorded.period))))

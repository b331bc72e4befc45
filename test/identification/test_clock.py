# SPDX-License-Identifier: Apache-2.0
"""Notes on clocks that are wrong: irregular, at another rate, or drifting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from excited import recording, true_robot

from eom_dynamics import load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification import Recording
from eom_dynamics.identification.fit_notes import recording_notes

ROBOT = load_robot("sea_planar_2r")


def simulated() -> Recording:
    return recording(ROBOT, true_robot(ROBOT), rate=200.0, duration=20.0, velocity=True)


def jittered(t: Array) -> Array:
    return np.sort(t + np.random.default_rng(0).uniform(-0.005, 0.005, len(t)))


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (lambda t: 1.1 * t, "positions change 0.909 times as fast as recorded velocities say"),
        (jittered, "times are irregular: steps are"),
        (lambda t: t + 0.003 * t**2, "the clock drifts: positions change 0.98"),
    ],
)
def test_a_wrong_clock_is_named(clock: object, words: str) -> None:
    source = simulated()
    assert callable(clock)
    (note,) = recording_notes(ROBOT, [replace(source, t=clock(source.t))])
    assert note.startswith(f"simulated: {words}")


def test_a_right_clock_is_not() -> None:
    source = simulated()
    assert recording_notes(ROBOT, [source]) == []
    # A coarse encoder, velocities of low resolution, and a rate of 50 Hz.
    coarse = replace(source, q=np.round(source.q, 3), qd=np.round(source.qd, 2))[::4]
    assert recording_notes(ROBOT, [coarse]) == []

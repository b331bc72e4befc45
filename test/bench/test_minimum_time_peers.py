# SPDX-License-Identifier: Apache-2.0
"""Motions of other libraries, as the benchmark of fastest motions samples them."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from paths import ROOT

sys.path.append(str(ROOT / "bench"))

from minimum_time_peers import SteppedMotion

from eom_dynamics.trajectory import through

MOTION = SteppedMotion(
    through([0.0, 1.0, 2.0], [[0.0, 0.5], [0.8, -0.2], [1.2, 0.6]]),
    np.array([0.0, 0.3, 1.5, 2.0]),
    np.array([0.0, 1.2, 1.5, 0.0]),
)
H = 1e-4


@pytest.mark.parametrize("t", [0.2, 0.9, 1.7])
def test_derivatives_between_steps_of_acceleration(t: float) -> None:
    before, here, after = (np.array(MOTION.derivatives(t + x)) for x in (-H, 0.0, H))
    slopes = (after - before)[:-1] / (2 * H)
    assert here[1:] == pytest.approx(slopes, rel=1e-5, abs=1e-5 * np.max(np.abs(here)))


def test_speed_is_continuous_and_the_ends_are_at_rest() -> None:
    t = np.linspace(0.0, MOTION.end, 20_001)
    q, qd = MOTION.derivatives(t, 1)
    assert np.max(np.abs(np.diff(qd, axis=0))) < 2e-3
    assert q[-1] == pytest.approx([1.2, 0.6])
    for end in (-0.1, MOTION.end + 0.1):
        assert not np.any(MOTION.derivatives(end)[1:])

# SPDX-License-Identifier: Apache-2.0
"""Motions of other libraries, as the benchmark of fastest motions samples them."""

import numpy as np
import pytest
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

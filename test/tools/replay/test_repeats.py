# SPDX-License-Identifier: Apache-2.0
"""Repeated positions during a motion, in arrays and in blocks of any size."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rosbags")

from eom_dynamics.tools.replay.joint_states import Repeats, repeated

POSITION = np.array(
    [[0.0, 1.0]] * 5 + [[x, 1.0] for x in (0.1, 0.2, 0.2, 0.3, 0.4, 0.4, 0.5)] + [[0.5, 1.0]] * 5, dtype=float
)


def test_places_of_an_array() -> None:
    assert repeated(POSITION).tolist() == [7, 10]
    still = np.array([[1e-5 * (k // 2)] for k in range(9)])
    assert len(repeated(still)) == 0 and len(repeated(np.array([[0.0], [1.0]]))) == 0


@pytest.mark.parametrize("size", range(1, len(POSITION) + 1))
def test_blocks_of_any_size_count_the_same(size: int) -> None:
    recorded = 10 * np.arange(len(POSITION))
    repeats = Repeats()
    for start in range(0, len(POSITION), size):
        repeats.add(POSITION[start : start + size], recorded[start : start + size])
    assert (repeats.count, repeats.first) == (2, 70)

# SPDX-License-Identifier: Apache-2.0
"""Distances beyond limits, and the text about them."""

from __future__ import annotations

import numpy as np
import pytest

from eom_dynamics.elastic.limit_violations import beyond, limit_violations, nearest_end, range_ratio, summary

INF, NAN = float("inf"), float("nan")


def test_distance_beyond_the_nearest_end() -> None:
    values = np.array([NAN, 0.5, 0.0, 2.0, -3.0, INF, -INF])
    np.testing.assert_array_equal(beyond(values, -1.0, 1.0), [-INF, -0.5, -1.0, 1.0, 2.0, INF, INF])
    np.testing.assert_array_equal(beyond(values, -INF, INF), np.full(7, -INF))
    np.testing.assert_array_equal(beyond(values[1:5], -INF, 1.0), [-0.5, -1.0, 1.0, -4.0])


@pytest.mark.parametrize(
    ("distance", "lower", "upper", "ratio"),
    [
        (0.5, -1.0, 1.0, 1.5),
        (-0.5, -1.0, 1.0, 0.5),
        (-1.0, 2.0, 4.0, 0.0),
        (-3.0, -1.0, 1.0, 0.0),
        (0.1, -INF, 1.0, INF),
        (-0.1, -INF, 1.0, 0.0),
        (0.0, -1.0, INF, 0.0),
        (0.1, 2.0, 2.0, INF),
        (0.0, 2.0, 2.0, 1.0),
    ],
)
def test_distance_relative_to_half_the_range(distance: float, lower: float, upper: float, ratio: float) -> None:
    assert range_ratio(distance, lower, upper) == ratio


def test_nearest_end() -> None:
    assert [nearest_end(x, -1.0, 3.0) for x in (-5.0, 0.9, 1.0, 1.1, 5.0)] == [-1.0, -1.0, 3.0, 3.0, 3.0]
    assert nearest_end(-9.0, -INF, 3.0) == 3.0 and nearest_end(9.0, -1.0, INF) == -1.0


@pytest.mark.parametrize("samples", [1, 2])
def test_violations_of_states_and_batches(samples: int) -> None:
    """NaN violates nothing; of a batch, the sample that is farthest out is found."""
    values = np.array([[0.0, NAN, -4.0, 6.0], [0.5, NAN, -3.0, 7.0]])[:samples]
    lower, upper = np.array([-1.0, -1.0, -2.0, -INF]), np.array([1.0, 1.0, 2.0, 5.0])
    found = limit_violations("abcd", "position", ["rad"] * 4, values, lower, upper)
    worst = samples - 1
    assert [tuple(x) for x in found] == [
        ("c", "position", -4.0, -2.0, "rad", 2.0, 0),
        ("d", "position", 6.0 + worst, 5.0, "rad", INF, worst),
    ]
    assert [x.violation for x in found] == [2.0, 1.0 + worst]
    assert not limit_violations("abcd", "position", ["rad"] * 4, values, -INF, INF)


def test_summary() -> None:
    assert summary(["a", "b"], shown=2) == "a; b"
    assert summary(["a", "b", "c", "d"], shown=2) == "a; b; and 2 more"
    assert summary([str(k) for k in range(6)]) == "0; 1; 2; 3; 4; and 1 more"
    assert summary([]) == ""

# SPDX-License-Identifier: Apache-2.0
"""Joint tolerances: read by name, and violations."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from eom_dynamics import StateError
from eom_dynamics.messages.measured import JointTolerances

NAMES = ("a", "b")


def entry(name: str, position: float = 0.0, velocity: float = 0.0, acceleration: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(name=name, position=position, velocity=velocity, acceleration=acceleration)


def test_zero_and_negative_values_are_no_tolerance() -> None:
    found = JointTolerances.read("path_tolerance", [entry("b", 0.1, -1.0)], NAMES)
    np.testing.assert_array_equal(found.allowed, [[np.inf, 0.1], [np.inf, np.inf], [np.inf, np.inf]])
    assert found.any and not JointTolerances.read("path_tolerance", [], NAMES).any


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (entry("c"), r"path_tolerance\[0\]: the robot has no joint 'c'"),
        (entry("a", velocity=np.nan), r"path_tolerance\[0\]\.velocity \(joint 'a'\) is nan"),
    ],
)
def test_entries_that_are_refused(wrong: SimpleNamespace, reason: str) -> None:
    with pytest.raises(StateError, match=reason):
        JointTolerances.read("path_tolerance", [wrong], NAMES)


def test_the_worst_violation_is_described() -> None:
    found = JointTolerances.read("goal_tolerance", [entry("a", 0.1), entry("b", 0.1, 0.5)], NAMES)
    unknown = np.full(2, np.nan)
    assert found.violation([np.array([0.1, -0.1]), np.array([9.0, 0.5])]) == ""
    assert found.violation([np.array([0.2, -0.3]), unknown]) == "position of b deviates by 0.3, tolerance 0.1"
    assert found.violation([np.array([0.2, 0.0]), np.array([0.0, 2.0])]) == "velocity of b deviates by 2, tolerance 0.5"

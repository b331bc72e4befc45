# SPDX-License-Identifier: Apache-2.0
"""Measured positions of the joints, from one publisher or several, and joint tolerances."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from eom_dynamics import StateError
from eom_dynamics.control.measured import JointPositions, JointTolerances


def state(**positions):
    return SimpleNamespace(name=list(positions), position=list(positions.values()))


def test_positions_may_come_in_parts_and_with_others():
    known = JointPositions(["a", "b"])
    assert not known.update(state(finger=0.1))
    assert not known.update(state(b=2.0, finger=0.1))
    with pytest.raises(StateError, match="the position of 'a' is not known yet"):
        known.read()
    assert known.update(state(a=1.0))
    np.testing.assert_array_equal(known.read(), [1.0, 2.0])
    known.update(state(b=3.0))
    np.testing.assert_array_equal(known.read(), [1.0, 3.0])


@pytest.mark.parametrize("bad", [state(a=np.nan), state(a=np.inf), SimpleNamespace(name=["a"], position=[])])
def test_what_is_no_position_is_left_out(bad):
    known = JointPositions(["a"])
    assert not known.update(bad)
    with pytest.raises(StateError, match="joint_states: the position of 'a' is not known yet"):
        known.read()


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

# SPDX-License-Identifier: Apache-2.0
"""Which refusals are answered with the last valid command, and their reasons."""

import pytest

from eom_dynamics.exceptions import StateError, StiffnessError, TrajectoryError
from eom_dynamics.messages.setpoint_to_command import is_held, refusal_reason


@pytest.mark.parametrize(
    ("error", "held"),
    [
        (StiffnessError("stiffness"), {"stiffness", "always"}),
        (StateError("position"), {"always"}),
        (TrajectoryError("a trajectory is being played"), set()),
        (ZeroDivisionError("division by zero"), set()),
    ],
)
def test_which_refusals_are_held(error, held):
    assert {policy for policy in ("stiffness", "always", "never") if is_held(error, policy)} == held


def test_internal_errors_are_named():
    assert refusal_reason(StateError("position[0] is nan")) == "position[0] is nan"
    assert refusal_reason(ZeroDivisionError("by zero")) == "internal error: ZeroDivisionError: by zero"

# SPDX-License-Identifier: Apache-2.0
"""Measured positions of the joints, from one publisher or several."""

from types import SimpleNamespace

import numpy as np
import pytest

from eom_dynamics import StateError
from eom_dynamics.messages.measured import JointPositions


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

# SPDX-License-Identifier: Apache-2.0
"""Trajectories and chunks of some joints hold all others where they are commanded at the start of the motion."""

import numpy as np
import pytest
from loop_rig import MS, LoopRig, rest, straight

from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.exceptions import StateError

HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])
HELD = np.array([False, True, False, True, True, True, False])
TARGET = np.where(HELD, 9.0, HOME + 0.2)
"""Positions of held joints in a message of a trajectory do not count."""


def rig(**settings: object) -> LoopRig:
    rig = LoopRig("panda", "strict", setpoint_timeout=0.0, **settings)
    rig.restart(HOME)
    return rig


def positions(rig: LoopRig, first: int = 0) -> Array:
    """Commanded positions (N, n) of the cycles from one on."""
    at, size = rig.places["setpoint"]["q"]
    return rig.rows[first : rig.count, at : at + size]


def test_held_joints_stay_to_the_last_bit_while_the_others_move() -> None:
    arm = rig()
    arm.cycles(5, rest(HOME))
    arm.trajectory(straight([0.0, 1.0], [np.where(HELD, 9.0, HOME), TARGET]), held=HELD)
    arm.cycles(1100)
    assert arm.loop.record.finished == 1
    np.testing.assert_array_equal(positions(arm)[:, HELD], np.broadcast_to(HOME[HELD], (1105, HELD.sum())))
    np.testing.assert_allclose(arm.q[~HELD], TARGET[~HELD], rtol=0, atol=1e-12)


@pytest.mark.parametrize("waits", [True, False], ids=["queued", "at once"])
def test_held_joints_are_where_another_motion_has_brought_them_at_the_start(waits: bool) -> None:
    """A queued trajectory begins after the active one, which moves the joints that it holds."""
    arm, first = rig(), HOME + 0.3
    arm.cycles(5, rest(HOME))
    arm.trajectory(straight([0.0, 1.0], [HOME, first]))
    arm.cycles(10)
    begin = arm.now + 2000 * MS
    if not waits:
        arm.cycles(2000)
    begun = np.where(HELD, HOME, first)  # where the held joints were at the time of the message
    arm.trajectory(straight([0.0, 1.0], [begun, begun + 0.1]), begin if waits else 0, held=HELD)
    arm.cycles(3200)
    assert arm.loop.record.begun == 2 and not arm.loop.record.playing
    np.testing.assert_allclose(arm.q, np.where(HELD, first, first + 0.1), rtol=0, atol=1e-12)
    last = positions(arm, arm.count - 1000)[:, HELD]
    np.testing.assert_array_equal(last, np.broadcast_to(last[0], last.shape))


def test_a_held_joint_that_moves_at_the_start_comes_to_rest_there_within_limits() -> None:
    arm = rig()
    arm.cycles(5, rest(HOME))
    arm.trajectory(straight([0.0, 2.0], [HOME, HOME + 0.2]))
    arm.cycles(900)
    at = arm.q
    arm.trajectory(straight([0.0, 1.0, 2.0], [at, at, np.where(HELD, 9.0, at + 0.1)]), held=HELD)
    arm.cycles(2100)
    assert arm.loop.record.begun == 2 and not any(arm.codes[: arm.count] > 0)
    # Where it was commanded in the cycle of the start, one period later.
    np.testing.assert_allclose(arm.q[HELD], at[HELD], rtol=0, atol=1e-3)
    np.testing.assert_allclose(arm.q[~HELD], at[~HELD] + 0.1, rtol=0, atol=1e-12)


def test_without_a_commanded_position_nothing_can_be_held() -> None:
    arm = LoopRig("panda", "strict", hosted=True)
    arm.trajectory(straight([0.0, 1.0], [HOME, TARGET]), held=HELD)
    assert arm.library.loop_plan(arm.address, arm.now, 1e-3) == Refusal["from_nothing"]


def test_a_joint_is_held_in_the_whole_motion() -> None:
    arm, spline = rig(), straight([0.0, 1.0], [HOME, HOME])
    spline.states[0, 1, 2] = np.nan
    with pytest.raises(StateError, match="states must be finite"):
        arm.trajectory(spline)


def test_chunks_of_some_joints_hold_the_others_at_their_targets() -> None:
    """Also chunk after chunk, and where a target of the held joints is still under way."""
    arm = rig(targets={})
    arm.cycles(5, rest(HOME))
    goal = np.where(HELD, HOME + 0.1, np.nan)
    arm.target(goal)
    arm.cycles(20)
    times = np.linspace(0.1, 0.5, 5)
    for k in range(4):
        rows = np.where(HELD, np.nan, HOME + 0.02 * (k + np.linspace(0.2, 1.0, 5))[:, np.newaxis])
        arm.target(np.ascontiguousarray(rows), times=times)
        arm.cycles(400)
    arm.cycles(2000)
    np.testing.assert_allclose(arm.q, np.where(HELD, HOME + 0.1, HOME + 0.08), rtol=0, atol=1e-9)
    moved = positions(arm, 1)[:, HELD] - HOME[HELD]
    assert np.all(np.diff(moved, axis=0) >= -1e-12)  # straight to their targets


def test_a_chunk_with_a_position_at_some_times_is_refused() -> None:
    arm, rows = rig(targets={}), np.tile(HOME, (3, 1))
    for place, reason in (((0, 1), "a joint must have a position at each time, or none"), ((1, 1), "must be finite")):
        wrong = rows.copy()
        wrong[place] = np.nan
        with pytest.raises(AssertionError, match=reason):
            arm.target(wrong, times=[0.1, 0.2, 0.3])

# SPDX-License-Identifier: Apache-2.0
"""State machine of the watchdog: loss, response by policy, and return of the setpoints."""

from __future__ import annotations

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.elastic import ElasticArm
from eom_dynamics.messages.joint_order import JointOrder
from eom_dynamics.messages.setpoint_to_command import EvaluatedCommand, SetpointEvaluator
from eom_dynamics.stream.watchdog import LONGEST_RESPONSE_STEP, Phase, Settings, Status, Watchdog

ARM = ElasticArm(eom.load_robot("sea_planar_2r"))
MS = 10**6
SETPOINT = np.array([[0.2, -0.4], [0.6, 0.3], [0.5, 1.0], [2.0, -3.0], [10.0, 4.0]])


def solution(state: np.ndarray = SETPOINT) -> EvaluatedCommand:
    return SetpointEvaluator(ARM).command(JointOrder(ARM.robot.joint_names, []), state)


def fed(policy: str, timeout: float = 0.05) -> Watchdog:
    dog = Watchdog(ARM, Settings(policy, timeout, stop_duration=0.2, ramp_duration=0.4))
    dog.feed(solution())
    assert dog.observe(0) == "" and dog.phase is Phase.STREAMING
    return dog


def lost(policy: str) -> Watchdog:
    """Observed every 5 ms until the timeout."""
    dog = fed(policy)
    for now in range(5 * MS, 200 * MS, 5 * MS):
        if cause := dog.observe(now):
            assert cause == "no valid setpoint for 0.05 s (setpoint_timeout 0.05 s)"
            assert now == 50 * MS
            assert dog.lose(cause) is (policy in ("hold", "ramp"))
            return dog
    raise AssertionError("no timeout")


def test_nothing_is_lost_before_the_first_setpoint_nor_after_the_end_of_a_stream() -> None:
    dog = Watchdog(ARM, Settings("hold", 0.05))
    assert dog.observe(0) == dog.observe(10**9) == dog.observe(2 * 10**9) == ""
    assert not dog.lose("publisher") and dog.phase is Phase.WAITING
    dog = fed("hold")
    dog.disarm()
    assert dog.observe(10**9) == dog.observe(2 * 10**9) == ""
    assert not dog.lose("publisher") and dog.cause == ""


@pytest.mark.parametrize("policy", ["none", "deactivate"])
def test_the_other_policies_command_nothing(policy: str) -> None:
    dog = lost(policy)
    assert dog.phase is Phase.LOST and not dog.responding
    assert dog.cause.startswith("no valid setpoint")
    # Once only.
    assert dog.observe(10**10) == "" and not dog.lose("again")
    dog.admit(np.array([9.0, 9.0]))
    dog.feed(solution())
    assert dog.phase is Phase.STREAMING and dog.cause == ""


def test_returning_setpoints_are_followed_from_near_the_commanded_position_alone() -> None:
    dog = lost("hold")
    responses = [dog.respond(k * MS) for k in range(300)]
    held = responses[-1].flow.state[0]
    with pytest.raises(eom.StateError, match="from where it is held"):
        dog.admit(held + 0.09)  # nothing of the stop has been sent
    dog.commit(responses[-1])
    away = held + np.array([0.0, 0.11])
    with pytest.raises(
        eom.StateError, match=r"^joint_2 is 0.11 rad from .*, more than 0.1 \(parameter resume_distance\)$"
    ):
        dog.admit(away)
    assert dog.phase is Phase.HELD
    near = held + np.array([0.09, -0.09])
    dog.admit(near)
    dog.feed(solution(np.array([near, *np.zeros((4, 2))])))
    assert dog.phase is Phase.STREAMING and not dog.responding
    dog.admit(away)


def test_a_stall_or_a_jump_of_the_clock_during_the_stop_is_no_step() -> None:
    dog = lost("hold")
    dog.respond(1 * MS)
    before = dog.respond(2 * MS)
    for now in (5_000_000 * MS, 1 * MS):
        after = dog.respond(now)
        assert 0.0 <= after.s - before.s <= LONGEST_RESPONSE_STEP
        before = after


def test_where_no_stop_can_be_computed_the_last_command_is_repeated() -> None:
    arm = ElasticArm(eom.load_robot("vsa_planar_2r"))
    state = 0.1 * np.ones((5, 2))
    stiffness = tuple(np.array([[1e-3, 1e-3], [0.0, 0.0], [0.0, 0.0]]))
    order = JointOrder(arm.robot.joint_names, [])
    dog = Watchdog(arm, Settings("hold", 0.05))
    dog.feed(EvaluatedCommand(order, state, (), np.zeros((3, 2)), np.zeros((4, 4)), (), stiffness))
    with pytest.raises(eom.StiffnessError):
        dog.lose("timeout")
    assert dog.phase is Phase.HELD and dog.responding
    found = dog.respond(50 * MS)
    np.testing.assert_array_equal(found.flow.state, state)
    assert found.status is Status.HELD

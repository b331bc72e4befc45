# SPDX-License-Identifier: Apache-2.0
"""Start of a trajectory or a target amid a motion: initial state, time, and continuity."""

import numpy as np
import pytest
from loop_rig import LoopRig, Record, straight

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES, Array
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import SMALL_STEP
from eom_dynamics.trajectory import Spline

MS, START = 1_000_000, 10**18
STEP = MS // 10  # so that derivatives are seen between cycles
RATE, SPEED = 4.0, 0.2


def moving(t: float) -> Array:
    """State (5, 2) of joints that move together, with the speed at t = 0."""
    return np.stack([SPEED * RATE ** (i - 1) * np.sin(RATE * t + i * np.pi / 2) * np.ones(2) for i in range(5)])


def commanded(state: Array) -> ControlLoop:
    loop = ControlLoop(RobotTable(eom.ElasticArm(eom.load_robot("sea_planar_2r"))))
    loop.configure(safety="permissive", start_tolerance=0.01)
    loop.rest()
    for name, row in zip(STATE_NAMES, state, strict=True):
        loop.given[name][:] = row
    loop.refer(START)
    assert loop.update(START, 1e-9 * STEP) <= 0
    return loop


def through(late: float, away: float, speed: float = 1.0) -> Spline:
    """Along that motion, or less of it, as it began some time before, away by a distance, and to rest at last."""
    knots = np.array([0.0, 0.3, 0.8])
    states = np.stack([moving(t - late) for t in knots], axis=1) * speed
    states[1:, -1] = 0.0
    states[0] += away
    return Spline(knots, states)


@pytest.mark.parametrize("away", [0.0, 4e-3])
@pytest.mark.parametrize("late", [0.0, 0.02, 0.12])
def test_it_leads_on_from_a_motion_to_its_next_knot_in_its_own_time(late: float, away: float) -> None:
    loop, spline = commanded(moving(0.0)), through(late, away)
    origin = START + STEP - round(1e9 * late)
    loop.send_trajectory(spline, origin)
    assert loop.plan(START + STEP, 1e-9 * STEP) == 0
    states, times = [loop.state.copy()], np.arange(round(1e9 * (0.9 - late) / STEP))
    for k in times:
        assert loop.update(START + (k + 1) * STEP, 1e-9 * STEP) <= 0
        states.append(loop.state.copy())
    t, x = late + 1e-9 * STEP * times, np.array(states)
    on = (t >= 0.3) & (t <= 0.8)
    np.testing.assert_allclose(x[1:][on], np.stack(spline.derivatives(t[on]), axis=1), rtol=1e-9, atol=1e-9)
    assert not x[-1, 1:].any()
    # Each derivative is the slope of the one before, to the next one's own change within a step.
    for order in range(4):
        slope, rate = np.diff(x[:, order], axis=0) / (1e-9 * STEP), x[:, order + 1]
        most = np.abs(np.diff(rate, axis=0)).max()
        assert np.abs(slope - 0.5 * (rate[1:] + rate[:-1])).max() <= 0.6 * most + 1e-6


@pytest.mark.parametrize("share", [0.98, 1.02])
def test_it_may_start_as_far_away_as_its_tolerance_and_what_the_arm_moves_in_a_tenth_of_a_second(share: float) -> None:
    loop = commanded(moving(0.0))
    before = {name: row.tobytes() for name, row in loop.setpoint.items()}
    loop.send_trajectory(through(0.0, share * (0.01 + 0.1 * SPEED)), START)
    reason = loop.plan(START, 1e-9 * STEP)
    assert reason == (0 if share < 1 else Refusal["starts_away"])
    assert before == {name: row.tobytes() for name, row in loop.setpoint.items()}


@pytest.mark.parametrize(("late", "on_time"), [(0.02, True), (0.12, False)])
def test_from_rest_it_is_played_as_if_on_time_where_that_is_no_step(late: float, on_time: bool) -> None:
    rest = np.zeros((5, 2))
    rest[0] = 0.2
    states = np.zeros((5, 3, 2))
    states[0] = [[0.2], [0.21], [0.3]]
    spline, loop, begin = Spline([0.0, 0.2, 0.5], states), commanded(rest), START + MS
    loop.send_trajectory(spline, begin - round(1e9 * late))
    assert loop.plan(begin, 1e-3) == 0 and loop.update(begin, 1e-3) == 0
    planned, found = spline.derivatives(late)[0], loop.state[0]
    assert (np.abs(planned - rest[0]) <= SMALL_STEP).all() == on_time
    np.testing.assert_allclose(found, planned if on_time else rest[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("start", [-2.5384, -2.53])
def test_a_target_beyond_the_limits_of_joints_is_braked_by_these(start: float) -> None:
    """Where the weaker jerk of targets would lead out of the range of a joint."""
    acceleration = np.array([15, 7.5, 10, 12.5, 15, 20, 20])
    rig = LoopRig("panda", targets={"velocity": [1.9575] * 4 + [2.349] * 3, "acceleration": 1.005 * acceleration})
    rig.restart([0, -0.5, 0, -1.5, 0, 1.5, start])
    rig.target([-0.318, 0.436, -0.602, -0.656, -2.018, 1.78, -2.8973])
    rig.cycles(900)
    record = Record(rig)
    assert Refusal["over_limits"] in record.code
    assert record.setpoint["q"][:, 6].min() >= -2.8973


@pytest.mark.parametrize("averages", [{"smoothing": 1.0}, {"smoothing": 6.0}, {"jerk": 70.0, "snap": 23.0}])
def test_averages_too_long_for_an_accelerating_arm_do_not_take_over(averages: dict[str, float]) -> None:
    """They went on and on, 20 rad past a target 0.2 rad away."""
    rig, q = LoopRig("sea_planar_2r", targets={"velocity": 1.35, "acceleration": 5.0, **averages}), np.array([0.2, 0.3])
    rig.restart(q)
    rig.trajectory(straight([0, 1.0], [q, q + 0.4]))
    rig.cycles(300)
    rig.target(q + 0.2)
    rig.cycles(2000)
    record = Record(rig)
    assert Refusal["no_room"] in record.code
    assert np.abs(record.setpoint["qd"]).max() < 1

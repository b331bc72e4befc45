# SPDX-License-Identifier: Apache-2.0
"""Online trajectories: limits, arrival, derivatives that are those of positions, take-over, streams, and refusals."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from online import GIVEN, RATES, arm, consistent, within
from refusals import refusals
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import (
    RAMP,
    SMOOTHING,
    OnlineTrajectory,
    inertia_and_frequency,
    motion_limits,
    smoothing_for,
)
from eom_dynamics.control.robot_table import RobotTable


def random_limits(draw: np.random.Generator, n: int, h: float) -> dict[str, np.ndarray]:
    """Limits of which averages take less than 60 cycles each."""
    V = 10 ** draw.uniform(-0.5, 1, n)
    A = V * 10 ** draw.uniform(0, 1.3, n)
    J = A / (h * draw.uniform(0.5, 60, n))
    S = 2 * J / (h * draw.uniform(0.5, 40, n))
    center, half = draw.normal(size=n), 10 ** draw.uniform(-1, 0.5, n)
    rates = dict(zip(RATES, (V, A, J, S), strict=True))
    return rates | {"lower": center - half, "upper": center + half, "smoothing": h * draw.uniform(0, 40, n)}


def wander(seed: int, changes: int, longest: float) -> None:
    draw = np.random.default_rng(seed)
    h = 10 ** draw.uniform(-3.7, -2)
    given = random_limits(draw, 7, h)
    online = OnlineTrajectory(arm(), h, given)
    lower, upper, V = online.limits.lower, online.limits.upper, online.limits.velocity
    online.reset(draw.uniform(lower, upper))
    last = online.state
    for k in range(changes):
        target = draw.uniform(lower - 0.1, upper + 0.1)
        if k % 3 == 2:
            target = last[0] + draw.normal(size=7) * 10 ** draw.uniform(-6, 0)
        velocity = 0.7 * V * draw.normal(size=7) * (draw.random() < 0.4)
        clamped = online.target(target, velocity)
        over = (target < lower) | (target > upper) | (np.abs(velocity) > V)
        assert clamped == tuple(name for name, x in zip(online.arm.robot.joint_names, over, strict=True) if x)
        states = online.step(int(10 ** draw.uniform(0, longest)))
        within(online.limits, states)
        consistent(online.limits, np.concatenate([last[np.newaxis], states]), h)
        last = states[-1]
    for share in (1.0, 0.01):
        begin, rests = online.state[0], online.arrived
        goal = begin + share * (draw.uniform(lower, upper, 7) - begin)
        online.target(goal)
        states = [online.state[np.newaxis]]
        while not online.arrived:
            states.append(online.step(2000))
            assert len(states) < 150
        found = np.concatenate(states)
        within(online.limits, found)
        assert online.state[0] == pytest.approx(goal, abs=1e-12) and not online.state[1:].any()
        assert not rests or ((found[:, 0] - goal) * np.sign(goal - begin) <= 1e-12).all(), "overshoot"


@given(seed=st.integers(0, 2**32))
def test_limits_hold_and_targets_are_reached_from_any_motion(seed: int) -> None:
    wander(seed, 12, 2.5)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(125, id="a joint that turns back to arrive with others does not creep"),
        pytest.param(286, id="a joint that has arrived has no rounding left"),
    ],
)
def test_found_by_the_million(seed: int) -> None:
    wander(seed, 100, 2.0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_targets() -> None:
    for seed in range(1430):
        wander(seed, 100, 2.0)


@pytest.mark.parametrize("distance", [0.001, 0.013, 0.6, 1.0, 3.0])
def test_a_step_takes_the_least_time_of_limited_jerk_and_two_averages(distance: float) -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    V, A, J = 2.0, 10.0, online.limits.jerk[0]
    fastest = distance / V + V / A + A / J
    if distance < V * (V / A + A / J):
        fastest = A / J + np.sqrt((A / J) ** 2 + 4 * distance / A)
    if distance < A * (A / J) ** 2 / 4:
        fastest = A / J + 2 * np.sqrt(distance / A)
    for begin, rest in ((online.reset, np.zeros(7)), (online.take_over, np.zeros((5, 7)))):
        begin(rest)
        online.target(np.full(7, distance))
        states = online.step(round(1e3 * (fastest + 2 * SMOOTHING)) + 4)
        assert online.state[0] == pytest.approx(distance, abs=1e-12)
        within(online.limits, states)


def test_a_target_that_moves_is_met_without_delay_and_stops_at_the_limit() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN | {"lower": -1.0, "upper": 1.0})
    start, velocity = np.linspace(-0.5, -0.2, 7), np.linspace(0.3, 0.6, 7)
    assert online.target(start, velocity) == ()
    online.step(1500)
    assert online.state[0] == pytest.approx(start + 1.5 * velocity, abs=1e-9)
    assert online.state[1] == pytest.approx(velocity, abs=1e-9)
    within(online.limits, online.step(4000))
    assert online.state[0] == pytest.approx(1.0, abs=1e-12) and online.arrived


def test_accelerations_of_targets_leave_no_error_without_delay() -> None:
    """Two sines at 100 Hz: also by a loop, and with those of a controller in front."""
    t, online = 1e-2 * np.arange(300)[:, np.newaxis, np.newaxis], OnlineTrajectory(arm(), limits=GIVEN)
    w, size = 2 * np.pi * np.array([[0.3], [0.8]]), np.array([[0.3], [0.1]])
    angle = w * t + np.arange(14).reshape(2, 7)
    motion = np.stack([(size * w**k * np.sin(angle + k * np.pi / 2)).sum(axis=1) for k in range(3)], axis=1)
    found = []
    for count in (2, 3):
        online.reset(motion[0, 0])
        errors = []
        for target in motion:
            errors.append(online.state[0] - target[0])
            online.target(*target[:count])
            online.step(10)
        within(online.limits, online.state[np.newaxis])
        found.append(np.sqrt(np.mean(np.square(errors[100:]))))
    assert found[1] < 2e-4 and found[1] < found[0] / 20
    for front in (False, True):
        loop = ControlLoop(RobotTable(arm()))
        loop.configure(safety="permissive")
        loop.limit(online.limits, 1e-3)
        loop.restart(motion[0, 0])
        errors = []
        for k, target in enumerate(motion):
            for i in range(10):
                now = 10**12 + (10 * k + i) * 10**6
                if front:
                    for name, row in zip(STATE_NAMES, target, strict=False):
                        loop.given[name][:] = row
                    loop._library.loop_pursue(loop.address)
                elif i == 0:
                    assert loop.aim(now, target[0], target[1], accelerations=target[2]) == 0
                loop.update(now, 1e-3)
                if i == 0:
                    errors.append(loop.state[0] - target[0])
        assert np.sqrt(np.mean(np.square(errors[100:]))) < 8e-4, front  # by a cycle at most


def test_the_default_smoothing_is_by_the_lowest_frequency() -> None:
    """A period of stiff springs, which does not pass; three quarters of a longer one; else what costs little delay."""
    soft = arm()
    assert (motion_limits(soft, GIVEN).smoothing == 0.02).all()
    for stiffness, least, most, periods in ((2e6, 60, 100, 1.0), (1e5, 12, 25, 0.75)):
        stiff = eom.ElasticArm(with_springs(soft.robot, LinearSpring(stiffness)))
        _, frequency = inertia_and_frequency(stiff)
        assert least < frequency < most
        assert motion_limits(stiff, GIVEN).smoothing == pytest.approx(periods / frequency)
    assert smoothing_for(0.0) == smoothing_for(11.4) == smoothing_for(40.0) == 0.02


def test_the_default_smoothing_damps_springs_that_are_stiffer_than_modelled() -> None:
    """By 10 %, after small steps, to less than half of what the shortest one leaves."""
    for frequency in (12.0, 15.0, 20.0):
        found = []
        for smoothing in (0.02, smoothing_for(frequency)):
            online = OnlineTrajectory(arm(), limits=GIVEN | {"smoothing": smoothing})
            online.target(np.full(7, 3e-3))
            accelerations, w = online.step(1500)[:, 2, 0], 2 * np.pi * frequency * np.sqrt(1.1)
            found.append(abs(np.sum(accelerations * np.exp(-1e-3j * w * np.arange(1500)))))
        assert found[1] < 0.5 * found[0]


def test_rounding_does_not_add_up() -> None:
    """In a minute of targets that never rest."""
    online = OnlineTrajectory(arm(), limits=GIVEN)
    for k in range(300):
        phase = 0.02 * k + np.arange(7)
        online.target(0.3 * np.sin(phase), 0.3 * np.cos(phase))
        last = online.state
        states = online.step(200)
    within(online.limits, states)
    consistent(online.limits, np.concatenate([last[np.newaxis], states]))
    online.target(np.full(7, 0.1))
    online.step(3000)
    assert online.state[0] == pytest.approx(0.1, abs=1e-14) and not online.state[1:].any()


def test_a_state_that_no_motion_within_limits_has_is_continued_and_says_by_how_much() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    state = np.zeros((5, 7))
    state[2:4] = online.limits.acceleration, online.limits.jerk
    excess = online.take_over(state)
    assert (excess > 0.1).all()
    states = online.step(3000)
    consistent(online.limits, np.concatenate([state[np.newaxis], states]))
    within(online.limits, states[600:])
    assert (np.abs(states[:, 2]) <= 10 * (1 + excess)).all() and online.arrived


def test_a_subset_of_joints_moves_and_the_others_stay() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    online.reset(np.linspace(0.1, 0.7, 7))
    names = online.arm.robot.joint_names
    online.target({names[2]: -0.5})
    expected = np.linspace(0.1, 0.7, 7)
    expected[2] = -0.5
    online.step(3000)
    assert online.state[0] == pytest.approx(expected, abs=1e-14) and online.arrived
    online.target(expected, np.array([*np.full(6, 0.2), 9.0]))  # the last one is clamped to 2
    online.step(500)
    online.target({names[2]: -0.5})  # the others rest where their targets are
    online.step(3000)
    assert np.delete(online.state[0] - expected, 2) == pytest.approx(
        np.array([0.1, 0.1, 0.1, 0.1, 0.1, 1.0]), abs=1e-12
    )


@pytest.mark.parametrize(
    ("call", "first", "second", "message"),
    [
        ("target", np.full(7, np.nan), None, "position"),
        ("target", np.zeros(7), np.full(7, np.inf), "velocity"),
        ("target", np.zeros(6), None, "position must have shape"),
        ("target", {}, None, "names no joints"),
        ("target", {"elbow": 1.0}, None, "no joint 'elbow'"),
        ("target", {"iiwa_joint_1": np.nan}, None, "iiwa_joint_1"),
        ("target", {"iiwa_joint_1": 45.0}, None, "iiwa_joint_1 at 45 rad is 7.16 turns from zero"),
        ("follow", [0.0], np.full((1, 7), -45.0), "iiwa_joint_1 at -45 rad"),
        ("follow", [1.0, 0.5], np.zeros((2, 7)), "increase"),
        ("follow", [1.0, 1.0], np.zeros((2, 7)), "increase"),
        ("follow", [0.0, np.nan], np.zeros((2, 7)), "times"),
        ("follow", [0.0], np.full((1, 7), np.nan), "positions"),
        ("follow", [0.0], np.zeros((1, 6)), "positions must have shape"),
        ("follow", [], np.zeros((0, 7)), "1 to 1000"),
        ("follow", np.arange(1001.0), np.zeros((1001, 7)), "1 to 1000"),
        ("follow", [[0.0]], np.zeros((1, 7)), "times must have shape"),
    ],
)
def test_a_refused_target_or_chunk_leaves_those_before(call: str, first: Any, second: Any, message: str) -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    online.follow([0.1, 0.5], np.full((2, 7), 0.2))
    with pytest.raises(eom.StateError, match=message):
        getattr(online, call)(first, second)
    online.step(2000)
    assert online.state[0] == pytest.approx(0.2)


def test_a_joint_without_limits_goes_on_turn_by_turn() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    for turn in range(1, 6):
        online.target({"iiwa_joint_7": turn * 2 * np.pi})
        online.step(6000)
    assert online.state[0, 6] == pytest.approx(10 * np.pi)


def test_defaults_are_chosen_by_the_lowest_frequency_and_said() -> None:
    limits = motion_limits(arm(), GIVEN)
    assert limits.jerk == pytest.approx(10 / RAMP) and limits.snap == pytest.approx(2 * limits.jerk / SMOOTHING)
    assert limits.smoothing == pytest.approx(SMOOTHING)
    assert limits.chosen.startswith("jerk 133.3, snap ") and limits.chosen.endswith("lowest joint frequency of 9.16 Hz")
    stiff = eom.ElasticArm(arm().robot, stiffness=10 * arm().stiffness)
    squares = np.linalg.eigvals(np.linalg.solve(arm().dynamics.mass_matrix(np.zeros(7)), np.diag(stiff.stiffness)))
    frequency = np.sqrt(squares.real.min()) / (2 * np.pi)
    assert motion_limits(stiff, GIVEN).jerk == pytest.approx(10 * frequency, rel=0.1)
    assert motion_limits(arm(), GIVEN | {"velocity": 0.5}).jerk == pytest.approx(200)
    given = {"jerk": 200.0, "snap": 5e4, "smoothing": 0.0}
    assert motion_limits(arm(), GIVEN | given).chosen == ""
    rigid = eom.ElasticArm(eom.load_robot("ur5e"), stiffness=np.inf, rotor_inertia=0.0)
    limits = motion_limits(rigid, {"acceleration": 10.0})
    assert (
        limits.jerk == pytest.approx(10 * np.maximum(1 / RAMP, 10 / limits.velocity))
        and "no joint frequency" in limits.chosen
    )


test_limits_that_are_refused = refusals(
    eom.StateError,
    ({}, "iiwa_joint_7: no limit of velocity"),
    (
        {"velocity": 1.0},
        r"no limit of acceleration, which .*: give each of .* \(urdf.joints.iiwa_joint_1.limits.acceler",
    ),
    ([1.0], r"limits must be a mapping from lower, .*, smoothing, is \[1.0\]"),
    (GIVEN | {"velocity": "fast"}, r"limits\['velocity'\] must be real numbers"),
    (GIVEN | {"jurk": 1.0}, "did you mean jerk"),
    (GIVEN | {"jerk": -1.0}, "must be positive"),
    (GIVEN | {"jerk": np.nan}, "must be positive"),
    (GIVEN | {"snap": 0.0}, "finite and > 0"),
    (GIVEN | {"lower": 1.0, "upper": 1.0}, "less than the upper"),
    (GIVEN | {"snap": 1e-3}, "too small, .* for the period"),
    (GIVEN | {"velocity": [1.0, 2.0]}, "a number or have shape"),
    call=lambda limits: OnlineTrajectory(arm(), limits=limits),
)

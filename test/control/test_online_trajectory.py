# SPDX-License-Identifier: Apache-2.0
"""Online trajectories: limits, arrival, derivatives that are those of positions, take-over, and what is refused."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eom_dynamics as eom
from eom_dynamics.control.online_trajectory import RAMP, SMOOTHING, OnlineTrajectory, motion_limits

GIVEN = {"velocity": 2.0, "acceleration": 10.0}
RATES = ("velocity", "acceleration", "jerk", "snap")


@cache
def arm(name: str = "iiwa") -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot(name))


def within(online: OnlineTrajectory, states: np.ndarray, tolerance: float = 1e-9) -> None:
    """Limits hold, and states follow one another."""
    limits = online.limits
    assert (states[:, 0] <= limits.upper + tolerance).all() and (states[:, 0] >= limits.lower - tolerance).all()
    for k, name in enumerate(RATES, start=1):
        assert (np.abs(states[:, k]) <= getattr(limits, name) * (1 + tolerance)).all(), name


def consistent(online: OnlineTrajectory, states: np.ndarray) -> None:
    """Each state is the Taylor polynomial of the one before, with a constant fifth derivative."""
    h, before, after = online.period, states[:-1], states[1:]
    fifth = (after[:, 4] - before[:, 4]) / h
    scales = [np.ones(online.arm.robot.n), *(getattr(online.limits, name) for name in RATES)]
    for k in range(4):
        value, power = before[:, k].copy(), 1.0
        for j in range(k + 1, 6):
            power *= h / (j - k)
            value += power * (before[:, j] if j < 5 else fifth)
        assert (np.abs(after[:, k] - value) < 1e-10 * scales[k]).all(), k


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
    """Change targets at random, of random limits, then rest at one."""
    draw = np.random.default_rng(seed)
    h = 10 ** draw.uniform(-3.7, -2)
    given = random_limits(draw, 7, h)
    online = OnlineTrajectory(arm(), h, given, synchronised=seed % 2 == 1)
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
        within(online, states)
        consistent(online, np.concatenate([last[np.newaxis], states]))
        last = states[-1]
    for goal in draw.uniform(lower, upper, (2, 7)):
        begin, rests = online.state[0], online.arrived
        online.target(goal)
        states = [online.state[np.newaxis]]
        while not online.arrived:
            states.append(online.step(2000))
            assert len(states) < 150
        found = np.concatenate(states)
        within(online, found)
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


@pytest.mark.parametrize("distance", [0.6, 1.0, 3.0])
def test_a_step_takes_the_least_time_of_limited_jerk_and_two_averages(distance: float) -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    V, A, J = 2.0, 10.0, online.limits.jerk[0]
    fastest = distance / V + V / A + A / J
    if distance < V * (V / A + A / J):
        fastest = A / J + np.sqrt((A / J) ** 2 + 4 * distance / A)
    online.target(np.full(7, distance))
    states = online.step(round(1e3 * (fastest + 2 * SMOOTHING)) + 4)
    assert online.state[0] == pytest.approx(distance, abs=1e-12)
    within(online, states)


@pytest.mark.parametrize(("cycles", "apart"), [(3000, 0.004), (450, 0.004), (150, 0.1)])
def test_synchronised_joints_arrive_together(cycles: int, apart: float) -> None:
    """With the slowest one, from rest and from motion, unless a joint brakes at its target already."""
    draw, spread = np.random.default_rng(cycles), []
    for _ in range(5):
        online, free = (OnlineTrajectory(arm(), limits=GIVEN, synchronised=x) for x in (True, False))
        first, goal = draw.uniform(-1, 1, (2, 7))
        for motion in (online, free):
            motion.target(first)
            motion.step(cycles)
        free.take_over(online.state)
        for motion in (online, free):
            motion.target(goal)
        ours, fastest = (3000 - np.argmax(np.abs(x.step(3000)[::-1, 0] - goal) > 1e-6, axis=0) for x in (online, free))
        assert ours.max() <= (1.01 if cycles > 150 else 1.2) * fastest.max() + 4
        spread.append(np.ptp(ours) / ours.max())
    assert np.quantile(spread, 0.8) <= apart


def test_a_target_that_moves_is_met_without_delay_and_stops_at_the_limit() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN | {"lower": -1.0, "upper": 1.0})
    start, velocity = np.linspace(-0.5, -0.2, 7), np.linspace(0.3, 0.6, 7)
    assert online.target(start, velocity) == ()
    online.step(1500)
    assert online.state[0] == pytest.approx(start + 1.5 * velocity, abs=1e-9)
    assert online.state[1] == pytest.approx(velocity, abs=1e-9)
    within(online, online.step(4000))
    assert online.state[0] == pytest.approx(1.0, abs=1e-12)


def test_rounding_does_not_add_up() -> None:
    """In a minute of targets that never rest."""
    online = OnlineTrajectory(arm(), limits=GIVEN)
    for k in range(300):
        phase = 0.02 * k + np.arange(7)
        online.target(0.3 * np.sin(phase), 0.3 * np.cos(phase))
        last = online.state
        states = online.step(200)
    within(online, states)
    consistent(online, np.concatenate([last[np.newaxis], states]))
    online.target(np.full(7, 0.1))
    online.step(3000)
    assert online.state[0] == pytest.approx(0.1, abs=1e-14) and not online.state[1:].any()


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_it_takes_over_any_state_within_a_share_of_limits(share: float) -> None:
    draw = np.random.default_rng(0)
    online = OnlineTrajectory(arm(), limits=GIVEN)
    most = np.stack([getattr(online.limits, name) for name in RATES])
    most[0] /= 2
    for _ in range(30):
        state = np.vstack([draw.normal(size=7), share * most * draw.uniform(-1, 1, (4, 7))])
        excess = online.take_over(state)
        assert excess.max() <= 1e-3 and np.median(excess) <= 1e-9
        states = online.step(1500)
        within(online, states, 1e-9 + 2 * excess.max())
        online.take_over(state)
        consistent(online, np.concatenate([state[np.newaxis], online.step(3)]))
        assert online.step(3000).shape and online.arrived


def test_a_state_that_no_motion_within_limits_has_is_continued_and_says_by_how_much() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    state = np.zeros((5, 7))
    state[2:4] = online.limits.acceleration, online.limits.jerk
    excess = online.take_over(state)
    assert (excess > 0.1).all()
    states = online.step(3000)
    consistent(online, np.concatenate([state[np.newaxis], states]))
    within(online, states[600:])
    assert (np.abs(states[:, 2]) <= 10 * (1 + excess)).all() and online.arrived


def test_a_take_over_of_its_own_motion_goes_on_as_it() -> None:
    online, other = (OnlineTrajectory(arm(), limits=GIVEN) for _ in range(2))
    online.target(np.linspace(0.3, 1.0, 7))
    online.step(250)
    assert (other.take_over(online.state) < 0.01).all()
    other.target(np.linspace(0.3, 1.0, 7))
    ours, theirs = online.step(2000), other.step(2000)
    assert ours[-1] == pytest.approx(theirs[-1], abs=1e-12)
    within(other, theirs, 0.01)
    other.take_over(ours[100])
    other.stop()
    assert np.abs(other.step(3000)[:, 0] - ours[100, 0]).max() < 0.8 and other.arrived


def test_a_subset_of_joints_moves_and_the_others_stay() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    online.reset(np.linspace(0.1, 0.7, 7))
    names = online.arm.robot.joint_names
    online.target({names[2]: -0.5})
    expected = np.linspace(0.1, 0.7, 7)
    expected[2] = -0.5
    online.step(3000)
    assert online.state[0] == pytest.approx(expected, abs=1e-14) and online.arrived


def wave(t: np.ndarray) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * 0.4 * np.asarray(t)[:, np.newaxis] + np.arange(7))


def test_chunks_are_followed_without_rest_or_delay_through_their_seams() -> None:
    """Of a policy: 16 positions at 10 Hz, a new one each 0.4 s, one of which is lost, and jitter."""
    online = OnlineTrajectory(arm(), limits=GIVEN)
    online.reset(wave(np.zeros(1))[0])
    draw = np.random.default_rng(0)
    states = [online.state[np.newaxis]]
    for k in range(12):
        t = 0.4 * k + 0.1 * np.arange(1, 17)
        if k != 5:
            online.follow(t, wave(t))
        states.append(online.step(400 + (int(draw.integers(-30, 30)) if k % 2 else 0)))
    found = np.concatenate(states)
    within(online, found)
    consistent(online, found)
    t = online.period * np.arange(len(found))
    assert np.abs(found[1500:, 0] - wave(t)[1500:]).max() < 0.01
    assert np.abs(found[1500:, 1]).max(axis=1).min() > 0.2
    assert np.abs(found[1500:, 2]).max() < 5.0  # of the wave: 1.9; with a rest at each position, the limit of 10
    last = wave(np.array([0.4 * 11 + 1.6]))[0]
    online.step(2000)
    assert online.arrived and online.state[0] == pytest.approx(last, abs=1e-12)


def test_a_chunk_replaces_the_rest_of_earlier_ones_from_its_first_time_on() -> None:
    online, other = (OnlineTrajectory(arm(), limits=GIVEN) for _ in range(2))
    t = np.linspace(0.2, 2.0, 10)
    for motion in (online, other):
        motion.follow(t, wave(t) - wave(t[:1]))
    online.follow([1.4, 1.5], np.full((2, 7), 0.1))
    assert online.time == 0
    # The knot before the seam, at 1.2 s, has another velocity, and averages know it 0.06 s before the piece to it.
    assert (online.step(900) == other.step(900)).all() and online.time == pytest.approx(0.9)
    online.step(2000)
    assert online.arrived and online.state[0] == pytest.approx(0.1)
    other.target(np.zeros(7))
    other.step(2000)
    assert other.arrived and np.abs(other.state[0]).max() < 1e-12


def test_a_chunk_does_not_overshoot_its_end_nor_start_early() -> None:
    online = OnlineTrajectory(arm(), limits=GIVEN)
    online.follow([0.5, 1.0, 1.5], np.outer([0.1, 0.3, 0.6], np.ones(7)))
    states = online.step(3000)
    assert not states[:440].any() and states[:, 0].max() <= 0.6 + 1e-3 and online.arrived
    assert online.state[0] == pytest.approx(0.6, abs=1e-12)


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
    assert limits.chosen.startswith("jerk [133.3") and limits.chosen.endswith("lowest joint frequency of 9.16 Hz")
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


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "iiwa_joint_7: no limit of velocity"),
        ({"velocity": 1.0}, "no limit of acceleration"),
        (GIVEN | {"jurk": 1.0}, "did you mean jerk"),
        (GIVEN | {"jerk": -1.0}, "must be positive"),
        (GIVEN | {"jerk": np.nan}, "must be positive"),
        (GIVEN | {"snap": 0.0}, "finite and > 0"),
        (GIVEN | {"lower": 1.0, "upper": 1.0}, "less than the upper"),
        (GIVEN | {"jerk": 1e-3}, "too small for the period"),
        (GIVEN | {"velocity": [1.0, 2.0]}, "a number or have shape"),
    ],
)
def test_limits_that_are_refused(limits: Any, message: str) -> None:
    with pytest.raises(eom.StateError, match=message):
        OnlineTrajectory(arm(), limits=limits)

# SPDX-License-Identifier: Apache-2.0
"""Online trajectories: limits, arrival, derivatives that are those of positions, take-over, streams, and refusals."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from chains import without_limits
from hypothesis import given
from hypothesis import strategies as st
from paths import PANDA_BAG
from refusals import refusals
from springs import with_springs

import eom_dynamics as eom
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import (
    RAMP,
    SMOOTHING,
    MotionLimits,
    OnlineTrajectory,
    inertia_and_frequency,
    motion_limits,
    smoothing_for,
)
from eom_dynamics.control.robot_table import RobotTable, limits_of
from eom_dynamics.control.settings import Status

GIVEN = {"velocity": 2.0, "acceleration": 10.0}
RATES = ("velocity", "acceleration", "jerk", "snap")
PERIOD, H = 1_000_000, 1e-3


@cache
def arm(name: str = "iiwa") -> eom.ElasticArm:
    return eom.ElasticArm(without_limits(name) if name == "iiwa" else eom.load_robot(name))


def within(limits: MotionLimits, states: np.ndarray, tolerance: float = 1e-9) -> None:
    assert (states[:, 0] <= limits.upper + tolerance).all() and (states[:, 0] >= limits.lower - tolerance).all()
    for k, name in enumerate(RATES, start=1):
        assert (np.abs(states[:, k]) <= getattr(limits, name) * (1 + tolerance)).all(), name


def consistent(limits: MotionLimits, states: np.ndarray, h: float = H) -> None:
    """Each state is the Taylor polynomial of the one before, up to the largest fifth derivative of both averages."""
    before, after = states[:-1], states[1:]
    lengths = (h * np.maximum(np.ceil(T / h - 1e-9), 1) for T in (2 * limits.jerk / limits.snap, limits.smoothing))
    fifth = 4 * limits.jerk / np.prod(list(lengths), axis=0)
    scales = [1.0, *(getattr(limits, name) for name in RATES)]
    for k in range(5):
        value, power = before[:, k].copy(), 1.0
        for j in range(k + 1, 6):
            power *= h / (j - k)
            value += power * before[:, j] if j < 5 else 0.0
        assert (np.abs(after[:, k] - value) <= fifth * power + 1e-10 * scales[k]).all(), k


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


def test_chunks_of_dense_positions_are_followed_through_their_seams() -> None:
    """Positions of the chunk before are kept as long as averages of the path reach back."""
    online, path = OnlineTrajectory(arm(), limits=GIVEN | {"jerk": 80.0}), 0.3 * np.ones(7)

    def motion(t: np.ndarray) -> np.ndarray:
        return path * (1 - np.cos(3 * t[:, np.newaxis]))

    errors = []
    for k in range(40):
        begin = 0.1 * k
        t = begin + np.arange(0, 0.5, 0.01)
        online.follow(t, motion(t))
        states = online.step(100)[:, 0]
        errors.append(states - motion(begin + 1e-3 * np.arange(1, 101)))
    assert np.abs(errors[5:]).max() < 2e-3


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
        within(online.limits, states, 1e-9 + 2 * excess.max())
        online.take_over(state)
        consistent(online.limits, np.concatenate([state[np.newaxis], online.step(3)]))
        assert online.step(3000).shape and online.arrived


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


def test_a_take_over_of_its_own_motion_goes_on_as_it() -> None:
    online, other = (OnlineTrajectory(arm(), limits=GIVEN) for _ in range(2))
    online.target(np.linspace(0.3, 1.0, 7))
    online.step(250)
    assert (other.take_over(online.state) < 0.01).all()
    other.target(np.linspace(0.3, 1.0, 7))
    ours, theirs = online.step(2000), other.step(2000)
    assert ours[-1] == pytest.approx(theirs[-1], abs=1e-12)
    within(other.limits, theirs, 0.01)
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
    online.target(expected, np.array([*np.full(6, 0.2), 9.0]))  # the last one is clamped to 2
    online.step(500)
    online.target({names[2]: -0.5})  # the others rest where their targets are
    online.step(3000)
    assert np.delete(online.state[0] - expected, 2) == pytest.approx(
        np.array([0.1, 0.1, 0.1, 0.1, 0.1, 1.0]), abs=1e-12
    )


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
    within(online.limits, found)
    consistent(online.limits, found)
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
    assert (online.step(700) == other.step(700)).all()
    other.follow(t[4:], (wave(t) - wave(t[:1]))[4:])  # the same again
    assert (online.step(200) == other.step(200)).all() and online.time == pytest.approx(0.9)
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


# --- Streams of targets -----------------------------------------------------------------

# Rate of targets, Hz; jitter, of their interval; noise, rad; and whether they have velocities.
STREAMS = {
    "steps": (0.7, 0.5, 0.5, False),
    "10 Hz, jitter 30 %": (10.0, 0.3, 0.0, False),
    "50 Hz, noise": (50.0, 0.1, 2e-3, False),
    "100 Hz, velocities": (100.0, 0.0, 0.0, True),
    "500 Hz": (500.0, 0.0, 0.0, False),
}


def targets(
    name: str, seconds: float, draw: np.random.Generator
) -> Iterator[tuple[int, np.ndarray, np.ndarray | None]]:
    """Cycles until the next target, its position and velocity, of motions that exceed all limits now and then."""
    rate, jitter, noise, velocities = STREAMS[name]
    w, phase = 2 * np.pi * draw.uniform(0.02, 0.8, (3, 7)), draw.uniform(0, 6, (3, 7))
    size = draw.uniform(0.05, 0.5, (3, 7))
    now = 0
    for k in range(round(seconds * rate)):
        angle = w * k / rate + phase
        q = (size * np.sin(angle)).sum(axis=0) + noise * draw.normal(size=7)
        qd = (size * w * np.cos(angle)).sum(axis=0) if velocities else None
        then = round(1e3 * (k + 1 + jitter * draw.random()) / rate)
        yield max(then - now, 1), q, qd
        now = max(then, now + 1)


def end_of(limits: MotionLimits, parts: list[np.ndarray]) -> np.ndarray:
    found = np.concatenate(parts)
    within(limits, found)
    consistent(limits, found)
    return found[-1:]


def stream(name: str, seconds: float, seed: int) -> None:
    online, draw = OnlineTrajectory(arm(), H, GIVEN | {"lower": -1.0, "upper": 1.0}), np.random.default_rng(seed)
    parts = [online.state[np.newaxis]]
    for cycles_to_next, q, qd in targets(name, seconds, draw):
        online.target(q, qd)
        parts.append(online.step(cycles_to_next))
        if len(parts) == 1000:
            parts = [end_of(online.limits, parts)]
    end_of(online.limits, parts)


@pytest.mark.parametrize("name", STREAMS)
def test_streams_keep_limits(name: str) -> None:
    stream(name, 6.0, 0)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", STREAMS)
def test_streams_keep_limits_for_two_hours(name: str) -> None:
    stream(name, 7200.0, 1)


def chunks(rows: slice) -> tuple[np.ndarray, Iterator[tuple[float, np.ndarray, np.ndarray]]]:
    """Start of a Panda's recorded motion; times of arrival of its chunks of 16 at 10 Hz, their times and positions."""
    from eom_dynamics.recordings.joint_recordings import read_recording

    recorded = read_recording(PANDA_BAG, eom.load_robot("panda"))[rows]
    t, draw = recorded.t - recorded.t[0], np.random.default_rng(0)
    at = partial(np.interp, xp=t)
    sampled = np.column_stack([at(np.arange(0, t[-1], 0.1), fp=q) for q in recorded.q.T])

    def sent() -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
        for k in range(len(sampled) - 16):
            arrival, lost = 0.1 * (k + 0.3 * draw.random()), draw.random() < 0.05
            if not lost:
                yield arrival, 0.1 * np.arange(k + 1, k + 17), sampled[k + 1 : k + 17]

    return sampled[0], sent()


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is not beside this checkout")
def test_chunks_of_a_recorded_motion() -> None:
    """With jitter and lost ones, in the control loop: limits of motion, efforts and their rates hold; it is on time."""
    pytest.importorskip("rosbags")
    panda = arm("panda")
    loop, limits, numbers = ControlLoop(RobotTable(panda)), motion_limits(panda), limits_of(panda)
    loop.limit(limits, H)
    loop.configure(safety="permissive")
    start, sent = chunks(slice(0, 110))
    loop.restart(start)
    now, begin, states, shares, aimed = PERIOD, PERIOD, [], [], []
    for arrival, times, positions in sent:
        while (now - begin) * 1e-9 < arrival:
            now += PERIOD
            loop.update(now, H)
            states.append(loop.state.copy())
            shares.append([np.max(np.abs(loop.command[x]) / numbers[f"upper.{x}"]) for x in ("tau", "taud")])
        assert loop.aim(now, positions, times=times, origin=begin) == 0
        aimed.append((times[0], positions[0]))
    found = np.array(states)
    assert np.max(shares) <= 1.0
    within(limits, found)
    errors = np.array([found[round(1e3 * t) - 1, 0] - q for t, q in aimed if 0.5 < t < 1e-3 * len(found)])
    assert np.abs(errors).max() < 0.003  # 1.6 mrad where the motion turns, which averages cut


def test_limits_hold_in_late_cycles_and_a_chunk_after_a_pause_is_on_time() -> None:
    """Cycles of a busy machine; nothing runs while the arm rests for seconds between the two."""
    panda = arm("panda")
    loop, limits, draw = ControlLoop(RobotTable(panda)), motion_limits(panda), np.random.default_rng(0)
    loop.limit(limits, 4 * H)
    loop.configure(safety="permissive", limits="refuse")
    start = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    loop.restart(start)
    now = 10**12
    for swing in range(6):
        assert loop.aim(now, start + 0.8 * (-1) ** swing * (np.arange(7) == 0)) == 0
        end = now + 15 * 10**8
        while now < end:
            now += 4 * PERIOD + (draw.random() < 0.2) * int(draw.integers(0, 6 * PERIOD))
            assert loop.update(now, 4 * H) == 0
            # Between the ends of periods, snap counts as constant: 1e-4 of a limit.
            within(limits, loop.state[np.newaxis], 1e-4)
    assert loop.number("arrived")
    now += 2 * 10**9
    last = loop.state[0].copy()
    times = np.array([0.1, 0.2])
    assert loop.aim(now, np.stack([last + 0.02, last + 0.04]), times=times, origin=now) == 0
    for _ in range(150):
        now += 4 * PERIOD
        loop.update(now, 4 * H)
    np.testing.assert_allclose(loop.state[0], last + 0.04, atol=1e-9)


@pytest.mark.parametrize("pause", [5, 20, 3000])
def test_a_motion_begins_without_a_step_where_cycles_had_ended_at_rest(pause: int) -> None:
    """The first command is that of a loop whose cycles go on at rest; pauses in ms."""
    panda = arm("panda")
    start, first = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]), []
    for cycles in (500, 500 + pause):
        loop, now = ControlLoop(RobotTable(panda)), 10**12
        loop.limit(motion_limits(panda), H)
        loop.restart(start)
        loop.aim(now, start)
        for k in range(cycles):
            loop.update(now + k * PERIOD, H)
        assert loop.number("arrived")
        now += (500 + pause) * PERIOD
        loop.aim(now, start + 0.3)
        loop.update(now, H)
        first.append(loop.state.copy())
    np.testing.assert_allclose(*first, rtol=1e-9, atol=1e-15)  # sums of averages are renewed in each cycle
    assert first[0][1:].any() and np.abs(first[0][0] - start).max() < 1e-6


@pytest.mark.parametrize("action", ["stop", "lose"])
def test_a_stop_amid_a_target_keeps_limits_and_another_target_goes_on_from_it(action: str) -> None:
    panda, draw = arm("panda"), np.random.default_rng(3)
    loop, limits = ControlLoop(RobotTable(panda)), motion_limits(panda)
    loop.limit(limits, H)
    loop.configure(limits="refuse", on_setpoint_loss="hold", setpoint_timeout=1.0)
    start = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    loop.restart(start)
    now, states = PERIOD, []
    for k in range(20):
        assert loop.aim(now, start + draw.uniform(-0.5, 0.5, 7)) == 0
        for cycle in range(until := int(draw.integers(100, 300)) + 20 * k):
            if cycle == until // 2:
                loop.act(action)
            now += PERIOD
            assert loop.update(now, H) == 0
            states.append(loop.state.copy())
        assert loop.number("stopping") and not loop.number("excess")
    for _ in range(1000):
        now += PERIOD
        loop.update(now, H)
        states.append(loop.state.copy())
    assert not states[-1][1:].any() and loop.status is Status.HELD
    end_of(limits, [np.array(states)])

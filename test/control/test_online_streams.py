# SPDX-License-Identifier: Apache-2.0
"""Online trajectories of streams and chunks of targets: limits, delay, seams, late cycles, and stops amid them."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from online import GIVEN, PERIOD, H, arm, consistent, within
from paths import PANDA_BAG

import eom_dynamics as eom
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import MotionLimits, OnlineTrajectory, motion_limits
from eom_dynamics.control.robot_table import RobotTable, limits_of

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


@pytest.mark.skipif(not PANDA_BAG.is_file(), reason="the recording of a Panda is missing")
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
    """After a pause (ms), the first command equals that of a loop that kept cycling at rest."""
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


def wave(t: np.ndarray) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * 0.4 * np.asarray(t)[:, np.newaxis] + np.arange(7))


def test_chunks_are_followed_without_rest_or_delay_through_their_seams() -> None:
    """Chunks of a policy: 16 positions at 10 Hz every 0.4 s, with jitter and one chunk lost."""
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

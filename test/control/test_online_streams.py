# SPDX-License-Identifier: Apache-2.0
"""Streams of targets for online trajectories: never a violation of limits; chunks of a recorded motion."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from paths import PANDA_BAG

import eom_dynamics as eom
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import OnlineLimits, OnlineTrajectory, motion_limits
from eom_dynamics.control.robot_table import RobotTable, limits_of
from eom_dynamics.control.settings import Status

PERIOD, H = 1_000_000, 1e-3
RATES = ("velocity", "acceleration", "jerk", "snap")
GIVEN = {"velocity": 2.0, "acceleration": 10.0, "lower": -1.0, "upper": 1.0}

# Rate of targets, Hz; jitter, of their interval; noise, rad; and whether they have velocities.
STREAMS = {
    "steps": (0.7, 0.5, 0.5, False),
    "10 Hz, jitter 30 %": (10.0, 0.3, 0.0, False),
    "50 Hz, noise": (50.0, 0.1, 2e-3, False),
    "100 Hz, velocities": (100.0, 0.0, 0.0, True),
    "500 Hz": (500.0, 0.0, 0.0, False),
}


def arm_of(name: str) -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot(name))


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


def violations(limits: OnlineLimits, states: np.ndarray) -> int:
    """Cycles beyond limits by more than 1e-9, or not the Taylor polynomial of the cycle before to 1e-9."""
    bad = np.zeros(len(states), dtype=bool)
    bad |= ((states[:, 0] > limits.upper + 1e-9) | (states[:, 0] < limits.lower - 1e-9)).any(axis=1)
    for k, name in enumerate(RATES, start=1):
        bad |= ~(np.abs(states[:, k]) <= getattr(limits, name) * (1 + 1e-9)).all(axis=1)
    before, after = states[:-1], states[1:]
    fifth, scales = (after[:, 4] - before[:, 4]) / H, [1.0, *(getattr(limits, name) for name in RATES)]
    for k in range(4):
        value, power = before[:, k].copy(), 1.0
        for j in range(k + 1, 6):
            power *= H / (j - k)
            value += power * (before[:, j] if j < 5 else fifth)
        bad[1:] |= ~(np.abs(after[:, k] - value) <= 1e-9 * scales[k]).all(axis=1)
    return int(bad.sum())


def stream(name: str, seconds: float, seed: int) -> None:
    online, draw = OnlineTrajectory(arm_of("iiwa"), H, GIVEN), np.random.default_rng(seed)
    parts, cycles = [online.state[np.newaxis]], 0
    for cycles_to_next, q, qd in targets(name, seconds, draw):
        online.target(q, qd)
        parts.append(online.step(cycles_to_next))
        cycles += cycles_to_next
        if cycles > 10_000:
            found = np.concatenate(parts)
            assert violations(online.limits, found) == 0
            parts, cycles = [found[-1:]], 0
    assert violations(online.limits, np.concatenate(parts)) == 0


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
    from eom_dynamics.tools.identify.read import read_recording

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
    arm = arm_of("panda")
    loop, limits, numbers = ControlLoop(RobotTable(arm)), motion_limits(arm), limits_of(arm)
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
    for k, name in enumerate(RATES, start=1):
        assert (np.abs(found[:, k]) <= getattr(limits, name) * (1 + 1e-9)).all(), name
    errors = np.array([found[round(1e3 * t) - 1, 0] - q for t, q in aimed if 0.5 < t < 1e-3 * len(found)])
    assert np.abs(errors).max() < 0.003  # 1.6 mrad where the motion turns, which averages cut


def test_limits_hold_in_late_cycles_and_a_chunk_after_a_pause_is_on_time() -> None:
    """Cycles of a busy machine; nothing runs while the arm rests for seconds between the two."""
    arm = arm_of("panda")
    loop, limits, draw = ControlLoop(RobotTable(arm)), motion_limits(arm), np.random.default_rng(0)
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
            for k, name in enumerate(RATES, start=1):
                # Between the ends of periods, snap counts as constant: 1e-4 of a limit.
                assert (np.abs(loop.state[k]) <= getattr(limits, name) * (1 + 1e-4)).all(), name
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
    arm = arm_of("panda")
    start, first = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]), []
    for cycles in (500, 500 + pause):
        loop, now = ControlLoop(RobotTable(arm)), 10**12
        loop.limit(motion_limits(arm), H)
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
    arm, draw = arm_of("panda"), np.random.default_rng(3)
    loop, limits = ControlLoop(RobotTable(arm)), motion_limits(arm)
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
    assert violations(limits, np.array(states)) == 0

# SPDX-License-Identifier: Apache-2.0
"""Loss of setpoints: when it is one, and the stop that responds to it, smooth and within limits."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.stop import to_rest

import eom_dynamics as eom
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop, Refusal, rows
from eom_dynamics.control.online_trajectory import stop_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import Status
from eom_dynamics.elastic import BaseMotion, LimitCheck
from eom_dynamics.trajectory import Spline, check, rest_to_rest

MS = 1_000_000
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
SIZES = np.array([0.3, 1.0, 2.0, 10.0, 100.0])[:, None]
SETPOINT = np.array([[0.2, -0.4], [0.6, 0.3], [0.5, 1.0], [2.0, -3.0], [10.0, 4.0]])
ROUNDING = 1e-12
"""Of velocity, rad/s, and acceleration, rad/s², which are sums over the last cycles."""
IMU = (("w", "wd", "wdd", "wddd"), ("f", "fd", "fdd"))


@cache
def table(name: str) -> RobotTable:
    return RobotTable(eom.ElasticArm(replace(eom.load_robot(name), moving_base=name == "vsa_planar_2r")))


class Stream:
    """A loop to which setpoints come, or none, on a clock of the test."""

    def __init__(self, name: str, **settings: Any) -> None:
        self.loop, self.now = ControlLoop(table(name)), 10**18
        self.arm = self.loop.arm
        self.loop.configure(safety="permissive", **settings)

    def say(self, state: Any, **more: Any) -> int:
        """Answer a setpoint at rest but for a state (5, n) and other vectors; returns what the cycle does."""
        self.loop.rest(on_base="w" in more)
        for name, values in (dict(zip(STATE_NAMES, state, strict=True)) | more).items():
            self.loop.given[name][:] = values
        self.loop.refer(0)
        return self.loop.update(self.now)

    def wait(self, nanoseconds: int) -> int:
        self.now += nanoseconds
        return self.loop.update(self.now)

    def rest_of_it(self, step: int = 20 * MS) -> list[tuple[float, np.ndarray]]:
        """Times and states of a response until its end, from the first command on."""
        found, time = [], 0.0
        while True:
            assert self.wait(step if found else 0) <= 0
            time += step * 1e-9 if found else 0.0
            found.append((time, rows(self.loop.setpoint, STATE_NAMES)))
            if self.loop.status is Status.HELD:
                return found

    def number(self, name: str) -> float:
        return self.loop.number(name)


# --- Stops ------------------------------------------------------------------------------


def stop_of(name: str, state: np.ndarray, step: int = MS, **settings: Any) -> tuple[Stream, np.ndarray, np.ndarray]:
    """The stop from a state (5, n): its loop, times (N,) and states (N, 5, n)."""
    stream = Stream(name, **settings)
    stream.say(state)
    stream.loop.act("stop")
    times, states = zip(*stream.rest_of_it(step), strict=True)
    return stream, np.array(times), np.array(states)


def duration(times: Any, states: np.ndarray) -> float:
    """Time from which on the arm rests, but for rounding."""
    moves = np.abs(states[:, 1:3]).max(axis=(1, 2)) > ROUNDING
    return float(times[np.flatnonzero(moves)[-1] + 1])


def from_velocity(name: str, joint: int, v: float) -> np.ndarray:
    """State (5, n) of a joint at constant velocity."""
    state = np.zeros((5, table(name).arm.robot.n))
    state[0], state[1, joint] = HOME[: state.shape[1]], v
    return state


@pytest.mark.parametrize(
    ("name", "joint", "v", "T"),
    [("planar_2r", 0, 2.0, 0.4), ("sea_planar_2r", 1, -0.5, 0.3), ("panda", 6, 2.0, 0.3), ("panda", 6, -0.1, 1.0)],
)
def test_from_a_velocity_alone_it_slows_down_monotonically_with_the_documented_peaks(
    name: str, joint: int, v: float, T: float
) -> None:
    """Acceleration p A and jerk p² J of a slower clock, averaged twice, so that it takes the wanted time."""
    stream, times, states = stop_of(name, from_velocity(name, joint, v), stop_duration=T)
    q, qd, qdd, qddd, qdddd = states[:, :, joint].T * np.sign(v)
    assert np.all(np.diff(qd) <= ROUNDING) and qd[-1] == 0.0
    A, J, _, average = stop_limits(stream.arm)[joint, 3:7]
    rising, left, v = A / J, T - 2 * average, abs(v)
    if v < A * rising:  # less than the whole acceleration is needed
        A, rising = np.sqrt(v * J), np.sqrt(v / J)
    p = (v / A + rising) / left
    flat = v / (p * A) > rising / p + 2 * average
    peak = p * A - (0 if flat else (p**2 * J) * average / 3)
    assert stream.number("stop_end") == pytest.approx(T, rel=1e-3) and duration(times, states) <= T + 1e-9
    assert q[-1] - q[0] == pytest.approx(v * T / 2, rel=1e-3)
    outside = max(1 - rising / p / (2 * average), 0.0)  # of the averages, where the rise is short
    jerk, snap = p**2 * J * (1 - outside**2), p**2 * J * (1 if flat else 2) / average
    for rate, most in ((qdd, peak), (qddd, jerk), (qdddd, snap)):
        assert np.max(np.abs(rate)) == pytest.approx(most, rel=5e-3)
    others = np.delete(states, joint, axis=2)
    assert not np.ptp(others, axis=0).any()


@pytest.mark.parametrize("name", ["sea_planar_2r", "panda"])
def test_it_continues_with_four_derivatives(name: str) -> None:
    """By differences, from the last command on."""
    n = table(name).arm.robot.n
    state = np.random.default_rng(7).uniform(-0.3, 0.3, (5, n)) * np.array([1, 1, 3, 10, 30])[:, None]
    state[0] = HOME[:n]
    states = stop_of(name, state, stop_duration=0.4)[2]
    np.testing.assert_allclose(states[0], state, rtol=1e-9, atol=1e-9)
    h, steps = 1e-3, np.abs(np.diff(states[:, 4], axis=0)).max(axis=0)
    finer = np.abs(np.diff(stop_of(name, state, MS // 10, stop_duration=0.4)[2][:, 4], axis=0)).max(axis=0)
    assert np.all(finer <= 0.11 * steps)  # the snap has no jumps
    most = np.abs(states).max(axis=0)
    for k, bound in enumerate((h**3 / 6 * most[3], h**3 / 6 * most[4], h**2 / 4 * steps, h / 2 * steps)):
        means = (states[1:, k + 1] + states[:-1, k + 1]) / 2
        assert np.all(np.abs(np.diff(states[:, k], axis=0) - h * means) <= bound + 1e-12), k
    assert not states[-1, 1:].any()


@given(at=st.floats(0.05, 0.95), wanted=st.sampled_from((0.05, 0.3, 1.0)))
def test_from_motions_within_limits_it_stays_within_limits(at: float, wanted: float) -> None:
    """Another check says so, also between cycles."""
    stream = Stream("panda", stop_duration=wanted)
    motion = rest_to_rest(HOME, HOME + 0.4, 1.2)
    assert check(stream.arm, motion, rate=1000.0).ok
    stream.say(np.stack(motion.derivatives(1.2 * at)))
    stream.loop.act("stop")
    assert stream.number("excess") <= 1e-9
    times, states = zip(*stream.rest_of_it(MS), strict=True)
    states = np.array(states)
    assert duration(times, states) <= max(wanted, stream.number("stop_end") + 1e-3)
    verdict = check(stream.arm, Spline(times, np.swapaxes(states, 0, 1)), rate=2000.0)
    assert max((quantity.ratio for quantity in verdict.exceeded), default=1.0) < 1.001


@pytest.mark.parametrize(("name", "share"), [("iiwa", 0.9), ("ur5e", 0.3), ("ur5e", 0.9), ("sea_planar_2r", 0.9)])
def test_where_it_would_take_more_than_efforts_and_motors_have_it_slows_down_before(name: str, share: float) -> None:
    """From joints that move at a share of their limits of velocity, in less time than they can stop."""
    arm = table(name).arm
    state = np.zeros((5, arm.robot.n))
    state[0] = HOME[: arm.robot.n]
    for i, joint in enumerate(arm.robot.independent_joints):
        state[1, i] = (-1) ** i * share * min(joint.limits.velocity, 3.0)
    stream, times, states = stop_of(name, state, stop_duration=0.05)
    assert stream.number("excess") <= 1e-9
    assert duration(times, states) > stream.number("stop_end") + 1e-3  # later than planned without these
    lower, upper = LimitCheck(arm).rows
    for x in states:
        values = np.concatenate((*x, *arm.feedforward(*x)))
        assert np.all(values <= upper) and np.all(values >= lower)


def test_near_the_end_of_a_range_it_is_shorter_and_where_limits_need_it_longer() -> None:
    upper, state = table("panda").arm.robot.joints[0].limits.upper, from_velocity("panda", 0, 0.5)
    state[0, 0] = upper - 0.06
    stream, times, states = stop_of("panda", state, stop_duration=0.3)
    assert stream.number("excess") <= 1e-9 and stream.number("stop_end") < 0.3 and duration(times, states) < 0.25
    assert states[-1, 0, 0] < upper
    A, J, _, average = stop_limits(stream.arm)[0, 3:7]
    stream, times, states = stop_of("panda", from_velocity("panda", 0, 2.1), stop_duration=0.05)
    assert stream.number("excess") <= 1e-9
    assert stream.number("stop_end") == pytest.approx(2.1 / A + A / J + 2 * average, abs=1e-3)
    assert duration(times, states) == pytest.approx(stream.number("stop_end"), abs=1e-3)
    assert np.abs(states[:, 2, 0]).max() <= A * (1 + 1e-9)


def test_a_stop_that_a_restart_ends_before_its_first_cycle_leaves_the_next_one_as_it_is() -> None:
    """The next one repeated the last command once more: it took the first for its own."""
    stream = Stream("panda", on_setpoint_loss="hold", setpoint_timeout=0.01)
    moves = np.zeros((5, 7))
    moves[0], moves[1] = HOME, 0.1
    stream.say(moves)
    stream.loop.act("lose")
    stream.loop.restart(HOME)
    stream.wait(MS)
    stream.say(moves)
    positions = []
    while len(positions) < 40:
        stream.wait(MS)
        positions.append(stream.loop.setpoint["q"][0])
        if stream.loop.status is Status.STOPPING:
            break
    stream.wait(MS)
    assert len(positions) < 40 and stream.loop.setpoint["q"][0] > positions[-1]


def test_after_a_restart_that_leaves_the_arm_held_the_first_setpoint_is_compared_with_its_command() -> None:
    """A motor without a limit of velocity could step, in the first cycle."""
    loop, q = ControlLoop(table("planar_2r")), np.array([0.2, -0.4])
    loop.restart(q)
    for k, act in enumerate(("", "stop")):
        loop.rest()
        loop.given["q"][:] = q
        loop.refer(k * MS)
        loop.update(k * MS)
        if act:
            loop.act(act)
    for k in range(2, 300):
        loop.update(k * MS)
    loop.restart(q, 300 * MS)
    loop.rest()
    loop.given["q"][:] = q + 0.05
    loop.refer(300 * MS)
    assert loop.update(300 * MS) == Refusal.jump
    assert loop.setpoint["q"].tolist() == q.tolist()


def test_wrench_stiffness_and_base_come_to_rest_too() -> None:
    """Within stop_duration, by the documented polynomials, also where the joints rest sooner."""
    rng, T = np.random.default_rng(5), 0.5
    given = dict(zip(("W", "Wd", "Wdd"), rng.normal(size=(3, 6)), strict=True))
    given |= dict(zip(("k", "kd", "kdd"), ([260.0, 130.0], [20.0, -10.0], [50.0, 0.0]), strict=True))
    base = BaseMotion(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)))
    for names, values in zip(IMU, base, strict=True):
        given |= dict(zip(names, values, strict=True))
    for state in (0.1 * rng.normal(size=(5, 2)), np.array([[0.1, 0.2], *np.zeros((4, 2))])):
        stream = Stream("vsa_planar_2r", stop_duration=T)
        stream.say(state, **given)
        stream.loop.act("stop")
        x = stream.loop.setpoint
        for k in range(60):
            stream.wait(10 * MS if k else 0)
            for names in (("W", "Wd", "Wdd"), ("k", "kd", "kdd"), *IMU):
                expected = to_rest([given[name] for name in names], T)(0.01 * k)
                for name, values in zip(names, expected, strict=True):
                    np.testing.assert_allclose(x[name], values, rtol=1e-10, atol=1e-9, err_msg=f"{name} {k}")
        assert stream.loop.status is Status.HELD
        for name in ("Wd", "Wdd", "kd", "kdd", *IMU[0][1:], *IMU[1][1:]):
            np.testing.assert_array_equal(x[name], 0.0)
        np.testing.assert_allclose(x["k"][0], 260.0 + T / 2 * 20.0 + T**2 / 7 * 50.0)
        assert stream.number("on_base") == 1.0


@pytest.mark.parametrize("policy", ["hold", "deactivate"])
def test_infeasible_stop_holds_position(policy: str) -> None:
    """Springs would be slack: at their minimum stiffness, they exert no efforts."""
    stream = Stream("vsa_planar_2r", on_setpoint_loss=policy, setpoint_timeout=0.05)
    hanging = np.array([[-np.pi / 2, 0.0], [1.0, 0.0], *np.zeros((3, 2))])
    assert stream.say(hanging, k=[100.0, 100.0]) <= 0
    last = {name: x.copy() for name, x in stream.loop.command.items()}
    stream.loop.act("lose")
    for k in range(30):
        stream.wait(5 * MS)
        assert stream.number("lost") and stream.number("excess") == np.inf
        for name, x in stream.loop.command.items():
            if name in ("motor_velocity", "motor_acceleration"):
                assert not x.any() or k == 0  # which repeats the last command
            else:
                np.testing.assert_allclose(x, last[name], rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(stream.loop.command["motor_position"], last["motor_position"])
        np.testing.assert_allclose(stream.loop.sent["drive_effort"], last["motor_effort"], rtol=1e-12, atol=1e-15)
        rests = Status.HELD if policy == "hold" else Status.LOST
        assert stream.loop.status is (Status.STOPPING if k == 0 else rests)  # the first cycle repeats the last command
    assert stream.say(hanging, k=[100.0, 100.0]) == (Refusal.inactive if policy == "deactivate" else 0)  # type: ignore[attr-defined]
    # Switched on again, the arm stays where a trajectory has brought it.
    stream.loop.restart()
    stream.loop.send_trajectory(rest_to_rest([0.0, 0.0], [0.1, 0.1], 0.6), stream.now)
    assert stream.loop.plan(stream.now, 1e-3) == 0
    for _ in range(40):
        assert stream.wait(20 * MS) <= 0
    np.testing.assert_allclose(stream.loop.setpoint["q"], 0.1, rtol=1e-12)
    assert not stream.loop.command["motor_velocity"].any()


def test_where_a_stop_is_depends_on_time_alone() -> None:
    """Not on the cycles until then: a replay has others, amid which setpoints are refused."""
    found = []
    for steps in ([9 * MS] * 4, [1, 17 * MS + 3, 5 * MS, 14 * MS - 4]):
        stream = Stream("sea_planar_2r")
        stream.say(SETPOINT)
        stream.loop.act("stop")
        stream.wait(0)
        for step in steps:
            stream.wait(step)
        found.append(rows(stream.loop.command, EFFORT_NAMES))
    np.testing.assert_array_equal(*found)


def test_a_stall_or_a_jump_of_the_clock_during_a_stop_is_no_step() -> None:
    """They count 20 ms, or nothing where the clock goes back."""

    def begun() -> Stream:
        stream = Stream("sea_planar_2r", on_setpoint_loss="hold", stop_duration=0.4)
        stream.say(SETPOINT)
        stream.loop.act("lose")
        stream.wait(0)
        return stream

    stream, calm, passed = begun(), begun(), 0
    stream.wait(MS)
    for jump, until in ((5_000_000 * MS, 21), (-5_000_001 * MS, 21), (MS, 22)):
        stream.wait(jump)
        for _ in range(until - passed):
            calm.wait(MS)
        passed = until
        np.testing.assert_allclose(stream.loop.setpoint["q"], calm.loop.setpoint["q"], rtol=1e-12)


# --- Losses -----------------------------------------------------------------------------


@given(timeout=st.integers(5, 5000), late=st.lists(st.integers(0, 3), max_size=30))
def test_a_timeout_is_found_after_it_and_within_a_few_cycles(timeout: int, late: list[int]) -> None:
    """Ten cycles a timeout, which come up to three tenths of a period late."""
    period = timeout * MS // 10
    stream = Stream("sea_planar_2r", setpoint_timeout=timeout * 1e-3)
    stream.say(SETPOINT)
    start = stream.now
    for k in range(30):
        stream.wait(start + (k + 1) * period + (late[k] * period // 10 if k < len(late) else 0) - stream.now)
        if stream.number("timeouts"):
            break
    assert timeout * MS * (1 - 1e-9) <= stream.now - start <= (timeout * 1.2 + 1) * MS
    assert stream.number("age") == pytest.approx((stream.now - start) * 1e-9, rel=1e-6)


def test_a_stall_a_jump_and_a_clock_that_goes_back_are_no_timeout() -> None:
    stream = Stream("sea_planar_2r", setpoint_timeout=0.1)
    stream.say(SETPOINT)
    stream.wait(10_000 * MS)
    stream.now += MS
    stream.say(SETPOINT)
    stream.wait(-5_000 * MS)
    assert not stream.number("timeouts") and stream.number("age") == 0.0
    # One of less than a nanosecond is one of two.
    shortest = Stream("sea_planar_2r", setpoint_timeout=1e-10)
    shortest.say(SETPOINT)
    for _ in range(3):
        shortest.wait(1)
    assert shortest.number("timeouts") == 1
    # Two cycles without a setpoint: half of the timeout each.
    stream.wait(4_995 * MS)
    assert not stream.number("timeouts")
    stream.wait(4_000 * MS)
    assert stream.number("timeouts") == 1


def test_nothing_is_lost_before_the_first_setpoint_nor_after_a_restart() -> None:
    stream = Stream("sea_planar_2r", on_setpoint_loss="hold", setpoint_timeout=0.05)
    for again in range(2):
        for _ in range(10):
            stream.wait(50 * MS)
        stream.loop.act("lose")
        stream.wait(0)
        assert not stream.number("timeouts") and not stream.number("lost") and stream.loop.status is Status.WAITING
        if not again:
            stream.say(SETPOINT)
            stream.loop.restart()


def test_reported_loss_commands_nothing() -> None:
    stream = Stream("sea_planar_2r", on_setpoint_loss="none", setpoint_timeout=0.05)
    stream.say(SETPOINT)
    last = stream.loop.command["motor_position"].tobytes()
    for _ in range(100):
        stream.wait(5 * MS)
        assert stream.loop.command["motor_position"].tobytes() == last
    assert stream.number("timeouts") == 1 and stream.number("lost") and not stream.number("stopping")
    assert stream.loop.status is Status.HELD
    assert stream.say(0.5 * np.eye(5, 2)) == 0
    stream.loop.restart()
    assert stream.say(0.5 * np.eye(5, 2)) == 0 and stream.loop.status is Status.FRESH


def test_loss_that_deactivates_brings_the_arm_to_rest_and_refuses_setpoints() -> None:
    stream = Stream("sea_planar_2r", on_setpoint_loss="deactivate", setpoint_timeout=0.05)
    stream.say(SETPOINT)
    statuses = []
    for _ in range(200):
        stream.wait(5 * MS)
        statuses.append(stream.loop.status)
    first = statuses.index(Status.STOPPING)
    assert set(statuses[first:]) == {Status.STOPPING, Status.LOST} and statuses[-1] is Status.LOST
    assert not stream.loop.command["motor_velocity"].any() and stream.number("timeouts") == 1
    assert stream.say(0.5 * np.eye(5, 2)) == Refusal.inactive  # type: ignore[attr-defined]
    stream.loop.restart()
    assert stream.say(0.5 * np.eye(5, 2)) == 0 and stream.loop.status is Status.FRESH

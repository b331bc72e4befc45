# SPDX-License-Identifier: Apache-2.0
"""Loss of setpoints: when it is one, and the stop or the ramp that responds to it, smooth and within limits."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import example, given
from hypothesis import strategies as st
from reference.stop import rest_after, to_rest

import eom_dynamics as eom
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop, Refusal, rows
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import Status
from eom_dynamics.elastic import BaseMotion
from eom_dynamics.trajectory import check, rest_to_rest

MS = 1_000_000
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
SIZES = np.array([0.3, 1.0, 2.0, 10.0, 100.0])[:, None]
SETPOINT = np.array([[0.2, -0.4], [0.6, 0.3], [0.5, 1.0], [2.0, -3.0], [10.0, 4.0]])
IMU = (("w", "wd", "wdd", "wddd"), ("f", "fd", "fdd"))


@cache
def table(name: str) -> RobotTable:
    return RobotTable(eom.ElasticArm(eom.load_robot(name)), moving_base=name == "vsa_planar_2r")


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


def test_from_a_velocity_alone_it_slows_down_monotonically_with_the_documented_peaks() -> None:
    """From other states it ends where the documented fractions say."""
    v, T = 2.0, 0.4
    stream = Stream("planar_2r", stop_duration=T)
    stream.say(v * np.eye(5)[1][:, None] * np.ones(2))
    stream.loop.act("stop")
    q, qd, qdd, qddd, qdddd = np.array([x[:, 0] for _, x in stream.rest_of_it(MS // 10)]).T
    # Also where it is almost at rest: there, drives see the sign of the smallest velocity.
    assert np.all(np.diff(qd) <= 0.0) and q[-1] == pytest.approx(0.5 * T * v)
    for rate, factor, k in ((qdd, 35 / 16, 1), (qddd, 7.513, 2), (qdddd, 52.5, 3)):
        assert np.max(np.abs(rate)) == pytest.approx(factor * v / T**k, rel=1e-4)
    weights = np.array([1, 1 / 2, 3 / 28, 1 / 84, 1 / 1680]) * 0.7 ** np.arange(5)
    np.testing.assert_allclose(rest_after(SETPOINT, 0.7), weights @ SETPOINT, rtol=1e-14)


class Motion:
    def __init__(self, state: np.ndarray, T: float) -> None:
        self._stop, self.start, self.end, self.n = to_rest(state, T), 0.0, T, state.shape[1]

    def derivatives(self, t: Any, order: int = 4) -> tuple[np.ndarray, ...]:
        return tuple(self._stop(t)[: order + 1])


@given(at=st.floats(0.05, 0.95), wanted=st.sampled_from((0.05, 0.3, 1.0)))
def test_from_motions_within_limits_it_stays_within_limits(at: float, wanted: float) -> None:
    """Another check says so, at more instants: between those of the stop, peaks are up to 0.3 % higher."""
    stream = Stream("panda", stop_duration=wanted)
    motion = rest_to_rest(HOME, HOME + 0.4, 1.2)
    assert check(stream.arm, motion, rate=1000.0).ok
    state = np.stack(motion.derivatives(1.2 * at))
    stream.say(state)
    stream.loop.act("stop")
    assert stream.number("excess") <= 1e-9
    T = stream.number("stop_end")
    verdict = check(stream.arm, Motion(state, T), rate=1000 / T)  # type: ignore[arg-type]
    assert max((quantity.ratio for quantity in verdict.exceeded), default=1.0) < 1.003


def test_near_the_end_of_a_range_it_is_shorter_and_where_the_wanted_one_is_rough_longer() -> None:
    stream = Stream("panda", stop_duration=0.3)
    upper = stream.arm.robot.joints[0].limits.upper
    state = np.zeros((5, 7))
    state[0], state[0, 0], state[1, 0] = HOME, upper - 0.06, 0.5
    stream.say(state)
    stream.loop.act("stop")
    assert stream.number("excess") <= 1e-9 and stream.number("stop_end") < 0.3
    assert stream.rest_of_it()[-1][1][0, 0] < upper
    stream = Stream("panda", stop_duration=0.05)
    state[0, 0], state[1, 0] = 0.0, 2.1
    stream.say(state)
    stream.loop.act("stop")
    assert stream.number("excess") <= 1e-9 and stream.number("stop_end") > 0.2


def test_wrench_stiffness_and_base_come_to_rest_too() -> None:
    rng = np.random.default_rng(5)
    stream = Stream("vsa_planar_2r", stop_duration=0.5)
    given = dict(zip(("W", "Wd", "Wdd"), rng.normal(size=(3, 6)), strict=True))
    given |= dict(zip(("k", "kd", "kdd"), ([260.0, 130.0], [20.0, -10.0], [50.0, 0.0]), strict=True))
    base = BaseMotion(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)))
    for names, values in zip(IMU, base, strict=True):
        given |= dict(zip(names, values, strict=True))
    stream.say(0.1 * rng.normal(size=(5, 2)), **given)
    stream.loop.act("stop")
    T, x = stream.number("stop_end"), stream.loop.setpoint
    stream.wait(0)
    for name, values in given.items():
        np.testing.assert_allclose(x[name], values, rtol=1e-12, atol=1e-12)
    stream.rest_of_it()
    for name in ("Wd", "Wdd", "kd", "kdd", *IMU[0][1:], *IMU[1][1:]):
        np.testing.assert_array_equal(x[name], 0.0)
    np.testing.assert_allclose(x["k"][0], 260.0 + T / 2 * 20.0 + T**2 / 12 * 50.0)
    assert stream.number("on_base") == 1.0


@pytest.mark.parametrize("policy", ["hold", "ramp"])
def test_where_no_stop_can_be_computed_the_last_position_is_held(policy: str) -> None:
    """Its springs would be slack: at their least stiffness, they exert no efforts. In a ramp, the last efforts fade."""
    stream = Stream("vsa_planar_2r", on_setpoint_loss=policy, setpoint_timeout=0.05, ramp_duration=0.1)
    hanging = np.array([[-np.pi / 2, 0.0], [1.0, 0.0], *np.zeros((3, 2))])
    assert stream.say(hanging, k=[100.0, 100.0]) <= 0
    last = {name: x.copy() for name, x in stream.loop.command.items()}
    stream.loop.act("lose")
    for k in range(30):
        stream.wait(5 * MS)
        u = min(0.05 * k, 1.0)
        share = (1 - u) ** 3 * (1 + 3 * u + 6 * u**2) if policy == "ramp" else 1.0
        assert stream.number("lost") and stream.number("excess") == np.inf
        for name, x in stream.loop.command.items():
            if name in ("motor_velocity", "motor_acceleration"):
                assert not x.any() or k == 0  # which repeats the last command
            elif name in ("tau", "motor_effort") or policy == "hold":
                np.testing.assert_allclose(x, share * last[name], rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(stream.loop.command["motor_position"], last["motor_position"])
        np.testing.assert_allclose(
            stream.loop.sent["drive_effort"], share * last["motor_effort"], rtol=1e-12, atol=1e-15
        )
        fading = policy == "ramp" and k <= 20
        assert stream.loop.status is (Status.RAMPING if fading and u < 1.0 else Status.HELD)
    assert stream.say(hanging, k=[100.0, 100.0]) == (Refusal.released if policy == "ramp" else 0)  # type: ignore[attr-defined]
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
    stream = Stream("sea_planar_2r", on_setpoint_loss="hold", stop_duration=0.4)
    stream.say(SETPOINT)
    stream.loop.act("lose")
    stream.wait(0)
    stream.wait(MS)
    polynomial = to_rest(SETPOINT, stream.number("stop_end"))
    for jump, passed in ((5_000_000 * MS, 0.021), (-5_000_001 * MS, 0.021), (MS, 0.022)):
        stream.wait(jump)
        np.testing.assert_allclose(stream.loop.setpoint["q"], polynomial(passed)[0], rtol=1e-12)


# --- Ramps ------------------------------------------------------------------------------


@given(s=st.floats(0.0, 2.0), duration=st.floats(0.01, 10.0))
@example(s=3e-7, duration=1.0)  # where rounding gives more than 1
def test_efforts_of_a_ramp_fade_by_the_documented_polynomial_with_their_derivatives(s: float, duration: float) -> None:
    """By SymPy, for efforts of a motion that comes to rest."""
    stream = Stream("sea_planar_2r", on_setpoint_loss="ramp", ramp_duration=duration)
    stream.say(SETPOINT)
    stream.loop.act("lose")
    stream.wait(0)
    time = round(s * 1e9)
    for k in range(100):
        stream.wait(time * (k + 1) // 100 - time * k // 100)
    t = sympy.Symbol("t")
    u = t / sympy.Float(duration, 40)
    w = 1 - 10 * u**3 + 15 * u**4 - 6 * u**5
    at = sympy.Float(time * 1e-9, 40)
    fade = [float(w.diff(t, k).subs(t, at)) if time * 1e-9 < duration else 0.0 for k in range(3)]
    evaluator = SetpointEvaluator(stream.arm)
    whole = evaluator.command(evaluator.own_order, rows(stream.loop.setpoint, STATE_NAMES))
    tau, taud, taudd = whole.efforts
    expected = [fade[0] * tau, fade[0] * taud + fade[1] * tau, fade[0] * taudd + 2 * fade[1] * taud + fade[2] * tau]
    size = np.abs(whole.efforts).max(axis=1)
    for k, (name, values) in enumerate(zip(EFFORT_NAMES, expected, strict=True)):
        most = 1e-12 * sum(60 * size[j] / duration ** (k - j) for j in range(k + 1))
        np.testing.assert_allclose(stream.loop.command[name], values, rtol=0, atol=most)
    np.testing.assert_allclose(stream.loop.command["motor_effort"], fade[0] * whole.motors[3], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(stream.loop.command["motor_position"], whole.motors[0])
    end = max(duration, stream.number("stop_end"))
    if time * 1e-9 > end * (1 + 1e-12):  # times of cycles add up
        assert stream.loop.status is Status.HELD
        np.testing.assert_array_equal(rows(stream.loop.command, EFFORT_NAMES), 0.0)
    elif time * 1e-9 < end * (1 - 1e-12):
        assert stream.loop.status is Status.RAMPING


def test_rates_of_fading_efforts_that_overflow_are_not_commanded() -> None:
    stream = Stream("planar_2r", on_setpoint_loss="ramp", ramp_duration=0.01, stop_duration=0.01)
    assert stream.say(np.zeros((5, 2)), W=[0.0, 0.0, 1e307, 0.0, 0.0, 0.0]) <= 0
    stream.loop.act("lose")
    for _ in range(20):
        stream.wait(MS)
        for names in (stream.loop.command, stream.loop.sent):
            assert all(np.isfinite(values).all() for values in names.values())
    np.testing.assert_array_equal(stream.loop.command["tau"], 0.0)


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


@pytest.mark.parametrize("policy", ["none", "deactivate"])
def test_the_other_policies_command_nothing(policy: str) -> None:
    stream = Stream("sea_planar_2r", on_setpoint_loss=policy, setpoint_timeout=0.05)
    stream.say(SETPOINT)
    last = stream.loop.command["motor_position"].tobytes()
    for _ in range(100):
        stream.wait(5 * MS)
        assert stream.loop.command["motor_position"].tobytes() == last
    assert stream.number("timeouts") == 1 and stream.number("lost") and not stream.number("stopping")
    assert stream.loop.status is (Status.LOST if policy == "deactivate" else Status.HELD)
    refused = Refusal.released if policy == "deactivate" else 0  # type: ignore[attr-defined]
    assert stream.say(0.5 * np.eye(5, 2)) == refused
    stream.loop.restart()
    assert stream.say(0.5 * np.eye(5, 2)) == 0 and stream.loop.status is Status.FRESH

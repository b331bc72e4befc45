# SPDX-License-Identifier: Apache-2.0
"""Suspect streams: what is wrong is found and named, and what is right is not suspected."""

import contextlib
import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.checks import Checks, Settings

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import EXCEEDS
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import CHECK_POLICIES
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.robot.model import Limits

NAMES = ("shoulder", "elbow", "wrist")
MS = 1_000_000
START = 10**18
SUSPECT = 2


@cache
def table(limits: tuple[Limits, ...] = (Limits(),) * 3) -> RobotTable:
    planar = eom.load_robot("planar_2r")
    joints = tuple(
        replace(planar.joints[min(k, 1)], name=name, parent=k - 1, limits=limit)
        for k, (name, limit) in enumerate(zip(NAMES, limits, strict=True))
    )
    return RobotTable(eom.ElasticArm(replace(planar, joints=joints, tools=())))


class Stream:
    """Setpoints with stamps through a loop; texts of what was found."""

    def __init__(self, limits: tuple[Limits, ...] = (Limits(),) * 3, **settings: Any) -> None:
        of = table(limits)
        self.host = SetpointLoop(SetpointEvaluator(of.arm), of)
        self.host.configure(safety="off", **settings)
        self.now = 0

    def say(self, stamp: int, state: Any) -> str:
        """What is wrong with a setpoint that is answered, or an error with "in doubt: "."""
        host = self.host
        host.loop.rest()
        for name, row in zip(STATE_NAMES, state, strict=True):
            host.loop.given[name][:] = row
        self.now += MS
        return host.suspicion() if host.answer(stamp, self.now) & SUSPECT else ""

    def last(self, stamps: list[int], states: Any) -> str:
        return [self.say(stamp, state) for stamp, state in zip(stamps, states, strict=True)][-1]


def motion(count: int, dt: float = 1e-3, frequency: float = 5.0) -> tuple[list[int], np.ndarray]:
    """Stamps, ns, and states (count, 5, 3) of sinusoids."""
    t = dt * np.arange(count)[:, None]
    w, phase, size = frequency * np.array([1.0, 1.3, 0.7]), np.array([0.1, 1.0, 2.0]), np.array([0.5, -0.8, 0.3])
    states = np.stack([size * w**k * np.sin(w * t + phase + k * np.pi / 2) for k in range(5)], axis=1)
    return [START + round(x * 1e9) for x in t[:, 0]], states


def found_in(stamps: list[int], states: np.ndarray, **settings: Any) -> str:
    return Stream(**settings).last(stamps, states)


# --- Consistency ------------------------------------------------------------------------


@given(frequency=st.floats(0.2, 40.0), dt=st.sampled_from((5e-4, 1e-3, 4e-3, 0.01)), shift=st.floats(-3.0, 3.0))
def test_motions_are_consistent_as_far_as_the_trapezoidal_rule_tells(frequency: float, dt: float, shift: float) -> None:
    """Up to w dt = 0.52, where its error of (w dt)²/12 is 2 %; the same from messages in single precision."""
    stamps, states = motion(120, dt, frequency)
    states[:, 0] += shift
    assert found_in(stamps, states) == ""
    assert found_in(stamps, states.astype(np.float32).astype(float)) == ""


BROKEN = {
    "velocity in degrees": (
        lambda x: x.__setitem__((slice(None), 1), np.degrees(x[:, 1])),
        r"^velocity of \w+ \(and 2 more joints\) is 57.3 times the rate of position: degrees instead of radians, over",
    ),
    "position in degrees": (
        lambda x: x.__setitem__((slice(None), 0), np.degrees(x[:, 0])),
        r"is 0.01745 times the rate of position: degrees instead of radians before",
    ),
    "one sign": (
        lambda x: x.__setitem__((slice(None), 1, 2), -x[:, 1, 2]),
        r"^velocity of wrist is -1 times the rate of position: opposite sign, over 50 setpoints$",
    ),
    "scaled": (
        lambda x: x.__setitem__((slice(None), 2), 1.5 * x[:, 2]),
        r"^acceleration of \w+ \(and 2 more joints\) is 1.5 times the rate of velocity: scaled",
    ),
    "joints swapped": (
        lambda x: x.__setitem__((slice(None), 1), x[:, 1][:, [1, 0, 2]]),
        r"^velocity of (shoulder|elbow) \(and 1 more joint\) is not the rate of position, which is in the place of "
        r"(elbow|shoulder): joints swapped",
    ),
    "fields swapped": (
        lambda x: x.__setitem__((slice(None), [1, 2]), x[:, [2, 1]]),
        r"^velocity of \w+ \(and 2 more joints\) is not the rate of position, which is in acceleration: fields swapped",
    ),
    "frozen position": (
        lambda x: x.__setitem__((slice(None), 0), x[0, 0]),
        r"^velocity of \w+ \(and 2 more joints\) is not the rate of position: it differs by 100 %",
    ),
    "no jerk": (
        lambda x: x.__setitem__((slice(None), 3), 0.0),
        r"^jerk of \w+ \(and 2 more joints\) is not the rate of acceleration: it differs by 100 %",
    ),
    "noise": (
        lambda x: x.__setitem__((slice(None), 4), np.random.default_rng(1).normal(size=(60, 3)) * 500.0),
        r"^snap of \w+ \(and 2 more joints\) is not the rate of jerk: it differs by",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_fault_is_found_and_named(fault: str) -> None:
    stamps, states = motion(60)
    breaks, message = BROKEN[fault]
    breaks(states)
    text = found_in(stamps, states)
    assert re.search(message, text), text


def test_stamps_that_do_not_advance_with_the_motion_are_named() -> None:
    """Of a planner that advances by a fixed step and stamps by its clock, on a machine that does not hold the rate."""
    stamps, states = motion(60)
    slow = [12 * (stamp - stamps[0]) + stamps[0] for stamp in stamps]
    text = "is 12 times the rate of position: scaled; or do stamps advance with the motion?, over 50 setpoints"
    assert text in found_in(slow, states)
    uneven = np.random.default_rng(7).exponential(0.012, size=60).clip(0.001, 0.09)
    text = "is the rate of position for steps of 0.001 s, which stamps do not have: do stamps advance with the motion?"
    assert text in found_in([stamps[0] + round(t * 1e9) for t in np.cumsum(uneven)], states)


# --- Stamps -----------------------------------------------------------------------------


def test_stamps() -> None:
    stream, state = Stream(stamp_check="warn"), np.zeros((5, 3))
    assert stream.say(5, state) == stream.say(7, state) == ""
    assert stream.say(7, state) == "stamp repeated: the setpoint before has the same"
    assert stream.say(8, state) == stream.say(0, state) == ""
    refusing = Stream(stamp_check="refuse")
    refusing.say(START, state)
    text = "^in doubt: stamp goes back by 0.005 s: several publishers, or setpoints out of order$"
    with pytest.raises(eom.DoubtfulSetpointError, match=text):
        refusing.say(START - 5 * MS, state)
    # It may also advance from one that went back before.
    assert refusing.say(START - 4 * MS, state) == ""


def test_without_stamps_jumps_are_not_known() -> None:
    stream = Stream((Limits(velocity=1.0),) * 3, stamp_check="refuse", jump_check="refuse")
    states = 0.04 * np.random.default_rng(1).uniform(-1, 1, size=(60, 5, 3))
    assert stream.last([0] * 60, states) == ""
    assert stream.host.suspicions == {"without stamp": 60}
    assert stream.host.suspicion() == "setpoints without stamps; jumps are not checked"
    with pytest.raises(eom.DoubtfulSetpointError, match=r"doubt.*0.2"):
        stream.say(0, states[-1] + 0.2 * np.outer([1, 0, 0, 0, 0], [0, 1, 0]))


def test_a_stream_begins_at_rest_where_the_arm_is() -> None:
    """Within start_tolerance of the measured position, at velocities to which it may accelerate within 10 ms."""
    stream = Stream((Limits(acceleration=10.0),) * 3, jump_check="refuse", start_tolerance=0.02)
    q, x = np.array([1.0, -2.0, 0.5]), np.zeros((5, 3))
    for field, step, text in (
        (0, 0.021, "wrist is 0.021 rad from where the arm is, more than 0.02 (parameter start_tolerance): begin there"),
        (1, 0.111, "velocity of wrist jumps by 0.111 within 0.01 s, limits allow 0.11"),
    ):
        stream.host.loop.restart(q)
        x[:] = [q, *np.zeros((4, 3))]
        x[field, 2] += step
        with pytest.raises(eom.DoubtfulSetpointError, match=f"^in doubt: {re.escape(text)}"):
            stream.say(START, x)
        x[field, 2] -= 0.1 * step
        assert stream.say(START, x) == ""


# --- Jumps ------------------------------------------------------------------------------


@given(data=st.data())
def test_no_motion_within_limits_jumps(data: st.DataObject) -> None:
    """Sinusoids whose rates reach the limits, at any times."""
    w = data.draw(st.sampled_from((0.1, 1.0, 7.0, 100.0)))
    t = np.sort(data.draw(st.tuples(st.floats(0.0, 10.0), st.floats(0.0, 10.0))))
    states = [[w**k * np.sin(w * at + k * np.pi / 2) for k in range(5)] for at in t]
    stream = Stream((Limits(velocity=w, acceleration=w**2, jerk=w**3),) * 3, jump_check="refuse")
    # Drives hold the last command: time counts up to a tenth of a second.
    if t[1] - t[0] <= 0.1:
        for at, state in zip(t, states, strict=True):
            assert stream.say(START + round(at * 1e9), np.tile(state, (3, 1)).T) == ""


def test_a_jump_is_named_and_stays_one_after_a_pause() -> None:
    limits = (Limits(velocity=2.0, acceleration=10.0), Limits(jerk=5.0), Limits())
    before, after = np.zeros((5, 3)), np.zeros((5, 3))
    after[0, 0], after[0, 1] = 0.5, 100.0
    refused = pytest.raises(eom.DoubtfulSetpointError)
    stream = Stream(limits, jump_check="refuse")
    assert stream.say(START, before) == ""
    with refused as error:
        stream.say(START + MS, after)
    assert re.search(r"shoulder.* 0.5 .*0.001 s.* 2e-05.*degrees", str(error.value))
    with pytest.raises(eom.DoubtfulSetpointError, match=r"shoulder.*0.5.*60"):
        stream.say(START + 60_000 * MS, after)
    after[0, 0], after[2, 1] = 0.04, 1.0
    with pytest.raises(eom.DoubtfulSetpointError, match=r"elbow.*1.*0.1"):
        stream.say(START + 100 * MS, after)
    assert stream.host.suspicions == {"jumps": 3} and stream.host.limits_rates
    stream.host.loop.restart()
    assert stream.say(START + 101 * MS, after) == ""
    assert not Stream().host.limits_rates


@pytest.mark.parametrize("limit", [0.0, 5e-324, 1.0, 1e308])
@pytest.mark.parametrize("size", [1e307, 1e-308])
def test_jumps_of_any_size_are_found(limit: float, size: float) -> None:
    """Also with the limit zero, and where a difference of numbers overflows."""
    state = np.zeros((5, 3))
    state[0] = size
    stream = Stream(
        (Limits(), Limits(velocity=limit or None), Limits()) if limit else (Limits(),) * 3, jump_check="warn"
    )
    stream.say(START, -state)
    text = stream.say(START + MS, state)
    assert text.startswith("position of elbow jumps by") == (limit > 0 and 2 * size > limit * 2e-3)


# --- Settings ---------------------------------------------------------------------------


def test_other_settings_may_change_between_two_setpoints() -> None:
    stream = Stream((Limits(velocity=2.0),) * 3, jump_check="warn", stamp_check="warn")
    state = np.zeros((5, 3))
    stream.say(START, state)
    stream.host.configure(limits="warn")
    state[0, 1] = 1.0
    assert stream.say(START + MS, state).startswith("position of elbow jumps by 1 within 0.001 s")
    state[1, 0] = 3.0
    assert stream.host.answer(START + MS, stream.now) == SUSPECT
    stream.host.configure(limits="ignore", jump_check="ignore", stamp_check="ignore")
    state[0, 1] = -1.0
    assert stream.say(START + 2 * MS, state) == ""
    stream.host.configure(jump_check="warn")
    assert stream.say(START + 3 * MS, -state).startswith("position of elbow jumps by 2 within 0.001 s")
    assert EXCEEDS & SUSPECT == 0


# --- Any stream -------------------------------------------------------------------------


FAULTS = ("none", "velocity", "sign", "swapped", "jerk", "jump", "both", "large")
STEPS = {"repeat": 0, "back": -3 * MS, "reset": -1000 * MS, "pause": 100 * MS + 1}

# The windows of consistency have 50 setpoints.
segment = st.tuples(st.integers(1, 120), st.sampled_from(FAULTS), st.sampled_from(("", "none", *STEPS)), st.booleans())


def spoiled(state: np.ndarray, fault: str) -> np.ndarray:
    state = state.copy()
    if fault in ("velocity", "both"):
        state[1, 0] = np.degrees(state[1, 0])
    if fault == "sign":
        state[2] *= -1.0
    if fault == "swapped":
        state[1:3] = state[2:0:-1]
    if fault in ("jerk", "both"):
        state[3, 1] = 0.0
    if fault == "jump":
        state[0, 1] += 0.3
    if fault == "large":  # squares overflow; of an arm at rest, efforts are linear in jerk and snap
        state[:3], state[3:] = 0.0, state[3:] * 2.0**700
    return state


@settings(max_examples=40)
@given(
    segments=st.lists(segment, min_size=1, max_size=6),
    policies=st.tuples(*[st.sampled_from(CHECK_POLICIES)] * 2),
    frequency=st.floats(0.5, 40.0),
    size=st.sampled_from((0.3, 20.0, 1e-9, 0.0)),
)
def test_on_any_stream_the_loop_finds_what_the_reference_finds(
    segments: list[tuple[int, str, str, bool]], policies: tuple[str, str], frequency: float, size: float
) -> None:
    limits = Limits(velocity=4.0, acceleration=50.0, jerk=2000.0), Limits(velocity=6.0), Limits()
    stream = Stream(limits, **dict(zip(("stamp_check", "jump_check"), policies, strict=True)))
    rate_limits = LimitCheck(table(limits).arm).rate_limits
    expected, now, k = Checks(rate_limits, Settings(*policies)), START, 0
    w = frequency * np.array([1.0, 1.3, 0.7])
    # Time of the loop, which does not go back, of its last cycle on the clock, of the last setpoint that was followed,
    # and since the one before.
    time, last, followed, interval = 0, None, 0, 0
    for count, fault, stamps, restarts in segments:
        found, wanted = [], []
        for j in range(count):
            k += 1
            now += STEPS.get(stamps, MS) if j == 0 else MS
            stamp = 0 if stamps == "none" else now
            state = spoiled(
                np.array([size * w**i * np.sin(w * 1e-3 * k + 1.0 + i * np.pi / 2) for i in range(5)]), fault
            )
            time = now if last is None else time + max(now - last, 0)
            last = now
            refused = expected.judge(stamp, time - followed + max(interval, 0), state)
            stream.now = now - MS  # each arrives at its time
            with pytest.raises(eom.DoubtfulSetpointError) if refused else contextlib.nullcontext():
                stream.say(stamp, state)
            if not refused:
                expected.answered(stamp, state)
                interval, followed = time - followed, time
            assert stream.host.suspicions == +expected.counts
            found.append([stream.host.loop.number(name) for name in FOUND])
            wanted.append(expected.finding)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
        if restarts:
            stream.host.loop.restart()
            expected, last = Checks(rate_limits, expected.settings), None


PARTS = ("", "_field", "_joint", "_joints", "_time", "_step", "_allowed", "_difference", "_factor")
FOUND = [f"finding{part}" for part in PARTS]
"""Numbers of a loop, in the order of the reference's Finding."""

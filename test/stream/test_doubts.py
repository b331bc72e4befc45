# SPDX-License-Identifier: Apache-2.0
"""Doubtful streams: what is wrong is found and named, and what is right is not doubted."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eom_dynamics as eom
from eom_dynamics.elastic import ElasticArm
from eom_dynamics.stream.doubts import ConsistencyCheck, Doubts, DoubtSettings, JumpCheck, StampCheck
from eom_dynamics.trajectory.rest_to_rest import StopPolynomial

NAMES = ("shoulder", "elbow", "wrist")
ARM = ElasticArm(eom.load_robot("panda"))
HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])
MS = 10**6


def motion(count: int, dt: float = 1e-3, frequency: float = 5.0) -> tuple[list[int], np.ndarray]:
    """Stamps, ns, and states (count, 5, 3) of sinusoids."""
    t = dt * np.arange(count)[:, None]
    w, phase, size = frequency * np.array([1.0, 1.3, 0.7]), np.array([0.1, 1.0, 2.0]), np.array([0.5, -0.8, 0.3])
    states = np.stack([size * w**k * np.sin(w * t + phase + k * np.pi / 2) for k in range(5)], axis=1)
    return [10**18 + round(x * 1e9) for x in t[:, 0]], states


def add(check: ConsistencyCheck, stamp: int, state: np.ndarray) -> None:
    check.judge(stamp, state)
    check.add(stamp, state)


def doubt_about(stamps: list[int], states: np.ndarray, **options: float) -> str:
    check = ConsistencyCheck(NAMES, **options)  # type: ignore[arg-type]
    for stamp, state in zip(stamps, states, strict=True):
        add(check, stamp, state)
    return check.doubt


@given(frequency=st.floats(0.2, 40.0), dt=st.sampled_from((5e-4, 1e-3, 4e-3, 0.01)), shift=st.floats(-3.0, 3.0))
def test_motions_are_consistent_as_far_as_the_trapezoidal_rule_tells(frequency: float, dt: float, shift: float) -> None:
    """Up to w dt = 0.52, where its error of (w dt)²/12 is 2 %; the same from messages in single precision."""
    stamps, states = motion(120, dt, frequency)
    states[:, 0] += shift
    assert doubt_about(stamps, states, tolerance=0.1) == ""
    assert doubt_about(stamps, states.astype(np.float32).astype(float), tolerance=0.1) == ""


def test_rest_and_stamps_with_jitter_are_consistent() -> None:
    stamps, states = motion(120)
    jitter = np.random.default_rng(3).normal(size=120) * 5e4
    assert doubt_about([s + round(j) for s, j in zip(stamps, jitter, strict=True)], states) == ""
    states[:] = states[:1]
    states[:, 1:] = 0.0
    assert doubt_about(stamps, states) == ""


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
    doubt = doubt_about(stamps, states)
    assert re.search(message, doubt), doubt
    check = ConsistencyCheck(NAMES)
    assert check.diagnosis(np.array(stamps[:51]), states[:51]) == doubt
    # Squares of larger numbers overflow; a power of two rounds nothing.
    assert doubt_about(stamps, 2.0**800 * states) == doubt


def test_stamps_that_do_not_advance_with_the_motion_are_named() -> None:
    """Of a planner that advances by a fixed step and stamps by its clock, on a machine that does not hold the rate."""
    stamps, states = motion(60)
    slow = [12 * (stamp - stamps[0]) + stamps[0] for stamp in stamps]
    text = "is 12 times the rate of position: scaled; or do stamps advance with the motion?, over 50 setpoints"
    assert text in doubt_about(slow, states)
    uneven = np.random.default_rng(7).exponential(0.012, size=60).clip(0.001, 0.09)
    text = "is the rate of position for steps of 0.001 s, which stamps do not have: do stamps advance with the motion?"
    assert text in doubt_about([stamps[0] + round(t * 1e9) for t in np.cumsum(uneven)], states)


def test_only_the_orders_asked_for_are_checked() -> None:
    stamps, states = motion(60)
    states[:, 3:] = 0.0
    assert doubt_about(stamps, states, order=2) == ""
    assert doubt_about(stamps, states, order=3).startswith("jerk of ")


def test_windows_end_at_pauses_and_a_good_one_ends_the_doubt() -> None:
    stamps, states = motion(400)
    check = ConsistencyCheck(NAMES, window=50)
    wrong = states.copy()
    wrong[:, 1] *= 2
    for k in range(40):
        add(check, stamps[k], wrong[k])
    for k in range(200, 245):  # after a pause of 160 ms
        add(check, stamps[k], wrong[k])
    assert check.doubt == ""
    for k in range(245, 260):
        add(check, stamps[k], wrong[k])
    assert check.doubt
    for k in range(260, 260 + 110):
        add(check, stamps[k], states[k])
    assert check.doubt == ""


def test_stamps() -> None:
    check = StampCheck()

    def judge(stamp: int) -> str:
        if not (text := check.judge(stamp)) and stamp:
            check.answered(stamp)
        return text

    assert judge(5) == judge(7) == ""
    assert judge(7) == "stamp repeated: the setpoint before has the same"
    assert judge(8) == judge(0) == ""
    assert judge(8).startswith("stamp repeated")
    text = judge(8 - 5_000_000)
    assert text == "stamp goes back by 0.005 s: several publishers, or setpoints out of order"
    assert judge(8 - 4_000_000) == ""


@given(data=st.data())
def test_no_motion_within_limits_jumps(data: st.DataObject) -> None:
    """Sinusoids whose rates reach the limits, at any times."""
    w = data.draw(st.floats(0.1, 100.0))
    t = np.sort(data.draw(st.tuples(st.floats(0.0, 10.0), st.floats(0.0, 10.0))))
    rates = [w**k * np.sin(w * t + k * np.pi / 2) for k in range(5)]
    states_of = np.stack(rates, axis=1)[..., None]
    limits = np.array([[w], [w**2], [w**3]])
    # Drives hold the last command: time counts up to a tenth of a second.
    if (dt := t[1] - t[0]) <= 0.1:
        assert JumpCheck(["a"], limits).judge(dt, *states_of) == ""


def test_a_jump_is_named_and_stays_one_after_a_pause() -> None:
    limits = np.array([[2.0, np.inf], [10.0, np.inf], [np.inf, 5.0]])
    check = JumpCheck(["a", "b"], limits)
    before, after = np.zeros((5, 2)), np.zeros((5, 2))
    after[0, 0], after[0, 1] = 0.5, 100.0
    assert check.judge(0.001, before, after) == (
        "position of a jumps by 0.5 within 0.001 s, the limit of velocity allows 0.004: start from the commanded "
        "state, or deactivate and activate the node"
    )
    assert check.judge(60.0, before, after).startswith("position of a jumps by 0.5 within 60 s, the limit")
    after[0, 0], after[2, 1] = 0.15, 1.0
    assert check.judge(0.1, before, after).startswith("acceleration of b jumps by 1 within 0.1 s, the limit of jerk")
    assert not JumpCheck(["a"], np.full((3, 1), np.inf)).limited


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("limit", [0.0, 5e-324, 1.0, 1e308, np.inf])
@pytest.mark.parametrize("size", [1e308, 1.7e308, 1e-308])
def test_numbers_of_any_size_warn_of_nothing(limit: float, size: float) -> None:
    """Also not the subtraction of a huge number, nor the comparison with a limit of zero, nor the stop from there."""
    state = np.full((5, 2), size)
    found = JumpCheck(["a", "b"], np.array([[np.inf, limit]] * 3)).judge(1e-3, -state, state)
    assert found.startswith("position of b jumps by") == (2 * size > limit * 2e-3)
    StopPolynomial(state, 0.05).derivatives(np.array([0.0, 0.02, 0.04]))


def stream(doubts: Doubts, stamps: list[int], states: np.ndarray) -> list[str]:
    texts = []
    for stamp, state in zip(stamps, states, strict=True):
        texts.append(doubts.judge(stamp, state))
        doubts.answered(stamp, state)
    return texts


def test_each_check_is_ignored_reported_or_refused() -> None:
    state = np.zeros((5, 7))
    state[0] = HOME
    away = state.copy()
    away[0, 3] += 1.0
    ignored = Doubts(ARM, DoubtSettings(stamps="warn"))
    assert stream(ignored, [MS, 2 * MS], np.stack([state, away])) == ["", ""]
    warned = Doubts(ARM, DoubtSettings(stamps="warn", jumps="warn"))
    _, text, back = stream(warned, [MS, MS, 2 * MS], np.stack([state, away, away]))
    assert text.startswith("stamp repeated: the setpoint before has the same; position of fer_joint4 jumps by 1 ")
    assert back == "" and warned.counts == {"stamps": 1, "jumps": 1}
    refusing = Doubts(ARM, DoubtSettings(jumps="refuse"))
    stream(refusing, [MS], state[None])
    for stamp in (2 * MS, 10**9):
        with pytest.raises(eom.DoubtfulSetpointError, match=r"^in doubt: position of fer_joint4 jumps by 1 within"):
            refusing.judge(stamp, away)
    refusing.restart()
    assert refusing.judge(3 * MS, away) == ""


def test_without_stamps_jumps_and_consistency_are_not_known() -> None:
    doubts = Doubts(ARM, DoubtSettings("refuse", "refuse", "refuse"))
    states = np.random.default_rng(1).normal(size=(60, 5, 7))
    assert set(stream(doubts, [0] * 60, states)) == {""}
    assert doubts.counts == {"without stamp": 60}
    assert not DoubtSettings().any and DoubtSettings(jumps="warn").any

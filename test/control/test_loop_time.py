# SPDX-License-Identifier: Apache-2.0
"""Time of the control loop: late cycles, clocks that jump, stamps that run ahead, and stops that hold."""

from typing import Any

import numpy as np
import pytest
from checked import HOME, check, resting, steps
from loop_rig import MS, START, LoopRig, Record, rest, straight
from sent_oracle import SentOracle

from eom_dynamics.control.control_loop import Refusal

STEP = 0.02  # longest step of a cycle, s


def late_run(rig: LoopRig, late: int) -> int:
    """A cycle that is late, ms."""
    rig.now += late * MS
    return rig.run()


def go_on(rig: LoopRig, begin: int) -> None:
    """From the end of a motion of 0.3 on by 0.1 in 1 s, at a time of the clock, ns."""
    rig.trajectory(straight([0.0, 1.0], [HOME + 0.3, HOME + 0.4]), begin)


def begun(what: str, **settings: Any) -> LoopRig:
    """A rig amid a motion by 0.5, or its stop."""
    rig = resting(cycles=20, targets={}, **settings)
    if what == "target":
        rig.target(HOME + 0.5)
    else:
        rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.5]))
    rig.cycles(450)
    if what == "stop":
        rig.loop.act("stop")
        rig.cycles(20)
    return rig


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("what", ["trajectory", "target", "stop"])
@pytest.mark.parametrize("late", [30, 96, 3000, 10**6, -50], ids=lambda x: f"{x} ms")
def test_a_late_cycle_counts_20_ms_and_the_motion_goes_on_later(what: str, late: int, hosted: bool) -> None:
    rig = begun(what, hosted=hosted)
    late_run(rig, late)
    rig.cycles(2000)
    record = check(rig) if not hosted or late > 0 else Record(rig)  # a node ends motions where its clock goes back
    assert (steps(record) <= SentOracle(rig.arm).joint_velocity * (STEP + 1e-3) + 1e-3).all()
    if hosted:
        return
    fastest = np.abs(record.command["motor_velocity"]).max()
    assert steps(record).max() <= STEP * fastest * 1.01 and fastest > 0.5
    if late > 0 and what == "trajectory":  # by stops and targets nobody waits for a time
        assert rig.number("lost_time") == pytest.approx(1e-3 * late + 1e-3 - STEP, abs=1e-9)
    if what != "stop":
        np.testing.assert_allclose(rig.q, HOME + 0.5, rtol=0, atol=1e-9)
    assert not rig.loop.state[1:].any()


def test_what_waits_begins_by_the_clock_from_what_is_commanded_then() -> None:
    rig = resting(cycles=20)
    rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.3]))
    rig.cycles(500)
    go_on(rig, due := rig.now + 2000 * MS)
    late_run(rig, 300)
    while rig.now <= due:
        rig.run()
    assert rig.number("waiting") + rig.number("playing") == 1 and not rig.loop.state[1:].any()
    late_run(rig, 500)  # what begins now is late, and no step
    rig.cycles(1500)
    np.testing.assert_allclose(rig.q, HOME + 0.4, rtol=0, atol=1e-9)
    record = Record(rig)
    assert steps(record).max() <= STEP * np.abs(record.command["motor_velocity"]).max() * 1.01


def test_a_motion_planned_after_another_one_is_as_late_as_that() -> None:
    rig = resting(cycles=20)
    rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.3]))
    rig.cycles(100)
    go_on(rig, rig.now + 900 * MS)
    rig.cycles(10)
    late_run(rig, 400)
    rig.cycles(2500)
    assert rig.number("refused") == 0
    np.testing.assert_allclose(rig.q, HOME + 0.4, rtol=0, atol=1e-9)


@pytest.mark.parametrize("what", ["trajectory", "target"])
def test_a_stop_that_was_asked_for_holds(what: str) -> None:
    """A stream that was refused as busy is not followed in its cycle, nor one that is near before the arm rests."""
    rig = begun(what)
    first = rig.count
    rig.empty_trajectory()
    assert rig.stream([rest(HOME)]) == rig.stream([rig.loop.state.copy()]) == [Refusal["far_from_hold"]]
    assert {*rig.stream([rest(HOME)] * 1000)} == {Refusal["far_from_hold"]}
    assert not rig.loop.state[1:].any() and np.abs(rig.q - HOME).max() > 0.05
    assert steps(check(rig, first)).max() < 3e-3
    assert rig.stream([rest(rig.q)]) == [0] and rig.number("held") == 0


@pytest.mark.parametrize("lead", [0, -15, 40], ids=lambda x: f"lead {x} ms")
def test_a_stamp_that_runs_ahead_of_its_arrival_waits(lead: int) -> None:
    """Stamped 90 ms ahead, it moved the arm by 83 mrad in a cycle."""
    rig = resting(cycles=0, setpoint_lifespan=0.0, jump_check="ignore")  # the first one moves

    def say(k: float, ahead: float = 0.0) -> int:
        """The setpoint of a time, ms, stamped with it, in the next cycle."""
        t, w = 1e-3 * (k + ahead), 2 * np.pi * 0.5
        rates = [0.3 * w**i * np.sin(w * t + i * np.pi / 2) for i in range(5)]
        rig.refer(rest(HOME) + np.array(rates)[:, None], round(START + (k + lead + ahead) * MS))
        return rig.run()

    assert say(0) <= 0
    rig.loop.configure(jump_check="refuse")
    for k in range(1, 300):
        assert say(k) <= 0
    before = rig.q
    assert say(300, 90.0) == Refusal["early"] and rig.number("early") == 1 and rig.number("refused") == 0
    np.testing.assert_array_equal(rig.q, before)
    assert say(301) <= 0 and say(302, 15.0) <= 0  # the newest wins; a little ahead is jitter
    assert say(304, 80.0) == Refusal["early"]
    rig.cycles(30)
    assert rig.number("early_waits")
    rig.cycles(40)  # followed once its time has come
    assert rig.number("early") == 2 and not rig.number("early_waits")


@pytest.mark.parametrize("then", ["trajectory", "target"])
def test_a_setpoint_that_waits_does_not_end_what_leads_by_then(then: str) -> None:
    """Its refusal was taken for that of the motion, which was stopped."""
    rig = resting(cycles=300, targets={}, setpoint_lifespan=0.0)
    rig.refer(rest(HOME), rig.now + 90 * MS)
    assert rig.run() == Refusal["early"]
    if then == "target":
        rig.target(HOME + 0.1)
    else:
        rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.1]))
    assert max(rig.run() for _ in range(1500)) <= 0 and rig.number("refused") == 0
    np.testing.assert_allclose(rig.q, HOME + 0.1, atol=1e-6)


@pytest.mark.parametrize(
    ("arrival", "step"), [(0, 0), (80, MS // 20)], ids=["a loop that was held up", "a sender that was held up"]
)
def test_setpoints_in_a_burst_make_no_later_ones_early(arrival: int, step: int) -> None:
    """What has waited for a late cycle, handled one after the other; and late setpoints of a loop that was not."""
    rig = resting(cycles=100, setpoint_lifespan=0.0)
    begin = rig.now
    if step:
        rig.cycles(arrival)
    else:
        rig.now += 80 * MS
    for k in range(80):
        rig.refer(rest(HOME), begin + k * MS)
        assert rig.run(step) <= 0
    for _ in range(100):
        rig.refer(rest(HOME), rig.now)
        assert rig.run(MS if step == 0 else MS + MS // 10) <= 0
    assert rig.number("early") == 0


@pytest.mark.parametrize("late", [22, 80, 450])
@pytest.mark.parametrize("first", [0, 1, 100])
def test_one_setpoint_that_is_late_makes_no_later_ones_early(late: int, first: int) -> None:
    """As the first of all, it had two others wait, which were not answered."""
    rig = resting(cycles=first)
    rig.refer(rest(HOME), rig.now - late * MS)
    rig.run()
    rig.cycles(300, rest(HOME))
    assert not any(rig.number(name) for name in ("early", "lost", "timeouts"))


def test_steps_are_judged_by_a_clock_that_is_behind() -> None:
    """Stamps that are always 300 ms old do not run ahead of their arrival: steps are judged."""
    rig = resting(cycles=0, setpoint_lifespan=0.0)
    for _ in range(100):
        rig.refer(rest(HOME), rig.now - 300 * MS)
        assert rig.run() <= 0
    rig.refer(rest(HOME + 0.083), rig.now - 210 * MS)
    before = rig.q
    assert rig.run() == Refusal["jump"] and rig.number("early") == 0
    np.testing.assert_array_equal(rig.q, before)


def test_a_period_may_be_infinite() -> None:
    rig = resting(cycles=0)
    rig.trajectory(straight([0.0, 1.0], [HOME, HOME + 0.5]))
    for _ in range(2):
        rig.library.loop_run(rig.address, rig.now, np.inf)
        rig.now += MS
    assert np.isfinite(rig.loop.state).all()


def test_a_sample_is_not_recent_once_the_clock_has_been_set_back() -> None:
    rig = resting(cycles=0)
    sensed = rig.loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), 7))
    sensed["q"][:] = HOME + 0.5
    rig.loop.sense(rig.now, 1)
    rig.restart(None, rig.now - 10 * 10**9)
    assert not rig.number("valid")

# SPDX-License-Identifier: Apache-2.0
"""Time of the control loop: late cycles, clocks that jump, stamps that run ahead, stops that hold, and the pace."""

from typing import Any

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.trajectory import Spline

MS, START = 1_000_000, 10**18
STEP = 0.02  # longest step of a cycle, s
HOME = np.array([0.0, -0.5, 0.0, -1.5, 0.0, 1.5, 0.5])


class Rig:
    """A loop as a controller runs it, with the defaults of ``safety: strict``, and what it has sent."""

    def __init__(self, table: RobotTable, **settings: Any) -> None:
        self.loop, self.now = ControlLoop(table), START
        self.loop.configure(safety="strict", **settings)
        self.loop.limit(motion_limits(table.arm, {}), 1e-3)
        self.loop.restart(HOME)
        self.position, self.velocity, self.effort = [], [], []

    def refer(self, state: Any, stamp: int | None = None) -> None:
        self.loop.rest()
        for name, row in zip(STATE_NAMES, state, strict=True):
            self.loop.given[name][:] = row
        self.loop.refer(self.now if stamp is None else stamp)

    def run(self, cycles: int = 1, late: int = 0) -> int:
        """Cycles of 1 ms, the first one late, ns; returns what the last one did."""
        code = 0
        for k in range(cycles):
            self.now += MS + late * (k == 0)
            code = self.loop._library.loop_run(self.loop.address, self.now, 1e-3)
            self.position.append(self.loop.command["motor_position"].copy())
            self.velocity.append(self.loop.command["motor_velocity"].copy())
            self.effort.append(self.loop.sent["drive_effort"].copy())
        return code

    def hold(self, cycles: int) -> None:
        """Stream setpoints at rest."""
        state = np.zeros((5, len(HOME)))
        state[0] = HOME
        for _ in range(cycles):
            self.refer(state)
            self.run()

    def play(self, distance: float = 0.5, seconds: float = 1.0) -> None:
        states = np.zeros((5, 2, 7))
        states[0] = HOME
        states[0, 1] += distance
        self.loop.send_trajectory(Spline([0.0, seconds], states), 0)

    def go_on(self, begin: int) -> None:
        """From the end of a motion of 0.3 on by 0.1 in 1 s, at a time of the clock, ns."""
        states = np.zeros((5, 2, 7))
        states[0] = HOME + 0.3
        states[0, 1] += 0.1
        self.loop.send_trajectory(Spline([0.0, 1.0], states), begin)

    def target(self, q: Any) -> None:
        given = np.ascontiguousarray(q)
        assert not self.loop._library.loop_post_target(self.loop.address, 0, None, 0, given.ctypes.data, None, None)

    def stop(self) -> None:
        """Send the empty trajectory."""
        self.loop._library.loop_post_spline(self.loop.address, 0, None, 0, None)

    @property
    def steps(self) -> Any:
        return np.abs(np.diff(self.position, axis=0)).max(axis=1)


@pytest.fixture(scope="module")
def panda() -> RobotTable:
    return RobotTable(eom.ElasticArm(eom.load_robot("panda")))


def begin(rig: Rig, what: str) -> None:
    rig.hold(20)
    if what == "target":
        rig.target(HOME + 0.5)
    else:
        rig.play()
    rig.run(450)
    if what == "stop":
        rig.loop.act("stop")
        rig.run(20)


@pytest.mark.parametrize("what", ["trajectory", "target", "stop"])
@pytest.mark.parametrize("late", [96, 3000, 10**6, -50], ids=lambda x: f"{x} ms")
def test_a_late_cycle_counts_20_ms_and_the_motion_goes_on_later(panda: RobotTable, what: str, late: int) -> None:
    rig = Rig(panda)
    begin(rig, what)
    rig.run(late=late * MS)
    rig.run(2000)
    fastest = np.abs(rig.velocity).max()
    assert rig.steps.max() <= STEP * fastest * 1.01 and fastest > 0.5
    if late > 0 and what == "trajectory":  # by stops and targets nobody waits for a time
        assert rig.loop.number("lost_time") == pytest.approx(1e-3 * late + 1e-3 - STEP, abs=1e-9)
    if what != "stop":
        np.testing.assert_allclose(rig.loop.state[0], HOME + 0.5, rtol=0, atol=1e-9)
    assert not rig.loop.state[1:].any()


def test_what_waits_begins_by_the_clock_from_what_is_commanded_then(panda: RobotTable) -> None:
    rig = Rig(panda)
    rig.hold(20)
    rig.play(0.3)
    rig.run(500)
    rig.go_on(due := rig.now + 2000 * MS)
    rig.run(1, late=300 * MS)
    while rig.now < due:
        rig.run()
    assert rig.loop.number("waiting") + rig.loop.number("playing") == 1 and not rig.loop.state[1:].any()
    rig.run(10, late=500 * MS)  # what begins now is late, and no step
    rig.run(1500)
    np.testing.assert_allclose(rig.loop.state[0], HOME + 0.4, rtol=0, atol=1e-9)
    assert rig.steps.max() <= STEP * np.abs(rig.velocity).max() * 1.01


def test_a_motion_planned_after_another_one_is_as_late_as_that(panda: RobotTable) -> None:
    rig = Rig(panda)
    rig.hold(20)
    rig.play(0.3)
    rig.run(100)
    rig.go_on(rig.now + 901 * MS)
    rig.run(10)
    rig.run(1, late=400 * MS)
    rig.run(2500)
    assert rig.loop.number("refused") == 0
    np.testing.assert_allclose(rig.loop.state[0], HOME + 0.4, rtol=0, atol=1e-9)


@pytest.mark.parametrize("what", ["trajectory", "target"])
def test_a_stop_that_was_asked_for_holds(panda: RobotTable, what: str) -> None:
    """A stream that was refused as busy is not followed in its cycle, nor one that is near before the arm rests."""
    rig = Rig(panda)
    begin(rig, what)
    far = np.zeros((5, 7))
    far[0] = HOME
    rig.stop()
    rig.refer(far)
    assert rig.run() == Refusal["far_from_hold"]
    near = rig.loop.state.copy()
    rig.refer(near)
    assert rig.run() == Refusal["far_from_hold"]
    for _ in range(1000):
        rig.refer(far)
        assert rig.run() == Refusal["far_from_hold"]
    assert not rig.loop.state[1:].any() and rig.steps.max() < 3e-3
    far[0] = rig.loop.state[0]
    rig.refer(far)
    assert rig.run() == 0 and rig.loop.number("held") == 0


@pytest.mark.parametrize("lead", [0, -15, 40], ids=lambda x: f"lead {x} ms")
def test_a_stamp_that_runs_ahead_of_its_arrival_waits(panda: RobotTable, lead: int) -> None:
    """Stamped 90 ms ahead, it moved the arm by 83 mrad in a cycle."""
    rig = Rig(panda, setpoint_lifespan=0.0)

    def say(k: float, ahead: float = 0.0) -> int:
        """The setpoint of a time, ms, stamped with it, in the next cycle."""
        t, w = 1e-3 * (k + ahead), 2 * np.pi * 0.5
        states = [0.3 * w**i * np.sin(w * t + i * np.pi / 2) for i in range(5)]
        states[0] = HOME + states[0]
        rig.refer(states, round(START + (k + lead + ahead) * MS))
        return rig.run()

    rig.loop.restart(HOME)
    rig.loop.configure(jump_check="ignore")  # the first one moves
    assert say(0) <= 0
    rig.loop.configure(jump_check="refuse")
    for k in range(1, 300):
        assert say(k) <= 0
    before = rig.loop.state[0].copy()
    assert say(300, 90.0) == Refusal["early"] and rig.loop.number("early") == 1 and rig.loop.number("refused") == 0
    np.testing.assert_array_equal(rig.loop.state[0], before)
    assert say(301) <= 0 and say(302, 15.0) <= 0  # the newest wins; a little ahead is jitter
    assert say(304, 80.0) == Refusal["early"]
    rig.run(30)
    assert rig.loop.number("early_waits")
    rig.run(40)  # followed once its time has come
    assert rig.loop.number("early") == 2 and not rig.loop.number("early_waits")


@pytest.mark.parametrize("then", ["trajectory", "target"])
def test_a_setpoint_that_waits_does_not_end_what_leads_by_then(panda: RobotTable, then: str) -> None:
    """Its refusal was taken for that of the motion, which was stopped."""
    rig = Rig(panda, setpoint_lifespan=0.0)
    rig.hold(300)
    rig.refer(np.stack([HOME, *np.zeros((4, 7))]), rig.now + 90 * MS)
    assert rig.run() == Refusal["early"]
    rig.target(HOME + 0.1) if then == "target" else rig.play(0.1)
    codes = [rig.run() for _ in range(1500)]
    assert max(codes) <= 0 and rig.loop.number("refused") == 0
    np.testing.assert_allclose(rig.loop.state[0], HOME + 0.1, atol=1e-6)


def test_setpoints_that_have_waited_for_a_late_cycle_do_not_make_later_ones_early(panda: RobotTable) -> None:
    rig = Rig(panda, setpoint_lifespan=0.0)
    rig.hold(100)
    rig.now += 80 * MS
    for k in range(80):  # handled one after the other
        rig.now -= MS
        state = np.zeros((5, 7))
        state[0] = HOME
        rig.refer(state, START + (101 + k) * MS)
        assert rig.run() <= 0
    rig.hold(100)
    assert rig.loop.number("early") == 0


def test_a_burst_of_late_setpoints_makes_no_later_ones_early(panda: RobotTable) -> None:
    """Their sender was held up, and the loop was not."""
    rig = Rig(panda, setpoint_lifespan=0.0)
    rig.hold(100)
    state = np.zeros((5, 7))
    state[0] = HOME
    begin = rig.now
    for _ in range(80):
        rig.run()
    for k in range(80):
        rig.refer(state, begin + k * MS)
        rig.run()
        rig.now -= 950_000
    for _ in range(100):
        rig.now += MS // 10
        rig.refer(state, rig.now)
        rig.run()
    assert rig.loop.number("early") == 0


@pytest.mark.parametrize("late", [22, 80, 450])
@pytest.mark.parametrize("first", [0, 1, 100])
def test_one_setpoint_that_is_late_makes_no_later_ones_early(panda: RobotTable, late: int, first: int) -> None:
    """As the first of all, it had two others wait, which were not answered."""
    rig = Rig(panda)
    rig.hold(first)
    state = np.zeros((5, 7))
    state[0] = HOME
    rig.refer(state, rig.now - late * MS)
    rig.run()
    for _ in range(300):
        rig.refer(state, rig.now)
        rig.run()
    assert not any(rig.loop.number(name) for name in ("early", "lost", "timeouts"))


def test_steps_are_judged_by_a_clock_that_is_behind(panda: RobotTable) -> None:
    """Stamps that are always 300 ms old do not run ahead of their arrival: steps are judged."""
    rig = Rig(panda, setpoint_lifespan=0.0)
    state = np.zeros((5, 7))
    state[0] = HOME
    for _ in range(100):
        rig.refer(state, rig.now - 300 * MS)
        assert rig.run() <= 0
    state[0] += 0.083
    rig.refer(state, rig.now - 210 * MS)
    before = rig.loop.state[0].copy()
    assert rig.run() == Refusal["jump"] and rig.loop.number("early") == 0
    np.testing.assert_array_equal(rig.loop.state[0], before)


@pytest.mark.parametrize("paces", ["sine", "random", "toggled"])
def test_a_pace_may_be_streamed(panda: RobotTable, paces: str) -> None:
    """At 100 Hz: its acceleration, jerk and snap are at most those of a change from 1 to 0 in stop_duration."""
    rig, rng, T = Rig(panda), np.random.default_rng(1), 0.3
    rig.hold(20)
    rig.play(0.3, 3.0)
    found = []
    for k in range(3000):
        if k % 10 == 0:
            choices = {
                "sine": 0.65 + 0.35 * np.cos(2 * np.pi * 0.5e-3 * k),
                "random": float(rng.uniform(0, 1.5)),
                "toggled": 0.3 + 0.7 * (k // 150 % 2),
            }
            rig.loop.speed(choices[paces])
        rig.run()
        found.append(rig.loop.number("pace"))
    assert np.ptp(found) > 0.1
    for order, bound in ((1, 2 / T), (2, 8 / T**2), (3, 48 / T**3)):
        assert np.abs(np.diff(found, order)).max() <= bound * 1e-3**order * (1 + 1e-2) + 1e-12
    assert np.abs(np.diff(rig.effort[21:], axis=0)).max() < 1.0 and np.abs(rig.effort).max() < 30.0


def test_a_period_may_be_infinite(panda: RobotTable) -> None:
    rig = Rig(panda)
    rig.play()
    rig.loop._library.loop_run(rig.loop.address, rig.now + MS, np.inf)
    rig.loop._library.loop_run(rig.loop.address, rig.now + 2 * MS, np.inf)
    assert np.isfinite(rig.loop.state).all()


def test_a_sample_is_not_recent_once_the_clock_has_been_set_back(panda: RobotTable) -> None:
    rig = Rig(panda)
    sensed = rig.loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), 7))
    sensed["q"][:] = HOME + 0.5
    rig.loop.sense(rig.now, 1)
    rig.loop._library.loop_restart(rig.loop.address, rig.now - 10 * 10**9)
    assert not rig.loop.number("valid")

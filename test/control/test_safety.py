# SPDX-License-Identifier: Apache-2.0
"""Strict settings: clean motions of many robots pass unrefused."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from exported_loop import ExportedTable
from hostile_streams import HOME, STREAMS, assert_harmless, wave

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import Status
from eom_dynamics.robot import Limits
from eom_dynamics.trajectory import check, rest_to_rest

RATE = 1000.0


def clean_motion(arm: eom.ElasticArm, rng: np.random.Generator) -> np.ndarray:
    """States (N, 5, n) at 1 kHz of a motion from rest to rest within all limits."""
    limits = [joint.limits for joint in arm.robot.independent_joints]
    lower, upper = (np.clip([getattr(x, side) for x in limits], -2.5, 2.5) for side in ("lower", "upper"))
    start, end = rng.uniform(0.9 * lower + 0.1 * upper, 0.1 * lower + 0.9 * upper, (2, arm.robot.n))
    motion = rest_to_rest(start, end, 1.0)
    verdict = check(arm, motion, rate=RATE)
    motion = motion.scaled(rng.uniform(1.01, 2.0) * verdict.time_scaling)
    t = np.arange(motion.start, motion.end, 1 / RATE)
    return np.ascontiguousarray(np.swapaxes(np.stack(motion.derivatives(t)), 0, 1))


def refusals(name: str, motions: int, rng: np.random.Generator) -> tuple[int, int]:
    """Setpoints of clean motions with jitter of their arrival, and how many the strict loop refuses or doubts."""
    arm = eom.ElasticArm(eom.load_robot(name))
    loop, now, sent, wrong = ControlLoop(RobotTable(arm)), 10**12, 0, 0
    while motions:
        try:
            states = clean_motion(arm, rng)
        except (eom.TrajectoryError, eom.StateError):  # no duration meets all limits, such as of springs that go slack
            continue
        motions -= 1
        loop.restart()
        stamps = now + np.arange(1, len(states) + 1) * 10**6
        now = int(stamps[-1]) + 10**9
        arrival = np.maximum.accumulate(stamps + rng.integers(0, 20 * 10**6, len(states)))
        codes = loop.answer(
            np.array([stamps, arrival]), STATE_NAMES, states, [loop.setpoint["q"]], np.empty((len(states), arm.robot.n))
        )
        sent += len(states)
        wrong += len(states) - int(np.sum(codes == 0))
    return sent, wrong


@cache
def table(host: str) -> Any:
    return ExportedTable(eom.load_robot("panda")) if host == "exported" else RobotTable(ARM)


ARM = eom.ElasticArm(eom.load_robot("panda"))


@pytest.mark.parametrize("host", ["Python", "exported"])
@pytest.mark.parametrize("name", STREAMS)
def test_a_hostile_stream_commands_nothing_beyond_a_limit_and_no_jump(name: str, host: str) -> None:
    """By the defaults of the loop, in Python, and of the code that controllers run; from a measured position."""
    loop, start, rows, rng = ControlLoop(table(host)), 10**12, [], np.random.default_rng(0)
    loop.restart(HOME)
    for k in range(900):
        state, stamp = (wave(0), 10**6 * k) if k < 10 else STREAMS[name](k, rng)
        if k < 400 and k % 3 == 0:
            loop.rest()
            for row, values in zip(STATE_NAMES, state, strict=True):
                loop.given[row][:] = values
            loop.refer(0 if stamp is None else start + round(stamp))
        loop.update(start + 10**6 * k, 1e-3)
        rows.append([loop.command[key].copy() for key in ("motor_position", "tau", "motor_velocity")])
    assert name == "without stamps" or loop.number("refused") > 0
    assert_harmless(*np.swapaxes(rows, 0, 1), period=3e-3)
    assert loop.number("status") == Status.HELD and not loop.command["motor_velocity"].any()


@pytest.mark.parametrize("name", ["panda", "iiwa", "ur5e", "sea_planar_2r", "vsa_planar_2r"])
def test_clean_motions_pass_strict_settings(name: str) -> None:
    sent, wrong = refusals(name, 2, np.random.default_rng(0))
    assert sent > 0 and wrong == 0


@pytest.mark.parametrize(("late", "refused"), [(2, 2), (10, 10), (40, 22)])
def test_after_a_late_stamp_a_stream_is_refused_until_limits_allow_its_step(late: int, refused: int) -> None:
    """Of a publisher that was interrupted, for a time in ms, between computing a setpoint and giving it a stamp."""
    loop, start = ControlLoop(RobotTable(ARM)), 10**12
    loop.restart(HOME)
    for k in range(600):
        if not 300 <= k < 300 + late:
            loop.rest()
            for row, values in zip(STATE_NAMES, wave(300 if k == 300 + late else k), strict=True):
                loop.given[row][:] = 0.2 * values + (0.8 * HOME if row == "q" else 0)
            loop.refer(start + 10**6 * k)
        loop.update(start + 10**6 * k, 1e-3)
    assert loop.number("refused") == refused and loop.number("status") == Status.FRESH


@pytest.mark.parametrize(("away", "refusal"), [(0.0099, 0), (0.0101, Refusal["far_from_hold"])])
def test_publishers_return_within_resume_distance_however_slow_the_robot(away: float, refusal: int) -> None:
    robot = eom.load_robot("planar_2r")
    limits = Limits(velocity=0.05, acceleration=0.1, jerk=1.0)
    arm = eom.ElasticArm(replace(robot, joints=tuple(replace(joint, limits=limits) for joint in robot.joints)))
    loop, now = ControlLoop(RobotTable(arm)), 10**12
    loop.rest()
    loop.refer(now)
    assert loop.update(now) == 0
    for _ in range(100):
        now += 10**7
        loop.update(now)
    assert loop.number("ended_at_rest") and not loop.number("timeouts")
    loop.given["q"][:] = away
    loop.refer(now)
    assert loop.update(now) == refusal


@pytest.mark.parametrize(("speed", "refused"), [(0.0, True), (2e-4, False)])
def test_setpoints_that_are_refused_at_rest_and_moving_ones_without_rates_are_lost(speed: float, refused: bool) -> None:
    loop, now = ControlLoop(RobotTable(eom.ElasticArm(eom.load_robot("planar_2r")))), 10**12
    for k in range(300):
        loop.rest()
        loop.given["q"][:] = np.nan if k >= 100 else speed * k
        if k < 100 or refused:
            loop.refer(now + 10**6 * k)
        loop.update(now + 10**6 * k)
    assert loop.number("lost") and not loop.number("ended_at_rest") and loop.number("timeouts") == 1


def test_a_held_arm_is_not_taken_along_by_a_stream_that_passes() -> None:
    """After a loss, a setpoint at the held position with a velocity is refused, and one at rest there is followed."""
    loop, now = ControlLoop(RobotTable(eom.ElasticArm(eom.load_robot("panda")))), 10**12
    q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])

    def answer(velocity: float, step: int) -> bool:
        nonlocal now
        now += step
        loop.rest()
        loop.given["q"][:], loop.given["qd"][:] = q, 0.0
        loop.given["qd"][0] = velocity
        loop.refer(now)
        return loop.update(now, 1e-3) == 0

    assert answer(0.0, 0)
    for _ in range(600):
        now += 10**6
        loop.update(now, 1e-3)
    assert loop.number("status") == Status.HELD
    assert not answer(0.6, 10**6) and answer(0.0, 10**6) and answer(0.1, 10**7)

# SPDX-License-Identifier: Apache-2.0
"""Strict settings: hostile streams do no harm, and streams that end or pause come back."""

from dataclasses import replace

import numpy as np
import pytest
from checked import resting
from hostile_streams import HOME, STREAMS, assert_harmless, wave
from loop_rig import MS, START, LoopRig, Record, rest

import eom_dynamics as eom
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.control.settings import Status
from eom_dynamics.robot import Limits


@pytest.mark.parametrize("name", STREAMS)
def test_a_hostile_stream_commands_nothing_beyond_a_limit_and_no_jump(name: str) -> None:
    """By the defaults of the loop; in two of three cycles, nothing comes."""
    rig, rng = resting(cycles=0), np.random.default_rng(0)
    for k in range(900):
        state, stamp = (wave(0), 10**6 * k) if k < 10 else STREAMS[name](k, rng)
        if k < 400 and k % 3 == 0:
            rig.refer(state, 0 if stamp is None else START + round(stamp))
        rig.run()
    assert name == "without stamps" or rig.number("refused") > 0
    command = Record(rig).command
    assert_harmless(*(command[name] for name in ("motor_position", "tau", "motor_velocity")), period=3e-3)
    assert rig.number("status") == Status.HELD and not rig.loop.command["motor_velocity"].any()


@pytest.mark.parametrize("name", eom.packaged_robots())
@pytest.mark.parametrize("field", [1, 2], ids=["velocity", "acceleration"])
def test_an_absurd_setpoint_is_refused_by_the_limits_of_every_packaged_robot(name: str, field: int) -> None:
    """Of 10⁵ rad/s or rad/s², where it was rest a cycle before; the checks of jumps are off."""
    rig = LoopRig(eom.load_robot(name), "permissive", limits="refuse")
    quiet = rest(np.clip(np.full(rig.arm.robot.n, -0.3), *ranges(rig.arm.robot)))
    rig.restart(quiet[0])
    assert rig.stream([quiet]) == [0]
    absurd = quiet.copy()
    absurd[field] = 1e5
    assert rig.stream([absurd]) != [0]
    sent = rig.loop.command["tau"]
    assert np.all(np.abs(sent) <= [joint.limits.effort for joint in rig.arm.robot.independent_joints])


def ranges(robot: eom.Robot) -> np.ndarray:
    return np.array([[x.limits.lower, x.limits.upper] for x in robot.independent_joints]).T


@pytest.mark.parametrize(("late", "refused"), [(2, 2), (10, 10), (40, 22)])
def test_after_a_late_stamp_a_stream_is_refused_until_limits_allow_its_step(late: int, refused: int) -> None:
    """Of a publisher that was interrupted, for a time in ms, between computing a setpoint and giving it a stamp."""
    rig = resting(cycles=0)
    for k in range(600):
        if not 300 <= k < 300 + late:
            rig.refer(0.2 * wave(300 if k == 300 + late else k) + 0.8 * rest(HOME))
        rig.run()
    assert rig.number("refused") == refused and rig.number("status") == Status.FRESH


@pytest.mark.parametrize(("away", "refusal"), [(0.0099, 0), (0.0101, Refusal["far_from_hold"])])
def test_publishers_return_within_start_tolerance_however_slow_the_robot(away: float, refusal: int) -> None:
    robot = eom.load_robot("planar_2r")
    limits = Limits(velocity=0.05, acceleration=0.1, jerk=1.0)
    slow = replace(robot, joints=tuple(replace(joint, limits=limits) for joint in robot.joints))
    rig = resting(slow, np.zeros(2), 1)
    for _ in range(100):
        rig.run(10 * MS)
    assert rig.number("ended_at_rest") and not rig.number("timeouts")
    assert rig.stream([rest([away, away])]) == [refusal]


@pytest.mark.parametrize("policy", ["refuse", "warn", "ignore"])
@pytest.mark.parametrize("name", ["planar_2r", "sea_planar_2r"], ids=["motors without limits", "stronger motors"])
def test_the_last_efforts_carry_no_more_than_limits_allow(name: str, policy: str) -> None:
    """Of an arm that hung while it was commanded, and is measured level as it is switched off."""
    robot, level = eom.load_robot(name), np.zeros(2)
    weight = eom.ElasticArm(robot).feedforward(level, *np.zeros((4, 2))).tau
    most = Limits(effort=0.6 * float(np.abs(weight).max()))
    limited = replace(robot, joints=tuple(replace(joint, limits=most) for joint in robot.joints))
    rig = resting(limited, np.array([-np.pi / 2, 0.0]), 1)
    rig.loop.configure(limits=policy, effort_on_deactivate="gravity")
    rig.loop.measure(np.stack([level, level]))
    rig.loop.act("release")
    wanted = np.clip(weight, -most.effort, most.effort) if policy == "refuse" else weight
    assert np.abs(weight - wanted).any() == (policy == "refuse")
    for name in ("drive_effort", "sent_effort"):  # to the loop, 1e-9 of a limit is rounding
        np.testing.assert_allclose(rig.loop.sent_last[name], wanted, rtol=2e-9)


@pytest.mark.parametrize(("speed", "refused"), [(0.0, True), (2e-4, False)])
def test_setpoints_that_are_refused_at_rest_and_moving_ones_without_rates_are_lost(speed: float, refused: bool) -> None:
    rig = LoopRig("planar_2r")
    rig.stream(rest([speed * k] * 2) for k in range(100))
    rig.cycles(200, rest([np.nan] * 2) if refused else None)
    assert rig.number("lost") and not rig.number("ended_at_rest") and rig.number("timeouts") == 1


def test_a_held_arm_is_not_taken_along_by_a_stream_that_passes() -> None:
    """After a loss, a setpoint at the held position with a velocity is refused, and one at rest there is followed."""
    rig = resting(cycles=1)
    rig.cycles(600)
    assert rig.number("status") == Status.HELD
    passing = [rest(HOME) + np.outer(np.eye(5)[1], v * np.eye(7)[0]) for v in (0.6, 0.0, 0.1)]
    codes = rig.stream(passing[:2])
    rig.now += 9 * MS
    assert [code == 0 for code in codes + rig.stream(passing[2:])] == [False, True, True]

# SPDX-License-Identifier: Apache-2.0
"""Stop after a refused command: it continues until the arm rests, whatever motions are asked for."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from loop_rig import MS, LoopRig, Record, rest, straight

from eom_dynamics import Robot, load_robot
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.control.headers import source, table_rows
from eom_dynamics.control.settings import Status

START, GOAL = np.array([-1.4, 0.3]), np.array([-0.4, 0.3])
PHASES = [name for name, _ in table_rows(source("state_machine.hpp"), "EOM_PHASES")]
CAUSES = [row[0] for row in table_rows(source("state_machine.hpp"), "EOM_CAUSES")]
FASTER = {"velocity": 2.0, "acceleration": 10.0}
"""Limits of targets, of which the velocity is beyond that of the joints: commands are refused amid the motion."""


@cache
def arm(spring: str) -> Robot:
    robot = load_robot("planar_2r" if spring == "rigid" else "sea_planar_2r")
    joints = [
        replace(joint, limits=replace(joint.limits, lower=-2.5, upper=2.5, velocity=1.0, acceleration=25.0))
        for joint in robot.joints
    ]
    return replace(robot, name=f"{spring}_with_ranges", joints=tuple(joints))


def state(rig: LoopRig) -> tuple[str, str]:
    return PHASES[int(rig.number("phase"))], CAUSES[int(rig.number("cause"))]


def pursue(rig: LoopRig, goal: np.ndarray) -> None:
    """Give the target of a controller in front."""
    rig.library.loop_rest(rig.address, 0)
    rig.loop.given["q"][:] = goal
    rig.library.loop_pursue(rig.address)


def moved_on(rig: LoopRig) -> np.ndarray:
    """A goal that differs in each cycle."""
    return GOAL + 1e-4 * (rig.count % 50)


CALLS: dict[str, Callable[[LoopRig], None]] = {
    "pursued": lambda rig: pursue(rig, moved_on(rig)),
    "target": lambda rig: rig.target(moved_on(rig)),
    "chunk": lambda rig: rig.target(np.stack([rig.q, moved_on(rig)]), None, np.array([0.0, 0.1])),
    "trajectory": lambda rig: rig.trajectory(straight([0.0, 0.2], [rig.q, rig.q + 0.01])),
    "setpoint": lambda rig: rig.refer(rest(GOAL)),
}
"""Calls before each cycle, as of a sender that does not wait."""


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("spring", ["rigid", "soft"])
@pytest.mark.parametrize("call", CALLS)
def test_a_stop_after_a_refused_command_goes_on_until_the_arm_rests(call: str, spring: str, hosted: bool) -> None:
    rig = LoopRig(arm(spring), targets=FASTER, hosted=hosted)
    rig.restart(START)
    rig.target(GOAL)
    while state(rig)[0] != "stopping":
        rig.run()
    assert state(rig) == ("stopping", "failed")
    assert rig.loop.text("refusal").startswith("exceeds limits: joint_1: velocity")
    first = rig.count - 1
    while rig.loop.status is Status.STOPPING:
        CALLS[call](rig)
        rig.run()
        assert rig.count < first + 1000
    record = Record(rig, first)
    assert 0.05 < 1e-3 * (rig.count - first) < 0.5  # stop_duration of 0.3 s, and what limits of targets add
    moves, fast = np.diff(record.state[:, 0, 0]), record.state[1:, 1, 0]
    assert np.all(moves[fast > 0.01] > 0)  # no position is repeated with a velocity
    assert np.all(np.diff(fast[60:]) <= 1e-9)  # the averages of the motion go on for 60 ms at most
    assert moves.sum() < 0.5 * 1.0 * 0.5
    assert state(rig)[0] in ("holding", "aiming", "playing")


def rig_with_target(until: str) -> LoopRig:
    """Rig of the rigid arm with a target, run until the loop is in a state."""
    rig = LoopRig(arm("rigid"), targets=FASTER)
    rig.restart(START)
    rig.target(GOAL)
    while state(rig)[0] != until:
        rig.run()
    return rig


@pytest.mark.parametrize("call", ["pursued", "target", "chunk", "trajectory"])
def test_at_rest_after_a_refused_command_the_next_motion_begins(call: str) -> None:
    rig = rig_with_target("holding")
    CALLS[call](rig)
    rig.run()
    assert state(rig)[0] == ("playing" if call == "trajectory" else "aiming")


@pytest.mark.parametrize("call", ["target", "chunk", "trajectory"])
def test_a_motion_that_arrives_amid_that_stop_is_refused_with_the_reason(call: str) -> None:
    rig = rig_with_target("stopping")
    CALLS[call](rig)
    assert Refusal(rig.run()) is Refusal["stopping"]
    assert rig.loop.text("refusal") == "the arm is being stopped after a refused command: wait until it rests"


def test_a_pursued_target_that_is_refused_again_and_again_never_freezes_a_moving_arm() -> None:
    """As behind a controller that goes on: each stop comes to rest, then the arm goes on towards the target."""
    rig = LoopRig(arm("soft"), targets=FASTER)
    rig.restart(START)
    for k in range(4000):
        pursue(rig, START + np.array([0.8 * np.sin(2e-3 * k), 0.4 * np.sin(3e-3 * k)]))
        rig.run()
    record = Record(rig)
    refused = np.count_nonzero(record.code == Refusal["over_limits"])
    frozen = (np.abs(np.diff(record.sent["drive_position"], axis=0)).max(axis=1) == 0) & (
        np.abs(record.sent["drive_velocity"][1:]).max(axis=1) > 1e-3
    )
    assert refused > 2
    assert np.count_nonzero(frozen) <= refused  # the first cycle of a stop repeats the last command
    assert not np.any(frozen[1:] & frozen[:-1])
    assert rig.now - rig.times[0] == 4000 * MS

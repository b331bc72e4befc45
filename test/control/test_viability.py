# SPDX-License-Identifier: Apache-2.0
"""Limits of position: what runs into them is refused while the arm can still stop, and what ends there is followed."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from exported_loop import ExportedTable
from stopping import stopping_position

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.online_trajectory import OnlineTrajectory, motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.setpoint_loop import SetpointLoop
from eom_dynamics.control.setpoint_to_command import SetpointEvaluator
from eom_dynamics.control.settings import STOP_HASTE, Status
from eom_dynamics.exceptions import LimitError
from eom_dynamics.trajectory import minimum_time, rest_to_rest

MS = 1_000_000
START = 10**12
HOMES = {"panda": [0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0], "ur5e": [0.0, -1.2, 1.2, 0.0, 0.5, 0.0]}
RANGES = {"lower": -1.0, "upper": 1.5}


@cache
def arm_of(name: str) -> eom.ElasticArm:
    """An arm of a file; in those of planar robots, joints get ranges, which hinges lack, and others more limits."""
    file, _, limits = name.partition(" with ")
    robot = eom.load_robot(file)
    if all(joint.limits.upper < np.inf for joint in robot.joints):
        return eom.ElasticArm(robot)
    more = {"effort": {"effort": 80.0}, "acceleration": {"acceleration": 12.0}}.get(limits, {})
    return eom.ElasticArm(
        replace(robot, joints=tuple(replace(x, limits=replace(x.limits, **RANGES, **more)) for x in robot.joints))
    )


@cache
def table(name: str, host: str = "Python") -> Any:
    return ExportedTable(eom.load_robot(name)) if host == "exported" else RobotTable(arm_of(name))


def stream(loop: ControlLoop, states: Iterable[np.ndarray], more: int = 500) -> tuple[list[int], np.ndarray]:
    """Codes of the cycles of a stream at 1 kHz, and of as many after it as are given; states that are commanded."""
    codes, followed = [], []
    for k, state in enumerate([*states, *[None] * more]):
        if state is not None:
            loop.rest()
            for row, values in zip(STATE_NAMES, state, strict=True):
                loop.given[row][:] = values
            loop.refer(START + k * MS)
        codes.append(loop.update(START + k * MS, 1e-3))
        followed.append(loop.state.copy())
    return codes, np.array(followed)


def limits_of(arm: eom.ElasticArm, joint: int) -> Any:
    return arm.robot.independent_joints[joint].limits


def run_up(arm: eom.ElasticArm, name: str, joint: int, speed: float, side: int) -> tuple[float, np.ndarray]:
    """The limit, and states (N, 5, n) of a motion that speeds up smoothly before it, in 0.8 s, and goes on."""
    limits = limits_of(arm, joint)
    limit = limits.upper if side > 0 else limits.lower
    home = np.array(HOMES.get(name.split()[0], np.zeros(arm.robot.n)))
    home[joint] = limit - side * (0.6 * speed + 0.05)
    faster, t = rest_to_rest(np.zeros(1), [speed], 0.8), np.arange(0.0, 1.5, 1e-3)  # of velocities
    rates = np.hstack(faster.derivatives(t, 3))  # velocity to snap
    states = np.zeros((len(t), 5, arm.robot.n))
    states[:, 0] = home
    states[1:, 0, joint] += side * np.cumsum(1e-3 * rates[:-1, 0])
    states[:, 1:, joint] = side * rates
    return limit, states


CASES = [
    *product(["panda"], [0, 1, 5], [0.2, 1.0, 2.0]),
    *product(["ur5e"], [0, 3], [2.0]),
    *product(["sea_planar_2r", "vsa_planar_2r", "planar_2r", "planar_2r with effort"], [0, 1], [0.2, 1.5]),
    *product(["planar_pr with acceleration", "planar_pr"], [0], [0.5]),
]


@pytest.mark.parametrize(("name", "joint", "speed"), CASES)
def test_a_stream_that_runs_into_a_limit_stops_before_it(name: str, joint: int, speed: float) -> None:
    arm, side = arm_of(name), -1 if joint % 2 else 1
    limit, states = run_up(arm, name, joint, speed, side)
    loop = ControlLoop(table(name))
    loop.restart(states[0][0])
    codes, followed = stream(loop, states)
    left = side * (limit - followed[:, 0, joint])
    assert left.min() > 0 and loop.status is Status.HELD and not followed[-1, 1:].any()
    first = np.flatnonzero(np.array(codes) > 0)[0]
    # Not sooner than it has to brake.
    way = stopping_position(arm, joint, 0.0, speed, 0.0)
    assert way - 1e-9 <= left[first - 1] <= way + 1e-3 * speed + 1e-9
    assert codes[first] == Refusal["cannot_stop"]
    # Along the way of a stop, no joint accelerates much more than it may.
    if np.isfinite(limits_of(arm, joint).acceleration):
        assert np.abs(followed[:, 2, joint]).max() < 2.3 * limits_of(arm, joint).acceleration


@pytest.mark.parametrize("name", ["panda", "ur5e", "sea_planar_2r", "planar_2r", "planar_pr with acceleration"])
def test_a_run_up_that_is_refused_amid_its_acceleration_stops_before_the_limit(name: str) -> None:
    """Braking as hard as a stop may takes it there, but for less than a micrometre."""
    arm, rng = arm_of(name), np.random.default_rng(11)
    for _ in range(12):
        joint, side = int(rng.integers(arm.robot.n)), int(rng.choice([-1, 1]))
        most = min(limits_of(arm, joint).velocity, 2.0)
        limit, states = run_up(arm, name, joint, float(rng.uniform(0.2, 0.95)) * most, side)
        start, nearer = states[0, 0, joint], float(rng.uniform(0.2, 0.95))
        states[:, 0, joint] += nearer * (limit - side * 0.01 - start)
        loop = ControlLoop(table(name))
        loop.restart(states[0][0])
        codes, followed = stream(loop, states)
        assert (side * (limit - followed[:, 0, joint])).min() > -1e-6
        assert max(codes) == Refusal["cannot_stop"] and not followed[-1, 1:].any()


@pytest.mark.parametrize("joint", [0, 1, 3, 5])
def test_in_such_a_stop_efforts_are_within_limits(joint: int) -> None:
    arm = arm_of("panda")
    for speed in (1.0, 2.0):
        _, states = run_up(arm, "panda", joint, speed, 1)
        loop = ControlLoop(table("panda"))
        loop.restart(states[0][0])
        _, followed = stream(loop, states)
        efforts = arm.feedforward(*np.swapaxes(followed, 0, 1)).tau
        assert np.all(np.abs(efforts).max(axis=0) < [limits_of(arm, i).effort for i in range(7)])


def test_controllers_say_the_same() -> None:
    _, states = run_up(arm_of("panda"), "panda", 0, 1.5, 1)
    answers = []
    for host in ("Python", "exported"):
        loop = ControlLoop(table("panda", host))
        loop.restart(states[0][0])
        answers.append(stream(loop, states))
    (codes, followed), (others, alike) = answers
    assert codes == others and np.array_equal(followed, alike)


def ends_at_limits(name: str, kind: str, rng: np.random.Generator) -> list[np.ndarray]:
    """States of a motion to a limit of position of one joint."""
    arm = arm_of(name)
    n, limits = arm.robot.n, [limits_of(arm, i) for i in range(arm.robot.n)]
    lower, upper = np.array([[x.lower, x.upper] for x in limits]).T
    joint, side = int(rng.integers(n)), int(rng.choice([-1, 1]))
    end = lower + (upper - lower) * rng.uniform(0.4, 0.6, n)
    end[joint] = (lower if side < 0 else upper)[joint]
    start = np.clip(end + rng.uniform(-0.3, 0.3, n), lower, upper)
    start[joint] = end[joint] - side * rng.uniform(0.3, 0.9)
    A, V = min(limits[joint].acceleration, 20.0), min(limits[joint].velocity, 2.0)
    if kind == "fastest":
        motion: Any = minimum_time(arm, [start, end])
        return list(np.swapaxes(np.stack(motion.derivatives(np.arange(0.0, motion.end, 1e-3))), 0, 1))
    if kind == "target":
        most = np.minimum([x.acceleration for x in limits], A)
        online = OnlineTrajectory(arm, 1e-3, {"velocity": V, "acceleration": most})
        online.reset(start)
        online.target(end)
        return list(online.step(3000))
    start[np.arange(n) != joint] = end[np.arange(n) != joint]
    way = abs(end[joint] - start[joint])
    if kind == "cosine":  # its acceleration ends at its largest
        w = min(np.sqrt(2 * A / way), 2 * V / way)
        t = np.append(np.arange(0.0, np.pi / w, 1e-3), np.pi / w)
        x = [way / 2 * w**k * np.sin(w * t + (k - 1) * np.pi / 2) for k in range(5)]
        x[0] += way / 2
    else:  # with constant acceleration
        # It speeds up gently, and to where braking takes longer than averages do: from steps of A no arm stops at once.
        v, gentle = 0.95 * min(limits[joint].velocity, 2.5), A / 4
        way = v**2 / (2 * gentle) + v**2 / (2 * A)
        start[joint] = end[joint] - side * way
        t = np.arange(0.0, v / gentle + v / A, 1e-3)
        left, braked = v / gentle + v / A - t, t > v / gentle
        x = [np.where(braked, way - A * left**2 / 2, gentle * t**2 / 2), np.where(braked, A * left, gentle * t)]
        x += [np.where(braked, -A, gentle), 0 * t, 0 * t]
    states = np.zeros((len(t), 5, n))
    states[:, 0] = start
    states[:, :, joint] += side * np.array(x).T
    return list(states)


@pytest.mark.parametrize("kind", ["fastest", "target", "cosine", "constant"])
@pytest.mark.parametrize("name", ["panda", "planar_2r with acceleration", "planar_2r with effort", "sea_planar_2r"])
def test_motions_that_end_at_a_limit_are_followed(name: str, kind: str) -> None:
    if kind == "fastest" and name != "panda":
        pytest.skip("without limits of jerk or effort rate")
    rng = np.random.default_rng(3)
    for _ in range(1 if kind == "fastest" else 4):
        states, loop = ends_at_limits(name, kind, rng), ControlLoop(table(name))
        loop.configure(jump_check="ignore")  # of steps of acceleration
        loop.restart(states[0][0])
        codes, _ = stream(loop, states, 0)
        assert max(codes) <= 0


@pytest.mark.parametrize("policy", ["warn", "ignore", "refuse"])
def test_what_becomes_of_it_is_the_policy_of_limits_and_is_said(policy: str) -> None:
    loop = SetpointLoop(SetpointEvaluator(arm_of("panda")))
    loop.configure(safety="permissive", limits=policy)
    loop.loop.rest()
    loop.loop.given["q"][:], loop.loop.given["qd"][0] = HOMES["panda"], 1.5
    loop.loop.given["q"][0] = 2.85
    text = (
        "fer_joint1: stopping position 2.924 rad, limit 2.897 rad, from 2.85 rad at 1.5 rad/s with 15 rad/s²: "
        "slow down before the limit"
    )
    if policy == "refuse":
        with pytest.raises(LimitError, match=f"^exceeds limits: {text}$"):
            loop.answer(0, START)
        return
    assert loop.answer(0, START) == (policy != "ignore")
    if policy != "ignore":
        assert [str(x) for x in loop.violations()] == [text]


def test_an_arm_beyond_a_limit_may_come_back_but_no_other_joint_may_run_into_one() -> None:
    loop, home = ControlLoop(table("panda")), np.array(HOMES["panda"])
    home[0] = 2.95
    loop.configure(limits="ignore")
    loop.restart(home)
    loop.configure(limits="refuse")
    back = rest_to_rest(home, np.array([2.5, *home[1:]]), 2.0)
    states = [np.stack(back.derivatives(0.001 * k)) for k in range(200)]
    assert max(stream(loop, states, 0)[0]) <= 0
    loop.configure(limits="ignore", jump_check="ignore")
    loop.restart(home)
    loop.configure(limits="refuse")
    states[5][0, 5], states[5][1, 5] = 3.74, 1.0
    codes, _ = stream(loop, states[:6], 0)
    assert max(codes[:5]) <= 0 and codes[5] == Refusal["cannot_stop"]


def test_targets_and_trajectories_to_a_limit_are_within_it() -> None:
    arm, home = arm_of("panda"), np.array(HOMES["panda"])
    end = home.copy()
    end[[0, 5]] = [limits_of(arm, 0).upper, limits_of(arm, 5).lower]
    loop = ControlLoop(table("panda"))
    loop.restart(home)
    loop.limit(motion_limits(arm), 1e-3)
    loop.aim(START, end)
    assert not any(stream(loop, [], 4000)[0]) and loop.number("arrived")
    loop = ControlLoop(table("panda"))
    loop.restart(home)
    loop.send_trajectory(minimum_time(arm, [home, end]), 0)
    assert loop.plan(START, 1e-3) == 0
    codes, followed = stream(loop, [], 4000)
    assert not any(codes) and np.allclose(followed[-1, 0], end)


def test_other_joints_stop_as_if_none_was_near_a_limit() -> None:
    state = np.zeros((5, 7))
    state[0], state[1, 2] = HOMES["panda"], 0.8
    ends = []
    for speed in (0.0, 0.45):  # faster, efforts would change too fast: all joints slow down later
        loop = ControlLoop(table("panda"))
        loop.configure(stop_duration=0.4, jump_check="ignore", setpoint_timeout=0.01)
        state[0, 0], state[1, 0] = limits_of(arm_of("panda"), 0).upper - 0.02, speed
        ends.append(stream(loop, [state])[1][-1, 0])
    assert ends[0][2] == pytest.approx(ends[1][2]) and ends[0][2] > 0.1
    assert 0 < limits_of(arm_of("panda"), 0).upper - ends[1][0] < 0.011


def test_a_joint_that_cannot_stop_in_its_range_comes_back() -> None:
    """At most as far as it has left it, and smoothly."""
    loop, state, upper = ControlLoop(table("panda")), np.zeros((5, 7)), limits_of(arm_of("panda"), 0).upper
    loop.configure(safety="permissive", setpoint_timeout=0.01, on_setpoint_loss="hold")
    state[0], state[0, 0], state[1, 0] = HOMES["panda"], upper - 0.02, 2.0
    q, _, qdd = stream(loop, [state])[1][:, :3, 0].T
    beyond = q.max() - upper
    assert beyond > 0.01 and -1.1 * beyond < q[-1] - upper < 1e-6 and loop.status is Status.HELD
    assert np.abs(qdd).max() <= STOP_HASTE * limits_of(arm_of("panda"), 0).acceleration * (1 + 1e-6)


def test_a_short_stop_far_from_limits_is_none_at_once() -> None:
    loop, state = ControlLoop(table("panda")), np.zeros((5, 7))
    loop.configure(safety="permissive", stop_duration=0.01)
    state[0], state[1, 6] = HOMES["panda"], 0.01
    stream(loop, [state], 0)
    loop.act("stop")
    assert loop.number("stop_end") >= 0.01

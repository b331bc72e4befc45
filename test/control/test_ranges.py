# SPDX-License-Identifier: Apache-2.0
"""Targets and trajectories beyond the range of a joint: refused with joint, position and limit."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from loop_rig import LoopRig, Record, rest, straight

from eom_dynamics import Robot, load_robot
from eom_dynamics.control.control_loop import Refusal
from eom_dynamics.robot import Limits
from eom_dynamics.trajectory import Spline

HOME = np.array([0, -0.5, 0, -1.5, 0, 1.5, 0.5])
SINGLE = 2.0**-24
"""Relative rounding of single precision."""


@cache
def gantry() -> Robot:
    """A rail with a range of ±0.8 m and an arm of one revolute joint without a range."""
    robot = load_robot("planar_pr")
    rail, arm = robot.joints
    rail = replace(rail, name="rail", limits=Limits(lower=-0.8, upper=0.8, velocity=1.0, acceleration=5.0))
    arm = replace(arm, limits=Limits(velocity=2.0, acceleration=10.0))
    return replace(robot, name="gantry", joints=(rail, arm))


def rig_of(robot: str | Robot, q: Any, **settings: Any) -> LoopRig:
    rig = LoopRig(robot, **{"targets": {}, **settings})
    rig.restart(q)
    rig.cycles(3)
    return rig


def pursue(rig: LoopRig, q: Any) -> None:
    rig.library.loop_rest(rig.address, 0)
    rig.loop.given["q"][:] = q
    rig.library.loop_pursue(rig.address)


SENDERS = {
    "target": lambda rig, q: rig.target(q),
    "moving target": lambda rig, q: rig.target(q, np.array([0.01, 0.0])),
    "chunk": lambda rig, q: rig.target(np.stack([rig.q, q, rig.q]), None, np.array([0.0, 0.5, 1.0])),
    "pursued": pursue,
}


# --- Targets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize("position", [300.0, -300.0, 0.81, -0.8001])
@pytest.mark.parametrize("sender", SENDERS)
def test_a_target_beyond_the_range_is_refused_with_joint_position_and_limit(
    sender: str, position: float, hosted: bool
) -> None:
    """As in millimeters: the gantry was driven to its end."""
    rig = rig_of(gantry(), [0.1, 0.2], hosted=hosted)
    rig.target([0.2, 0.3])
    rig.cycles(100)
    before = rig.number("refused")
    SENDERS[sender](rig, np.array([position, 0.3]))
    rig.run()
    assert rig.number("refused") == before + 1
    limit = 0.8 if position > 0 else -0.8
    assert (
        rig.loop.text("refusal")
        == f"rail: target {position:.4g} m, limit {limit:.4g} m; send a target within the range"
    )
    rig.cycles(1500)  # the motion before it goes on
    np.testing.assert_allclose(rig.q, [0.2, 0.3], rtol=0, atol=1e-9)


@pytest.mark.parametrize("policy", ["warn", "ignore"])
@pytest.mark.parametrize("sender", SENDERS)
def test_a_target_beyond_the_range_is_clamped_where_limits_are_not_refused(sender: str, policy: str) -> None:
    rig = rig_of(gantry(), [0.7, 0.2], limits=policy)
    for _ in range(3000):
        if sender == "pursued":
            pursue(rig, [0.9, 0.2])
        elif rig.count == 3:
            SENDERS[sender](rig, np.array([0.9, 0.2]))
        rig.run()
    record = Record(rig)
    assert not np.any(record.code > 0)
    assert 0.8 - 1e-9 <= record.setpoint["q"][:, 0].max() <= 0.8 + 1e-6


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("limit", [0.8, -0.8])
def test_a_target_at_the_range_is_accepted_within_the_rounding_of_messages(sender: str, limit: float) -> None:
    for beyond, refused in ((0.0, 0), (SINGLE * 0.8, 0), (1e-9 * 0.8, 0), (1e-6, 1)):
        rig = rig_of(gantry(), [limit - np.sign(limit) * 0.01, 0.2])
        SENDERS[sender](rig, np.array([limit + np.sign(limit) * beyond, 0.2]))
        rig.cycles(1)
        assert rig.number("refused") == refused, beyond
        rig.cycles(1500)
        assert abs(rig.q[0]) <= 0.8


def test_targets_in_single_precision_at_any_limit_of_packaged_arms_are_accepted() -> None:
    for name in ("panda", "ur5e", "iiwa"):
        rig = LoopRig(name, targets={"acceleration": 5.0})
        joints = rig.arm.robot.independent_joints
        for side in ("lower", "upper"):
            limit = np.array([getattr(joint.limits, side) for joint in joints])
            middle = np.array([np.clip(0.0, joint.limits.lower, joint.limits.upper) for joint in joints])
            rig.restart(middle)
            for i in np.flatnonzero(np.isfinite(limit)):
                q = np.full(rig.n, np.nan)
                q[i] = float(np.float32(limit[i]))
                rig.target(q)
                assert Refusal(max(rig.run(), 0)) is not Refusal["beyond_range"], (name, side, i)


def test_a_noisy_stream_of_targets_at_the_end_of_a_range_is_followed_where_it_is_within() -> None:
    rng, rig = np.random.default_rng(3), rig_of(gantry(), [0.75, 0.2])
    for _ in range(2000):
        rig.target([0.8 + 1e-3 * rng.normal(), 0.2])
        rig.run()
    record = Record(rig, 3)
    refused = record.code == Refusal["beyond_range"]
    assert 500 < np.count_nonzero(refused) < 1500 and not np.any((record.code > 0) & ~refused)
    q = record.setpoint["q"][:, 0]
    assert q.max() <= 0.8 and q[-1] > 0.795
    assert np.all(record.numbers["aiming"][10:] == 1)


def test_a_joint_whose_target_stays_may_be_beyond_its_range() -> None:
    """It was led there; the target of the other joint counts."""
    rig = rig_of(gantry(), [0.83, 0.2], limits="warn")
    rig.loop.configure(limits="refuse")
    rig.target([np.nan, 0.5])
    rig.run()
    assert rig.number("aiming") == 1


# --- Trajectories -----------------------------------------------------------------------------------------------------


def through(rig: LoopRig, joint: int, start: np.ndarray, side: int) -> Spline:
    """A motion of a joint from rest through its limit, to rest beyond it, at 0.9 of its speed."""
    limits = rig.arm.robot.independent_joints[joint].limits
    limit = limits.upper if side > 0 else limits.lower
    start = start.copy()
    start[joint] = limit - side * 1.2
    rig.restart(start)
    speed = 0.9 * limits.velocity
    states = np.zeros((5, 4, rig.n))
    states[0] = start
    states[0, 1:, joint] += side * np.array([0.5, 1.5, 2.0])
    states[1, 1:3, joint] = side * speed
    return Spline(np.arange(4) / speed, states)


CASES = [("panda", HOME, 0, 1), ("panda", HOME, 3, 1), ("panda", HOME, 3, -1), ("ur5e", HOME[:6] * 0, 2, 1)]


@pytest.mark.parametrize("hosted", [False, True], ids=["own", "planned by a host"])
@pytest.mark.parametrize(("robot", "home", "joint", "side"), CASES)
def test_a_trajectory_that_leaves_the_range_is_refused_before_it_moves(
    robot: str, home: np.ndarray, joint: int, side: int, hosted: bool
) -> None:
    rig = LoopRig(robot, hosted=hosted)
    motion = through(rig, joint, home, side)
    q = rig.q
    rig.trajectory(motion)
    rig.cycles(20)
    assert rig.number("refused") == 1 and not rig.number("playing")
    limits = rig.arm.robot.independent_joints[joint].limits
    limit, worst = limits.upper if side > 0 else limits.lower, motion.states[0, -1, joint]
    name = rig.arm.robot.joint_names[joint]
    text = rig.loop.text("refusal")
    assert (
        text.startswith(f"{name}: position {worst:.4g} rad at ")
        and f"limit {limit:.4g} rad; plan within the range" in text
    )
    assert float(text.split(" at ")[1].split(" s")[0]) == pytest.approx(motion.t[-1], rel=1e-2)
    np.testing.assert_array_equal(rig.q, q)


@pytest.mark.parametrize("begins", ["now", "later", "amid another one", "from nothing"])
def test_a_trajectory_beyond_the_range_is_refused_however_it_begins(begins: str) -> None:
    rig = LoopRig("panda")
    motion = through(rig, 0, HOME, 1)
    q, origin = motion.states[0, 0], 0
    if begins == "from nothing":
        rig = LoopRig("panda")
    if begins == "amid another one":
        rig.trajectory(straight([0.0, 2.0], [q, q]))
        rig.cycles(50)
    if begins == "later":
        origin = rig.now + 10**9
    playing = rig.number("playing")
    rig.trajectory(motion, origin)
    rig.cycles(1)
    assert Refusal(rig.codes[rig.count - 1]) is Refusal["path_beyond_range"]
    assert rig.number("playing") == playing and not rig.number("waiting")


@pytest.mark.parametrize("policy", ["warn", "ignore"])
def test_a_trajectory_beyond_the_range_is_played_where_limits_are_not_refused(policy: str) -> None:
    rig = LoopRig("panda", limits=policy)
    motion = through(rig, 0, HOME, 1)
    rig.trajectory(motion)
    rig.cycles(5000)
    assert rig.q[0] > rig.arm.robot.independent_joints[0].limits.upper + 0.5


def test_an_arm_beyond_its_range_returns_by_a_trajectory() -> None:
    rig = rig_of(gantry(), [0.85, 0.2], limits="warn")
    rig.loop.configure(limits="refuse")
    rig.trajectory(straight([0.0, 1.0], [[0.85, 0.2], [0.5, 0.2]]))
    rig.cycles(1500)
    np.testing.assert_allclose(rig.q, [0.5, 0.2], rtol=0, atol=1e-9)


@pytest.mark.parametrize("beyond", [-1e-6, 1e-6])
@pytest.mark.parametrize("side", [-1, 1])
def test_an_overshoot_between_two_knots_counts_to_a_micrometre(side: int, beyond: float) -> None:
    """Knots are within the range; the motion between them turns beyond it, or not. NumPy's roots say where."""
    rig = LoopRig(gantry())
    rig.restart([0.0, 0.2])
    states = np.zeros((5, 3, 2))
    states[0] = [[0.0, 0.2], [0.5, 0.2], [0.5, 0.2]]
    states[1, 1:, 0] = 0.2, -0.2
    states[2, 1:, 0] = 0.3, -0.1

    def motion(scale: float) -> Spline:
        scaled = states.copy()
        scaled[:, :, 0] *= side * scale
        return Spline([0.0, 2.0, 3.0], scaled)

    def reach(scale: float) -> float:
        t = np.linspace(2.0, 3.0, 2001)
        q = np.array([motion(scale).derivatives(x)[0][0] for x in t]) * side
        k = int(q.argmax())
        a, b, c = np.polyfit(t[k - 2 : k + 3] - t[k], q[k - 2 : k + 3], 2)
        return float(c - b**2 / (4 * a))

    scale = (0.8 + beyond) / reach(1.0)
    assert 0.5 * scale < 0.79
    rig.trajectory(motion(scale))
    rig.cycles(2)
    assert (Refusal["path_beyond_range"] in rig.codes[: rig.count]) == (beyond > 0)


def test_a_spline_of_the_largest_size_is_judged_before_the_cycle() -> None:
    """One of its 50 000 knots leads beyond the range; cycles that plan it take no longer than those of a short one."""
    rig = LoopRig(gantry())
    rig.restart([0.0, 0.2])
    t = 0.01 * np.arange(50_000)
    states = np.zeros((5, len(t), 2))
    states[0, :, 0] = 0.7 * np.sin(0.05 * t) ** 2
    states[0, :, 1] = 0.2
    states[0, 30_000, 0] = 0.9
    rig.trajectory(Spline(t, states))
    rig.run()
    assert Refusal(rig.codes[0]) is Refusal["path_beyond_range"]
    assert "rail: position 0.9 m at 300 s" in rig.loop.text("refusal")


def test_setpoints_of_the_last_motion_go_on_after_a_refused_trajectory() -> None:
    rig = LoopRig("panda")
    motion = through(rig, 0, HOME, 1)
    q = motion.states[0, 0]
    rig.cycles(5, rest(q))
    rig.trajectory(motion)
    rig.refer(rest(q))
    assert Refusal(rig.run()) is Refusal["path_beyond_range"]
    rig.refer(rest(q))
    assert rig.run() == 0

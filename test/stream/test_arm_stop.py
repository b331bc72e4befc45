# SPDX-License-Identifier: Apache-2.0
"""Stop of an arm from any command: continuous in motion and efforts, within limits that it met, and to rest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lazy import Lazy

import eom_dynamics as eom
from eom_dynamics.elastic import BaseMotion, ElasticArm, LimitCheck
from eom_dynamics.messages.joint_order import JointOrder
from eom_dynamics.messages.setpoint_to_command import EvaluatedCommand, SetpointEvaluator
from eom_dynamics.stream.arm_stop import GROWTH, LONGER, SHORTER, ArmStop, choose_stop
from eom_dynamics.trajectory import check, rest_to_rest

NAMES = ("panda", "sea_planar_2r", "vsa_planar_2r")
ARMS = Lazy(lambda name: ElasticArm(eom.load_robot(name)))
HOME = {"panda": np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0])}
SIZES = np.array([0.3, 1.0, 2.0, 10.0, 100.0])[:, None]


def command(arm: ElasticArm, state: np.ndarray, *more: object) -> EvaluatedCommand:
    return SetpointEvaluator(arm).command(JointOrder(arm.robot.joint_names, []), state, *more)  # type: ignore[arg-type]


@st.composite
def states(draw: st.DrawFn, name: str) -> np.ndarray:
    n = ARMS[name].robot.n
    unit = [[draw(st.floats(-1.0, 1.0)) for _ in range(n)] for _ in range(5)]
    state = np.array(unit) * SIZES
    state[0] += HOME.get(name, 0.0)
    return state


@given(data=st.data(), name=st.sampled_from(NAMES), duration=st.floats(0.05, 2.0))
def test_it_continues_the_command_and_ends_at_rest(data: st.DataObject, name: str, duration: float) -> None:
    arm = ARMS[name]
    last = command(arm, data.draw(states(name)))
    stop, _ = choose_stop(arm, LimitCheck(arm), last, duration)
    first = stop.at(0.0)
    T, (_, qd, qdd, qddd, qdddd) = stop.duration, np.abs(last.state)
    moved = T * qd / 2 + 3 * T**2 * qdd / 28
    # Jerk and snap that would move a joint further than that are noise.
    noise = T**3 * qddd / 84 + T**4 * qdddd / 1680 > moved
    begin = np.where((np.arange(5) > 2)[:, None] & noise, 0.0, last.state)
    np.testing.assert_allclose(first.state, begin, rtol=1e-12, atol=1e-12)
    assert np.all(np.abs(stop.end - last.state[0]) <= 2 * moved + 1e-12)
    last = command(arm, begin)
    for values, expected in zip(arm.feedforward(*first.state), (*last.efforts, *last.motors), strict=True):
        # Efforts of the same state, from the same code: rounding of the state alone.
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))
    rest = stop.at(stop.duration)
    np.testing.assert_array_equal(rest.state[1:], 0.0)
    np.testing.assert_array_equal(rest.state[0], stop.end)
    ratio = np.log(stop.duration / duration) / np.log(GROWTH)
    assert ratio == pytest.approx(round(ratio), abs=1e-6) and -SHORTER <= round(ratio) <= LONGER


def worst(arm: ElasticArm, motion: object, duration: float) -> float:
    """Largest ratio of a quantity to its limit, by the check of trajectories, at 1000 instants."""
    return max((p.ratio for p in check(arm, motion, rate=1000 / duration).exceeded), default=1.0)  # type: ignore[arg-type]


@given(at=st.floats(0.05, 0.95), wanted=st.sampled_from((0.05, 0.3, 1.0)))
def test_from_motions_within_limits_it_stays_within_limits(at: float, wanted: float) -> None:
    """Another check says so, at more instants: between those of the stop, peaks are up to 0.3 % higher."""
    arm = ARMS["panda"]
    motion = rest_to_rest(HOME["panda"], HOME["panda"] + 0.4, 1.2)
    assert check(arm, motion, rate=1000.0).ok
    last = command(arm, np.stack(motion.derivatives(1.2 * at)))
    stop, excess = choose_stop(arm, LimitCheck(arm), last, wanted)
    assert excess <= 1e-9
    assert worst(arm, _Motion(stop), stop.duration) < 1.003


class _Motion:
    """A stop as a trajectory."""

    def __init__(self, stop: ArmStop) -> None:
        self._stop, self.start, self.end, self.n = stop, 0.0, stop.duration, len(stop.end)

    def derivatives(self, t: float, order: int = 4) -> tuple[np.ndarray, ...]:
        return tuple(self._stop.at(t).state[: order + 1])


def test_near_the_end_of_a_range_it_is_shorter_and_where_the_wanted_one_is_rough_longer() -> None:
    arm = ARMS["panda"]
    limits = LimitCheck(arm)
    upper = arm.robot.joints[0].limits.upper
    state = np.zeros((5, 7))
    state[0], state[0, 0], state[1, 0] = HOME["panda"], upper - 0.06, 0.5
    stop, excess = choose_stop(arm, limits, command(arm, state), 0.3)
    assert excess <= 1e-9 and stop.duration < 0.3 and stop.end[0] < upper
    state[0, 0], state[1, 0] = 0.0, 2.1
    stop, excess = choose_stop(arm, limits, command(arm, state), 0.05)
    assert excess <= 1e-9 and stop.duration > 0.2


def test_wrench_stiffness_and_base_come_to_rest_too() -> None:
    rng = np.random.default_rng(5)
    arm = ARMS["vsa_planar_2r"]
    order = JointOrder(arm.robot.joint_names, [])
    wrench = tuple(rng.normal(size=(3, 6)))
    stiffness = (np.array([260.0, 130.0]), np.array([20.0, -10.0]), np.array([50.0, np.nan]))
    base = BaseMotion(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)))
    last = EvaluatedCommand(
        order, 0.1 * rng.normal(size=(5, 2)), wrench, np.zeros((3, 2)), np.zeros((4, 4)), (), stiffness, base
    )
    variable = np.array([True, False])
    stop = ArmStop(last, 0.5, variable)
    first, rest = stop.at(0.0), stop.at(0.5)
    assert first.base is not None and rest.base is not None
    for one, two in ((first.wrench, wrench), (first.base.angular_velocity, base[0]), (first.base[1], base[1])):
        np.testing.assert_allclose(one, two, atol=1e-12)
    np.testing.assert_allclose([x[0] for x in first.stiffness], [260.0, 20.0, 50.0], rtol=1e-12)
    for values in (rest.wrench, rest.stiffness, rest.base.angular_velocity, rest.base.specific_force):
        np.testing.assert_array_equal(np.array(values)[1:], 0.0)
    assert rest.stiffness[0][0] == pytest.approx(260.0 + 0.5 * 0.5 * 20.0 + 0.25 / 12 * 50.0)
    # Samples in a row, as the check of limits takes them.
    many = stop.at(np.linspace(0.0, 0.5, 7))
    assert many.wrench[0].shape == (7, 6) and many.stiffness[2].shape == (7, 2)
    assert many.base is not None and many.base.specific_force.shape == (3, 7, 3)

# SPDX-License-Identifier: Apache-2.0
"""Feedforwards compared under motor PD: exact without errors, and what is left of that with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differences import deviation
from scipy.integrate import solve_ivp

from eom_dynamics import Dynamics, ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.drivetrain.springs import CubicSpring, TabulatedSpring
from eom_dynamics.simulate import ElasticPlant, SimulationError, compare_feedforward, simulate
from eom_dynamics.simulate.model_error import with_model_error
from eom_dynamics.trajectory import Cosine, paper_motion

NONE, RIGID, FLATNESS = range(3)
TIMES = np.linspace(0.0, 0.3, 151)


def test_flatness_is_exact_where_the_model_is() -> None:
    comparison = compare_feedforward(load_robot("planar_2r"), paper_motion(2), TIMES, [0.0, 20.0, 70.0])
    assert np.all(comparison.peak[:, FLATNESS] < 1e-9)
    assert np.all(comparison.peak[:, [NONE, RIGID]] > 5e-4)
    assert comparison.energy_imbalance < 1e-8


def test_stiff_motors_show_what_flatness_is_worth_on_the_iiwa() -> None:
    comparison = compare_feedforward(
        load_robot("iiwa"),
        paper_motion(),
        TIMES,
        [10.0, 70.0],
        stiffness_error=0.1,
        mass_error=0.05,
        tolerance=1e-8,
    )
    soft, stiff = comparison.rms
    assert stiff[RIGID] > 10 * stiff[FLATNESS]
    assert soft[RIGID] < 2 * soft[FLATNESS]
    assert np.all(np.diff(comparison.rms, axis=0) < 0)
    assert comparison.energy_imbalance < 1e-8


def test_errors_are_link_positions_less_the_trajectory() -> None:
    """A heavy arm held without feedforward sags by its weight over the PD and the spring in series."""
    robot = load_robot("pendulum")
    still = Cosine(np.array([0.5]), 0.0)
    comparison = compare_feedforward(robot, still, np.linspace(0.0, 6.0, 601), [30.0], tolerance=1e-8)
    kp = robot.rotor_inertia[0] * 30.0**2
    # The spring is free of damping, so that the pendulum swings about where it would rest.
    rest = 0.5 + comparison.error[-400:, 0, NONE].mean()
    holding = Dynamics(robot).effort([rest], [0.0], [0.0])
    assert rest - 0.5 == pytest.approx(float(-holding[0] * (1 / kp + 1 / robot.stiffness[0])), rel=0.1)
    assert deviation(comparison.rms, np.sqrt(np.mean(comparison.error**2, axis=(0, 3)))) == 0
    assert deviation(comparison.peak, np.abs(comparison.error).max(axis=(0, 3))) == 0


def test_the_arm_differs_by_the_errors() -> None:
    robot = load_robot("planar_2r")
    springs = (CubicSpring(100.0, 5.0), CubicSpring(200.0, 7.0))
    joints = tuple(replace(joint, elasticity=s) for joint, s in zip(robot.joints, springs, strict=True))
    other = with_model_error(replace(robot, joints=joints), stiffness=0.1, mass=-0.05)
    for before, after, spring in zip(robot.joints, other.joints, springs, strict=True):
        assert after.mass == pytest.approx(0.95 * before.mass)
        assert deviation(after.inertia_about_origin, 0.95 * before.inertia_about_origin) < 1e-15
        assert after.spring.effort(0.3) == pytest.approx(1.1 * spring.effort(0.3))  # type: ignore[union-attr, call-arg]
    plain = with_model_error(robot, stiffness=0.1)
    assert deviation(plain.stiffness, 1.1 * robot.stiffness) < 1e-15
    assert plain.joints[0].spring.effort(1.0) == pytest.approx(1.1 * robot.joints[0].spring.effort(1.0))  # type: ignore[union-attr, call-arg]
    table = replace(robot.joints[0], elasticity=TabulatedSpring([0.0, 1.0], [0.0, 10.0]))
    with pytest.raises(RobotDescriptionError, match="springs of kind tabulated"):
        with_model_error(replace(robot, joints=(table, robot.joints[1])), stiffness=0.1)


def test_an_arm_whose_tendon_goes_slack_ends_alone() -> None:
    """Two motors that nothing holds run towards their link, pulled by their springs."""
    robot = load_robot("vsa_planar_2r")
    still = Cosine(np.zeros(2), 0.0)
    comparison = compare_feedforward(robot, still, np.linspace(0.0, 0.5, 251), [0.0, 70.0], tolerance=1e-8)
    (end, *others) = comparison.ends
    assert others == [None] * 5
    assert end is not None and "goes slack" in end.reason and "joint_2" in end.reason
    # The link stays, since both springs pull alike: s'' = -(30 s + 200 s²)/0.1 from s = (120 - 60)/(2 400) rad.
    slack = solve_ivp(
        lambda _, y: [y[1], -(30.0 * y[0] + 200.0 * y[0] ** 2) / 0.1],
        (0.0, 0.5),
        [0.075, 0.0],
        events=lambda _, y: y[0],
        rtol=1e-10,
        atol=1e-12,
    )
    assert end.t == pytest.approx(slack.t_events[0][0], rel=1e-5)
    known = comparison.t < end.t
    assert np.all(np.isfinite(comparison.error[known])) and np.all(np.isnan(comparison.error[~known, 0, NONE]))
    assert np.isnan(comparison.rms[0, NONE]) and np.isnan(comparison.peak[0, NONE])
    assert np.isfinite(comparison.rms).sum() == 5 and comparison.energy_imbalance < 1e-8


def test_arms_that_go_on_do_not_feel_that_another_ended() -> None:
    times = np.linspace(0.0, 0.2, 101)
    robot, motion = load_robot("vsa_planar_2r"), paper_motion(2)
    both = compare_feedforward(robot, motion, times, [0.0, 70.0])
    alone = compare_feedforward(robot, motion, times, [70.0])
    assert both.ends[NONE] is not None and alone.ends == (None,) * 3
    # Integrators of other step sizes, each to 1e-10.
    np.testing.assert_allclose(both.error[:, 1], alone.error[:, 0], atol=1e-9)


def test_a_single_arm_that_cannot_go_on_is_an_error_with_its_cause() -> None:
    robot = load_robot("vsa_planar_2r")
    plant = ElasticPlant(ElasticArm(robot))
    start = plant.on_trajectory(*np.zeros((5, 2)))
    with pytest.raises(SimulationError, match=r"^vsa_planar_2r: at 0\.0760\d* s the spring at joint_2_.* slack$"):
        simulate(plant, lambda t, state: np.zeros(4), [0.0, 1.0], start)


@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_an_arm_that_runs_away_is_reported() -> None:
    robot = load_robot("planar_2r")
    with pytest.raises(SimulationError, match="planar_2r"):
        compare_feedforward(robot, Cosine(np.full(2, 1e200), 1.0), TIMES, [10.0])

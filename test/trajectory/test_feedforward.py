# SPDX-License-Identifier: Apache-2.0
"""Feedforward of trajectories against the closed form and a simulated arm."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refusals
from springs import with_springs

from eom_dynamics import ElasticArm, equations_of_motion, load_robot
from eom_dynamics.actuators.drive_units import DriveUnits
from eom_dynamics.actuators.springs import LinearSpring
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.robot import Limits
from eom_dynamics.trajectory import Scaled, check, paper_motion, rest_to_rest, through
from eom_dynamics.trajectory.feedforward import checked, trajectory_feedforward

ROBOT = load_robot("iiwa")
ARM = ElasticArm(ROBOT)
TIMES = np.linspace(0.0, 2.0, 9)
WAYPOINTS = paper_motion().derivatives(TIMES / 3, 0)[0]

# For damped springs, whose deflection is integrated in Python.
SMALL_ROBOT = load_robot("planar_2r")


MOTION, SMALL_MOTION = through(TIMES, WAYPOINTS), through(TIMES / 2, WAYPOINTS[:, :2])


def test_commands_agree_with_the_closed_form():
    found = trajectory_feedforward(ARM, MOTION, TIMES, rate=50.0)
    np.testing.assert_array_equal(found.samples.t, np.arange(101) / 50)
    for k in (0, 17, 50, 100):
        q, qd, qdd, qddd, qdddd = (x[k] for x in found.samples[1:])
        for x, y in zip((q, qd, qdd, qddd, qdddd), MOTION.derivatives(k / 50), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * (1 + np.abs(y).max()))  # rounding of a batch
        efforts = equations_of_motion(ROBOT, q, qd, qdd, qddd).efforts(qdddd)
        motor = [x + y / ARM.stiffness for x, y in zip((q, qd, qdd), efforts, strict=True)]
        wanted = [*efforts, *motor, ARM.rotor_inertia * motor[2] + efforts[0]]
        for got, want in zip(found.command, wanted, strict=True):
            # Rounding: the kernel adds in another order than the closed form.
            np.testing.assert_allclose(got[k], want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_efforts_at_waypoints_do_not_depend_on_the_rate():
    states = zip(*MOTION.derivatives(TIMES, 2), strict=True)
    wanted = [equations_of_motion(ROBOT, q, qd).efforts(qdd)[0] for q, qd, qdd in states]
    for rate in (0.0, 7.0, 1000.0):
        found = trajectory_feedforward(ARM, MOTION, TIMES, rate=rate)
        np.testing.assert_allclose(found.efforts, wanted, rtol=0, atol=1e-11)  # 1e-13 of the largest
        assert found.samples.t[-1] == TIMES[-1]
    at_waypoints = trajectory_feedforward(ARM, MOTION, TIMES)
    np.testing.assert_array_equal(at_waypoints.samples.t, TIMES)
    np.testing.assert_array_equal(at_waypoints.command.tau, at_waypoints.efforts)


@pytest.mark.parametrize("rate", [0.0, 4000.0])
def test_limits_are_checked_at_1_khz_or_more(rate):
    arm = ElasticArm(with_springs(ROBOT, LinearSpring(1e4), limits=Limits(velocity=1.0, effort=150.0)))
    fast = Scaled(MOTION, 0.2)
    found = trajectory_feedforward(arm, fast, [0.0], rate=rate)
    alone = check(arm, fast, rate=max(rate, 1000.0))
    assert [peak[:3] for peak in found.verdict.exceeded] == [peak[:3] for peak in alone.exceeded]
    assert found.verdict.exceeded
    assert found.verdict.time_scaling == alone.time_scaling > 1


test_errors = refusals(
    TrajectoryError,
    ({"rate": 1e6}, r"2 s at 1e\+06 Hz are more than 1000 samples"),
    *(({"rate": rate}, "rate must be a number of Hz") for rate in (-1.0, np.nan, np.inf)),
    ({"t": np.linspace(0, 2, 1001)}, "1001 times are more than 1000"),
    ({"trajectory": through([0, 1], [[0.0], [1.0]])}, "the trajectory has 1 joints, the robot 7"),
    ({"trajectory": rest_to_rest(WAYPOINTS[0], WAYPOINTS[1], 1e-150)}, "too fast: qddd of iiwa_joint_1 overflows"),
    ({"trajectory": through([0, 1], [[0.0] * 7, [1e200] * 7])}, "too fast: tau of iiwa_joint_1 overflows"),
    call=lambda changes: trajectory_feedforward(ARM, **{"trajectory": MOTION, "t": TIMES, "most": 1000, **changes}),
)


@pytest.mark.parametrize(
    ("units", "field"),
    [
        ({"units_per_turn": 1e300}, "drive_position"),
        ({"velocity_units_per_turn": 1e300}, "drive_velocity"),
        ({"effort": "per_mille", "rated_torque": 1e-300}, "drive_effort"),
    ],
)
def test_numbers_that_drives_cannot_take_are_refused(units, field):
    """With the feedforward, and when a trajectory is checked before it is played."""
    joint = SMALL_ROBOT.joints[1]
    robot = replace(SMALL_ROBOT, joints=(SMALL_ROBOT.joints[0], replace(joint, drive=DriveUnits(**units))))
    far = through([0, 1], [[0.0, 0.0], [0.0, 1e10]])
    for refuse in (
        lambda arm: trajectory_feedforward(arm, far, [0.0, 0.4, 1.0]),
        lambda arm: checked(arm, far, 100.0, 1000),
    ):
        with pytest.raises(TrajectoryError, match=f"^the motion is too fast: {field} of joint_2 overflows at "):
            refuse(ElasticArm(robot))

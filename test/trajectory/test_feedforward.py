# SPDX-License-Identifier: Apache-2.0
"""The feedforward of a trajectory against the closed form, a simulated arm, and a stream of its samples."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, equations_of_motion, load_robot
from eom_dynamics.drivetrain.springs import DampedSpring, LinearSpring
from eom_dynamics.exceptions import TrajectoryError
from eom_dynamics.robot import Limits
from eom_dynamics.simulate import ElasticPlant, simulate
from eom_dynamics.trajectory import Scaled, check, paper_motion, rest_to_rest, through
from eom_dynamics.trajectory import feedforward as module
from eom_dynamics.trajectory.feedforward import trajectory_feedforward

ROBOT = load_robot("iiwa")
ARM = ElasticArm(ROBOT)
TIMES = np.linspace(0.0, 2.0, 9)
WAYPOINTS = paper_motion().derivatives(TIMES / 3, 0)[0]


@pytest.fixture(scope="module")
def motion():
    return through(TIMES, WAYPOINTS)


def test_every_number_is_that_of_the_closed_form(motion):
    found = trajectory_feedforward(ARM, motion, TIMES, rate=50.0)
    np.testing.assert_array_equal(found.samples.t, np.arange(101) / 50)
    for k in (0, 17, 50, 100):
        q, qd, qdd, qddd, qdddd = (x[k] for x in found.samples[1:])
        for x, y in zip((q, qd, qdd, qddd, qdddd), motion.derivatives(k / 50), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * (1 + np.abs(y).max()))  # of one sample and of many
        efforts = equations_of_motion(ROBOT, q, qd, qdd, qddd).efforts(qdddd)
        motor = [x + y / ARM.stiffness for x, y in zip((q, qd, qdd), efforts, strict=True)]
        wanted = [*efforts, *motor, ARM.rotor_inertia * motor[2] + efforts[0]]
        for got, want in zip(found.command, wanted, strict=True):
            # The node's kernel sums in another order than the closed form.
            np.testing.assert_allclose(got[k], want, rtol=0, atol=1e-12 * np.abs(want).max())


def test_efforts_are_wanted_at_the_waypoints_whatever_the_rate(motion):
    wanted = []
    for q, qd, qdd in zip(*motion.derivatives(TIMES, 2), strict=True):
        wanted.append(equations_of_motion(ROBOT, q, qd).efforts(qdd)[0])
    for rate in (0.0, 7.0, 1000.0):
        found = trajectory_feedforward(ARM, motion, TIMES, rate=rate)
        np.testing.assert_allclose(found.efforts, wanted, rtol=0, atol=1e-11)
        assert found.samples.t[-1] == TIMES[-1]
    at_waypoints = trajectory_feedforward(ARM, motion, TIMES)
    np.testing.assert_array_equal(at_waypoints.samples.t, TIMES)
    np.testing.assert_array_equal(at_waypoints.command.tau, at_waypoints.efforts)


@pytest.mark.parametrize("rate", [0.0, 100.0, 4000.0])
def test_the_verdict_is_that_of_enough_samples(motion, rate):
    arm = ElasticArm(with_springs(ROBOT, LinearSpring(1e4), limits=Limits(velocity=1.0, effort=150.0)))
    fast = Scaled(motion, 0.2)
    found = trajectory_feedforward(arm, fast, [0.0], rate=rate)
    alone = check(arm, fast, rate=max(rate, 1000.0))
    assert [peak[:3] for peak in found.verdict.exceeded] == [peak[:3] for peak in alone.exceeded]
    assert found.verdict.exceeded
    assert found.verdict.time_scaling == alone.time_scaling > 1


def test_the_simulated_arm_tracks_it():
    """Motor efforts alone, without any feedback, from the exact initial state; what is left is the integrator."""
    motion = rest_to_rest(WAYPOINTS[0], WAYPOINTS[3], 1.0)
    found = trajectory_feedforward(ARM, motion, [0.0, 1.0], rate=1000.0)
    plant = ElasticPlant(ARM)
    start = plant.on_trajectory(*motion.derivatives(0.0))
    effort = CubicSpline(found.samples.t, found.command.motor_effort)  # between samples, with an error of 1e-12
    t = np.linspace(0.0, 1.0, 51)
    simulation = simulate(plant, lambda t, state: effort(t), t, start)
    np.testing.assert_allclose(plant.parts(simulation.states).q, motion.derivatives(t, 0)[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", sorted(EVERY_KIND))
def test_chunks_leave_no_seam(motion, kind, monkeypatch):
    arm = ElasticArm(with_springs(ROBOT, EVERY_KIND[kind], LinearSpring(900.0)))
    whole = trajectory_feedforward(arm, motion, TIMES, rate=200.0)
    monkeypatch.setattr(module, "_CHUNK", 64)
    parts = trajectory_feedforward(arm, motion, TIMES, rate=200.0)
    for x, y in zip(parts.command, whole.command, strict=True):
        # Batches of other lengths may use other lanes, which fuse other operations.
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12 * np.abs(y).max())


def test_dampers_remember(motion):
    """D deltad + K delta = tau, by the exact solution of the filter with tau as a fine piecewise line."""
    K, D = 400.0, 60.0
    arm = ElasticArm(with_springs(ROBOT, DampedSpring(K, D)))
    coarse, fine = (trajectory_feedforward(arm, motion, TIMES, rate=rate) for rate in (10.0, 1000.0))
    np.testing.assert_allclose(coarse.command.motor_position, fine.command.motor_position[::100], rtol=0, atol=1e-10)
    t = np.linspace(0.0, 2.0, 20_001)
    tau = ARM.dynamics.inverse_dynamics(*motion.derivatives(t))[0]
    delta = np.empty_like(tau)
    delta[0] = fine.command.motor_position[0] - fine.samples.q[0]
    h, T = t[1], D / K
    decay = np.exp(-h / T)
    for i in range(len(t) - 1):
        slope = (tau[i + 1] - tau[i]) / h
        settled = (tau[i] - slope * T) / K
        delta[i + 1] = settled + slope * h / K + (delta[i] - settled) * decay
    np.testing.assert_allclose(fine.command.motor_position - fine.samples.q, delta[::10], rtol=0, atol=1e-8)


def test_progress_rises_and_what_it_raises_ends_it(motion, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 100)
    shares = []
    trajectory_feedforward(ARM, motion, TIMES, rate=1000.0, progress=shares.append)
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len(shares) > 20
    assert np.all(np.diff(shares) >= 0)

    class StopError(Exception):
        pass

    def stop(share):
        if share > 0.1:
            raise StopError

    with pytest.raises(StopError):
        trajectory_feedforward(ARM, motion, TIMES, rate=1000.0, progress=stop)


def test_a_trajectory_too_long_to_look_at_often_is_looked_at_often_enough():
    slow = rest_to_rest(WAYPOINTS[0], WAYPOINTS[1], 1e6)
    found = trajectory_feedforward(ARM, slow, [0.0, 1e6], most=1000)
    assert found.verdict.ok
    assert np.isfinite(found.efforts).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": 1e6}, "2 s at 1e+06 Hz are more than 1000 samples"),
        ({"rate": -1.0}, "rate must be a number of Hz"),
        ({"rate": np.nan}, "rate must be a number of Hz"),
        ({"rate": np.inf}, "rate must be a number of Hz"),
        ({"times": np.linspace(0, 2, 1001)}, "there are 1001 times, may be 1000"),
        ({"trajectory": through([0, 1], [[0.0], [1.0]])}, "the trajectory has 1 joints, the robot 7"),
        ({"trajectory": rest_to_rest(WAYPOINTS[0], WAYPOINTS[1], 1e-150)}, "too fast: qddd of joint 0 overflows"),
        ({"trajectory": through([0, 1], [[0.0] * 7, [1e200] * 7])}, "too fast: tau of iiwa_joint_1 overflows"),
    ],
)
def test_what_cannot_be_is_refused(motion, changes, message):
    arguments = {"trajectory": motion, "times": TIMES, "most": 1000} | changes
    with pytest.raises(TrajectoryError) as caught:
        trajectory_feedforward(ARM, **arguments)
    assert message in str(caught.value)

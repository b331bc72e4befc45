# SPDX-License-Identifier: Apache-2.0
"""Contact: thresholds for a rate of false alarms, the touched link, causes, and the payload by external efforts."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from pushed_arm import Push, PushedArm, SensorRecord
from scipy.signal import lfilter

import eom_dynamics as eom
from eom_dynamics import ContactThresholds, ExternalEffortObserver, robot_from_parameters
from eom_dynamics.arrays import Array
from eom_dynamics.control.contact_thresholds import CAUSES, SENSOR, UNKNOWN
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import Status
from eom_dynamics.robot.model import EffortSpread
from eom_dynamics.robot.writers.parameters import robot_as_parameters
from eom_dynamics.trajectory import Cosine, Spline

L = 30.0
PUSH = np.array([12.0, -8.0, 16.0, 0.0, 0.0, 0.0])
SPREAD = EffortSpread((0.0, 1.0), (0.08, 0.1), 0.02)


@cache
def arm(name: str) -> eom.ElasticArm:
    return eom.ElasticArm(eom.load_robot(name))


@cache
def recorded(name: str, body: int, friction: float = 1.0) -> SensorRecord:
    push: Push = lambda t: (max(body, 0), float(body >= 0 and t > 0.1) * PUSH)  # noqa: E731
    n = arm(name).robot.n
    motion = Cosine(np.full(n, 0.9), 0.5 + 0.1 * np.arange(n), 0.4 + np.arange(float(n)))
    return PushedArm(name, push, friction=friction).record(arm(name), motion, 0.4)


def watched(name: str, *sensors: str, by: str = "springs", record: SensorRecord, order: int = 1) -> ContactThresholds:
    observer = ExternalEffortObserver(arm(name), L, by, order=order)
    observer.observe(record.t, **record.sensors(*sensors))
    return ContactThresholds(observer, spread=[SPREAD] * arm(name).robot.n)


BOTH = ("links", "motors", "efforts")


@pytest.mark.parametrize(("name", "body"), [("iiwa", body) for body in range(1, 7)] + [("sea_planar_2r", 1)])
def test_the_link_that_is_pushed(name: str, body: int) -> None:
    """Contact at the joints up to the link; it explains all efforts, as those before it cannot that joints show."""
    record = recorded(name, body)
    found = watched(name, *BOTH, record=record).contact()
    assert found is not None
    joints = arm(name).robot.joint_names
    assert joints[body] in found.links
    assert set(found.causes) <= set(joints[: body + 1])
    assert set(found.causes.values()) == {CAUSES[True, False]}
    assert watched(name, *BOTH, record=recorded(name, -1)).contact() is None


def test_the_wrench_and_what_no_joint_shows() -> None:
    """At the frame of the last link, from MuJoCo's force at its center of mass; a planar arm has three directions."""
    record = recorded("iiwa", 6)
    thresholds = watched("iiwa", *BOTH, record=record, order=2)
    found = thresholds.contact("iiwa_joint_7")
    assert found is not None and not len(found.unseen)
    pose = eom.Kinematics(arm("iiwa").robot).pose(record.q[-1], "iiwa_joint_7")
    force = pose[:3, :3].T @ PUSH[:3]
    wanted = np.r_[np.cross(arm("iiwa").robot.joints[6].center_of_mass, force), force]
    # 9 time constants after the step, of a link that moves on.
    np.testing.assert_allclose(found.wrench, wanted, atol=0.03 * np.abs(wanted).max())
    assert "iiwa_joint_7" in str(found) and "contact" in str(found)
    planar = watched("sea_planar_2r", *BOTH, record=recorded("sea_planar_2r", 1)).contact()
    assert planar is not None and planar.unseen.shape == (4, 6)
    q = recorded("sea_planar_2r", 1).q[-1]
    kinematics = eom.Kinematics(arm("sea_planar_2r").robot)
    assert np.abs([kinematics.statics(q, x) for x in planar.unseen]).max() < 1e-12


def test_causes() -> None:
    """Friction acts on the motor; a wrong link encoder gives opposite residuals; without motors causes are unknown."""
    name = "sea_planar_2r"
    friction = watched(name, *BOTH, record=recorded(name, -1, friction=2.0)).contact()
    assert friction is not None and set(friction.causes.values()) == {CAUSES[False, True]} and not friction.links
    record = recorded(name, -1)
    off = record._replace(motor_position=record.motor_position + np.array([0.0, 0.005]))
    found = watched(name, *BOTH, record=off).contact()
    assert found is not None and found.causes == {"joint_2": SENSOR}
    torque = watched(name, "links", "torque", by="torque", record=recorded(name, 1)).contact()
    assert torque is not None and set(torque.causes.values()) == {UNKNOWN}


def noise(draw: np.random.Generator, samples: int, T: float) -> Array:
    """Samples (K, 2) at 1 kHz of noise of deviation 1 and a correlation time."""
    kept = np.exp(-1e-3 / T)
    white = np.sqrt(1 - kept**2) * draw.standard_normal((samples + 5000, 2))
    return np.asarray(lfilter([1], [1, -kept], white, axis=0))[5000:]


@pytest.mark.parametrize(("order", "T", "rates"), [(1, 0.1, 0.0), (2, 0.01, 0.0), (1, 0.1, 0.006), (2, 0.1, 0.006)])
def test_false_alarms_come_at_their_rate(order: int, T: float, rates: float) -> None:
    """100 expected within 200 s: between 75 and 125, the 95 % bounds of Poisson's distribution for four runs."""
    one, samples = arm("planar_2r"), 200_000
    spread = EffortSpread((0.0,), (0.5,), T, 0.6, 0.005, rates)
    observer = ExternalEffortObserver(one, L, order=order)
    thresholds = ContactThresholds(observer, 1800.0, spread=[spread] * 2)
    q, draw = np.zeros((samples, 2)), np.random.default_rng(order)
    tau = one.dynamics.gravity(q[0]) + 0.5 * noise(draw, samples, T) + 0.6 * noise(draw, samples, 0.005)
    found = observer.observe(1e-3 * np.arange(samples), q, rates * draw.standard_normal(q.shape), tau=tau).external
    beyond = np.abs(found) > thresholds.limits(np.zeros(2), q[0])
    assert 75 <= np.count_nonzero(beyond[1:] & ~beyond[:-1]) <= 125
    if order == 1:
        np.testing.assert_allclose(thresholds.passed[:, 0], np.sqrt(L / (L + 1 / T)), rtol=1e-12)
    speeds, errors, rest = thresholds.rows()
    np.testing.assert_allclose(np.hypot(errors[:, 0], rest), thresholds.limits(speeds[:, 0]))
    np.testing.assert_allclose(thresholds.limits(np.zeros(2)), thresholds.limits(np.zeros(2), q[0]), rtol=1e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_a_step_is_detected_in_the_time_that_is_told(order: int) -> None:
    one, t = arm("planar_2r"), 1e-3 * np.arange(600)
    observer = ExternalEffortObserver(one, L, order=order)
    thresholds = ContactThresholds(observer, spread=[EffortSpread((0.0,), (0.5,), 0.02)] * 2)
    q, step = np.zeros((len(t), 2)), np.array([1.0, 4.0])
    tau = one.dynamics.gravity(q[0]) - np.where((t > 0.3)[:, None], step, 0.0)
    found = observer.observe(t, q, q, tau=tau).external
    first = np.argmax((np.abs(found) > thresholds.limits(np.zeros(2))).any(axis=1))
    # The step is halfway between samples.
    assert thresholds.detection_time(step) == pytest.approx(t[first] - 0.3005, abs=1e-3)
    assert thresholds.detection_time([0.1, 0.1]) == np.inf
    assert "joint_1: " in str(thresholds) and "1 false alarms per hour" in str(thresholds)


def test_spreads_in_robot_files() -> None:
    """Spreads are read and written; invalid ones are refused; thresholds require them."""
    bare = arm("planar_2r")
    with pytest.raises(TypeError, match="ExternalEffortObserver"):
        ContactThresholds(bare)
    with pytest.raises(eom.StateError, match=r"joint_1.*joint_2.*effort_spread.*identify"):
        ContactThresholds(ExternalEffortObserver(bare, L))
    section = robot_as_parameters(bare.robot, [])
    entry = {"velocity": [0.1, 0.5], "deviation": [0.3, 0.2], "correlation_time": 0.05}
    for name in bare.robot.joint_names:
        section["joints"][name]["effort_spread"] = dict(entry)
    robot = robot_from_parameters(section)
    assert robot.joints[0].effort_spread == EffortSpread((0.1, 0.5), (0.3, 0.2), 0.05)
    written = robot_as_parameters(robot, [])["joints"]["joint_2"]["effort_spread"]
    assert written == entry
    thresholds = ContactThresholds(ExternalEffortObserver(eom.ElasticArm(robot), L), 0.5)
    rest, middle, fast = thresholds.limits([[0.0, 0.0], [0.3, -0.3], [9.0, 9.0]])
    np.testing.assert_allclose(middle, rest * 0.25 / 0.3)
    np.testing.assert_allclose(fast, rest * 0.2 / 0.3)
    with pytest.raises(eom.StateError, match="false_alarms"):
        ContactThresholds(ExternalEffortObserver(eom.ElasticArm(robot), L), 1e9)
    for wrong, reason in (
        ({"velocity": [0.5, 0.1]}, "velocity must not be negative, and must increase"),
        ({"deviation": [0.3]}, "deviation must be positive, one for each velocity"),
        ({"deviation": [0.3, 0.0]}, "deviation must be positive, one for each velocity"),
        ({"correlation_time": 0.0}, "correlation_time must be positive"),
    ):
        section["joints"]["joint_1"]["effort_spread"] = entry | wrong
        with pytest.raises(eom.RobotDescriptionError, match=reason.replace(" must", ".*must", 1)):
            robot_from_parameters(section)


class Watched:
    """A loop that watches for contact, with torque sensors."""

    def __init__(self, **settings: Any) -> None:
        self.loop = ControlLoop(RobotTable(arm("sea_planar_2r")))
        self.loop.configure(**settings)
        self.loop.limit(motion_limits(self.loop.arm, {"velocity": 1.0, "acceleration": 5.0}), 1e-3)
        self.observer = ExternalEffortObserver(self.loop.arm, 200.0, "torque", loop=self.loop)
        spread = [EffortSpread((0.0,), (0.05,), 0.1)] * 2
        self.observer.watch(*ContactThresholds(self.observer, spread=spread).rows())
        self.sensed = self.loop.vectors("sensed", dict.fromkeys(("q", "qd", "tau"), 2))

    def sense(self, k: int, tau: Array, q: Array | float = 0.0, qd: Array | float = 0.0) -> None:
        for row, x in zip(self.sensed.values(), (q, qd, tau), strict=True):
            row[:] = x
        self.loop.sense(k * 1_000_000, 5)


def test_contact_stops_a_loop_that_is_to_be_switched_off_then() -> None:
    """At rest it says so, also when contact has ended; before, references are followed, and afterwards refused."""
    host, codes, statuses = Watched(on_contact="deactivate", stop_duration=0.05), [], []
    loop, weight = host.loop, host.loop.arm.dynamics.gravity(np.zeros(2))
    for k in range(200):
        host.sense(k, weight - 2.0 * (60 <= k < 150))
        loop.rest()
        loop.given["q"][:], loop.given["qd"][:] = 1e-3 * k, 1.0
        loop.refer(0)
        codes.append(loop.update(k * 1_000_000, 1e-3))
        statuses.append(loop.status)
    begin = codes.index(Refusal["in_contact"])
    assert 60 < begin < 65 and not any(codes[:begin]) and set(codes[begin:]) == {Refusal["in_contact"]}
    rest = statuses.index(Status.LOST)
    assert set(statuses[begin:rest]) == {Status.STOPPING} and set(statuses[rest:]) == {Status.LOST}
    assert begin + 50 <= rest and not loop.setpoint["qd"].any()
    loop.act("resume")
    loop.refer(0)
    assert loop.update(200_000_000, 1e-3) != Refusal["in_contact"]


@pytest.mark.parametrize("later", [20, 400], ids=["amid the stop", "at rest"])
def test_contact_does_not_move_an_arm_whose_stop_was_asked_for(later: int) -> None:
    host, positions = Watched(on_contact="retract", stop_duration=0.1), []
    loop, weight = host.loop, host.loop.arm.dynamics.gravity(np.zeros(2))
    loop.restart(np.zeros(2))
    for k in range(1500):
        if k == 100:
            loop.send_trajectory(Spline([0.0, 1.0], np.stack([[[0.0] * 2, [0.5] * 2], *np.zeros((4, 2, 2))])), 0)
        if k == 500:
            loop.act("stop")
        host.sense(k, weight - 2.0 * (500 + later <= k < 1200))
        loop._library.loop_run(loop.address, k * 1_000_000, 1e-3)
        positions.append(loop.setpoint["q"].copy())
    assert loop.number("contacts") == 1 and 0.1 < positions[500][0] < positions[-1][0] < 0.5
    assert (np.diff(positions, axis=0) >= 0).all()


@pytest.mark.parametrize(
    ("pushes", "found"),
    [
        (range(60, 900), range(60, 900)),  # through the gap
        (range(60, 150), range(60, 425)),  # which ends amid it
        (range(150, 900), range(425, 900)),  # which begins amid it
        (range(0), range(0)),
    ],
)
def test_contact_lasts_while_samples_are_missing(pushes: range, found: range) -> None:
    """From 100 to 400 ms; afterwards the observer settles, for 25 ms, before contact ends or begins."""
    host, told = Watched(on_contact="stop"), []
    motion = Cosine(np.full(2, 0.9), [3.0, 5.0], [0.4, 1.4])
    for k in range(900):
        if not 100 <= k < 400:
            q, qd, qdd = (x[0] for x in motion.derivatives(np.array([1e-3 * k]), 2))
            host.sense(k, arm("sea_planar_2r").dynamics.effort(q, qd, qdd) - 4.0 * np.eye(2)[1] * (k in pushes), q, qd)
        told.append(host.loop.number("contact"))
    assert np.flatnonzero(told).tolist() == [*found]
    assert not found or host.loop.number("contact_joint") == 1

# SPDX-License-Identifier: Apache-2.0
"""Closed circle without ROS: excite, record, identify, and track before and after; and its bags."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bag_files import JOINT_STATE, START, STEP, STORE, header
from springs import with_springs

from closing_the_loop import results as summary
from closing_the_loop.experiment import (
    IdentificationMotions,
    IdentificationResult,
    IdentificationTask,
    close_circle,
    plan,
    simulated,
)
from closing_the_loop.over_ros import read_readings, write_bag
from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.actuators.springs import ExponentialPair, LinearSpring, RigidSpring
from eom_dynamics.identification import IdentificationError
from eom_dynamics.recordings.bags import BagError
from eom_dynamics.simulation.simulated_robot import Readings
from eom_dynamics.tools.quantity_text import number

ROBOT = "sea_planar_2r"


@pytest.fixture(scope="module")
def motions() -> IdentificationMotions:
    return plan(load_robot(ROBOT), iterations=3)


@pytest.fixture(scope="module")
def closed(motions: IdentificationMotions) -> IdentificationResult:
    """With signs that add up; ``make bench`` (section ``random_circle``) has all four pairs, of other plants."""
    task = IdentificationTask(motions, 0.2, -0.2, rate=100.0)
    return close_circle(task, simulated(task))


def test_tracking_errors_fall(closed: IdentificationResult) -> None:
    # Five times is promised; noise of the encoders, 1e-5 rad, is part of both errors.
    assert closed.gain > 20
    assert np.all(closed.after.rms < closed.before.rms / 10)


def test_identified_numbers_are_the_true_ones(closed: IdentificationResult) -> None:
    # Within five standard deviations, and within the promised errors with noise: 1, 2 and 3 %.
    joints = closed.task.true_robot.independent_joints
    for joint, spring, motor in zip(joints, closed.fit.springs, closed.fit.motors, strict=True):
        law = spring.parameters
        for name, declared in joint.spring.parameters().items():
            if declared.name == "stiffness":
                true, (found, deviation) = float(getattr(joint.spring, name)), law["stiffness"]
                assert abs(found - true) < max(5 * deviation, 0.01 * true)
        found, deviation = motor.rotor_inertia
        assert abs(found - joint.rotor_inertia) < max(5 * deviation, 0.02 * joint.rotor_inertia)
        friction = joint.actuator.friction
        for name in ("viscous", "coulomb"):
            found, deviation = motor.parameters[name]
            assert abs(found - getattr(friction, name)) < max(5 * deviation, 0.03 * getattr(friction, name))


def test_the_true_robot_differs_from_its_file_as_told(motions: IdentificationMotions) -> None:
    task = IdentificationTask(motions, 0.1, -0.3)
    stiffness = [ElasticArm(robot).stiffness for robot in (task.true_robot, task.robot)]
    np.testing.assert_allclose(stiffness[0], 1.1 * stiffness[1])
    for joint, described in zip(task.true_robot.joints, task.robot.joints, strict=True):
        assert joint.mass == pytest.approx(0.7 * described.mass)
        assert joint.rotor_inertia == described.rotor_inertia
        assert joint.actuator.friction.coulomb > described.actuator.friction.coulomb


def test_robots_without_a_spring_at_each_joint_are_refused() -> None:
    with pytest.raises(RobotDescriptionError, match=r"joint_1.*rigid"):
        plan(with_springs(load_robot("planar_2r"), RigidSpring(), LinearSpring(300.0)))
    with pytest.raises(RobotDescriptionError, match="has a spring of type antagonistic"):
        plan(with_springs(load_robot("planar_2r"), LinearSpring(300.0), ExponentialPair(50.0, 6.0, 1500.0)))


def test_the_page_has_the_errors_and_the_numbers(closed: IdentificationResult, tmp_path: Path) -> None:
    pytest.importorskip("plotly", reason="the page needs plotly")
    from html_page import Page

    from eom_dynamics.tools.pages import html_page

    result = summary.circle_result(closed, tmp_path / "index.html")
    html = html_page("closing_the_loop", result)
    assert Page(html).places == {"identified_before", "identified_after", "identified_motors"}
    assert '<p class="verdict bad">' not in html
    for text in (f"{number(closed.gain)} times", "rotor inertia, joint_2", "stiffness, joint_1", "coulomb, joint_1"):
        assert text in html
    (figure,) = [section.charts["identified_before"] for section in result.sections if section.charts]
    assert np.max(np.abs(figure.data[0].y)) == pytest.approx(1e3 * np.max(np.abs(closed.before.error[:, 0])), rel=0.01)


def test_results_as_text_and_json(closed: IdentificationResult) -> None:
    results = summary.as_json(closed)
    json.dumps(results)
    (inertia,) = [each for each in results["numbers"] if each["name"] == "rotor inertia, joint_1"]
    assert inertia["true"] == inertia["described"] == closed.task.robot.joints[0].rotor_inertia
    assert inertia["found"] == closed.fit.motors[0].rotor_inertia[0]
    assert f"{number(closed.gain)} times smaller" in summary.circle_result(closed, Path("index.html")).as_text()
    assert not summary.failures(closed)
    worse = replace(closed, after=replace(closed.before, error=closed.before.error / 3))
    assert summary.failures(worse) == ["identification: the tracking error fell 3.00 times, not 5 times"]


def serialized_rows(names: tuple[str, ...], *columns: np.ndarray) -> np.ndarray:
    """Serialized joint states (N, size)."""
    kind = STORE.types[JOINT_STATE]
    messages = [
        kind(header=header(START + k * STEP), name=list(names), position=q, velocity=qd, effort=tau)
        for k, (q, qd, tau) in enumerate(zip(*columns, strict=True))
    ]
    return np.array([np.frombuffer(bytes(STORE.serialize_cdr(x, JOINT_STATE)), np.uint8) for x in messages])


def written(folder: Path, readings: Readings, names: tuple[str, ...]) -> Path:
    turned = [x[:, ::-1].copy() for x in readings]
    count = len(readings.q)
    unread = np.zeros((count, 8), np.uint8)
    np.savez(
        folder / "recording.npz",
        stamp=START + STEP * np.arange(count),
        setpoint=unread,
        feedforward=unread,
        joint_states=serialized_rows(names[::-1], *turned[:3]),
        motor_states=serialized_rows(names[::-1], *turned[3:]),
    )
    write_bag(folder / "bag", folder / "recording.npz")
    return folder / "bag"


def test_readings_pass_through_a_bag(tmp_path: Path) -> None:
    robot = load_robot(ROBOT)
    # Far beyond the joint limits: positions in rad must not be read as degrees, nor steps as turns.
    readings = Readings(*np.random.default_rng(0).uniform(-80, 80, (6, 50, robot.n)))
    found = read_readings(written(tmp_path, readings, robot.joint_names), robot)
    for name, ours, desired in zip(Readings._fields, found, readings, strict=True):
        np.testing.assert_array_equal(ours, desired, err_msg=name)


@pytest.mark.parametrize("name", ["qd", "thetad"])
def test_readings_without_velocities_are_refused(tmp_path: Path, name: str) -> None:
    readings = Readings(*np.ones((6, 50, 2)))._replace(**{name: np.zeros((50, 2))})
    with pytest.raises(BagError, match=f"must have positions and velocities of links and motors of {ROBOT}"):
        read_readings(written(tmp_path, readings, ("joint_1", "joint_2")), load_robot(ROBOT))


def test_readings_of_another_robot_are_refused(tmp_path: Path) -> None:
    bag = written(tmp_path, Readings(*np.ones((6, 50, 2))), ("left", "right"))
    with pytest.raises(IdentificationError, match="joints"):
        read_readings(bag, load_robot(ROBOT))

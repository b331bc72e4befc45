# SPDX-License-Identifier: Apache-2.0
"""Records of bags, with commands that are missing; deviations, latency and use of limits beside known values."""

from dataclasses import replace
from pathlib import Path

import bag_files
import numpy as np
import pytest
from recorded_bags import LATENCY, MOTION, NOISE, OFFSET, START, record, write_bag, write_bags

import eom_dynamics as eom
from eom_dynamics.actuators.actuator import Motor
from eom_dynamics.bags import BagError
from eom_dynamics.robot import Limits, Mimic
from eom_dynamics.tools.recording_options import Sampling
from eom_dynamics.tools.recordings import Stream
from eom_dynamics.tools.report.read import read_records
from eom_dynamics.tools.report.record import Record, limit_utilization, percent_used
from eom_dynamics.tools.report.results import heading


def stream(t: list[float], names: tuple[str, ...] = ("a",), **values: list[list[float]]) -> Stream:
    stamp = START + np.round(np.array(t) * 1e9).astype(np.int64)
    return Stream("/x", stamp, stamp, names, {field: np.array(x, dtype=float) for field, x in values.items()})


def test_deviations_are_the_known_noise_and_offset() -> None:
    found = record("panda", count=200)
    q, effort = found.position_deviation, found.effort_deviation
    np.testing.assert_allclose([q.rms, q.peak], NOISE, rtol=1e-9)
    np.testing.assert_allclose(q.mean, 0, atol=1e-12)
    np.testing.assert_allclose(effort.mean, -OFFSET, rtol=1e-9)


def test_deviations_are_interpolated_linearly_but_not_in_pauses() -> None:
    setpoint = stream([0, 1, 2, 12, 13], position=[[0], [2], [4], [0], [0]])
    measured = stream([-0.5, 0.5, 1, 2, 7, 12, 12.5, 13.5], position=[[0]] * 8)
    found = Record("x", setpoint=setpoint, measured=measured).position_deviation
    np.testing.assert_allclose(found.value[:, 0], [np.nan, 1, 2, 4, np.nan, 0, 0, np.nan])
    assert found.peak[0] == 4 and found.rms[0] == pytest.approx(np.sqrt((1 + 4 + 16) / 5))


def test_latency_is_between_equal_stamps() -> None:
    found = record("planar_2r", count=10)
    rows = np.array([1, 2, 3, 5, 6, 8])
    some = found.command[rows]
    result = replace(found, command=replace(some, recorded=some.recorded + 1000 * rows)).latency
    np.testing.assert_allclose(result[1], 1e-9 * (LATENCY + 1000 * rows), rtol=1e-12)
    np.testing.assert_allclose(result[0], rows / 500, rtol=1e-9)


def test_spring_deflection_is_effort_over_stiffness() -> None:
    found = record("panda", count=50)
    result = found.spring_deflection
    np.testing.assert_allclose(result[2], found.command.values["effort"] / found.robot.stiffness, rtol=0, atol=1e-12)


def test_largest_utilization_of_each_limit() -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    bounded = replace(first, limits=Limits(lower=-1.0, upper=3.0, velocity=2.0))
    robot = replace(robot, joints=(bounded, second))
    setpoint = stream(
        [0, 1, 2], robot.joint_names, position=[[1, 9], [3.4, 9], [-0.5, 9]], velocity=[[0, 0], [-1, 0], [0.5, 0]]
    )
    position, velocity = limit_utilization(Record("x", robot, setpoint=setpoint))
    # The middle of the range is 1, its half 2.
    assert (position.quantity, position.ratio) == ("position", pytest.approx(1.2))
    assert (position.limit, position.t) == (3.0, 1.0)
    assert (velocity.ratio, velocity.value, velocity.limit) == (0.5, -1.0, -2.0)


@pytest.mark.parametrize(
    ("limits", "position", "expected"),
    [
        (Limits(upper=2.0), [-50.0, 1.0], (1.0, 2.0, "0%", 1.0)),
        (Limits(upper=2.0), [3.0, 4.0], (4.0, 2.0, "exceeded", 1.0)),
        (Limits(lower=0.1), [0.6, 0.0], (0.0, 0.1, "exceeded", 1.0)),
        (Limits(lower=-0.1, upper=0.3), [0.1, 0.1 - 1e-17], (0.1, 0.3, "0%", 0.0)),
        (Limits(lower=-0.3, upper=0.3), [np.nan, 0.15], (0.15, 0.3, "50%", 1.0)),
        (Limits(lower=0.2, upper=0.2), [0.2, 0.2], (0.2, 0.2, "100%", 0.0)),
    ],
)
@pytest.mark.filterwarnings("error")
def test_utilization_of_a_position_range(limits: Limits, position: list[float], expected: tuple[object, ...]) -> None:
    robot = eom.load_robot("planar_2r")
    robot = replace(robot, joints=(replace(robot.joints[0], limits=limits), robot.joints[1]))
    setpoint = stream([0, 1], robot.joint_names, position=[[q, 0.0] for q in position])
    (use,) = limit_utilization(Record("x", robot, setpoint=setpoint))
    assert (use.value, use.limit, percent_used(use), use.t) == expected


def test_limits_of_motors_rates_and_mimic_joints_count() -> None:
    robot = eom.load_robot("planar_2r")
    first, second = robot.joints
    motor = Motor(torque_constant=0.5, resistance=2.0, torque_limit=4.0, speed_limit=1.0, voltage_limit=100.0)
    first = replace(first, limits=Limits(jerk=10.0), gear_ratio=-10.0, actuator=replace(first.actuator, motor=motor))
    second = replace(second, mimic=Mimic(0, ratio=-2.0, offset=1.0))
    second = replace(second, limits=Limits(lower=-4.0, upper=4.0, velocity=4.0))
    robot = replace(robot, joints=(first, second))
    setpoint = stream([0, 1], ("joint_1",), position=[[0], [2]], velocity=[[0], [1]], jerk=[[-9], [3]])
    motors = stream([0, 1], ("joint_1",), motor_velocity=[[9.954], [0]], motor_effort=[[0], [-20]])
    found = {use.quantity: use for use in limit_utilization(Record("x", robot, setpoint=setpoint, motors=motors))}
    assert list(found) == ["motor_speed", "jerk", "position", "velocity", "motor_torque", "motor_voltage"]
    speed, jerk, position, velocity, torque, voltage = found.values()
    assert (speed.name, speed.value, speed.limit, speed.unit) == ("joint_1", pytest.approx(-99.54), -1.0, "rad/s")
    assert percent_used(speed) == "9954%"
    assert (jerk.value, percent_used(jerk), jerk.unit) == (-9.0, "90%", "rad/s³")
    assert (voltage.value, voltage.t) == (pytest.approx(0.5 * -99.54), 0.0)
    assert (position.name, position.value, percent_used(position)) == ("joint_2", -3.0, "75%")
    assert (velocity.name, velocity.value, percent_used(velocity)) == ("joint_2", -2.0, "50%")
    assert (torque.value, torque.unit, torque.t) == (2.0, "N m", 1.0) and percent_used(torque) == "50%"


STREAMS = ("setpoint", "command", "motors", "measured")


def same(actual: Stream | None, expected: Stream | None) -> None:
    assert actual.names == expected.names and actual.topic.endswith(expected.topic)
    np.testing.assert_array_equal(actual.stamp, expected.stamp)
    np.testing.assert_array_equal(actual.recorded, expected.recorded)
    for field, values in expected.values.items():
        np.testing.assert_array_equal(actual.values[field], values, err_msg=field)


def test_all_topics_of_the_node_are_read(tmp_path: Path) -> None:
    expected = record("panda", count=60)
    shares: list[float] = []
    (actual,) = read_records(write_bag(tmp_path / "bag", expected), progress=shares.append)
    for name in STREAMS:
        same(getattr(actual, name), getattr(expected, name))
    assert actual.name == "bag" and actual.robot is None and actual.notes == () and actual.computed_note == ""
    assert actual.origin == START and actual.duration == pytest.approx(59 / 500, abs=1e-9)
    found = actual.latency
    np.testing.assert_allclose(found[1], LATENCY * 1e-9, rtol=0, atol=1e-15)
    assert shares == sorted(shares) and shares[-1] <= 1


def test_each_namespace_makes_a_record(tmp_path: Path) -> None:
    arms = {"/left": record("planar_2r", count=20), "/right": record("planar_pr", count=20)}
    records = read_records(write_bags(tmp_path / "bag", arms), eom.load_robot("planar_pr"))
    assert [found.name for found in records] == ["bag /left", "bag /right"]
    for found, expected in zip(records, arms.values(), strict=True):
        same(found.command, expected.command)
        same(found.measured, expected.measured)
    assert [found.robot is None for found in records] == [True, False]
    assert "none of the joints of this recording" in records[0].notes[0]


def test_joints_in_another_order_and_additional_ones(tmp_path: Path) -> None:
    expected = record("planar_2r", count=20)
    measured = expected.measured
    gripper = {field: np.hstack([np.full((len(x), 1), 9.0), x[:, ::-1]]) for field, x in measured.values.items()}
    theirs = replace(measured, names=("gripper", *measured.names[::-1]), values=gripper)
    (actual,) = read_records(write_bag(tmp_path / "bag", replace(expected, measured=theirs)))
    off, ours = actual.position_deviation, expected.position_deviation
    assert off.names == ours.names
    np.testing.assert_array_equal(off.value, ours.value)
    assert actual.joints == (*expected.joints, "gripper")


def test_messages_are_sorted_by_stamp_or_without_one_by_the_time_of_recording(tmp_path: Path) -> None:
    expected = record("planar_2r", count=10)
    measured, setpoint = expected.measured, expected.setpoint
    mixed = replace(setpoint[np.array([0, 2, 1, *range(3, 10)])], recorded=setpoint.recorded)
    bare = replace(expected, measured=replace(measured, stamp=np.zeros_like(measured.stamp)), setpoint=mixed)
    (actual,) = read_records(write_bag(tmp_path / "bag", bare))
    np.testing.assert_array_equal(actual.setpoint.stamp, setpoint.stamp)
    np.testing.assert_array_equal(actual.setpoint.values["snap"], setpoint.values["snap"])
    np.testing.assert_array_equal(actual.measured.stamp, measured.recorded)
    assert actual.notes == ("/joint_states: messages have no stamps; times of recording are used",)


def test_missing_commands_are_computed_from_setpoints(tmp_path: Path) -> None:
    """Ahead by the lead of the robot."""
    expected = record("panda", count=60)
    path = write_bag(tmp_path / "bag", expected, without=["command", "motors"])
    (actual,) = read_records(path, expected.robot)
    assert actual.computed_note.startswith("Commands were not recorded: they are computed for panda")
    for own, theirs in ((actual.command, expected.command), (actual.motors, expected.motors)):
        assert not own.is_recorded
        np.testing.assert_array_equal(own.stamp, theirs.stamp)
        for field, values in theirs.values.items():
            # Another order of the same sums, in a batch of another size.
            np.testing.assert_allclose(own.values[field], values, rtol=1e-12, atol=1e-9, err_msg=field)
    assert actual.latency is None, "of what was not sent"
    (late,) = read_records(path, replace(expected.robot, command_period=0.002, drive_delay=0.001))
    wanted = eom.ElasticArm(expected.robot).feedforward(*expected.setpoint.values.values(), lead=0.002)
    np.testing.assert_allclose(late.command.values["effort"], wanted.tau, rtol=1e-12, atol=1e-9)


def test_commands_are_computed_from_joint_states_by_a_fit(tmp_path: Path) -> None:
    truth = record("panda", count=2000)
    path = write_bag(tmp_path / "bag", truth, without=["setpoint", "command", "motors"])
    (actual,) = read_records(path, truth.robot, Sampling(cutoff=8.0))
    assert "a fit of the positions of /joint_states with a cutoff of 8 Hz" in actual.computed_note
    assert set(actual.setpoint.values) == set(MOTION)
    inner = (truth.measured.stamp > START + 10**9) & (truth.measured.stamp < START + 3 * 10**9)
    for own, theirs, field, share in (
        (actual.setpoint, truth.setpoint, "position", 1e-3),
        (actual.setpoint, truth.setpoint, "velocity", 1e-2),
        (actual.command, truth.command, "effort", 3e-2),
    ):
        true = theirs.values[field][::5][inner]
        # The noise alternates from sample to sample, far above the cut-off, and does not get through.
        assert np.max(np.abs(own.values[field][inner] - true)) < share * np.max(np.abs(true)), field


def test_commands_are_computed_from_planned_trajectories(tmp_path: Path) -> None:
    robot = eom.load_robot("planar_2r")
    with pytest.raises(BagError, match="a trajectory needs its robot: --robot ROBOT"):
        read_records(write_trajectory(tmp_path / "one", robot.joint_names))
    (actual,) = read_records(tmp_path / "one", robot, Sampling(rate=200.0))
    assert len(actual.setpoint) == 201 and not actual.setpoint.is_recorded
    np.testing.assert_allclose(actual.setpoint.values["position"][[0, 100, 200]], [[0, 0], [1, -1], [2, 0]], atol=1e-9)
    with pytest.raises(BagError, match="joint"):
        read_records(write_trajectory(tmp_path / "two", ("a", "b")), robot)


def write_trajectory(path: Path, names: tuple[str, ...]) -> Path:
    plan = bag_files.trajectory(START, names, [0.0, 0.5, 1.0], [[0, 0], [1, -1], [2, 0]])
    return bag_files.write_bag(path, {"/plan": (bag_files.TRAJECTORY, [(START, plan)])})


def test_losses_are_told_from_refused_setpoints_by_the_status(tmp_path: Path) -> None:
    status = [0, 1, 0, 0, 0, 2, 2, 1, 1, 1, 0, 0, 3, 1]
    path = write_bag(tmp_path / "bag", record("planar_2r", count=20), status=status)
    (actual,) = read_records(path, eom.load_robot("planar_2r"))
    assert actual.notes == (
        "/feedforward: setpoints were lost 2 times, first before 0.010 s; of the commands after that, 2 bring the arm "
        "to rest, 1 fade efforts to zero, 4 repeat an earlier one",
        "/feedforward: 1 commands repeat an earlier one for refused setpoints",
    )
    found = [
        (phase.status.name, round(phase.start, 9), round(phase.end, 9), phase.lost) for phase in actual.interruptions
    ]
    assert found == [
        *(("HELD", 0.002, 0.004, False), ("STOPPING", 0.01, 0.014, True), ("HELD", 0.014, 0.02, True)),
        *(("RAMPING", 0.024, 0.026, True), ("HELD", 0.026, 0.028, True)),
    ]


def test_what_was_measured_is_not_called_computed(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", record("planar_2r", count=500), without=["setpoint", "command", "motors"])
    (actual,) = read_records(path)
    assert actual.computed_note == "Commands were not recorded; to compute them, name a robot: --robot ROBOT."
    for section in ("motion", "effort"):
        assert heading(actual, section)[0].endswith(", measured") and "τ" not in heading(actual, section)[1]
    (commanded,) = read_records(path, eom.load_robot("planar_2r"))
    assert heading(commanded, "effort")[1].startswith("τ, the effort of the rigid-body dynamics")

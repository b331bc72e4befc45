# SPDX-License-Identifier: Apache-2.0
"""Records of bags that rosbags wrote, and commands computed if they are missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_bags import LATENCY, MOTION, START, record, write_bag, write_bags

import eom_dynamics as eom

pytest.importorskip("rosbags", reason="reads bags")

import bag_files

from eom_dynamics.bags import BagError
from eom_dynamics.tools.recording_options import Sampling
from eom_dynamics.tools.recordings import Stream
from eom_dynamics.tools.report.read import read_records
from eom_dynamics.tools.report.results import heading

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
        ("HELD", 0.002, 0.004, False),
        ("STOPPING", 0.01, 0.014, True),
        ("HELD", 0.014, 0.02, True),
        ("RAMPING", 0.024, 0.026, True),
        ("HELD", 0.026, 0.028, True),
    ]


def test_what_was_measured_is_not_called_computed(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", record("planar_2r", count=500), without=["setpoint", "command", "motors"])
    (actual,) = read_records(path)
    assert actual.computed_note == "Commands were not recorded; to compute them, name a robot: --robot ROBOT."
    for section in ("motion", "effort"):
        assert heading(actual, section)[0].endswith(", measured") and "τ" not in heading(actual, section)[1]
    (commanded,) = read_records(path, eom.load_robot("planar_2r"))
    assert heading(commanded, "effort")[1].startswith("τ, the effort of the rigid-body dynamics")

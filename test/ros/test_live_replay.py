# SPDX-License-Identifier: Apache-2.0
"""A bag played to a node over DDS, and replayed offline: the same commands."""

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="reads bags")

from bag_files import SETPOINT, STORE, read_bag, setpoint, setpoints, write_bag
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS
from eom_dynamics.tools.cli.main import main
from eom_dynamics.trajectory import paper_motion

# The node computes one state at a time and the replay many at once, in lanes: sums are the same, sines and cosines may
# differ in their last bit, which the largest effort of the arm, some 100 N m, carries to its entries.
TOLERANCE = 1e-12

CASES = {"iiwa": {}, "vsa_planar_2r": {"stiffness": [220.0, 210.0], "stiffness_rate": [5.0, -5.0]}}


def recorded(robot, path, **optional):
    """A bag of 300 setpoints at 1 kHz, of which some cannot be used, in an order that is not the robot's."""
    t = np.arange(300) * 1e-3
    states = np.array(paper_motion(robot.n).derivatives(t))
    order = list(reversed(range(robot.n)))
    names = [robot.joint_names[i] for i in order]
    messages = setpoints(names, states[:, :, order], "base", **optional)
    time, _ = messages[100]
    messages[100] = (time, setpoint(time - 7, names, np.full((5, robot.n), np.nan)))
    time, _ = messages[200]
    messages[200] = (time, setpoint(time - 7, ["nobody", *names[1:]], states[:, 200], "base"))
    return write_bag(path, {"/setpoint": (SETPOINT, messages)})


@pytest.mark.parametrize("name", CASES)
def test_live_and_offline_are_the_same(name, start, tmp_path):
    robot = eom.load_robot(name)
    bag = recorded(robot, tmp_path / "bag", **CASES[name])
    assert main(["replay", str(bag), "--robot", name, "-o", str(tmp_path / "offline")]) == 0
    offline = read_bag(tmp_path / "offline")

    client = start("--params-file", CONFIG / f"{name}.yaml")
    for _, message in read_bag(bag)["/setpoint"]:
        # As ros2 bag play does: the bytes of the bag, untouched.
        client.publish_serialized(bytes(STORE.serialize_cdr(message, SETPOINT)))
    wanted = len(offline["/feedforward"])
    assert wanted == 298
    # Each topic comes by a way of its own.
    topics = (client.feedforward, client.motor_setpoint, client.effort_command)
    client.wait(lambda: all(len(topic) >= wanted for topic in topics), f"{wanted} answers")

    for (_, expected), live in zip(offline["/feedforward"], client.feedforward, strict=True):
        assert_same_header(expected.header, live.header)
        assert list(expected.joint_names) == list(live.joint_names)
        assert list(expected.motor_names) == list(live.motor_names)
        assert expected.held == live.held
        for field in COMMAND_FIELDS:
            assert_close(getattr(expected, field), getattr(live, field))
    for (_, expected), live in zip(offline["/motor_setpoint"], client.motor_setpoint, strict=True):
        assert_same_header(expected.header, live.header)
        assert list(expected.name) == list(live.name)
        for field in ("position", "velocity", "effort"):
            assert_close(getattr(expected, field), getattr(live, field))
    for (_, expected), live in zip(offline["/effort_command"], client.effort_command, strict=True):
        assert_close(expected.data, live.data)


def assert_same_header(expected, live):
    assert (expected.stamp.sec, expected.stamp.nanosec) == (live.stamp.sec, live.stamp.nanosec)
    assert expected.frame_id == live.frame_id


def assert_close(expected, live):
    expected, live = np.asarray(expected), np.array(live)
    assert expected.shape == live.shape
    assert np.max(np.abs(expected - live)) <= TOLERANCE * max(1.0, np.max(np.abs(expected)))

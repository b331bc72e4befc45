# SPDX-License-Identifier: Apache-2.0
"""New descriptions on the topic while setpoints stream: taken in whole between two of them, or refused."""

import json
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from urdf_arms import urdf_arm

import eom_dynamics as eom
from eom_dynamics.stream.conversions import COMMAND_FIELDS, STATE_FIELDS

FAST = ("-p", "diagnostic_period:=0.1")
STATES = ("q", "qd", "qdd", "qddd", "qdddd")


def fresh_mass():
    """A mass that no robot of an earlier run had, so that its code is compiled and not in the cache."""
    return random.SystemRandom().uniform(1.0, 5.0)


@pytest.fixture
def active(start, describe):
    """A node that took ``urdf`` from the topic and is active."""

    def start_active(urdf, *arguments):
        describe(urdf)
        client = start(*FAST, "-r", f"robot_description:={describe.topic}", *arguments)
        client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the node to be active")
        return client

    return start_active


@pytest.fixture
def stream(tmp_path):
    """Play setpoints to a client's node at 1 kHz, and call ``during`` after the first 500; returns the record."""

    def play(client, during, count):
        t = np.arange(count)[:, None] * 1e-3
        omega = np.array([1.0, 3.0])
        arrays = {name: omega**k * np.cos(omega * t + k * np.pi / 2) for k, name in enumerate(STATES)}
        np.savez(tmp_path / "setpoints.npz", **arrays)
        player = subprocess.Popen(
            [
                *(sys.executable, "-m", "eom_dynamics.ros.player", "setpoints.npz", "answers.npz", "--grace", "20"),
                *("--ros-args", "-r", f"__ns:=/{client.process.name}"),
                *("-r", f"/diagnostics:=/{client.process.name}/diagnostics"),
            ],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in player.stdout:
            if json.loads(line)["sent"] > 500:
                break
        during()
        *_, counts = player.stdout
        assert player.wait() == 0
        assert json.loads(counts) == {"sent": count, "received": count, "lost": 0, "out_of_order": 0}
        return arrays, dict(np.load(tmp_path / "answers.npz"))

    return play


def answered_by(urdf, arrays, record):
    """For each setpoint, whether all of its answer is that of this robot."""
    wanted = eom.ElasticArm(eom.load_robot(urdf)).feedforward(*(arrays[name] for name in STATES))
    return np.all(
        [
            np.abs(record[name] - values).max(axis=1) <= 1e-12 * np.abs(values).max()
            for name, values in zip(COMMAND_FIELDS, wanted, strict=True)
        ],
        axis=0,
    )


@pytest.mark.parametrize("executor", ["events", "single_threaded"])
def test_a_new_robot_takes_over_between_two_setpoints_and_none_is_lost(active, stream, describe, executor):
    before, after = urdf_arm("before"), urdf_arm("after", mass=fresh_mass())
    client = active(before, "-p", f"executor:={executor}")
    described = []

    def exchange():
        described.append(time.monotonic())
        describe(after)

    arrays, record = stream(client, exchange, 6000)
    old, new = answered_by(before, arrays, record), answered_by(after, arrays, record)
    assert np.all(old ^ new)
    assert old[0] and new[-1]
    assert np.count_nonzero(np.diff(new.astype(int))) == 1
    # The old one answers while the new one is compiled: no silence is nearly as long as that takes.
    taken_over_after = record["received"][new][0] - described[0]
    assert np.diff(np.sort(record["received"])).max() < taken_over_after / 2
    assert client.process.log.count("robot after with 2 joints") == 1
    assert client.next_diagnostics()[2]["refused"] == "0"


BAD = {
    "no URDF": ("hello", "line 1, column 1: not valid XML"),
    "empty": ("", "line 1, column 1: not valid XML: no element found"),
    "bomb": (
        '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY {b} "{10 * f"&{a};"}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
        + ']><robot name="&j;"/>',
        "document type declarations and entities are not allowed",
    ),
    "oversize": ("<robot>" + 30_000_000 * " " + "</robot>", "this is not a robot's description"),
    "deep": (300_000 * "<robot>", "nested deeper than 100"),
    "negative mass": (urdf_arm(mass=-1.0), "mass must not be negative, is -1"),
}


@pytest.mark.parametrize(("text", "reason"), BAD.values(), ids=BAD)
def test_a_description_that_cannot_be_used_is_refused_and_the_stream_goes_on(active, stream, describe, text, reason):
    urdf = urdf_arm("arm")
    client = active(urdf)

    def refuse():
        describe(text)
        return client.wait_for_diagnostics(lambda *s: reason in s[2].get("refused robot", ""), "the refusal")

    arrays, record = stream(client, refuse, 3000)
    assert np.all(answered_by(urdf, arrays, record))
    level, message, values = client.wait_for_diagnostics(
        lambda *s: s[1].startswith("new robot"), "the end of the stream"
    )
    assert level == 1
    assert message.startswith(f"new robot refused, the old one stays: topic {describe.topic}: ")
    assert (values["state"], values["robot"]) == ("active", "arm")
    assert client.process.log.count("new robot refused, the old one stays: ") == 1
    assert "Traceback" not in client.process.log
    # The next good one is taken as if nothing had happened.
    describe(urdf_arm("better", mass=2.0))
    level, message, values = client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "better", "the next robot")
    assert "refused robot" not in values


def test_setpoints_with_the_new_joint_names_are_answered_right_after(active, describe):
    client = active(urdf_arm("two"))
    describe(urdf_arm("three", joints=("a", "b", "c"), mass=fresh_mass()))
    state = dict.fromkeys(STATE_FIELDS, np.full(3, 0.5))
    answered = len(client.feedforward)
    while len(client.feedforward) == answered:
        client.publish(joint_names=["c", "a", "b"], **state)
        client.spin(0.01)
    assert client.feedforward[-1].joint_names == ["c", "a", "b"]
    client.publish(joint_names=["shoulder", "elbow"], **dict.fromkeys(STATE_FIELDS, np.zeros(2)))
    wanted = "joint_names[0]: the robot has no joint 'shoulder'"
    client.wait_for_diagnostics(lambda *s: s[2]["last refusal"] == wanted, "the old names to be refused")


def test_of_many_descriptions_the_last_one_stays(active, describe):
    client = active(urdf_arm("first"))
    for i in range(20):
        describe(urdf_arm(f"arm_{i}", mass=fresh_mass()))
    client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "arm_19", "the last one")
    client.spin(1.0)
    assert client.next_diagnostics()[2]["robot"] == "arm_19"
    # Those that were old before they could be loaded are left out.
    assert client.process.log.count(" with 2 joints: ") < 22


def test_the_same_description_again_changes_nothing(active, describe):
    client = active(urdf_arm("arm"))
    for _ in range(3):
        describe(urdf_arm("arm"))
        client.spin(0.3)
    assert client.process.log.count("robot arm with 2 joints") == 1


def test_a_new_robot_is_taken_while_the_node_is_inactive(active, describe):
    client = active(urdf_arm("arm"))
    assert client.transition("deactivate")
    describe(urdf_arm("other", mass=fresh_mass()))
    client.wait_for_diagnostics(lambda *s: s[2]["robot"] == "other", "the other robot")
    assert client.state == "inactive"


def test_a_cleanup_while_a_robot_is_loaded_leaves_the_node_without_one(active, describe):
    client = active(urdf_arm("arm"))
    describe(urdf_arm("other", joints=[f"j{i}" for i in range(12)], mass=fresh_mass()))
    assert client.transition("deactivate")
    assert client.transition("cleanup")
    client.spin(3.0)
    assert client.state == "unconfigured"
    assert client.next_diagnostics()[2]["robot"] == ""
    assert client.transition("configure")
    assert client.next_diagnostics()[2]["robot"] == "other"


def test_a_spring_for_a_joint_that_the_new_robot_lacks_is_a_reason_to_refuse_it(active, describe):
    client = active(urdf_arm("arm"), "-p", "urdf.joints.elbow.rotor_inertia:=0.2")
    describe(urdf_arm("other", joints=("a", "b")))
    values = client.wait_for_diagnostics(lambda *s: "refused robot" in s[2], "the refusal")[2]
    assert values["refused robot"].startswith("parameters: urdf.joints.elbow: unknown entry; known here: a, b")
    assert values["robot"] == "arm"

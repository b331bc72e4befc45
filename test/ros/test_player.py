# SPDX-License-Identifier: Apache-2.0
"""The player with a node: setpoints, the record, and a stream at 1 kHz."""

import itertools
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from node_client import OFTEN, NodeProcess, ended
from paths import CONFIG
from played import Play

import eom_dynamics as eom
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.fields import COMMAND_FIELDS, STIFFNESS_FIELDS, WRENCH_FIELDS

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
NAMES = list(ROBOT.joint_names)


def motion(count, *, wrench=True):
    """A smooth motion of all joints with a tool wrench, sampled at 1 kHz."""
    t = np.arange(count)[:, None] * 1e-3
    omega = np.linspace(1.0, 4.0, ROBOT.n)
    arrays = {name: omega**k * np.cos(omega * t + k * np.pi / 2) for k, name in enumerate(STATE_NAMES)}
    if wrench:
        omega = np.linspace(2.0, 3.0, 6)
        for k, name in enumerate(WRENCH_FIELDS):
            arrays[name] = 10 * omega**k * np.sin(omega * t + k * np.pi / 2)
    return arrays


# No command replaces an unsent command on a busy machine.
RECORDED = ("-p", "qos_overrides.{namespace}/feedforward.publisher.depth:=1000")


@pytest.fixture(scope="module")
def iiwa_process(ros, tmp_path_factory):
    """One node with the iiwa, and no client in this process, which would be a third one of the stream."""
    process = NodeProcess(tmp_path_factory.mktemp("iiwa"), OFTEN, *RECORDED, "--params-file", CONFIG / "iiwa.yaml")
    yield process
    process.end()


@pytest.fixture
def play(iiwa_process, tmp_path):
    """Play setpoints to a node: exit code, reported counts, other output, and the recorded answers."""
    nodes = []

    def run(arrays, node=iiwa_process, **options):
        if isinstance(node, tuple):
            node = NodeProcess(tmp_path, *RECORDED, *node)
            nodes.append(node)
        player = Play(node.namespace if node else "/nobody", tmp_path, arrays, **options)
        code = player.process.wait(110)
        return code, player.reports, player.errors, player.record(code=code)[1] if code in (0, 3) else None

    yield run
    for node in nodes:
        node.end()


def assert_answers(arrays, record, order=slice(None)):
    """Each recorded number equals the library's."""
    wrench = tuple(arrays[name] for name in WRENCH_FIELDS if name in arrays)
    wanted = eom.ElasticArm(ROBOT).feedforward(*(arrays[name] for name in STATE_NAMES), wrench=wrench)
    for name, values in zip(COMMAND_FIELDS, wanted, strict=True):
        np.testing.assert_allclose(record[name], values[:, order], rtol=0, atol=1e-12 * np.abs(values).max())


def test_nothing_is_lost_at_1_khz(play):
    arrays = motion(1000)
    code, reports, errors, record = play(arrays)
    assert code == 0, errors
    assert reports[-1] == {"sent": 1000, "received": 1000, "lost": 0, "out_of_order": 0}
    assert_answers(arrays, record)
    # Never early, and so never faster than the rate; how late depends on the machine.
    assert np.all(record["sent"] - record["sent"][0] > np.arange(1000) * 1e-3 - 1e-3)
    assert np.all(record["round_trip"] > 0)


def test_the_record_holds_what_was_sent_and_answered(play):
    """In the order of the file's columns; only a refused setpoint is lost."""
    order, lost = [3, 0, 6, 1, 5, 2, 4], [40, 41, 70]
    arrays = motion(100)
    names = [NAMES[i] for i in order]
    shuffled = {name: values[:, order].copy() if name in STATE_NAMES else values for name, values in arrays.items()}
    shuffled["qdd"][lost] = np.nan
    code, reports, errors, record = play({**shuffled, "joint_names": names, "t": 5 + 3e-3 * np.arange(100)}, grace=0.5)
    assert code == 3 and "3 of 100 setpoints were not answered" in errors
    assert reports[-1] == {"sent": 100, "received": 97, "lost": 3, "out_of_order": 0}
    assert len(reports) >= 3
    assert all(a["sent"] <= b["sent"] and a["received"] <= b["received"] for a, b in itertools.pairwise(reports))
    assert record["joint_names"].tolist() == names
    assert np.all(np.diff(record["stamp"]) == 3_000_000)
    assert record["backend"] == eom.Dynamics(ROBOT).backend
    assert np.flatnonzero(np.isnan(record["received"])).tolist() == lost
    np.testing.assert_array_equal(record["round_trip"], record["received"] - record["sent"])
    for name in (*COMMAND_FIELDS, "round_trip"):
        assert np.isnan(record[name][lost]).all()
    kept = np.delete(np.arange(100), lost)
    arrays, record = (
        {name: x[kept] for name, x in rows.items() if np.shape(x)[:1] == (100,)} for rows in (arrays, record)
    )
    assert_answers(arrays, record, order)


def test_stiffness_is_played_and_motors_are_recorded(play):
    t = np.arange(60)[:, None] * 1e-3
    omega = np.array([3.0, 5.0])
    arrays = {name: 0.2 * omega**k * np.sin(omega * t + k * np.pi / 2) for k, name in enumerate(STATE_NAMES)}
    for k, name in enumerate(STIFFNESS_FIELDS):
        arrays[name] = np.array([400.0, 200.0]) * (k == 0) + 10.0 * omega**k * np.sin(omega * t + k * np.pi / 2)
    arm = eom.ElasticArm(eom.load_robot("vsa_planar_2r"))
    wanted = arm.feedforward(
        *(arrays[name] for name in STATE_NAMES), commanded_stiffness=tuple(arrays[name] for name in STIFFNESS_FIELDS)
    )
    arrays["stiffness"][30] = 1.0  # refused, and the command before is held, which is no answer
    code, reports, errors, record = play(arrays, ("--params-file", CONFIG / "vsa_planar_2r.yaml"), grace=0.5)
    assert code == 3, errors
    assert reports[-1] == {"sent": 60, "received": 59, "lost": 1, "out_of_order": 0}
    assert record["motor_names"].tolist() == list(arm.motor_names)
    for name, values in zip(COMMAND_FIELDS, wanted, strict=True):
        assert np.isnan(record[name][30]).all()
        # Batches may sum in another order than single states.
        np.testing.assert_allclose(
            np.delete(record[name], 30, 0), np.delete(values, 30, 0), rtol=0, atol=1e-12 * np.abs(values).max()
        )


def test_a_node_that_does_not_answer_is_an_error(play, iiwa_process):
    of_two_joints = {name: values[:, :2] for name, values in motion(10, wrench=False).items()}
    for node, timeout, reason in (
        (None, 0.2, "no node subscribes to /nobody/setpoint"),
        (iiwa_process, 1.5, "no answer to setpoints on /"),
    ):
        code, _, errors, record = play(of_two_joints, node, timeout=timeout)
        assert (code, record) == (1, None)
        assert f"after {timeout:g} s {reason}" in errors and "Traceback" not in errors


BAD_FILES = [
    ({"qdd": None}, "qdd is missing"),
    ({name: np.zeros(7) for name in STATE_NAMES}, "q must be (N, n), has shape (7,)"),
    ({name: np.zeros((0, 7)) for name in STATE_NAMES}, "q must be (N, n), has shape (0, 7)"),
    ({"qddd": np.zeros((9, 7))}, "qddd must be (10, 7), has shape (9, 7)"),
    ({"wrench": np.zeros((10, 13))}, "wrench must be (10, 12), has shape (10, 13)"),
    ({"joint_names": NAMES[:3]}, "joint_names has 3 entries, q has 7 columns"),
    ({"q": np.full((10, 7), "a")}, "q holds no numbers"),
    ({"t": np.r_[0:5, 4:9] * 0.5}, "t must increase, is 2 s in row 4 and 2 s in row 5: leave one out"),
]


def test_a_file_that_cannot_be_played_is_refused(ros, tmp_path):
    from eom_dynamics.ros.player import PlayerError, read_setpoint_file

    file = tmp_path / "setpoints.npz"
    for replaced, reason in BAD_FILES:
        np.savez(file, **{name: values for name, values in {**motion(10), **replaced}.items() if values is not None})
        with pytest.raises(PlayerError, match=re.escape(f"setpoints.npz: {reason}")):
            read_setpoint_file(file)
    np.savez(file, **motion(10))
    whole = file.read_bytes()
    for damaged in (b"", whole[:1000], whole[:1000] + b"xyz" + whole[1003:]):
        file.write_bytes(damaged)
        with pytest.raises(PlayerError, match=r"setpoints\.npz.*cannot.*\.npz"):
            read_setpoint_file(file)


def test_a_file_that_does_not_exist_and_one_of_answers_that_does_are_wrong_use(tmp_path, ros):
    kept = tmp_path / "answers.npz"
    kept.write_bytes(b"of yesterday")
    for answers, reason in (
        ("other.npz", "missing.npz: cannot be read"),
        ("answers", "answers.npz: exists already; name another file, or use --force to overwrite it"),
    ):
        code, _, errors = ended("eom_dynamics.ros.player", tmp_path, "missing.npz", answers)
        assert (code, kept.read_bytes()) == (2, b"of yesterday")
        assert reason in errors


def test_probes_that_came_before_the_node_listened_are_not_waited_for(play, other):
    from eom_dynamics.msg import FeedforwardCommand, JointTrajectorySetpoint

    node, _ = other("listens_late")
    publisher = node.create_publisher(FeedforwardCommand, "/listens_late/feedforward", 1000)
    probes = []

    def answer(setpoint):
        probes.append(setpoint)
        if len(probes) > 3:
            zeros = dict.fromkeys(COMMAND_FIELDS, [0.0] * ROBOT.n)
            publisher.publish(FeedforwardCommand(header=setpoint.header, joint_names=NAMES, **zeros))

    node.create_subscription(JointTrajectorySetpoint, "/listens_late/setpoint", answer, 1000)
    patience, started = 30.0, time.monotonic()
    named = SimpleNamespace(namespace="/listens_late")
    arrays = {**motion(10, wrench=False), "joint_names": NAMES}
    code, reports, errors, _ = play(arrays, named, timeout=patience, grace=0.5)
    assert code == 0, errors
    assert reports[-1]["lost"] == 0
    assert time.monotonic() - started < patience

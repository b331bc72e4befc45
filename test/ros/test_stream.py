# SPDX-License-Identifier: Apache-2.0
"""Setpoints in, commands out, over DDS: every number against the closed form, and refusals."""

import time

import numpy as np
import pytest
from iiwa import NAMES, ROBOT, N, assert_close, command
from node_client import frame_of
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.messages.fields import COMMAND_FIELDS, STATE_FIELDS, WRENCH_FIELDS


@pytest.fixture(scope="module")
def default(start_shared):
    """A node with the default quality of service."""
    return start_shared("--params-file", CONFIG / "iiwa.yaml", "-p", "warning_period:=0.0", depth=None)


def test_commands_have_a_depth_of_one_and_setpoints_queue(default):
    depths = dict.fromkeys(("feedforward", "motor_setpoint", "effort_command"), 1)
    for topic, depth in depths.items():
        name = f"qos_overrides.{default.process.namespace}/{topic}.publisher.depth"
        assert default.get_parameter(name) == depth
    for topic, depth in {"setpoint": 1000, "spline_trajectory": 10}.items():
        name = f"qos_overrides.{default.process.namespace}/{topic}.subscription.depth"
        assert default.get_parameter(name) == depth


def test_setpoints_older_than_their_lifespan_are_dropped_and_counted(default):
    before = int(default.next_diagnostics()[2]["dropped as too old"])
    zeros = dict.fromkeys(STATE_FIELDS, np.zeros(N))
    old = default.publish(**zeros)  # of 2023
    default.answers_to(old)
    assert default.set_parameter("setpoint_lifespan", 60.0) == ""
    dropped = default.publish(**zeros)
    level, message, _ = default.wait_for_diagnostics(
        lambda *s: int(s[2]["dropped as too old"]) == before + 1, "the drop"
    )
    assert (level, message.partition(" dropped: ")[2]) == (1, "older than setpoint_lifespan")
    assert "s old, must be at most 60 s (parameter setpoint_lifespan)" in default.process.log
    present = default.publish(seconds=int(time.time()), **zeros)
    default.answers_to(present)
    assert default.set_parameter("setpoint_lifespan", 0.0) == ""
    last = default.publish(**zeros)
    default.answers_to(last)
    assert dropped not in [m.header.stamp.nanosec for m in default.feedforward]


def random_case(rng, *, wrench=False, shuffled=False):
    """Fields of a setpoint, its order of the joints, and the seven quantities of its command by the closed form."""
    state, wrenches = rng.uniform(-2, 2, (5, N)), rng.uniform(-20, 20, (3, 6)) if wrench else ()
    order = rng.permutation(N) if shuffled else np.arange(N)
    fields = {"joint_names": [NAMES[i] for i in order], **dict(zip(STATE_FIELDS, state[:, order], strict=True))}
    rows, _ = command(state, wrenches)
    wanted = {name: row[order] for name, row in zip(COMMAND_FIELDS, rows, strict=True)}
    return fields | (dict(zip(WRENCH_FIELDS, wrenches, strict=True)) if wrench else {}), order, wanted


def assert_answers(client, number, case):
    feedforward, motor_setpoint, effort_command = client.answers_to(number)
    fields, order, wanted = case
    for name, values in wanted.items():
        assert_close(getattr(feedforward, name), values)
    for name in ("position", "velocity", "effort"):
        assert_close(getattr(motor_setpoint, name), wanted[f"motor_{name}"])
    # In the robot's order, whatever the setpoint's is.
    assert_close(np.array(effort_command.data)[order], wanted["motor_effort"])
    for answer in (feedforward, motor_setpoint):
        assert (answer.header.stamp.sec, answer.header.stamp.nanosec) == (1_700_000_000, number)
        assert answer.header.frame_id == frame_of(number)
    assert feedforward.joint_names == motor_setpoint.name == fields["joint_names"]


@pytest.mark.parametrize("wrench", [False, True], ids=["free", "wrench"])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_every_number_is_that_of_the_closed_form(iiwa, rng, wrench, shuffled):
    for _ in range(5):
        case = random_case(rng, wrench=wrench, shuffled=shuffled)
        assert_answers(iiwa, iiwa.publish(**case[0]), case)


def test_a_burst_is_answered_in_order(iiwa, rng):
    cases = [random_case(rng) for _ in range(10)]
    numbers = [iiwa.publish(**cases[i % 10][0]) for i in range(500)]
    iiwa.wait(lambda: any(m.header.stamp.nanosec == numbers[-1] for m in iiwa.feedforward), "the last of the burst")
    answered = [m.header.stamp.nanosec for m in iiwa.feedforward]
    assert answered[answered.index(numbers[0]) :] == numbers
    for i, case in enumerate(cases):
        assert_answers(iiwa, numbers[490 + i], case)


def changed(name, values):
    """A setpoint with one field replaced."""
    return {name_: np.full(N, 0.1) for name_ in STATE_FIELDS} | {"joint_names": NAMES, name: values}


# One of each kind; test/messages has them all.
BAD_SETPOINTS = {
    "length": (changed("position", np.zeros(3)), "position has 3 entries, must have 7"),
    "not finite": (changed("jerk", np.full(N, np.nan)), "jerk[0] (joint 'iiwa_joint_1') is nan"),
    "joint": (changed("joint_names", [*NAMES[:-1], "tool"]), "joint_names[6]: the robot has no joint 'tool'"),
    "overflow": (changed("velocity", np.full(N, 1e200)), "numbers too large: effort"),
}


@pytest.mark.parametrize(("setpoint", "reason"), BAD_SETPOINTS.values(), ids=BAD_SETPOINTS)
def test_a_bad_setpoint_is_refused_and_the_next_one_answered(iiwa, rng, setpoint, reason):
    _, _, before = iiwa.next_diagnostics()
    answered = len(iiwa.feedforward)
    bad = iiwa.publish(**setpoint)
    case = random_case(rng, shuffled=True)
    good = iiwa.publish(**case[0])
    assert_answers(iiwa, good, case)
    assert [m.header.stamp.nanosec for m in iiwa.feedforward[answered:]] == [good]
    assert not any(m.header.stamp.nanosec == bad for m in iiwa.motor_setpoint)
    _, _, after = iiwa.wait_for_diagnostics(
        lambda level, message, values: int(values["received"]) == int(before["received"]) + 2, "both to be counted"
    )
    assert int(after["refused"]) == int(before["refused"]) + 1
    assert int(after["published"]) == int(before["published"]) + 1
    assert after["last refusal"].startswith(reason), after["last refusal"]


def test_refusals_are_logged_once_in_a_period(iiwa):
    def refuse(count, field):
        before = int(iiwa.next_diagnostics()[2]["refused"])
        for _ in range(count):
            iiwa.publish(**changed(field, np.zeros(2)))
        iiwa.wait_for_diagnostics(lambda *s: int(s[2]["refused"]) == before + count, "all refusals to be counted")
        return iiwa.process.log.count(f"setpoint refused: {field} has 2 entries")

    assert iiwa.set_parameter("warning_period", 3600.0) == ""
    assert refuse(51, "position") == 1
    assert iiwa.set_parameter("warning_period", 0.0) == ""
    assert refuse(2, "velocity") == 2
    assert iiwa.set_parameter("warning_period", 1.0) == ""


def test_diagnostics_report_the_stream(iiwa, rng):
    level, _, values = iiwa.wait_for_diagnostics(lambda *s: s[1] == "waiting for setpoints", "a pause")
    assert level == 0
    assert (values["state"], values["robot"], values["joints"]) == ("active", "iiwa", ", ".join(NAMES))
    assert values["backend"] == eom.Dynamics(ROBOT).backend
    assert values["compute time median (us)"] == ""
    status = iiwa.diagnostics[-1].status[0]
    assert (status.name, status.hardware_id) == (
        f"{iiwa.process.namespace[1:]}/{iiwa.process.name}: feedforward",
        f"{iiwa.process.namespace}/{iiwa.process.name}",
    )

    assert iiwa.set_parameter("diagnostic_period", 0.5) == ""
    for level, text, fields in (
        (0, "streaming", random_case(rng)[0]),
        (2, "position has 1", changed("position", [0.0])),
    ):
        start = len(iiwa.diagnostics)

        def found(start=start, level=level, text=text):
            return [
                m for m in iiwa.diagnostics[start:] if m.status[0].level[0] == level and text in m.status[0].message
            ]

        iiwa.repeat(lambda fields=fields: iiwa.publish(**fields), found, text)
        values = {pair.key: pair.value for pair in found()[0].status[0].values}
        assert float(values["rate (Hz)"]) > 0
        assert 0 < float(values["compute time median (us)"]) <= float(values["compute time max (us)"])
        assert 0 < float(values["load (%)"]) < 100
    assert iiwa.set_parameter("diagnostic_period", 0.1) == ""
    iiwa.wait_for_diagnostics(lambda level, message, _: (level, message) == (0, "waiting for setpoints"), "a pause")

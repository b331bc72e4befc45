# SPDX-License-Identifier: Apache-2.0
"""Setpoints and requests in, commands out, over DDS: every number and bit, refusals and their messages."""

import itertools
import re
import time

import numpy as np
import pytest
from iiwa import NAMES, ROBOT, N, assert_close, command
from node_client import EACH_WARNING, ended, frame_of, stamp_of, status_of
from paths import CONFIG, ROOT

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS, STATE_FIELDS, WRENCH_FIELDS

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
ARM = eom.ElasticArm(ROBOT)
GOOD = {name: np.full(N, 0.1) for name in STATE_FIELDS}
RATES = ("", "_rate", "_acceleration")
MATRICES = [f"{name}{rate}" for name in ("mass_matrix", "coriolis_matrix") for rate in RATES]
VECTORS = [f"{name}{rate}" for name in ("gravity_effort", "external_effort") for rate in RATES]


@pytest.fixture(scope="module")
def default(start_shared):
    """A node with the default quality of service."""
    return start_shared(*IIWA, EACH_WARNING, depth=None)


def test_commands_have_a_depth_of_one_and_setpoints_queue(default):
    depths = dict.fromkeys(("feedforward", "motor_setpoint", "effort_command"), 1)
    for topic, depth in depths.items():
        name = f"qos_overrides.{default.process.namespace}/{topic}.publisher.depth"
        assert default.get_parameter(name) == depth
    for topic, depth in {"setpoint": 1000, "spline_trajectory": 10}.items():
        name = f"qos_overrides.{default.process.namespace}/{topic}.subscription.depth"
        assert default.get_parameter(name) == depth


def test_a_publisher_whose_setpoints_are_not_received_is_a_warning_rather_than_none(default):
    """A sensor's quality of service is best effort, which a subscription that is reliable does not hear."""
    from eom_dynamics.msg import JointTrajectorySetpoint
    from rclpy.qos import qos_profile_sensor_data

    text = f"no setpoints of {default.process.namespace}/client are received, by their quality of service (best effort"
    publisher = default.node.create_publisher(JointTrajectorySetpoint, "setpoint", qos_profile_sensor_data)
    level, message, _ = default.wait_for_diagnostics(lambda *status: status[1].startswith(text), text)
    assert level == 1 and f"qos_overrides.{default.process.namespace}/setpoint.subscription.reliability" in message
    default.node.destroy_publisher(publisher)
    default.wait_for_diagnostics(lambda *status: status[1] == "waiting for setpoints", "the end of the publisher")


def test_setpoints_too_old_are_dropped_and_counted(start):
    """A setpoint at rest that was typed up to 60 s ago is commanded without its stamp."""
    node, zeros = start(*IIWA, EACH_WARNING, "-p", "safety:=strict", depth=None), np.zeros((5, N))
    node.publish(zeros)  # of 2023
    level, message, _ = node.wait_for_diagnostics(lambda *s: int(s[2]["dropped as too old"]) == 1, "drop")
    assert (level, message.partition(" dropped: ")[2]) == (1, "too old")
    assert "s old, must be at most 0.5 s: clocks differ, or a process waits on a busy machine" in node.process.log
    node.publish(zeros, seconds=int(time.time()) - 10)
    node.wait(lambda: node.feedforward, "a command")
    assert (stamp_of(node.feedforward[0]), node.feedforward[0].status) == (0, node.feedforward[0].STATUS_FRESH)


def assert_documented(values):
    page = (ROOT / "docs/node_operation.md").read_text("utf-8")
    keys = {re.sub(r"^(in doubt|last refused)\b.*", r"\1", key) for key in values}
    assert keys <= {key.rstrip(":… ") for key in re.findall(r"`([^`]+)`", page.partition("## Diagnostics")[2])}


def test_diagnostics_report_the_stream(iiwa):
    level, _, values = iiwa.wait_for_diagnostics(lambda *s: s[1] == "waiting for setpoints", "a start")
    assert level == 0
    assert (values["state"], values["robot"], values["joints"]) == ("active", "iiwa", ", ".join(NAMES))
    assert values["backend"] == eom.Dynamics(ROBOT).backend
    assert values["compute time median (us)"] == ""
    status = iiwa.diagnostics[-1].status[0]
    assert (status.name, status.hardware_id) == (
        f"{iiwa.process.namespace[1:]}/{iiwa.process.name}: feedforward",
        f"{iiwa.process.namespace}/{iiwa.process.name}",
    )
    iiwa.repeat(lambda: iiwa.publish(**GOOD), lambda: status_of(iiwa.diagnostics[-1])[:2] == (0, "streaming"), "stream")
    values = iiwa.values
    assert float(values["rate (Hz)"]) > 0 and 0 < float(values["load (%)"]) < 100
    assert_documented(values)
    values = iiwa.wait_for_diagnostics(lambda *s: s[1] == "waiting for setpoints", "a pause")[2]
    assert values["compute time median (us)"] == ""


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
    # In the robot's order for any order of the setpoint.
    assert_close(np.array(effort_command.data)[order], wanted["motor_effort"])
    for answer in (feedforward, motor_setpoint):
        assert (answer.header.stamp.sec, answer.header.stamp.nanosec) == (1_700_000_000, number)
        assert answer.header.frame_id == frame_of(number)
    assert feedforward.joint_names == motor_setpoint.name == fields["joint_names"]


def test_every_number_is_that_of_the_closed_form(iiwa, rng):
    for wrench, shuffled in itertools.product((False, True), repeat=2):
        for _ in range(4):
            case = random_case(rng, wrench=wrench, shuffled=shuffled)
            assert_answers(iiwa, iiwa.publish(**case[0]), case)


def test_refusals_are_logged_once_in_a_period(iiwa):
    def refuse(count, field):
        before = int(iiwa.next_diagnostics()[2]["refused"])
        for _ in range(count):
            iiwa.publish(**GOOD | {field: np.zeros(2)})
        iiwa.wait_for_diagnostics(lambda *s: int(s[2]["refused"]) == before + count, "all refusals to be counted")
        return iiwa.process.log.count(f"setpoint refused: {field} has 2 entries")

    begin = time.monotonic()
    for field in ("position", "acceleration"):  # another reason
        found = refuse(51, field)
        assert 1 <= found <= 1 + (time.monotonic() - begin)
    assert_documented(iiwa.values)


# --- Service ----------------------------------------------------------------------------


def test_every_number_of_the_service_is_that_of_the_closed_form(iiwa, rng):
    state, wrench, order = rng.uniform(-2, 2, (5, N)), rng.uniform(-20, 20, (3, 6)), rng.permutation(N)
    state[1] *= 0.6  # within limits
    answer = iiwa.inverse_dynamics(
        state[:, order],
        joint_names=[NAMES[i] for i in order],
        outputs=14,
        **dict(zip(WRENCH_FIELDS, wrench, strict=True)),
    )
    assert (answer.success, answer.message) == (True, "")
    assert answer.joint_names == [NAMES[i] for i in order]
    wanted, equations = command(state, wrench)
    for name, values in zip(COMMAND_FIELDS, wanted, strict=True):
        assert_close(getattr(answer, name), values[order])
    for k, rate in enumerate(RATES):
        for name, matrix in (("mass_matrix", equations.M[k]), ("coriolis_matrix", equations.C[k])):
            # Row after row, rows and columns both in the order of the request.
            assert_close(getattr(answer, name + rate), [matrix[i, j] for i in order for j in order])
        assert_close(getattr(answer, f"gravity_effort{rate}"), equations.gravity[k][order])
        assert_close(getattr(answer, f"external_effort{rate}"), equations.external[k][order])


def test_a_refused_request_says_why_and_is_not_counted_as_a_setpoint(iiwa):
    _, _, before = iiwa.next_diagnostics()
    answer = iiwa.inverse_dynamics(outputs=14)
    assert not answer.success and answer.message.startswith("position has 0 entries, must have 7 for each sample")
    assert all(len(getattr(answer, name)) == 0 for name in (*COMMAND_FIELDS, *MATRICES, *VECTORS))
    whole, left_out = GOOD | dict.fromkeys(STATE_FIELDS[3:], np.zeros(N)), {x: GOOD[x] for x in STATE_FIELDS[:3]}
    answer = iiwa.inverse_dynamics(**left_out)
    assert answer.success and answer == iiwa.inverse_dynamics(**whole)
    assert all(len(getattr(answer, name)) == 0 for name in (*MATRICES, *VECTORS))
    _, _, after = iiwa.next_diagnostics()
    for count in ("received", "published", "refused", "ignored while not active"):
        assert after[count] == before[count]
    assert "Traceback" not in iiwa.process.log


# --- Compiled call ----------------------------------------------------------------------


def of_library(state):
    return dict(zip(COMMAND_FIELDS, ARM.feedforward(*state), strict=True))


def test_topics_that_nobody_hears_are_heard_again(iiwa, rng):
    """The only subscription of a topic ends and starts again; it receives the later setpoints."""
    from std_msgs.msg import Float64MultiArray

    def end(subscription):
        iiwa._subscriptions.remove(subscription)
        iiwa.node.destroy_subscription(subscription)
        topic = f"{iiwa.process.namespace}/effort_command"
        iiwa.wait(lambda: not iiwa.node.count_subscribers(topic), "the end of the subscription")

    end(next(x for x in iiwa._subscriptions if x.topic_name.endswith("/effort_command")))
    for state in rng.uniform(-1, 1, (2, 5, 7)):
        iiwa.publish(state)
        iiwa.effort_command = heard = iiwa.collect(Float64MultiArray, "effort_command")
        wanted = of_library(state)["motor_effort"].tobytes()
        iiwa.repeat(
            lambda state=state: iiwa.publish(state),
            lambda heard=heard, wanted=wanted: heard and heard[-1].data.tobytes() == wanted,
            "the effort command",
        )
        end(iiwa._subscriptions[-1])


def test_the_callback_allocates_nothing_that_stays_and_logs_nothing(ros, tmp_path):
    program = f"""
import gc, time, tracemalloc
import numpy as np, rclpy
from rclpy.serialization import serialize_message
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.control.fields import doubles
from eom_dynamics.ros.dynamics.node import DynamicsNode
from eom_dynamics.ros.interfaces import JointTrajectorySetpoint
from eom_dynamics.ros.executors import StopSignals
rclpy.init(args=["--ros-args", "--params-file", {str(CONFIG / "iiwa.yaml")!r}, "-p", "setpoint_timeout:=0.5",
    "-p", "safety:=permissive"])
node = DynamicsNode(StopSignals())
node.start_up()
stream = node._stream
messages = []
for k in range(20):
    setpoint = JointTrajectorySetpoint()
    setpoint.header.stamp.sec = k + 1
    for field in STATE_FIELDS:
        setattr(setpoint, field, doubles(np.full(7, 0.01 * k)))
    messages.append(serialize_message(setpoint))
def play(rounds):
    for _ in range(rounds):
        for message in messages:
            stream.answer_bytes(message)
        stream.statistics._times.clear()  # as once in a diagnostic period
play(60)  # Python 3.10 allocates a cache for each function that was called 1,024 times
assert stream._shapes.calls, "no compiled call"
gc.collect()
tracemalloc.start()
play(10)
before = tracemalloc.get_traced_memory()[0]
play(150)
print(tracemalloc.get_traced_memory()[0] - before, stream.statistics.published)
import os, sys
sys.stdout.flush()
os._exit(0)
"""
    code, printed, errors = ended("eom_dynamics.ros.dynamics_node", tmp_path, patch=program)
    assert code == 0, errors
    growth, published = map(int, printed.split())
    assert published == 220 * 20
    assert growth < 1024  # less than a byte a message
    lines = [line for line in errors.splitlines() if "control_msgs" not in line]
    assert len(lines) == 5  # the robot in two lines, its watchdog and two transitions: nothing of the stream

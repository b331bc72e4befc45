# SPDX-License-Identifier: Apache-2.0
"""Several dynamics nodes: in one process each has its own robot and state; a second one for the same motors waits."""

import signal

import numpy as np
import pytest
from composed import Composed
from node_client import StreamClient, ended
from paths import CONFIG

import eom_dynamics as eom
from eom_dynamics.control.fields import COMMAND_FIELDS

HELD, STOPPING = 1, 2
ROBOTS = {"/composed_left": "iiwa", "/composed_right": "sea_planar_2r"}


@pytest.fixture(scope="module")
def composed(ros, tmp_path_factory):
    slowly = ("-p", "stream_rate:=250.0")
    arguments = {space: ("--params-file", str(CONFIG / f"{name}.yaml"), *slowly) for space, name in ROBOTS.items()}
    process = Composed(tmp_path_factory.mktemp("composed"), arguments)
    clients = [StreamClient(ros, node) for node in process.nodes.values()]
    for client in clients:
        client.wait_for_node()
    yield process, clients
    process.end()
    for client in clients:
        client.close()


def test_each_node_has_its_own_robot_state_and_diagnostics(composed):
    _, clients = composed
    for client, name in zip(clients, ROBOTS.values(), strict=True):
        client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "activation")
        robot = eom.load_robot(CONFIG / f"{name}.yaml")
        state = 0.1 * np.arange(1, 5 * robot.n + 1).reshape(5, robot.n)
        answer = client.answers_to(client.publish(state))[0]
        wanted = eom.ElasticArm(robot).feedforward(*state)
        for field, values in zip(COMMAND_FIELDS, wanted, strict=True):
            assert np.array_equal(getattr(answer, field), values), field
    left, right = clients
    assert [client.next_diagnostics()[2]["robot"] for client in clients] == list(ROBOTS.values())
    assert [client.next_diagnostics()[2]["received"] for client in clients] == ["1", "1"]

    assert left.set_parameter("setpoint_lifespan", 0.5) == ""
    assert right.get_parameter("setpoint_lifespan") == 0.0
    assert left.set_parameter("setpoint_lifespan", 0.0) == ""
    assert left.transition("deactivate")
    assert (left.state, right.state) == ("inactive", "active")
    assert right.next_diagnostics()[0] == 0
    # Refusals are counted where they happen.
    right.publish(position=np.zeros(3))
    right.wait_for_diagnostics(lambda *s: s[2]["refused"] == "1", "the refusal")
    assert left.next_diagnostics()[2]["refused"] == "0"
    assert left.transition("activate")


def test_the_stop_of_one_arm_leaves_the_stream_of_another_unaffected(composed):
    process, (left, right) = composed
    for client in (left, right):
        client.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "activation")
    assert (
        left.transition("deactivate") and not left.set_parameter("stop_duration", 2.0) and left.transition("activate")
    )
    left.answers_to(left.publish(np.full((5, 7), 0.1)))
    answer = left.begin_transition("deactivate")
    left.wait(lambda: left.feedforward[-1].status == STOPPING, "the stop")
    for _ in range(5):
        right.answers_to(right.publish(np.full((5, 2), 0.1)))
    left.spin()
    assert not answer.done()
    left.wait(answer.done, "the deactivation")
    assert answer.result().success
    left.wait(lambda: not np.any(left.feedforward[-1].effort), "the last command")
    assert left.feedforward[-1].status == HELD
    process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(30) == 0
    assert "Traceback" not in process.log


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["-r", "__ns:=/a"], 2, "arguments of a node follow --node, but -r comes first; see --help"),
        (["--node", "--node"], 1, "two nodes have the name /eom_dynamics: give each a namespace, such as -r __ns:="),
        (["--node", "--node", "--bad"], 1, "node 2 (--node --bad): unknown arguments; see --help"),
        (["--node", "-r", "__ns:=b c"], 1, "node 1 (--node -r __ns:=b c): Failed to parse ROS arguments"),
        (["--node", "--node", "-p", "limits:=x"], 1, "node 2 (--node -p limits:=x): Invalid parameter value (x)"),
    ],
)
def test_wrong_arguments(ros, tmp_path, arguments, code, reason):
    exit_code, output, errors = ended("eom_dynamics.ros.dynamics_nodes", tmp_path, *arguments)
    last = errors.splitlines()[-1]
    assert (exit_code, output) == (code, "")
    assert last.startswith("dynamics_nodes: ") and reason in last
    assert "Traceback" not in errors


IIWA = ("--params-file", CONFIG / "iiwa.yaml")
STRICT = ("-p", "allow_other_publishers:=false")

# On a busy machine, nodes may need more than half a second to meet.
PATIENT = "from eom_dynamics.ros import dynamics_node\ndynamics_node._DISCOVERY = 60.0\n"


def test_a_second_node_for_the_same_motors_is_not_activated(start):
    first = start(*IIWA, *STRICT)
    second = start("-p", "robot_file:=iiwa", "-p", "autostart:=false", *STRICT, beside=first.process, patch=PATIENT)
    assert second.transition("configure") and not second.transition("activate")
    level, message, _ = second.wait_for_diagnostics(lambda *s: s[2]["state"] == "inactive", "a refusal")
    topics = [f"{first.process.namespace}/{x}" for x in ("feedforward", "motor_setpoint", "effort_command")]
    assert level == 2
    for text in (f"not activated: {first.process.namespace}/{first.process.name} publishes on", *topics):
        assert text in message and text in second.process.log
    assert "allow_other_publishers" in message
    # The first one reports the second, whose publishers are there, and answers each setpoint once.
    first.wait_for_diagnostics(lambda *s: second.process.name in s[1] and s[0] == 2, "a report")
    assert f"{second.process.name} publishes on" in first.process.log
    first.motor_setpoint.clear()
    numbers = [first.publish(np.zeros((5, 7))) for _ in range(3)]
    first.answers_to(numbers[-1])
    first.spin(0.3)
    assert [message.header.stamp.nanosec for message in first.motor_setpoint] == numbers
    # Not for ever, and not against the user's will.
    assert not second.transition("activate")
    assert second.set_parameter("allow_other_publishers", True) == ""
    assert second.transition("activate")
    assert second.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "activation")[0] == 0
    first.publish(np.zeros((5, 7)))
    first.wait(lambda: len(first.motor_setpoint) == 5, "the answers of both")
    second.process.end()
    first.wait_for_diagnostics(lambda *s: s[0] == 0, "one node alone")

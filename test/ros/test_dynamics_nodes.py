# SPDX-License-Identifier: Apache-2.0
"""Several dynamics nodes in one process: each has its own robot, names, parameters, state and diagnostics."""

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
    """Process and clients."""
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

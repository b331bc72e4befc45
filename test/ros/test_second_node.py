# SPDX-License-Identifier: Apache-2.0
"""One of two dynamics nodes for the same motors is active; the second waits."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from paths import CONFIG
from sensor_msgs.msg import JointState

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
STRICT = ("-p", "allow_other_publishers:=false")

PATIENT = {"dynamics.rivals._DISCOVERY": 60.0}
"""Constants of a node that discovers others before it is activated, also on a busy machine."""

QUICK = {"dynamics.rivals._PATIENCE": 0.5, "dynamics.rivals._SILENCE": 1.0}
"""Constants of a node that does not wait for long for the diagnostics of others, here ten a second."""


def names_of_active(first, second):
    """Names of the active nodes, by their diagnostics."""
    return [x.process.name for x in (first, second) if x.values["state"] == "active"]


def assert_answered_once(client):
    client.motor_setpoint.clear()
    numbers = [client.publish(np.zeros((5, 7))) for _ in range(3)]
    client.answers_to(numbers[-1])
    client.spin(0.3)
    assert [message.header.stamp.nanosec for message in client.motor_setpoint] == numbers


def test_a_second_node_for_the_same_motors_is_not_activated(start):
    first = start(*IIWA, *STRICT)
    second = start("-p", "robot_file:=iiwa", "-p", "autostart:=false", *STRICT, PATIENT, beside=first.process)
    second.join(first)
    assert second.transition("configure") and not second.transition("activate")
    level, message, _ = second.wait_for_diagnostics(lambda *s: s[2]["state"] == "inactive", "a refusal")
    topics = [f"{first.process.namespace}/{x}" for x in ("feedforward", "motor_setpoint", "effort_command")]
    assert level == 2
    for text in (f"not activated: {first.process.namespace}/{first.process.name} publishes on", *topics):
        assert text in message and text in second.process.log
    assert "allow_other_publishers" in message
    # The first node does not report a node without commands.
    assert first.next_diagnostics()[0] == 0
    assert_answered_once(first)
    # Not for ever, and not against the user's will.
    assert not second.transition("activate")
    assert second.set_parameter("allow_other_publishers", True) == ""
    assert second.transition("activate")
    assert second.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "activation")[0] == 0
    first.wait_for_diagnostics(lambda *s: second.process.name in s[1] and s[0] == 2, "a report")
    assert f"two nodes command the same motors: {second.process.namespace}/{second.process.name}" in first.process.log
    first.publish(np.zeros((5, 7)))
    first.wait(lambda: len(first.motor_setpoint) == 5, "the answers of both")
    second.process.end()
    first.wait_for_diagnostics(lambda *s: s[0] == 0, "one node alone")


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_one_of_two_nodes_that_start_together_is_active_and_the_other_one_waits_for_its_end(start, delay):
    first = start(*IIWA, *STRICT, discovered=False)
    first.spin(delay)
    second = start(*IIWA, *STRICT, beside=first.process, discovered=False)
    second.join(first)
    for client in (first, second):
        client.wait_for_node()
    nodes = {x.process.name: x for x in (first, second)}

    def settled():
        states = sorted(x.values["state"] for x in nodes.values())
        waiting = [x for x in nodes.values() if "not activated: " in x.diagnostics[-1].status[0].message]
        return states == ["active", "inactive"] and len(waiting) == 1

    first.wait(settled, "one active node")
    first.spin(1.0)
    assert settled()
    (winner,) = names_of_active(first, second)
    (loser,) = {*nodes} - {winner}
    assert_answered_once(nodes[winner])
    # No other node becomes active while a person has switched the first node off.
    assert nodes[winner].transition("deactivate")
    nodes[loser].spin(1.5)
    assert nodes[loser].next_diagnostics()[2]["state"] == "inactive"
    nodes[winner].process.end()
    first, second = nodes[loser], nodes[winner]
    first.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "the end of the other node")


def test_a_node_that_hung_while_another_one_started_goes_on_and_the_other_one_gives_way(start):
    first = start(*IIWA, *STRICT)
    first.process.process.send_signal(signal.SIGSTOP)
    try:
        second = start(*IIWA, *STRICT, QUICK, beside=first.process, discovered=False)
        second.wait_for_diagnostics(lambda *s: s[2]["state"] == "active", "activation although another node hangs")
        second.join(first)
        state = np.zeros((5, 7))
        state[1] = 0.1
        second.publish(state)
        second.wait(lambda: second.motor_setpoint, "a command")
    finally:
        first.process.process.send_signal(signal.SIGCONT)
    second.wait_for_diagnostics(lambda *s: s[2]["state"] == "inactive", "the end of two nodes")
    assert "gives way to the node that was activated before" in second.process.log
    assert "last command: positions are held, velocities are zero" in second.process.log
    assert first.next_diagnostics()[2]["state"] == "active"
    assert_answered_once(first)


def test_publishers_that_are_no_dynamics_nodes_bar_activation_until_they_end(start):
    first = start(*IIWA, *STRICT, QUICK, "-p", "autostart:=false", discovered=False)
    publisher = first.node.create_publisher(JointState, "motor_setpoint", 1)
    first.wait(lambda: publisher.get_subscription_count() or first.diagnostics, "the node")
    assert first.transition("configure") and not first.transition("activate")
    message = first.wait_for_diagnostics(lambda *s: s[2]["state"] == "inactive", "a refusal")[1]
    assert f"not activated: {first.process.namespace}/client publishes on " in message
    first.node.destroy_publisher(publisher)
    first.wait(lambda: first.transition("activate"), "activation")


FIRST_NODE = """
import sys, time
from rclpy.node import Node
from eom_dynamics.ros import dynamics_node

def create(self, name, **options):
    if name == "eom_dynamics":
        sys.exit()
    print(name, sorted({"numpy", "eom_dynamics.ros.dynamics.node"} & set(sys.modules)))
    given(self, name, **options)

given, Node.__init__ = Node.__init__, create
dynamics_node.main(["dynamics_node"])
"""


def test_a_process_discovers_others_while_it_imports_the_code_of_its_node(ros):
    ended = subprocess.run([sys.executable, "-c", FIRST_NODE], check=True, capture_output=True, text=True)
    assert ended.stdout == "_discovery []\n"


@pytest.mark.parametrize(("before", "left"), [(0.0, 0.5), (0.3, 0.2), (5.0, 0.1)])
def test_time_of_discovery_counts_from_its_start_and_from_topics(ros, monkeypatch, before, left):
    from eom_dynamics.ros.dynamics import node, rivals

    with monkeypatch.context() as patch:
        patch.setattr(rivals.time, "monotonic", lambda: 1000.0)
        made = node.DynamicsNode(
            SimpleNamespace(came=False), 1000.0 - before, cli_args=["--ros-args", "-r", "__ns:=/early"]
        )
        assert made.rivals.discovered == pytest.approx(1000.0 + left)
    made.destroy_node()

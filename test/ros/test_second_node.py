# SPDX-License-Identifier: Apache-2.0
"""A second dynamics node for the same motors waits."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from paths import CONFIG

IIWA = ("--params-file", CONFIG / "iiwa.yaml")
STRICT = ("-p", "allow_other_publishers:=false")

# On a busy machine, nodes may need more than half a second to meet.
PATIENT = {"dynamics.node._DISCOVERY": 60.0}


def test_a_second_node_for_the_same_motors_is_not_activated(start):
    first = start(*IIWA, *STRICT)
    second = start("-p", "robot_file:=iiwa", "-p", "autostart:=false", *STRICT, PATIENT, beside=first.process)
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
    from eom_dynamics.ros.dynamics import node

    with monkeypatch.context() as patch:
        patch.setattr(node.time, "monotonic", lambda: 1000.0)
        made = node.DynamicsNode(
            SimpleNamespace(came=False), 1000.0 - before, cli_args=["--ros-args", "-r", "__ns:=/early"]
        )
        assert made._discovered == pytest.approx(1000.0 + left)
    made.destroy_node()

# SPDX-License-Identifier: Apache-2.0
"""A second dynamics node for the same motors waits."""

import numpy as np
from paths import CONFIG

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

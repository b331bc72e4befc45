# SPDX-License-Identifier: Apache-2.0
"""Payloads for planning: the request's, or else the payloads of the topic ``payload``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...arrays import Array
from ...control.setpoint_to_command import refusal_reason
from ...control.spatial import read_payload
from ...dynamics import Dynamics
from ...elastic import DriveCommand, ElasticArm, Feedforward
from ...exceptions import StateError
from ...robot import Robot
from ...robot.payload import payload_parameters, payload_shape, with_parameters
from ...terminal import printable
from ..diagnostics import payload_values
from ..interfaces import Payload, stream_qos
from ..robot_node import RobotNode

# Payloads change seldom, and are few.
_DEPTH = 100


class CarriedPayloads:
    """Subscriber of the topic ``payload``; adds payloads to arms.

    Attributes:
        arm: the arm without payloads, or None.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self.arm: ElasticArm | None = None
        self._at_tools: dict[int, Payload] = {}
        node.create_subscription(Payload, "payload", self._receive, **stream_qos(_DEPTH, kept=True))

    def begin(self, arm: ElasticArm) -> None:
        """Take a new arm, without any payload; warn if there was one."""
        if any(message.inertia.m for message in self._at_tools.values()):
            self._node.get_logger().warning("the new robot begins without the payload of the one before: set it again")
        self.arm, self._at_tools = arm, {}

    def loaded(self, arm: ElasticArm, payloads: Sequence[Payload]) -> ElasticArm:
        """The arm with the payloads of a request, or else of the topic."""
        if len(payloads) > _DEPTH:
            raise StateError(f"payload has {len(payloads)} entries, may have {_DEPTH}")
        carried = map(read_payload, payloads or tuple(self._at_tools.values()))
        parameters = payload_parameters(arm.robot, list(carried))
        return _with_payloads(arm, parameters.tobytes()) if np.any(parameters) else arm

    def report(self) -> dict[str, str]:
        """Payloads as values for diagnostics."""
        tools = self.arm.robot.tools if self.arm else ()
        masses = {tools[k].name: message.inertia.m for k, message in self._at_tools.items()}
        return payload_values(masses)

    def _receive(self, message: Payload) -> None:
        try:
            if self.arm is None:
                raise StateError("there is no robot yet")
            tool, _ = read_payload(message).at_tool(self.arm.robot)
            self._at_tools = {**self._at_tools, tool: message}
        except Exception as error:
            self._node.refuse("payload", printable(refusal_reason(error)))


class _LoadedDynamics(Dynamics):
    def __init__(self, dynamics: Dynamics, robot: Robot, payload: list[Array]) -> None:
        self.robot, self.order, self.backend, self._functions = robot, dynamics.order, "numpy", {}
        self._dynamics, self._payload = dynamics, payload

    def forward_dynamics(self, *states: Any, **options: Any) -> Array:
        return self._dynamics.forward_dynamics(*states, **options, payload=self._payload)


class _LoadedArm(ElasticArm):
    """An arm with payloads of these parameters: a compiler takes seconds, which no new payload may cost.

    Feedforward and forward dynamics are compiled code of the arm without payloads, which takes them as an input, and
    its springs and motors are that arm's; all else is in arrays, at first use. For carried rotors, only their presence
    matters here: their own dynamics, for simulation, are those without payloads.
    """

    def __init__(self, arm: ElasticArm, parameters: Array) -> None:
        self._arm, self._payload = arm, [parameters]
        self.robot, self.backend = with_parameters(arm.robot, parameters), "numpy"
        self._functions, self.calls = {}, {}
        self.dynamics = _LoadedDynamics(arm.dynamics, self.robot, self._payload)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._arm, name)

    def feedforward(self, *states: Any, **options: Any) -> Feedforward:
        return self._arm.feedforward(*states, **options, payload=self._payload)

    def drive_command(self, command: Feedforward, *states: Any, **options: Any) -> DriveCommand:
        return self._arm.drive_command(command, *states, **options, payload=self._payload)


@lru_cache(maxsize=8)
def _with_payloads(arm: ElasticArm, parameters: bytes) -> ElasticArm:
    return _LoadedArm(arm, np.frombuffer(parameters).reshape(payload_shape(arm.robot)))

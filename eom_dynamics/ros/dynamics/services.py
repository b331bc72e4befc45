# SPDX-License-Identifier: Apache-2.0
"""Services ``~/inverse_dynamics``, the command for one state, and ``~/set_payload``, with the topic ``payload``."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile

from ...control.fields import write
from ...control.robot_table import RobotTable
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import SetpointEvaluator, matrices, refusal_reason
from ...control.spatial import read_payload
from ...elastic.limit_violations import summary
from ...exceptions import EomDynamicsError, StateError
from ...terminal import printable
from ..diagnostics import payload_values
from ..executors import Worker
from ..interfaces import Payload, srv, stream_qos
from ..robot_node import RobotNode

# For bursts of many clients, or of one that does not wait for answers.
SERVICE_QOS = QoSProfile(depth=1000)


def serve_inverse_dynamics(
    node: RobotNode, evaluator: Callable[[], SetpointEvaluator], limit_policy: Callable[[], str]
) -> None:
    """Create the service ``~/inverse_dynamics``; refused requests do not affect the stream.

    Args:
        evaluator: returns the current evaluator; raises StateError if requests cannot be answered now.
        limit_policy: returns one of LIMIT_POLICIES; efforts of an answer are never clipped.
    """

    def answer(request: Any, response: Any) -> Any:
        try:
            current, policy = evaluator(), limit_policy()
            if request.include_matrices and len(request.base):
                raise StateError("include_matrices: the matrices are those of a base at rest; leave base empty")
            policy = "warn" if policy == "clip" else policy
            command = current.evaluate(request, optional=("jerk", "snap"), limit_policy=policy)
            fields = command.fields()
            if request.include_matrices:
                fields |= matrices(current, command)
            write(response, list(fields), list(fields.values()))
            response.joint_names, response.motor_names = command.order.names, command.order.motor_names
            if command.violations:
                response.message = f"exceeds limits: {summary(command.violations)}"
            response.success = True
        except StateError as error:
            response = srv.ComputeInverseDynamics.Response(message=str(error))
            node.warn("request refused", str(error))
        except Exception as error:
            response = srv.ComputeInverseDynamics.Response(message=refusal_reason(error))
            node.get_logger().error(f"request failed:\n{traceback.format_exc()}")
        return response

    node.create_service(srv.ComputeInverseDynamics, "~/inverse_dynamics", answer, qos_profile=SERVICE_QOS)


# Payloads change seldom.
_DEPTH = 100


class PayloadTopic:
    """Subscriber and server; all methods are called by the node's executor.

    Code that takes payloads is compiled in a thread when the first one comes, and later ones wait for it in order.

    Attributes:
        last_refusal: why the last refused payload was refused.
    """

    def __init__(self, node: RobotNode, loop: Callable[[], SetpointLoop]) -> None:
        self._node, self._loop = node, loop
        self._worker = Worker(node, "payload")
        # Of the robot whose code is there.
        self._prepared: RobotTable | None = None
        self._waiting: list[Payload] = []
        self.last_refusal = ""
        node.create_subscription(Payload, "payload", self._receive, **stream_qos(_DEPTH, kept=True))
        node.create_service(srv.SetPayload, "~/set_payload", self._answer, qos_profile=SERVICE_QOS)

    def report(self) -> dict[str, str]:
        """Payloads at the tools, as values for diagnostics."""
        try:
            loop = self._loop()
        except StateError:
            return {}
        tools = [tool.name for tool in loop.arm.robot.tools]
        values = payload_values(dict(zip(tools, loop.evaluator.payload[:, 0], strict=True)), self.last_refusal)
        if self._waiting:
            values["payload"] = "is compiled for the first time"
        elif "payload" in values and loop.loop.number("blending"):
            values["payload"] += "; changing"
        return values

    def _receive(self, message: Payload) -> None:
        self._answer(srv.SetPayload.Request(payload=message), srv.SetPayload.Response())

    def _answer(self, request: srv.SetPayload.Request, response: srv.SetPayload.Response) -> srv.SetPayload.Response:
        try:
            response.message = self._take(request.payload)
            response.success = True
        except Exception as error:
            response.message = self._refuse(error)
        return response

    def _take(self, message: Payload) -> str:
        """Use a payload from the next setpoint on, or once its code is there; return what it waits for."""
        loop = self._loop()
        payload, table = read_payload(message), loop.loop.table
        if table is self._prepared and not self._waiting:
            loop.carry(payload, message.blend_time)
            return ""
        loop.check(payload, message.blend_time)
        if len(self._waiting) >= _DEPTH:
            raise StateError(f"{_DEPTH} others wait for the compilation of their code")
        self._waiting.append(message)
        if len(self._waiting) == 1:
            self._worker.submit(partial(_prepare, loop), lambda error: self._ready(table, error))
        return "takes effect when its code is compiled, about a second for the first payload of a robot"

    def _ready(self, table: RobotTable, error: Exception | None) -> None:
        """Use the payloads that have waited for their code."""
        waiting, self._waiting = self._waiting, []
        if error is not None:
            self._refuse(error)
            return
        self._prepared = table
        for message in waiting:
            self._receive(message)

    def _refuse(self, error: Exception) -> str:
        """Log and report a refused payload; return the reason."""
        reason = self.last_refusal = printable(refusal_reason(error))
        detail = "" if isinstance(error, EomDynamicsError) else "\n" + "".join(traceback.format_exception(error))
        self._node.warn("payload refused", reason.removeprefix("payload: ") + detail)
        return reason


def _prepare(loop: SetpointLoop) -> None:
    """Compile what takes payloads, in the stream and in services; runs in the worker's thread."""
    loop.loop.table.prepare_payload()
    loop.evaluator.prepare_payload()

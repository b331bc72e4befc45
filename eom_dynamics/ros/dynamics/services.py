# SPDX-License-Identifier: Apache-2.0
"""Services ``~/inverse_dynamics``, feedforward of a few states, and ``~/set_payload``; topic ``payload``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import Vector3
from rclpy.qos import QoSProfile

from ...arrays import unit
from ...control.observed_payload import ObservedPayload
from ...control.robot_table import RobotTable
from ...control.setpoint_loop import SetpointLoop
from ...control.setpoint_to_command import SetpointEvaluator
from ...control.spatial import read_payload
from ...exceptions import StateError
from ...terminal import printable
from ..diagnostics import payload_values
from ..executors import LateAnswers, Worker
from ..interfaces import Payload, srv, stream_qos
from ..inverse_dynamics import answer_inverse_dynamics
from ..loaded_arm import MAX_PAYLOADS, loaded_arm, request_payload
from ..robot_node import RobotNode
from .contact_topics import ContactTopics
from .measured_arm import MeasuredArm

# For bursts of requests, by many clients or by one that does not wait for answers.
SERVICE_QOS = QoSProfile(depth=1000)


def serve_inverse_dynamics(node: RobotNode, evaluator: Callable[[], SetpointEvaluator]) -> None:
    """Create the service ``~/inverse_dynamics``, computed in a thread; requests do not affect the stream.

    Args:
        evaluator: returns the current evaluator; raises StateError if requests cannot be answered now.
    """
    worker, kind = Worker(node, "inverse dynamics"), srv.ComputeInverseDynamics

    def answer(request: Any, response: Any) -> Any:
        try:
            current = evaluator()
            arm, payload = current.arm, current.payload.copy()
            if request.payload:
                payload = request_payload(arm, request.payload)
        except Exception as error:
            response.message = node.refuse("request", error)
            return response
        send = answers.later(response)

        def done(result: Any) -> None:
            is_refused = isinstance(result, Exception)
            send(kind.Response(message=node.refuse("request", result)) if is_refused else result)

        worker.submit(lambda: answer_inverse_dynamics(loaded_arm(arm, payload), request, beside_stream=True), done)
        return response

    answers = LateAnswers(node.create_service(kind, "~/inverse_dynamics", answer, qos_profile=SERVICE_QOS))


class PayloadTopic:
    """Subscriber and server; all methods are called by the node's executor.

    The first payload compiles code for payloads in a thread; later payloads wait for it in order.

    Args:
        measured: positions of the joints, used to judge a payload while nothing is commanded.
        go_on: runs cycles of a resting arm while efforts blend to the payload.
    """

    def __init__(
        self,
        node: RobotNode,
        loop: Callable[[], SetpointLoop],
        contact: ContactTopics,
        measured: MeasuredArm,
        go_on: Callable[[], None],
    ) -> None:
        self._node, self._loop, self._contact, self._measured, self._go_on = node, loop, contact, measured, go_on
        self._worker = Worker(node, "payload")
        # Payload code of the loaded robot.
        self._prepared: RobotTable | None = None
        self._waiting: list[tuple[Payload, Any, Callable[..., None]]] = []
        # Last message of each tool before there is a robot.
        self._early: dict[str, Payload] = {}
        node.create_subscription(Payload, "payload", self._receive, **stream_qos(MAX_PAYLOADS, latched=True))
        service = node.create_service(srv.SetPayload, "~/set_payload", self._answer, qos_profile=SERVICE_QOS)
        self._answers = LateAnswers(service)

    def begin(self) -> None:
        """Take the payloads that have arrived before the robot."""
        early, self._early = self._early, {}
        for message in early.values():
            self._receive(message)

    def report(self) -> dict[str, str]:
        """Payloads at the tools, as values for diagnostics."""
        try:
            loop = self._loop()
        except StateError:
            return {}
        tools = [tool.name for tool in loop.arm.robot.tools]
        values = payload_values(dict(zip(tools, loop.evaluator.payload[:, 0], strict=True)))
        if self._waiting:
            values["payload"] = "is compiled for the first time"
        elif "payload" in values and (record := loop.record).blending and record.valid:
            values["payload"] += "; changing"
        return values

    def _receive(self, message: Payload) -> None:
        if self._node.arm is None and len(self._early) < MAX_PAYLOADS:
            self._early[message.tool] = message
        else:
            self._take(message, srv.SetPayload.Response(), lambda: None)

    def _answer(self, request: srv.SetPayload.Request, response: srv.SetPayload.Response) -> srv.SetPayload.Response:
        if request.estimate:
            return self._estimate(request, response)
        self._take(request.payload, response, self._answers.later(response))
        return response

    def _estimate(self, request: srv.SetPayload.Request, response: srv.SetPayload.Response) -> srv.SetPayload.Response:
        """Answer with the payload that explains external efforts, once the worker's thread has computed it."""
        try:
            job, arm = self._contact.proposal(request.payload.tool, request.duration), self._loop().arm
        except StateError as error:
            response.message = self._node.refuse("payload", error)
            return response
        answer = self._answers.later(response)

        def done(estimate: ObservedPayload | Exception) -> None:
            try:
                if self._loop().arm is not arm:
                    raise StateError("the robot was replaced during the request: ask again")
                self._write_estimate(estimate, response)
                response.success = True
            except Exception as error:
                response.message = self._node.refuse("payload", error)
            answer()

        self._worker.submit(job, done)
        return response

    def _write_estimate(self, estimate: ObservedPayload | Exception, response: srv.SetPayload.Response) -> None:
        if isinstance(estimate, Exception):
            raise estimate
        message, response.message, robot = response.payload, printable(str(estimate)), self._loop().arm.robot
        shares, response.unexplained = estimate.unexplained / estimate.thresholds, estimate.unexplained.tolist()
        worst = int(np.argmax(shares))
        if shares[worst] > 1:
            left = f"{estimate.unexplained[worst]:.3g} {unit('effort', robot.independent_joints[worst].type)}"
            threshold = f"the threshold of contact, {estimate.thresholds[worst]:.3g}"
            response.message += f"; it leaves {left} at {printable(robot.joint_names[worst])}, more than {threshold}"
        if not np.isfinite(estimate.thresholds).any():
            response.message += "; no check of its fit: the file has no effort_spread"
        if not robot.uncertainty.mass:
            response.message += "; without errors of the arm's masses: its file has no uncertainty.mass"
        message.tool, message.inertia.m = estimate.payload.tool, estimate.payload.mass
        response.undetermined, response.mass_deviation = (
            [Vector3() for _ in estimate.undetermined],
            estimate.mass_deviation,
        )
        vectors = (message.inertia.com, response.center_deviation, *response.undetermined)
        rows = (estimate.payload.center_of_mass, estimate.center_deviation, *estimate.undetermined)
        for vector, row in zip(vectors, rows, strict=True):
            vector.x, vector.y, vector.z = map(float, row)
        if shares[worst] > 1:
            raise StateError(
                f"not explained: {response.message}; rest without contact, and ask for the time since then"
            )
        if len(estimate.undetermined):
            raise StateError(f"not determined: {response.message}; turn the tool, and ask again")

    def _take(self, message: Payload, response: Any, answer: Callable[..., None]) -> None:
        """Take a payload, at once or when its code has been compiled, and answer whether the arm carries it."""
        try:
            loop = self._loop()
            payload, table = read_payload(message), loop.loop.table
            if table is not self._prepared or self._waiting:
                loop.check(payload, message.blend_time)
                if len(self._waiting) >= MAX_PAYLOADS:
                    raise StateError(f"{MAX_PAYLOADS} others wait for the compilation of their code")
                self._waiting.append((message, response, answer))
                if len(self._waiting) == 1:
                    self._worker.submit(partial(_prepare, loop), lambda error: self._ready(table, error))
                return
            self._measured.locate(loop)
            loop.carry(payload, message.blend_time, None if loop.record.valid else self._measured.position)
            self._contact.forget()
            self._go_on()
            response.success = True
        except Exception as error:
            response.message = self._node.refuse("payload", error)
        answer()

    def _ready(self, table: RobotTable, error: Exception | None) -> None:
        """Use the payloads that have waited for their code."""
        waiting, self._waiting = self._waiting, []
        self._prepared = table if error is None else None
        for message, response, answer in waiting:
            if error is None:
                self._take(message, response, answer)
            else:
                response.message = self._node.refuse("payload", error)
                answer()


def _prepare(loop: SetpointLoop) -> None:
    """Compile what takes payloads, in the stream and in services; runs in the worker's thread."""
    loop.loop.table.prepare_payload()
    loop.evaluator.prepare_payload()

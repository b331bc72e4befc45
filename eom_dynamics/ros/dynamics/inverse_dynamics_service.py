# SPDX-License-Identifier: Apache-2.0
"""Service ``~/inverse_dynamics``: command for one state, on request with the matrices of the dynamics."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from rclpy.qos import QoSProfile

from ...elastic.limit_violations import summary
from ...exceptions import StateError
from ...messages.fields import doubles
from ...messages.setpoint_to_command import SetpointEvaluator, matrices, refusal_reason
from ..interfaces import ComputeInverseDynamics
from ..robot_node import RobotNode

SERVICE_QOS = QoSProfile(depth=1000)
"""For bursts of many clients, or of one that does not wait for answers."""


class InverseDynamicsService:
    """Server of the service; refused requests do not affect the stream."""

    def __init__(
        self, node: RobotNode, evaluator: Callable[[], SetpointEvaluator], limit_policy: Callable[[], str]
    ) -> None:
        """Create the service.

        Args:
            evaluator: returns the current evaluator; raises StateError if requests cannot be answered now.
            limit_policy: returns one of LIMIT_POLICIES; efforts of an answer are never clipped.
        """
        self._node, self._evaluator, self._limit_policy = node, evaluator, limit_policy
        node.create_service(ComputeInverseDynamics, "~/inverse_dynamics", self._receive, qos_profile=SERVICE_QOS)

    def _receive(
        self, request: ComputeInverseDynamics.Request, response: ComputeInverseDynamics.Response
    ) -> ComputeInverseDynamics.Response:
        node = self._node
        try:
            evaluator, limit_policy = self._evaluator(), self._limit_policy()
            if request.include_matrices and len(request.base):
                raise StateError("include_matrices: the matrices are those of a base at rest; leave base empty")
            limit_policy = "warn" if limit_policy == "clip" else limit_policy
            command = evaluator.evaluate(request, optional=("jerk", "snap"), limit_policy=limit_policy)
            fields = command.fields()
            if request.include_matrices:
                fields |= matrices(evaluator, command)
            for name, values in fields.items():
                setattr(response, name, doubles(values))
            response.joint_names, response.motor_names = command.order.names, command.order.motor_names
            if command.violations:
                response.message = f"exceeds limits: {summary(command.violations)}"
            response.success = True
        except StateError as error:
            response = ComputeInverseDynamics.Response(message=str(error))
            node.get_logger().warning(f"request refused: {error}", throttle_duration_sec=node.warning_period)
        except Exception as error:
            response = ComputeInverseDynamics.Response(message=refusal_reason(error))
            node.get_logger().error(f"request failed:\n{traceback.format_exc()}")
        return response

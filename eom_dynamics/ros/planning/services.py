# SPDX-License-Identifier: Apache-2.0
"""Planning services, computed in worker threads: inverse dynamics, inverse kinematics, trajectories; payloads."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile

from ...control.fields import doubles, read_samples, write
from ...control.joint_order import JointOrder
from ...control.setpoint_to_command import refusal_reason
from ...control.spatial import read_payload, read_pose
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, StateError
from ...kinematics import POINTING, POSITION, inverse_kinematics
from ...kinematics.compiled import kinematics_of
from ...kinematics.inverse import ALL
from ...terminal import printable
from ..diagnostics import payload_values
from ..executors import LateAnswers, Worker
from ..interfaces import GOALS_AT_ONCE, Payload, srv, stream_qos
from ..inverse_dynamics import answer_inverse_dynamics
from ..loaded_arm import MAX_PAYLOADS, loaded_arm, request_payload
from ..robot_node import MeasuredJoints, RobotNode
from .trajectories import answer_trajectory

_WEIGHTS = (ALL, POSITION, POINTING)


def inverse_kinematics_batch(
    arm: ElasticArm, request: srv.ComputeInverseKinematics.Request
) -> srv.ComputeInverseKinematics.Response:
    """Answer ComputeInverseKinematics."""
    count = len(request.pose)
    if count > request.MAX_SAMPLES:
        raise StateError(f"pose has {count} entries, may have {request.MAX_SAMPLES}: split the request")
    if request.task >= len(_WEIGHTS):
        raise StateError(f"task must be POSE, POSITION or POINTING, is {request.task}")
    order = JointOrder.of(arm, request.joint_names)
    poses = [read_pose(pose.position, pose.orientation, f"pose[{k}]") for k, pose in enumerate(request.pose)]
    start = None
    if len(request.start):
        (start,) = read_samples(request, order, ("start",), most=request.MAX_SAMPLES)
        if len(start) not in (1, count):
            raise StateError(f"start has {len(start)} configurations for {count} poses, must have 1 or {count}")
        start = np.broadcast_to(start, (count, arm.robot.n))
    targets, frame, limits = np.reshape(poses, (count, 4, 4)), request.frame or None, not request.ignore_limits
    weights = _WEIGHTS[request.task]
    solution = inverse_kinematics(kinematics_of(arm.robot), targets, frame, start, weights=weights, limits=limits)
    response = srv.ComputeInverseKinematics.Response(success=True, joint_names=order.names)
    write(response, ("position",), [order.to_message(solution.q)])
    response.solved = solution.success.tolist()
    response.reason = [
        "" if done else str(reason) for done, reason in zip(solution.success, solution.reason, strict=True)
    ]
    response.angle, response.distance = doubles(solution.angle.copy()), doubles(solution.distance.copy())
    return response


class CarriedPayloads:
    """Subscriber of the topic ``payload``; adds payloads to arms.

    Attributes:
        arm: the arm without payloads, or None.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self.arm: ElasticArm | None = None
        self._at_tools: dict[int, Payload] = {}
        # Last message of each tool before there is a robot.
        self._early: dict[str, Payload] = {}
        node.create_subscription(Payload, "payload", self._receive, **stream_qos(MAX_PAYLOADS, latched=True))

    def begin(self, arm: ElasticArm) -> None:
        """Set a new arm without payloads; warn if its predecessor had a payload."""
        if any(message.inertia.m for message in self._at_tools.values()):
            self._node.get_logger().warning("the new robot begins without the payload of the one before: set it again")
        self.arm, self._at_tools = arm, {}
        early, self._early = self._early, {}
        for message in early.values():
            self._receive(message)

    def loaded(self, arm: ElasticArm, payloads: Sequence[Payload]) -> ElasticArm:
        """The arm with the payloads of a request, or else of the topic."""
        return loaded_arm(arm, request_payload(arm, payloads or tuple(self._at_tools.values())))

    def report(self) -> dict[str, str]:
        """Payloads as values for diagnostics."""
        tools = self.arm.robot.tools if self.arm else ()
        masses = {tools[k].name: message.inertia.m for k, message in self._at_tools.items()}
        return payload_values(masses)

    def _receive(self, message: Payload) -> None:
        if self.arm is None and len(self._early) < MAX_PAYLOADS:
            self._early[message.tool] = message
            return
        try:
            if self.arm is None:
                raise StateError(f"there is no robot yet, and {MAX_PAYLOADS} payloads wait for it")
            tool, _ = read_payload(message).at_tool(self.arm.robot)
            self._at_tools = {**self._at_tools, tool: message}
        except Exception as error:
            self._node.refuse("payload", error)


SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "inverse_dynamics": (srv.ComputeInverseDynamics, answer_inverse_dynamics),
    "inverse_kinematics": (srv.ComputeInverseKinematics, inverse_kinematics_batch),
    "trajectory_feedforward": (srv.ComputeTrajectoryFeedforward, answer_trajectory),
}
"""Services by name: kind, and function that computes an answer for an arm and a request."""

# An answer can have 10 MB.
_QOS = QoSProfile(depth=GOALS_AT_ONCE)


class PlanningServices:
    """Planning services.

    The executor only receives requests and sends answers. Trajectories are computed in a thread of their own, so that a
    request of milliseconds does not wait for one of minutes.

    Args:
        arm: returns the arm with the payloads of a request, or without any for None; StateError without an arm.

    Attributes:
        worker: thread of the other services.
        answered, refused: number of requests.
        last_refusal: why the last refused request was refused.
    """

    def __init__(self, node: RobotNode, arm: Callable[..., ElasticArm], measured: MeasuredJoints) -> None:
        self._node, self._arm, self._measured = node, arm, measured
        self.answered = self.refused = 0
        self.last_refusal = ""
        self.worker = Worker(node, "services")
        workers = {"trajectory_feedforward": Worker(node, "trajectories")}
        self._answers: dict[str, LateAnswers] = {}
        for name, (kind, _) in SERVICES.items():
            on_request = partial(self._on_request, name, workers.get(name, self.worker))
            self._answers[name] = LateAnswers(node.create_service(kind, f"~/{name}", on_request, qos_profile=_QOS))

    def _on_request(self, name: str, worker: Worker, request: Any, response: Any) -> Any:
        worker.submit(partial(self._answer, name, request), self._answers[name].later(response))
        return response

    def _answer(self, name: str, request: Any) -> Any:
        """Compute the answer to a request of a service, or the answer that refuses it; runs in a worker's thread."""
        kind, compute = SERVICES[name]
        options = {"measured": self._measured.positions} if compute is answer_trajectory else {}
        try:
            answer = compute(self._arm(getattr(request, "payload", None)), request, **options)
            self.answered += 1
            return answer
        except EomDynamicsError as error:
            message = str(error)
        except MemoryError:
            message = "not enough memory for this many samples: split the request"
        except Exception as error:
            message = refusal_reason(error)
            self._node.get_logger().error(f"request of {name} failed:\n{traceback.format_exc()}")
        self.refused += 1
        self.last_refusal = printable(message)
        self._node.warn(f"request of {name} refused", self.last_refusal)
        return kind.Response(message=message)

# SPDX-License-Identifier: Apache-2.0
"""Planning services and action of a node, computed in worker threads."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile
from rclpy.task import Future

from ...control.setpoint_to_command import refusal_reason
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError
from ...terminal import printable
from ..executors import Worker
from ..interfaces import ComputeTrajectoryFeedforwardAction, srv
from ..measured_joints import MeasuredJoints
from ..robot_node import RobotNode
from .batches import forward_dynamics_batch, inverse_dynamics_batch, inverse_kinematics_batch, terms
from .trajectories import answer_trajectory

# Time between feedback messages of an action, s.
_FEEDBACK_PERIOD = 0.05

SERVICES: dict[str, tuple[Any, Callable[..., Any], tuple[str, ...]]] = {
    "inverse_dynamics_batch": (srv.ComputeInverseDynamicsBatch, inverse_dynamics_batch, ()),
    "forward_dynamics": (srv.ComputeForwardDynamics, forward_dynamics_batch, ()),
    "inverse_kinematics": (srv.ComputeInverseKinematics, inverse_kinematics_batch, ()),
    "equations_of_motion": (srv.GetEquationsOfMotion, terms, ()),
    "trajectory_feedforward": (srv.ComputeTrajectoryFeedforward, answer_trajectory, ("measured",)),
}
"""Services by name: their kind, what computes an answer for an arm and a request, and what of the node it takes."""

# Services whose code is compiled when the node takes a robot, with fields of a request at rest.
_PREPARED = {"forward_dynamics": ("position", "velocity", "effort"), "equations_of_motion": ("position", "velocity")}

# Enough for a burst; an answer can have 10 MB.
_QOS = QoSProfile(depth=100)

ACTION_QUEUES = {f"{service}_service_qos_profile": _QOS for service in ("goal", "result", "cancel")}
"""Queues of requests and answers of an action; the middleware silently drops those beyond."""

# Time for which an action keeps its result, s; it can have tens of megabytes.
_RESULT_TIMEOUT = 10


class CancelledError(Exception):
    """The client cancelled its goal."""


def _tried(compute: Callable[..., Any], arm: ElasticArm, request: Any) -> None:
    """Compute an answer in advance; its errors are reported on the first request."""
    with suppress(Exception):
        compute(arm, request)


class PlanningServices:
    """Planning services and action.

    The executor only receives requests and sends answers. Services and actions are computed in one thread each, so that
    a request of milliseconds does not wait for a goal of minutes.

    Args:
        arm: returns the arm with the payloads of a request, or without any for None; StateError without an arm.

    Attributes:
        answered, refused: number of requests and goals.
        last_refusal: why the last refused request was refused.
    """

    def __init__(self, node: RobotNode, arm: Callable[..., ElasticArm], measured: MeasuredJoints) -> None:
        self._node, self._arm, self._measured = node, arm, measured
        self.answered = self.refused = 0
        self.last_refusal = ""
        # Answers are awaited; a mutually exclusive group would receive no other request meanwhile.
        self._group = ReentrantCallbackGroup()
        self.worker = Worker(node, "services")
        self._action_worker = Worker(node, "actions")
        for name, (kind, *_) in SERVICES.items():
            on_request = partial(self._on_request, name)
            node.create_service(kind, f"~/{name}", on_request, qos_profile=_QOS, callback_group=self._group)
        self._action = ActionServer(
            node,
            ComputeTrajectoryFeedforwardAction,
            "~/compute_trajectory_feedforward",
            self._execute,
            callback_group=self._group,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            result_timeout=_RESULT_TIMEOUT,
            **ACTION_QUEUES,
        )

    def close(self) -> None:
        """Destroy the action server; destroying the node does not."""
        self._action.destroy()

    def prepare(self, arm: ElasticArm) -> None:
        """Compile, before the first requests, what these need and streams do not."""
        still = [0.0] * arm.robot.n
        for name, fields in _PREPARED.items():
            kind, compute, _ = SERVICES[name]
            job = partial(_tried, compute, arm, kind.Request(**dict.fromkeys(fields, still)))
            self.worker.submit(job, lambda _: None)

    async def _on_request(self, name: str, request: Any, response: Any) -> Any:
        return await self._computed(self.worker, name, type(response), request)

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        kind, last = ComputeTrajectoryFeedforwardAction, time.monotonic()

        def progress(fraction: float) -> None:
            """Send a fraction from 0 to 1; raises CancelledError if the goal was cancelled."""
            nonlocal last
            if goal.is_cancel_requested:
                raise CancelledError
            if time.monotonic() >= last + _FEEDBACK_PERIOD or fraction == 1:
                last = time.monotonic()
                goal.publish_feedback(kind.Feedback(progress=fraction))

        options = {"answer": kind.Result, "progress": progress}
        name = "trajectory_feedforward"
        result = await self._computed(self._action_worker, name, kind.Result, goal.request, **options)
        if result.success:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return result

    def _computed(self, worker: Worker, name: str, kind: Callable[..., Any], request: Any, **options: Any) -> Future:
        """Compute the answer of a service, of a kind, in a worker's thread."""
        _, compute, takes = SERVICES[name]
        if "measured" in takes:
            options["measured"] = self._measured.positions
        return worker.compute(lambda: self._answer(name, kind, partial(compute, **options), request))

    def _answer(
        self, name: str, kind: Callable[..., Any], compute: Callable[[ElasticArm, Any], Any], request: Any
    ) -> Any:
        """Compute the answer to a request of a service, or the answer that refuses it; runs in a worker's thread."""
        try:
            answer = compute(self._arm(getattr(request, "payload", None)), request)
            self.answered += 1
            return answer
        except CancelledError:
            return kind(message="cancelled")
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
        return kind(message=message)

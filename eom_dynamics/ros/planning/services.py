# SPDX-License-Identifier: Apache-2.0
"""Planning services and action of a node, computed in worker threads."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile

from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError
from ...messages.setpoint_to_command import refusal_reason
from ...terminal import printable
from ..interfaces import (
    ComputeForwardDynamics,
    ComputeInverseDynamicsBatch,
    ComputeInverseKinematics,
    ComputeTrajectoryFeedforward,
    ComputeTrajectoryFeedforwardAction,
    GetEquationsOfMotion,
)
from ..robot_node import RobotNode
from ..worker import Worker
from .batches import forward_dynamics_batch, inverse_dynamics_batch, inverse_kinematics_batch, terms
from .measured_joints import MeasuredJoints
from .trajectories import answer_trajectory

# Time between feedback messages of an action, s.
_FEEDBACK_PERIOD = 0.05

SERVICES: dict[str, tuple[Any, Callable[..., Any], tuple[str, ...]]] = {
    "inverse_dynamics_batch": (ComputeInverseDynamicsBatch, inverse_dynamics_batch, ("limits",)),
    "forward_dynamics": (ComputeForwardDynamics, forward_dynamics_batch, ()),
    "inverse_kinematics": (ComputeInverseKinematics, inverse_kinematics_batch, ()),
    "equations_of_motion": (GetEquationsOfMotion, terms, ()),
    "trajectory_feedforward": (ComputeTrajectoryFeedforward, answer_trajectory, ("limits", "measured")),
}
"""Services by name: their kind, what computes an answer for an arm and a request, and what of the node it takes."""

# Queue of requests and answers of each service; the middleware silently drops those beyond. Enough for a burst; an
# answer can have 10 MB.
_QOS = QoSProfile(depth=100)

# Time for which an action keeps its result, s; it can have tens of megabytes.
_RESULT_TIMEOUT = 10


class CancelledError(Exception):
    """The client cancelled its goal."""


class PlanningServices:
    """Planning services and action.

    The executor only receives requests and sends answers. Services and actions are computed in one thread each, so that
    a request of milliseconds does not wait for a goal of minutes.

    Attributes:
        answered, refused: number of requests and goals.
        last_refusal: why the last refused request was refused.
    """

    def __init__(self, node: RobotNode, arm: Callable[..., ElasticArm], measured: MeasuredJoints) -> None:
        """Create services and action.

        Args:
            arm: returns the current arm with the payloads of a request, or without any for None; raises StateError if
                there is none.
        """
        self._node, self._arm, self._measured = node, arm, measured
        self.answered = self.refused = 0
        self.last_refusal = ""
        # Answers are awaited; a mutually exclusive group would receive no other request meanwhile.
        self._group = ReentrantCallbackGroup()
        self.worker = Worker(node, "services")
        self._action_worker = Worker(node, "actions")
        for name, (kind, compute, takes) in SERVICES.items():
            self._serve(kind, f"~/{name}", partial(self._computed, compute, takes))
        self._action = ActionServer(
            node,
            ComputeTrajectoryFeedforwardAction,
            "~/compute_trajectory_feedforward",
            self._execute,
            callback_group=self._group,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            goal_service_qos_profile=_QOS,
            result_service_qos_profile=_QOS,
            cancel_service_qos_profile=_QOS,
            result_timeout=_RESULT_TIMEOUT,
        )

    def close(self) -> None:
        """Destroy the action server; destroying the node does not."""
        self._action.destroy()

    def _serve(self, kind: Any, name: str, compute: Callable[[ElasticArm, Any], Any]) -> None:
        async def on_request(request: Any, _: Any) -> Any:
            self._listen(request)
            return await self.worker.compute(lambda: self._answer(kind.Response, compute, request))

        self._node.create_service(kind, name, on_request, qos_profile=_QOS, callback_group=self._group)

    def _listen(self, request: Any) -> None:
        """Take the arrival of a request: subscribe to joint states if it is about to need them."""
        if hasattr(request, "tool_trajectory") and request.tool_trajectory.points and not request.trajectory.points:
            self._measured.listen()

    def _computed(
        self, compute: Callable[..., Any], takes: Sequence[str], arm: ElasticArm, request: Any, **options: Any
    ) -> Any:
        """An answer, with the node's parameter ``limits`` and where the joints are if the computation takes them."""
        if "limits" in takes:
            options["limits"] = self._node.get_parameter("limits").value
        if "measured" in takes:
            options["measured"] = self._measured.positions
        return compute(arm, request, **options)

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        kind = ComputeTrajectoryFeedforwardAction
        _, answered, takes = SERVICES["trajectory_feedforward"]
        compute = partial(self._computed, answered, takes, answer=kind.Result, progress=_Progress(goal))
        self._listen(goal.request)
        result = await self._action_worker.compute(lambda: self._answer(kind.Result, compute, goal.request))
        if result.success:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return result

    def _answer(self, kind: Callable[..., Any], compute: Callable[[ElasticArm, Any], Any], request: Any) -> Any:
        """Compute the answer to a request, or the answer that refuses it; runs in a worker's thread."""
        logger = self._node.get_logger()
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
            logger.error(f"request failed:\n{traceback.format_exc()}")
        self.refused += 1
        self.last_refusal = printable(message)
        logger.warning(f"request refused: {self.last_refusal}", throttle_duration_sec=self._node.warning_period)
        return kind(message=message)


class _Progress:
    """Feedback of a goal."""

    def __init__(self, goal: ServerGoalHandle) -> None:
        self._goal = goal
        self._last = time.monotonic()

    def __call__(self, progress: float) -> None:
        """Send a fraction from 0 to 1; raises CancelledError if the goal was cancelled."""
        if self._goal.is_cancel_requested:
            raise CancelledError
        now = time.monotonic()
        if now >= self._last + _FEEDBACK_PERIOD or progress == 1:
            self._last = now
            self._goal.publish_feedback(ComputeTrajectoryFeedforwardAction.Feedback(progress=progress))

# SPDX-License-Identifier: Apache-2.0
"""Planning services and action of a node, computed in threads beside its executor."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile

from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError
from ...terminal import printable
from ..interfaces import (
    ComputeForwardDynamics,
    ComputeInverseDynamicsBatch,
    ComputeTrajectoryFeedforward,
    ComputeTrajectoryFeedforwardAction,
    GetEquationsOfMotion,
)
from ..robot_node import RobotNode
from ..worker import Worker
from .batches import forward_dynamics_batch, inverse_dynamics_batch
from .terms import terms
from .trajectories import answer_trajectory

# Between two feedback messages of an action, s: a client draws a progress bar with them.
_FEEDBACK_PERIOD = 0.05

# Requests not taken in yet, and answers not fetched yet, of each service: the middleware drops those beyond without a
# word. As many as come in a burst; an answer can have 10 MB.
_QOS = QoSProfile(depth=100)

# For how long an action keeps a result that nobody has fetched, s: it can be tens of megabytes.
_RESULT_TIMEOUT = 10


class CancelledError(Exception):
    """The client has cancelled its goal."""


class PlanningServices:
    """Services and action on a node.

    The executor only receives requests and sends answers. One thread computes for services, and another one for
    actions, so that a request of milliseconds does not wait for a goal of minutes.

    Attributes:
        answered, refused: number of requests and goals.
        last_refusal: why the last one was refused.
    """

    def __init__(self, node: RobotNode, prefix: str, arm: Callable[[], ElasticArm]) -> None:
        """Open them.

        Args:
            node: the node.
            prefix: start of their names.
            arm: the arm to compute for; StateError where there is none.
        """
        self._node, self._arm = node, arm
        self.answered = self.refused = 0
        self.last_refusal = ""
        # Answers are awaited: in a group that excludes itself, one would keep all others from being received.
        self._group = ReentrantCallbackGroup()
        self.worker = Worker(node, "services")
        self._action_worker = Worker(node, "actions")
        self._serve(ComputeInverseDynamicsBatch, f"{prefix}/inverse_dynamics_batch", inverse_dynamics_batch)
        self._serve(ComputeForwardDynamics, f"{prefix}/forward_dynamics", forward_dynamics_batch)
        self._serve(GetEquationsOfMotion, f"{prefix}/equations_of_motion", terms)
        self._serve(ComputeTrajectoryFeedforward, f"{prefix}/trajectory_feedforward", answer_trajectory)
        ActionServer(
            node,
            ComputeTrajectoryFeedforwardAction,
            f"{prefix}/compute_trajectory_feedforward",
            self._execute,
            callback_group=self._group,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            goal_service_qos_profile=_QOS,
            result_service_qos_profile=_QOS,
            cancel_service_qos_profile=_QOS,
            result_timeout=_RESULT_TIMEOUT,
        )

    def _serve(self, kind: Any, name: str, compute: Callable[[ElasticArm, Any], Any]) -> None:
        async def on_request(request: Any, _: Any) -> Any:
            return await self.worker.compute(lambda: self._answer(kind.Response, compute, request))

        self._node.create_service(kind, name, on_request, qos_profile=_QOS, callback_group=self._group)

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        kind = ComputeTrajectoryFeedforwardAction
        compute = partial(answer_trajectory, answer=kind.Result, progress=_Progress(goal))
        result = await self._action_worker.compute(lambda: self._answer(kind.Result, compute, goal.request))
        if result.success:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return result

    def _answer(self, kind: Callable[..., Any], compute: Callable[[ElasticArm, Any], Any], request: Any) -> Any:
        """The answer to a request, also where that cannot be used; in a thread that computes."""
        logger = self._node.get_logger()
        try:
            answer = compute(self._arm(), request)
            self.answered += 1
            return answer
        except CancelledError:
            return kind(message="cancelled")
        except EomDynamicsError as error:
            message = str(error)
        except MemoryError:
            message = "there is not enough memory for so many samples: ask in parts"
        except Exception as error:
            message = f"internal error: {type(error).__name__}: {error}"
            logger.error(f"request failed:\n{traceback.format_exc()}")
        self.refused += 1
        self.last_refusal = printable(message)
        logger.warning(f"request refused: {self.last_refusal}", throttle_duration_sec=self._node.warning_period)
        return kind(message=message)


class _Progress:
    """Sends progress to the client of a goal, and raises where the goal was cancelled."""

    def __init__(self, goal: ServerGoalHandle) -> None:
        self._goal = goal
        self._last = time.monotonic()

    def __call__(self, progress: float) -> None:
        """Report a fraction from 0 to 1; CancelledError where the goal was cancelled."""
        if self._goal.is_cancel_requested:
            raise CancelledError
        now = time.monotonic()
        if now >= self._last + _FEEDBACK_PERIOD or progress == 1:
            self._last = now
            self._goal.publish_feedback(ComputeTrajectoryFeedforwardAction.Feedback(progress=progress))

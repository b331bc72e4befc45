# SPDX-License-Identifier: Apache-2.0
"""The planning services of a node: requests in, computed in a thread, answers out."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future

from ...actuators import ElasticArm
from ...exceptions import EomDynamicsError
from ..interfaces import (
    ComputeForwardDynamics,
    ComputeInverseDynamicsBatch,
    ComputeTrajectoryFeedforward,
    ComputeTrajectoryFeedforwardAction,
    GetEquationsOfMotion,
)
from .batches import forward_dynamics_batch, inverse_dynamics_batch
from .terms import terms
from .trajectories import answer_trajectory

# Between two reports of an action, s: a client draws a bar with them.
_FEEDBACK_PERIOD = 0.05

# Requests not taken in yet, and answers not fetched yet, of each service: the middleware loses those beyond without a
# word. As many as come in a burst; an answer can have 10 MB.
_QOS = QoSProfile(depth=100)

# How long an action keeps a result that nobody has fetched, s: it can be tens of megabytes.
_RESULT_TIMEOUT = 10


class CancelledError(Exception):
    """Whoever asked wants no answer any more."""


class PlanningServices:
    """Services and action on a node.

    The executor only takes requests in and sends answers out. One thread computes for services, and another one for
    actions, so that what takes minutes does not keep waiting what takes milliseconds.
    """

    def __init__(self, node: Node, names: Mapping[str, str], arm: Callable[[], ElasticArm]) -> None:
        """Open them.

        Args:
            node: the node.
            names: what each of them is called, by its own name (:data:`.of_node.NAMES`).
            arm: the arm to compute for, called in the threads that compute; StateError where there is none now.
        """
        self._node, self._arm = node, arm
        # Awaited answers: in a group that excludes itself, one would keep all others from being taken in.
        self._group = ReentrantCallbackGroup()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="services")
        self._action_thread = ThreadPoolExecutor(1, thread_name_prefix="actions")
        self._serve(ComputeInverseDynamicsBatch, names["inverse_dynamics_batch"], inverse_dynamics_batch)
        self._serve(ComputeForwardDynamics, names["forward_dynamics"], forward_dynamics_batch)
        self._serve(GetEquationsOfMotion, names["equations_of_motion"], terms)
        self._serve(ComputeTrajectoryFeedforward, names["trajectory_feedforward"], answer_trajectory)
        ActionServer(
            node,
            ComputeTrajectoryFeedforwardAction,
            names["compute_trajectory_feedforward"],
            self._execute,
            callback_group=self._group,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            goal_service_qos_profile=_QOS,
            result_service_qos_profile=_QOS,
            cancel_service_qos_profile=_QOS,
            result_timeout=_RESULT_TIMEOUT,
        )

    def submit(self, job: Callable[[], None]) -> None:
        """Have a job, which must not raise, done in the thread that computes for services."""
        self._thread.submit(job)

    def _serve(self, kind: Any, name: str, compute: Callable[[ElasticArm, Any], Any]) -> None:
        async def on_request(request: Any, _: Any) -> Any:
            return await self._computed(self._thread, lambda: self._answer(kind.Response, compute, request))

        self._node.create_service(kind, name, on_request, qos_profile=_QOS, callback_group=self._group)

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        kind = ComputeTrajectoryFeedforwardAction
        compute = partial(answer_trajectory, answer=kind.Result, progress=_Progress(goal))
        result = await self._computed(self._action_thread, lambda: self._answer(kind.Result, compute, goal.request))
        if result.success:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return result

    def _answer(self, kind: Callable[..., Any], compute: Callable[[ElasticArm, Any], Any], request: Any) -> Any:
        """The answer to a request, whatever it is; in a thread that computes."""
        logger = self._node.get_logger()
        try:
            return compute(self._arm(), request)
        except CancelledError:
            return kind(message="cancelled")
        except EomDynamicsError as error:
            message = str(error)
            logger.warning(f"request refused: {message}", throttle_duration_sec=1.0)
        except MemoryError:
            message = "there is not enough memory for so many samples: ask in parts"
            logger.warning(f"request refused: {message}", throttle_duration_sec=1.0)
        except Exception as error:
            message = f"internal error: {type(error).__name__}: {error}"
            logger.error(f"request failed:\n{traceback.format_exc()}")
        return kind(message=message)

    async def _computed(self, thread: ThreadPoolExecutor, job: Callable[[], Any]) -> Any:
        """What a job, which must not raise, returns from another thread."""
        future: Future = Future()

        def run() -> None:
            future.set_result(job())
            if self._node.executor is not None:
                self._node.executor.wake()

        thread.submit(run)
        return await future


class _Progress:
    """Tells the client of a goal how far it is, and takes notice of its wish to cancel."""

    def __init__(self, goal: ServerGoalHandle) -> None:
        self._goal = goal
        self._last = time.monotonic()

    def __call__(self, progress: float) -> None:
        """Report a share from 0 to 1; CancelledError where the goal is not wanted any more."""
        if self._goal.is_cancel_requested:
            raise CancelledError
        now = time.monotonic()
        if now >= self._last + _FEEDBACK_PERIOD or progress == 1:
            self._last = now
            self._goal.publish_feedback(ComputeTrajectoryFeedforwardAction.Feedback(progress=progress))

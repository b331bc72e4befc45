# SPDX-License-Identifier: Apache-2.0
"""Planning services and action of a node, computed in worker threads, and the measured joints that they start from."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState

from ...arrays import Array
from ...control.measured import MeasuredJoint, measured_joints, positions_of
from ...control.setpoint_to_command import refusal_reason
from ...elastic import ElasticArm
from ...exceptions import EomDynamicsError, StateError
from ...terminal import printable
from ..executors import Worker
from ..interfaces import ComputeTrajectoryFeedforwardAction, srv
from ..robot_node import RobotNode
from .batches import forward_dynamics_batch, inverse_dynamics_batch, inverse_kinematics_batch, terms
from .trajectories import answer_trajectory

# Time within which a joint state must arrive, and between two looks, s; age of one that is the present state, ns.
_PATIENCE, _BETWEEN_READS, _RECENT = 1.0, 0.002, 50_000_000


class MeasuredJoints:
    """Latest state of each joint on ``joint_states``, from one publisher or several.

    The middleware keeps messages until they are read. In a subscription of the node, each would be work of its
    executor, and a new subscription takes milliseconds to find its publishers. It keeps enough of all publishers
    together for 2 kHz between ticks of goals: with less, those of an arm are lost beside faster ones of a gripper.
    """

    def __init__(self, node: RobotNode) -> None:
        quality = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        # No event handlers: while a message waits, the middleware wakes an executor for them, without end.
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._reader = node.create_subscription(
            JointState, "joint_states", lambda _: None, quality, event_callbacks=events
        )
        node._subscriptions.remove(self._reader)  # from those that its executor reads
        self.topic = self._reader.topic_name
        self._joints: dict[str, MeasuredJoint] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Destroy the reader; destroying the node does not."""
        self._reader.destroy()

    @property
    def published(self) -> bool:
        """Whether anybody publishes states."""
        return bool(self._reader.get_publisher_count())

    def read(self) -> dict[str, MeasuredJoint]:
        """Latest state of each joint, however old."""
        with self._lock:
            while (taken := self._reader.handle.take_message(JointState, False)) is not None:
                self._joints |= measured_joints(taken[0], taken[1]["received_timestamp"])
            return dict(self._joints)

    def wait(
        self, names: Sequence[str], is_enough: Callable[[dict[str, MeasuredJoint]], bool] = bool
    ) -> dict[str, MeasuredJoint]:
        """Recent states, once they are enough and have all joints of these names that were ever measured.

        After a while, those that there are; called in a thread.
        """
        since, end = time.time_ns() - _RECENT, time.monotonic() + _PATIENCE
        while True:
            joints = self.read()
            recent = {name: joint for name, joint in joints.items() if joint.time >= since}
            complete = recent and joints.keys() & {*names} <= recent.keys() and is_enough(recent)
            if complete or time.monotonic() > end:
                return recent
            time.sleep(_BETWEEN_READS)

    def positions(self, names: Sequence[str]) -> Array:
        """Joint positions (n,); called in a thread.

        Raises:
            StateError: one is not measured.
        """
        try:
            return positions_of(self.wait(names, lambda recent: {*names} <= recent.keys()), names)
        except StateError as error:
            remedy = "publish it on joint_states, or give a request the positions at which the motion starts"
            raise StateError(f"{error} after {_PATIENCE:g} s: {remedy}") from None


# Time between feedback messages of an action, s.
_FEEDBACK_PERIOD = 0.05

SERVICES: dict[str, tuple[Any, Callable[..., Any], tuple[str, ...]]] = {
    "inverse_dynamics_batch": (srv.ComputeInverseDynamicsBatch, inverse_dynamics_batch, ("limits",)),
    "forward_dynamics": (srv.ComputeForwardDynamics, forward_dynamics_batch, ()),
    "inverse_kinematics": (srv.ComputeInverseKinematics, inverse_kinematics_batch, ()),
    "equations_of_motion": (srv.GetEquationsOfMotion, terms, ()),
    "trajectory_feedforward": (srv.ComputeTrajectoryFeedforward, answer_trajectory, ("limits", "measured")),
}
"""Services by name: their kind, what computes an answer for an arm and a request, and what of the node it takes."""

# Enough for a burst; an answer can have 10 MB.
_QOS = QoSProfile(depth=100)

ACTION_QUEUES = {f"{service}_service_qos_profile": _QOS for service in ("goal", "result", "cancel")}
"""Queues of requests and answers of an action; the middleware silently drops those beyond."""

# Time for which an action keeps its result, s; it can have tens of megabytes.
_RESULT_TIMEOUT = 10


class CancelledError(Exception):
    """The client cancelled its goal."""


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
        if "limits" in takes:
            options["limits"] = self._node.get_parameter("limits").value
        if "measured" in takes:
            options["measured"] = self._measured.positions
        return worker.compute(lambda: self._answer(kind, partial(compute, **options), request))

    def _answer(self, kind: Callable[..., Any], compute: Callable[[ElasticArm, Any], Any], request: Any) -> Any:
        """Compute the answer to a request, or the answer that refuses it; runs in a worker's thread."""
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
            self._node.get_logger().error(f"request failed:\n{traceback.format_exc()}")
        self.refused += 1
        self.last_refusal = printable(message)
        self._node.warn("request refused", self.last_refusal)
        return kind(message=message)

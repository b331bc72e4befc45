# SPDX-License-Identifier: Apache-2.0
"""Planning services, computed in worker threads: inverse and forward dynamics, inverse kinematics, payloads."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.action.server import ActionServer, CancelResponse, ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile
from rclpy.task import Future

from ...arrays import Array
from ...control.fields import (
    EFFORT_FIELDS,
    MOTOR_FIELDS,
    STATE_FIELDS,
    WRENCH_FIELDS,
    doubles,
    read_samples,
    read_stiffness,
    write,
)
from ...control.joint_order import JointOrder
from ...control.setpoint_to_command import equation_terms, refusal_reason
from ...control.spatial import read_payload, read_pose, read_wrenches
from ...dynamics import Dynamics
from ...elastic import DriveCommand, ElasticArm, Feedforward, LimitCheck
from ...elastic.limit_violations import summary
from ...equations import equations_of_motion
from ...equations.body_matrices import CORIOLIS_FORMS
from ...exceptions import EomDynamicsError, StateError
from ...kinematics import POINTING, POSITION, inverse_kinematics
from ...kinematics.compiled import kinematics_of
from ...kinematics.inverse import ALL
from ...robot import Robot
from ...robot.payload import payload_parameters, payload_shape, with_parameters
from ...terminal import printable
from ..diagnostics import payload_values
from ..executors import Worker
from ..interfaces import GOALS_AT_ONCE, ComputeTrajectoryFeedforwardAction, Payload, srv, stream_qos
from ..robot_node import MeasuredJoints, RobotNode
from .trajectories import answer_trajectory

_PARTIALS = ("acceleration_by_position", "acceleration_by_velocity", "acceleration_by_effort")


def inverse_dynamics_batch(
    arm: ElasticArm, request: srv.ComputeInverseDynamicsBatch.Request
) -> srv.ComputeInverseDynamicsBatch.Response:
    """Answer ComputeInverseDynamicsBatch."""
    outputs = request.outputs or request.EFFORT | request.MOTOR
    if outputs & ~(request.EFFORT | request.MOTOR):
        raise StateError(f"outputs must be EFFORT, MOTOR, their sum, or 0 for both, is {outputs}")
    order = JointOrder.of(arm, request.joint_names)
    states = read_samples(request, order, optional=("jerk", "snap"), most=request.MAX_SAMPLES)
    count = states.shape[1]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot, count)
    stiffness = read_stiffness(request, order, arm.variable, count)
    with np.errstate(all="ignore"):
        command = arm.feedforward(*states, wrench=wrench, commanded_stiffness=stiffness)
        check = LimitCheck(arm)
        exceeded = check.violations(states, command) if check.any else ()
    response = srv.ComputeInverseDynamicsBatch.Response(success=True, joint_names=order.names)
    response.motor_names = order.motor_names
    if exceeded:
        response.message = f"exceeds limits: {summary(exceeded)}"
    if outputs & request.EFFORT:
        write(response, EFFORT_FIELDS, [order.to_message(values) for values in command[:3]])
    if outputs & request.MOTOR:
        write(response, MOTOR_FIELDS, [order.motors_to_message(values) for values in command[3:]])
    return response


def forward_dynamics_batch(
    arm: ElasticArm, request: srv.ComputeForwardDynamics.Request
) -> srv.ComputeForwardDynamics.Response:
    """Answer ComputeForwardDynamics."""
    order = JointOrder.of(arm, request.joint_names)
    most = request.MAX_SAMPLES_WITH_PARTIALS if request.include_partials else request.MAX_SAMPLES
    q, qd, tau = read_samples(request, order, ("position", "velocity", "effort"), most=most)
    wrench = read_wrenches(request, WRENCH_FIELDS[:1], arm.robot, len(q))
    rotors = _rotors(arm) if request.include_rotor_inertia else 0.0
    with np.errstate(all="ignore"):
        qdd = arm.dynamics.forward_dynamics(q, qd, tau, wrench=wrench, added_inertia=rotors)
        partials: tuple[Array, ...] = ()
        if request.include_partials:
            partials = arm.dynamics.forward_dynamics_derivatives(q, qd, tau, wrench=wrench, added_inertia=rotors)
    response = srv.ComputeForwardDynamics.Response(success=True, joint_names=order.names)
    write(response, ("acceleration",), [order.to_message(qdd)])
    write(response, _PARTIALS[: len(partials)], [order.axes_to_message(partial, 2) for partial in partials])
    return response


def _rotors(arm: ElasticArm) -> NDArray[np.float64]:
    """Rotor inertia (n,) on the diagonal of the mass matrix, for rotors that turn with the joints."""
    if arm.transmission:
        raise StateError("include_rotor_inertia: rotors of a transmission do not turn with one joint each")
    return np.bincount(arm.motor_joint, arm.motor_inertia, arm.robot.n).astype(float)


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
            raise StateError(f"start has {len(start)} configurations for {count} poses, must have one, or one for each")
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


def terms(arm: ElasticArm, request: srv.GetEquationsOfMotion.Request) -> srv.GetEquationsOfMotion.Response:
    """Answer GetEquationsOfMotion; raises StateError for an invalid request."""
    coriolis = request.coriolis or srv.GetEquationsOfMotion.Request.CHRISTOFFEL
    if coriolis not in CORIOLIS_FORMS:
        raise StateError(f"coriolis must be one of {', '.join(CORIOLIS_FORMS)}, is {coriolis!r:.60}")
    if len(request.jerk) and not len(request.acceleration):
        raise StateError("acceleration is empty, but jerk is not: give both or none")
    order = JointOrder.of(arm, request.joint_names)
    fields_present = tuple(x for x in STATE_FIELDS[:4] if x in ("position", "velocity") or len(getattr(request, x)))
    q, *rates = read_samples(request, order, fields_present)[:, 0]
    wrench = read_wrenches(request, WRENCH_FIELDS, arm.robot)
    with np.errstate(all="ignore"):
        terms = equations_of_motion(arm.robot, q, *rates, wrench=wrench, coriolis=coriolis)
    response = srv.GetEquationsOfMotion.Response(success=True, joint_names=order.names)
    fields, dynamics, qd = equation_terms(terms, order), arm.dynamics, rates[0]
    with np.errstate(all="ignore"):
        fields["momentum"] = order.to_message(dynamics.momentum(q, qd))
        if request.include_coriolis_tensor:
            fields["coriolis_tensor"] = order.axes_to_message(dynamics.coriolis_tensor(q), 3)
        energies = {"kinetic_energy": dynamics.kinetic_energy(q, qd), "potential_energy": dynamics.potential_energy(q)}
    write(response, list(fields), list(fields.values()))
    for name, energy in energies.items():
        if not np.isfinite(energy):
            raise StateError(f"numbers too large: {name} would not be finite")
        setattr(response, name, float(energy))
    return response


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

# An answer can have 10 MB.
_QOS = QoSProfile(depth=GOALS_AT_ONCE)

ACTION_QUEUES = {f"{service}_service_qos_profile": _QOS for service in ("goal", "result", "cancel")}
"""Queues of requests and answers of an action."""

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

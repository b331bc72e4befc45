# SPDX-License-Identifier: Apache-2.0
"""Trajectories of topics and of the action: planned by a worker process, then played by the control loop."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial

from trajectory_msgs.msg import JointTrajectory

from ...arrays import Array
from ...control.serialized import trajectory_outline
from ...control.setpoint_loop import SetpointLoop
from ...control.settings import START_LATENCY
from ...control.trajectories import duration
from ...elastic import ElasticArm
from ...exceptions import TrajectoryError
from ...terminal import printable
from ..executors import Worker, steady_timer
from ..ignored_joints import IGNORED_JOINTS
from ..interfaces import (
    GOAL_ACTION,
    GOALS_AT_ONCE,
    SplineTrajectory,
    TrajectoryStatus,
    nanoseconds,
    quality_events,
    set_stamp,
    status_qos,
    stream_qos,
)
from ..planning.jobs import PlannedMotion, PlanningJob
from ..robot_node import RobotNode
from .goal_action import GoalAction
from .goals import Goal, Phase
from .planner import PlannerProcess
from .setpoint_stream import SetpointStream

_TOPICS = {"joint_trajectory": JointTrajectory, "spline_trajectory": SplineTrajectory}

# Planners send trajectories at a low rate.
_DEPTH = 10

# Time from activation to the start of the planner process, s: its imports must not delay the first commands.
_START_DELAY = 0.5

# Time between looks whether a stopping arm rests, s.
_LOOK = 0.01

_STOPPED = "stopped by an empty trajectory"


class TrajectoryTopics:
    """Subscribers of the topics, and the action; all methods are called by the executor of the node.

    Args:
        loop: returns the loop that plays; raises TrajectoryError without a loop.
    """

    def __init__(self, node: RobotNode, stream: SetpointStream, loop: Callable[[], SetpointLoop]) -> None:
        self._node, self._stream, self._loop = node, stream, loop
        self._worker, self.planner = Worker(node, "planner"), PlannerProcess()
        self._robot = b""
        self._goals: list[Goal] = []  # in the order of arrival
        self._look = steady_timer(node, _LOOK, self._plan_arrived, autostart=False)
        self._prepare = steady_timer(node, _START_DELAY, self._start_planner, autostart=False)
        self._status = node.create_publisher(TrajectoryStatus, "trajectory_status", status_qos())
        for topic, kind in _TOPICS.items():
            receive = partial(self._receive, kind is SplineTrajectory)
            events = quality_events(node, topic)
            node.create_subscription(kind, topic, receive, raw=True, event_callbacks=events, **stream_qos(_DEPTH))
        try:
            from control_msgs.action import FollowJointTrajectory
        except ImportError:
            node.get_logger().info(f"no action {GOAL_ACTION}: control_msgs is not installed (ros-jazzy-control-msgs)")
        else:
            GoalAction(node, FollowJointTrajectory, stream, self._status.publish, self.start, self._refuse)

    def take(self, loop: SetpointLoop) -> None:
        """Plan for the robot of a loop."""
        self._robot = pickle.dumps(loop.arm.robot)

    def begin(self) -> None:
        """Start the planner process soon: the node is active."""
        self._prepare.reset()

    def stop(self, reason: str) -> None:
        """End all trajectories."""
        self._withdraw(self._goals, reason)
        self._stream.player.stop(reason)

    def _start_planner(self) -> None:
        self._prepare.cancel()
        if (loop := self._stream.loop) is not None:
            job = PlanningJob(self._robot, loop.evaluator.payload.copy())
            self._worker.submit(lambda: self.planner.compute(job, lambda: not self._node.stop.came), lambda _: None)

    def _withdraw(self, goals: list[Goal], reason: str) -> None:
        """End goals that the player does not have."""
        for goal in tuple(goals):
            if goal is not self._stream.player.goal:
                goal.withdraw(reason)

    def _receive(self, is_spline: bool, message: bytes) -> None:
        self.start(Goal(self._status.publish), message, is_spline)

    def start(self, goal: Goal, message: bytes, is_spline: bool = False) -> None:
        """Plan and play a serialized trajectory, or refuse it; one without points stops the arm."""
        self._goals = [x for x in self._goals if x.phase is not Phase.DONE]
        goal.message, goal.is_spline = message, is_spline
        try:
            outline = trajectory_outline(message, of_points=not is_spline)
            set_stamp(goal.header.stamp, outline.stamp)
            goal.header.frame_id, goal.first = outline.frame_id, outline.first
            self._loop()
            if not outline.length:
                self._withdraw(self._goals, _STOPPED)
                self._stream.end_trajectory(_STOPPED)
                goal.end_empty()
                return
            if len(self._goals) >= GOALS_AT_ONCE:
                raise TrajectoryError(f"{GOALS_AT_ONCE} others have not ended")
            self._goals.append(goal)
        except Exception as error:
            self._refuse(goal, error)
        else:
            self._plan_arrived()

    def _plan_arrived(self) -> None:
        """Plan the arrived trajectories; a first point in the future or past waits until a stopping arm rests."""
        self._look.cancel()
        stops = self._stream.stops
        for goal in [x for x in self._goals if x.phase is Phase.ACCEPTED]:
            begin = self._begin(goal)
            if begin is not None and stops.responding and not stops.at_rest:
                self._look.reset()
                return
            self._plan(goal, begin)

    def _begin(self, goal: Goal) -> float | None:
        """Start time on the trajectory, s, if the first point is in the future or past; else None."""
        stamp = nanoseconds(goal.header.stamp)
        since = max(self._node.get_clock().now().nanoseconds - stamp, 0) * 1e-9 if stamp else 0.0
        return None if goal.is_spline or abs(since - goal.first) <= START_LATENCY else since

    def _plan(self, goal: Goal, begin: float | None) -> None:
        """Submit a trajectory to the worker process."""
        goal.phase = Phase.PLANNING
        message, goal.message = goal.message, b""  # which may be large
        try:
            loop = self._loop()
            moves = self._stream.leads or loop.moves
            positions = self._positions(loop, moves)
        except Exception as error:
            self._refuse(goal, error)
            return
        job = PlanningJob(
            self._robot,
            loop.evaluator.payload.copy(),
            message,
            goal.is_spline,
            positions,
            begin,
            is_at_rest=positions is not None and not moves,
            limits=self._stream.limit_policy,
            trajectory_limits=self._node.get_parameter("trajectory_limits").value,
            ignored_joints=tuple(self._node.get_parameter(IGNORED_JOINTS).value),
        )

        def is_wanted() -> bool:
            return goal.phase is not Phase.DONE

        def compute() -> PlannedMotion | None:
            return self.planner.compute(job, is_wanted) if is_wanted() else None

        self._worker.submit(compute, partial(self._play, goal, loop.arm))

    def _positions(self, loop: SetpointLoop, moves: bool) -> Array | None:
        """Positions (n,) that are commanded, or else measured; None if they are unknown."""
        if loop.record.valid and not moves:
            self._stream.measured.locate(loop)
        return loop.loop.setpoint["q"].copy() if loop.record.valid else self._stream.measured.position

    def _play(self, goal: Goal, arm: ElasticArm, plan: PlannedMotion | Exception | None) -> None:
        """Play a planned motion, or refuse its trajectory."""
        if goal.phase is Phase.DONE:
            return
        try:
            if isinstance(plan, Exception):
                raise plan
            assert plan is not None  # the goal has not ended
            if self._loop().arm is not arm:
                raise TrajectoryError("the robot has been replaced")
            goal.motion = plan.motion
            self._stream.require_radians(plan.motion.states[0, 0])
            self._stream.start_measured(always=True)
            self._stream.player.play(plan.motion, goal, plan.held if plan.held.any() else None)
        except Exception as error:
            self._refuse(goal, error)
            return
        self._withdraw(self._goals[: self._goals.index(goal)], "replaced by another trajectory")
        for note in plan.notes:
            self._node.warn("trajectory", printable(note))
        stamp = nanoseconds(goal.header.stamp)
        begin = f"time 0 at {stamp * 1e-9:.3f} s" if stamp else "from now on"
        text = f"{duration(plan.motion):.4g} s, knots: {len(plan.motion.t)}, {begin}"
        self._node.get_logger().info(f"trajectory accepted: {text}")

    def _refuse(self, goal: Goal, error: Exception) -> None:
        goal.tell(TrajectoryStatus.REFUSED, self._node.refuse("trajectory", error, always=True))

# SPDX-License-Identifier: Apache-2.0
"""Node ``eom_dynamics_planning``: services for planners, and C⁴ fits of trajectories.

A regular node (not a lifecycle node) in its own process, so that a batch of thousands of states does not delay
setpoints. It takes its robot from the same sources as the node ``eom_dynamics`` (:mod:`.robot_sources`) and answers
requests as soon as the robot is loaded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import scipy.linalg  # noqa: F401 -- now, rather than with the first trajectory
from lifecycle_msgs.msg import TransitionEvent
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from ..arrays import Array
from ..control.joint_order import JointOrder
from ..control.setpoint_to_command import refusal_reason
from ..control.trajectories import (
    RequestNames,
    check_waypoints,
    hold_others,
    limits_digest,
    read_times,
    rest_at_the_end,
    write_spline,
)
from ..elastic import ElasticArm
from ..exceptions import StateError, TrajectoryError
from ..terminal import printable
from ..trajectory import Spline
from ..trajectory.feedforward import CHECK_RATE, checked
from .diagnostics import Level, StatusReport
from .dynamics import NODE as DYNAMICS_NODE
from .executors import StopSignals
from .interfaces import Payload, SplineTrajectory, TrajectoryStatus, srv, status_qos, stream_qos
from .parameter_tables import PLANNING, without_joint
from .planning.follow_trajectory import DISCOVERY, FollowTrajectory
from .planning.services import CarriedPayloads, PlanningServices
from .planning.trajectories import Start, fitted, path_of, timed
from .robot_node import MeasuredJoints, RobotNode
from .robot_sources import LoadedRobot
from .running import Executable, freeze_objects, give_way, keep_memory, run, share_memory
from .trajectory_limits import within_limits

STATUS_NAME = "planning"

PROGRAM = Executable(
    "planning_node",
    "eom_dynamics_planning",
    "Planning services, and smooth fits of joint trajectories for playback by dynamics_node.",
    """\
examples:
  planning_node --ros-args --params-file my_arm.yaml      with the parameter file of dynamics_node
  planning_node --ros-args -r __ns:=/left -p robot_source_node:=/left/eom_dynamics
  planning_node --ros-args --params-file my_arm.yaml -r '~/trajectory_feedforward:=feedforward_of'

topics, services and action (relative to the namespace):
  joint_trajectory                 in     trajectory_msgs/msg/JointTrajectory, waypoints to fit and play
  spline_trajectory                out    eom_dynamics/msg/SplineTrajectory, fitted motion for dynamics_node
  payload                          in     eom_dynamics/msg/Payload, body that a tool carries
  robot_description                in     std_msgs/msg/String, URDF, if no parameter gives the robot
  /diagnostics                     out    diagnostic_msgs/msg/DiagnosticArray, status <node>: planning
  ~/inverse_dynamics               serves eom_dynamics/srv/ComputeInverseDynamics, efforts or matrices of many states
  ~/inverse_kinematics             serves eom_dynamics/srv/ComputeInverseKinematics, positions of joints for many poses
  ~/trajectory_feedforward         serves eom_dynamics/srv/ComputeTrajectoryFeedforward, commands along a motion
  ~/follow_joint_trajectory        action control_msgs/action/FollowJointTrajectory, goals, if it is installed
  trajectory_status                in/out eom_dynamics/msg/TrajectoryStatus, states of goals, and refusals
  trajectory_lease                 out    std_msgs/msg/String, requests of the active goals while the node runs
  joint_states                     in     sensor_msgs/msg/JointState, measured links, for goals and tool motions
  eom_dynamics/transition_event    in     lifecycle_msgs/msg/TransitionEvent, at which the robot is loaded again
""",
    lambda: PLANNING,
)

_Constants = srv.ComputeTrajectoryFeedforward.Request
_FIT_OPTIONS = _Constants()

# Planners send trajectories at a low rate.
_DEPTH = 10

# Freed memory that is kept for later answers, MiB.
_KEPT_MEMORY = 256

# Names of the joints, their motion, and its digest where it meets all limits.
_Planned: TypeAlias = tuple[Sequence[str], Spline, str]


class PlanningNode(RobotNode):
    """Planning node; see docs/services.md for its services, topics and parameters."""

    takes_events = False  # as it has an action

    def __init__(self, stop: StopSignals) -> None:
        super().__init__(PROGRAM.node, allow_undeclared_parameters=True)
        self.declare(PLANNING)
        give_way()
        keep_memory(_KEPT_MEMORY)
        self._measured, self._carried = MeasuredJoints(self), CarriedPayloads(self)
        self._requests = PlanningServices(self, self._arm, self._measured)
        self._splines = self.create_publisher(SplineTrajectory, "spline_trajectory", **stream_qos(_DEPTH))
        self._since = time.monotonic()
        self._status = self.create_publisher(TrajectoryStatus, "trajectory_status", status_qos())
        players = self._splines.get_subscription_count
        self._goals = FollowTrajectory(
            self, self._measured, self._fitted, self._send, self._stop, self._refuse, players
        )
        self._names = RequestNames("joint_trajectory")
        self.create_subscription(JointTrajectory, "joint_trajectory", self._plan, **stream_qos(_DEPTH))
        self.create_subscription(TransitionEvent, f"{DYNAMICS_NODE}/transition_event", self._on_transition, _DEPTH)
        self.complete(STATUS_NAME, stop)

    # --- Robot --------------------------------------------------------------------------

    @property
    def arm(self) -> ElasticArm | None:
        """Arm in use."""
        return self._carried.arm

    @property
    def robot_wanted(self) -> bool:
        """Always true: a new robot on the topic replaces the current one."""
        return True

    def on_robot(self, loaded: LoadedRobot) -> None:
        """Use a loaded robot, or report why it cannot be used."""
        if loaded.evaluator is not None:
            self._carried.begin(loaded.evaluator.arm)
            self.supply.pause()
            freeze_objects()
            robot = loaded.evaluator.arm.robot
            self.announce(loaded, robot, f", from {self.supply.source}")
            for name in without_joint(self, robot.joint_names):
                self.get_logger().warning(f"parameter {printable(name)} has no effect: the robot has no such joint")
        else:
            self.reject(loaded)

    def _on_transition(self, event: TransitionEvent) -> None:
        """Load the robot again once the dynamics node has been configured, which may have another one."""
        if (event.start_state.label, event.goal_state.label) == ("configuring", "inactive"):
            self.supply.reload()

    def _arm(self, payloads: Sequence[Payload] | None = ()) -> ElasticArm:
        """The arm with payloads of a request, or else of the topic; None: without any."""
        if self.arm is None:
            missing = f"none from {self.supply.source}: {self.supply.problem or 'it is being loaded'}"
            raise StateError(f"there is no robot: {self.failure or missing}")
        return self.arm if payloads is None else self._carried.loaded(self.arm, payloads)

    def switch_off(self, reason: str, then: Callable[[], None]) -> None:
        """Abort all goals, bring their motions to rest, and call ``then`` from the executor."""
        self._goals.end(then)

    def destroy_node(self) -> None:
        """Destroy the node, its action and its reader."""
        self._goals.close()
        self._measured.close()
        super().destroy_node()

    # --- Trajectories -------------------------------------------------------------------

    def _plan(self, message: JointTrajectory) -> None:
        """Plan a smooth motion along a trajectory in the worker's thread, and publish it."""
        status = TrajectoryStatus(header=message.header, request=self._names.next(message))

        def planned() -> SplineTrajectory:
            if not message.points:  # any active motion
                return SplineTrajectory(header=message.header)
            spline = SplineTrajectory(header=message.header, request=status.request)
            joint_names, motion, spline.limits_digest = self._fitted(message)
            write_spline(spline, motion, joint_names)
            return spline

        self._requests.worker.submit(planned, partial(self._publish, status))

    def _fitted(self, message: JointTrajectory, start: Start | None = None) -> _Planned:
        """The motion of a trajectory, from a start if one is given, checked."""
        arm = self._arm()
        check_waypoints(len(message.points), arm.robot.n)  # before the work of the fit
        named = list(message.joint_names or arm.robot.joint_names)
        hold_others(message, arm.robot.joint_names, self._measured.positions)
        if start is not None and start.positions and len(named) < arm.robot.n:
            held = zip(message.joint_names, message.points[0].positions, strict=True)
            start = start._replace(positions={**dict(held), **start.positions})
        rest_at_the_end(message)
        order = JointOrder.of(arm, list(message.joint_names))
        motion = fitted(message, read_times(message), order, _FIT_OPTIONS, start, arm.robot.continuous)
        names, motion, digest = self._checked(arm, motion, path_of(message, motion, _FIT_OPTIONS))
        if len(named) == arm.robot.n:
            return names, motion, digest
        # The dynamics node holds the others where they are commanded, and checks limits there.
        moved = [names.index(name) for name in named]
        return named, Spline(motion.t, motion.states[..., moved]), ""

    def _checked(self, arm: ElasticArm, motion: Spline, waypoints: Array | None = None) -> _Planned:
        moves = motion.end > motion.start
        if moves and self.get_parameter("trajectory_limits").value == _Constants.FASTEST:
            motion = timed(arm, motion, motion.t, _Constants.FASTEST, waypoints=waypoints)[1]
        motion, meets = within_limits(self, motion, lambda x: checked(arm, x, CHECK_RATE, _Constants.MAX_SAMPLES))
        until = self._since + DISCOVERY
        while not (self._splines.get_subscription_count() or self.stop.came) and time.monotonic() < until:
            time.sleep(0.01)
        return arm.robot.joint_names, motion, limits_digest(motion, arm.robot) if meets else ""

    def _send(self, names: Sequence[str], motion: Spline, digest: str, header: Header, request: str) -> None:
        """Publish a motion of joints with its digest, of a header and an identity."""
        spline = SplineTrajectory(header=header, request=request, limits_digest=digest)
        write_spline(spline, motion, names)
        self._splines.publish(spline)

    def _stop(self, request: str = "") -> None:
        """Publish an empty trajectory, which brings the motion of an identity to rest; without one any motion."""
        self._splines.publish(SplineTrajectory(request=request))

    def _publish(self, status: TrajectoryStatus, spline: SplineTrajectory | Exception) -> None:
        """Publish a planned trajectory, or that the one of a status is refused."""
        if isinstance(spline, Exception):
            self._refuse(status, spline)
            return
        self._splines.publish(spline)
        if not self._splines.get_subscription_count():
            topic = self._splines.topic_name
            self._refuse(status, TrajectoryError(f"nobody subscribes to {topic}: is dynamics_node running?"))

    def _refuse(self, status: TrajectoryStatus, error: Exception) -> None:
        """Report that the trajectory of a status is refused."""
        status.status, status.message = TrajectoryStatus.REFUSED, printable(refusal_reason(error))
        self._status.publish(status)
        self.refuse("trajectory", status.message, always=True)

    # --- Diagnostics --------------------------------------------------------------------

    def report(self, seconds: float) -> StatusReport:
        """Diagnostic status of the services."""
        values = {
            "requests answered": str(self._requests.answered),
            "requests refused": str(self._requests.refused),
            "last refusal": self._requests.last_refusal,
        }
        return StatusReport(Level.OK, "ready", values | self._carried.report())


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or shutdown of its context; return 1 if it cannot start."""
    share_memory()
    return run(PROGRAM, PlanningNode, args)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Node ``eom_dynamics_planning``: services for planners.

A regular node (not a lifecycle node) in its own process, so that a batch of thousands of states does not delay
setpoints. It takes its robot from the same sources as the node ``eom_dynamics`` (:mod:`.robot_sources`) and answers
requests as soon as the robot is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import scipy.linalg  # noqa: F401 -- now, rather than with the first trajectory
from lifecycle_msgs.msg import TransitionEvent
from rclpy.event_handler import SubscriptionEventCallbacks

from ..elastic import ElasticArm
from ..exceptions import StateError
from .diagnostics import Level, StatusReport
from .dynamics import NODE as DYNAMICS_NODE
from .executors import StopSignals
from .interfaces import Payload
from .parameter_tables import PLANNING
from .planning.services import CarriedPayloads, PlanningServices
from .robot_node import MeasuredJoints, RobotNode
from .robot_sources import LoadedRobot
from .running import Executable, freeze_objects, give_way, keep_memory, run, share_memory

STATUS_NAME = "planning"

PROGRAM = Executable(
    "planning_node",
    "eom_dynamics_planning",
    "Services for planners: inverse dynamics and kinematics of many states, feedforward and timing of trajectories.",
    """\
examples:
  planning_node --ros-args --params-file my_arm.yaml      with the parameter file of dynamics_node
  planning_node --ros-args -r __ns:=/left -p robot_source_node:=/left/eom_dynamics
  planning_node --ros-args --params-file my_arm.yaml -r '~/trajectory_feedforward:=feedforward_of'

topics and services (relative to the namespace):
  payload                          in     eom_dynamics/msg/Payload of a tool
  robot_description                in     std_msgs/msg/String, if no parameter gives the robot
  joint_states                     in     sensor_msgs/msg/JointState, positions of joints that a request does not name
  /diagnostics                     out    diagnostic_msgs/msg/DiagnosticArray, status <node>: planning
  ~/inverse_dynamics               serves eom_dynamics/srv/ComputeInverseDynamics, of many states
  ~/inverse_kinematics             serves eom_dynamics/srv/ComputeInverseKinematics, of many poses
  ~/trajectory_feedforward         serves eom_dynamics/srv/ComputeTrajectoryFeedforward, and limits
  eom_dynamics/transition_event    in     lifecycle_msgs/msg/TransitionEvent, to load the robot again with dynamics_node
""",
    lambda: PLANNING,
)

# Transitions of the dynamics node come at a low rate.
_DEPTH = 10


class PlanningNode(RobotNode):
    """Planning node; see docs/services.md for its services, topics and parameters."""

    def __init__(self, stop: StopSignals) -> None:
        super().__init__(PROGRAM.node, allow_undeclared_parameters=True)
        self.declare(PLANNING)
        give_way()
        keep_memory()
        self._measured, self._carried = MeasuredJoints(self), CarriedPayloads(self)
        self._requests = PlanningServices(self, self._arm, self._measured)
        self.create_subscription(
            TransitionEvent,
            f"{DYNAMICS_NODE}/transition_event",
            self._on_transition,
            _DEPTH,
            event_callbacks=SubscriptionEventCallbacks(matched=self._on_matched),
        )
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
            self.announce(loaded, loaded.evaluator.arm.robot, f", from {self.supply.source}")
        else:
            self.reject(loaded)

    def _on_matched(self, status: Any) -> None:
        """Load the robot again when a dynamics node appears, since its earlier transitions were not received."""
        if status.current_count_change > 0 and self.arm is not None:
            self.supply.reload()

    def _on_transition(self, event: TransitionEvent) -> None:
        """Load the robot again when the dynamics node was configured, since its robot may have changed."""
        if (event.start_state.label, event.goal_state.label) == ("configuring", "inactive"):
            self.supply.reload()

    def _arm(self, payloads: Sequence[Payload] | None = ()) -> ElasticArm:
        """The arm with payloads of a request, or else of the topic; None: without any."""
        if self.arm is None:
            missing = f"none from {self.supply.source}: {self.supply.problem or 'it is being loaded'}"
            raise StateError(f"there is no robot: {self.failure or missing}")
        return self.arm if payloads is None else self._carried.loaded(self.arm, payloads)

    def destroy_node(self) -> None:
        """Destroy the node and its reader."""
        self._measured.close()
        super().destroy_node()

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

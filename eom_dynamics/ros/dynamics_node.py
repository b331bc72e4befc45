# SPDX-License-Identifier: Apache-2.0
"""Node ``eom_dynamics``: feedforward of elastic-joint arms for a stream of setpoints.

A lifecycle node that configures and activates itself (parameter ``autostart``) when its robot is available
(:mod:`.robot_sources`). Only an active node answers setpoints and requests. Invalid ones are refused and do not affect
later ones. With an invalid robot the node stays unconfigured; a new robot on the topic replaces the current one while
the arm rests. Its code begins in :mod:`.dynamics.node`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .dynamics import NODE
from .executors import StopSignals
from .running import Executable, discovering, run

if TYPE_CHECKING:
    from .dynamics.node import DynamicsNode
    from .parameter_tables import Table


def _parameters() -> Table:
    from .parameter_tables import DYNAMICS

    return DYNAMICS


PROGRAM = Executable(
    "dynamics_node",
    NODE,
    "Lifecycle node: joint efforts with two time derivatives and motor commands for a stream of setpoints.",
    """\
examples:
  dynamics_node --ros-args --params-file my_arm.yaml                  robot and parameters from a file
  dynamics_node --ros-args -r __ns:=/left -p limits:=warn             namespace and a parameter
  dynamics_node --ros-args -p robot_source_node:=/robot_state_publisher

topics and services (relative to the namespace):
  setpoint             in     eom_dynamics/msg/JointTrajectorySetpoint, positions and four derivatives
  joint_states         in     sensor_msgs/msg/JointState, measured links, where motion starts; publishers are merged
  spline_trajectory    in     eom_dynamics/msg/SplineTrajectory, motion to play, as from planning_node
  speed_scaling        in     std_msgs/msg/Float64, speed factor of trajectories, 0 to 1.5
  ~/speed_scaling_input  in   control_msgs/msg/SpeedScalingFactor, the same factor, transient local, if installed
  target               in     sensor_msgs/msg/JointState, target positions of some or all joints, at any rate
  target_trajectory    in     trajectory_msgs/msg/JointTrajectory, a chunk of target positions
  payload              in     eom_dynamics/msg/Payload, body that a tool carries
  robot_description    in     std_msgs/msg/String, URDF, if no parameter gives the robot
  motor_states         in     sensor_msgs/msg/JointState, in the units of the drives, for external efforts
  external_wrench      out    geometry_msgs/msg/WrenchStamped, at the first tool, if external_effort.sensors is set
  contact              out    eom_dynamics/msg/Contact, with external efforts, if external_effort.sensors is set
  trajectory_status    out    eom_dynamics/msg/TrajectoryStatus, trajectories accepted, refused, finished or stopped
  path_time            out    sensor_msgs/msg/TimeReference, time on the active or waiting trajectory
  commanded_motion     out    eom_dynamics/msg/JointTrajectorySetpoint of the links, during trajectories
  trajectory_lease     in     std_msgs/msg/String, request of a trajectory that ends with its sender
  feedforward          out    eom_dynamics/msg/FeedforwardCommand, commands, joints in the order of the setpoint
  motor_setpoint       out    sensor_msgs/msg/JointState, commands for motor controllers, in the units of the drives
  effort_command       out    std_msgs/msg/Float64MultiArray, efforts for effort controllers, in the robot's order
  /diagnostics         out    diagnostic_msgs/msg/DiagnosticArray, status <node>: feedforward
  ~/inverse_dynamics   serves eom_dynamics/srv/ComputeInverseDynamics, efforts or matrices of up to 100 states
  ~/set_payload        serves eom_dynamics/srv/SetPayload, sets or estimates a payload
  ~/pause              serves std_srvs/srv/SetBool, pauses the trajectory on its path (true), or resumes it
""",
    _parameters,
)


def make(stop: StopSignals) -> DynamicsNode:
    """Make the node; its code is imported while processes discover each other."""
    with discovering() as since:
        from .dynamics.node import DynamicsNode

        return DynamicsNode(stop, since)


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT, SIGTERM or shutdown of its context; return 1 if it cannot start."""
    return run(PROGRAM, make, args)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Node ``eom_dynamics``: feedforward of elastic-joint arms for a stream of setpoints.

A lifecycle node that configures and activates itself (parameter ``autostart``) when its robot is available
(:mod:`.robot_sources`). Only an active node answers setpoints and requests. It refuses invalid messages without an
effect on later messages. With an invalid robot the node stays unconfigured; a new robot on the topic replaces the
current robot while the arm rests. The code of the node is in :mod:`.dynamics.node`.
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

topics, services and action (relative to the namespace):
  setpoint             in     eom_dynamics/msg/JointTrajectorySetpoint, positions and four derivatives
  joint_states         in     sensor_msgs/msg/JointState, measured links, where motion starts; publishers are merged
  joint_trajectory     in     trajectory_msgs/msg/JointTrajectory, to fit and play
  spline_trajectory    in     eom_dynamics/msg/SplineTrajectory, to check and play
  ~/follow_joint_trajectory  action control_msgs/action/FollowJointTrajectory, if installed
  speed_scaling        in     std_msgs/msg/Float64, speed factor of trajectories, 0 to 1
  ~/speed_scaling_input  in   control_msgs/msg/SpeedScalingFactor, the same factor, transient local, if installed
  target               in     sensor_msgs/msg/JointState, target positions of some or all joints, at any rate
  target_trajectory    in     trajectory_msgs/msg/JointTrajectory, a chunk of target positions
  payload              in     eom_dynamics/msg/Payload, body that a tool carries
  robot_description    in     std_msgs/msg/String, URDF, if no parameter gives the robot
  motor_states         in     sensor_msgs/msg/JointState, in the units of the drives, for external efforts
  external_wrench      out    geometry_msgs/msg/WrenchStamped at the first tool, with external_effort.sensors
  contact              out    eom_dynamics/msg/Contact and external efforts, with external_effort.sensors
  trajectory_status    out    eom_dynamics/msg/TrajectoryStatus: accepted, refused, finished or stopped
  ~/controller_state   out    control_msgs/msg/JointTrajectoryControllerState of the links, if installed
  feedforward          out    eom_dynamics/msg/FeedforwardCommand, joints in the order of the setpoint
  motor_setpoint       out    sensor_msgs/msg/JointState for motor controllers, in the units of the drives
  effort_command       out    std_msgs/msg/Float64MultiArray for effort controllers, in the robot's order
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

# SPDX-License-Identifier: Apache-2.0
"""The command line of a node, which is that of every ROS 2 node, with a help of its own."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence

from rclpy.utilities import remove_ros_args

from . import parameters

_WIDTH = 100

_EXAMPLES = """\
examples:
  dynamics_node --ros-args --params-file my_arm.yaml                  a robot, and parameters, from a file
  dynamics_node --ros-args -r __ns:=/left -p effort_command:=joint    in a namespace, with a parameter
  dynamics_node --ros-args -p robot_source_node:=/robot_state_publisher

topics, services and actions (relative to the namespace):
  setpoint                           in     eom_dynamics/msg/JointTrajectorySetpoint
  joint_trajectory                   in     trajectory_msgs/msg/JointTrajectory, to be played
  robot_description                  in     std_msgs/msg/String, where no parameter says the robot
  feedforward                        out    eom_dynamics/msg/FeedforwardCommand
  motor_setpoint                     out    sensor_msgs/msg/JointState
  effort_command                     out    std_msgs/msg/Float64MultiArray
  /diagnostics                       out    diagnostic_msgs/msg/DiagnosticArray
  ~/inverse_dynamics                 serves eom_dynamics/srv/ComputeInverseDynamics
  ~/inverse_dynamics_batch           serves eom_dynamics/srv/ComputeInverseDynamicsBatch
  ~/forward_dynamics                 serves eom_dynamics/srv/ComputeForwardDynamics
  ~/equations_of_motion              serves eom_dynamics/srv/GetEquationsOfMotion
  ~/trajectory_feedforward           serves eom_dynamics/srv/ComputeTrajectoryFeedforward
  ~/compute_trajectory_feedforward   action eom_dynamics/action/ComputeTrajectoryFeedforward
"""


DYNAMICS_NODE = (
    "dynamics_node",
    "The lifecycle node eom_dynamics: setpoints in, efforts with two time derivatives and the motor side out.",
    _EXAMPLES,
)
"""The program of the node eom_dynamics, what it is, and examples and topics."""


def read_arguments(
    arguments: Sequence[str],
    program: tuple[str, str, str] = DYNAMICS_NODE,
    table: parameters.Table | None = None,
) -> None:
    """Answer ``--help``, and refuse what is no argument of ROS 2; both end the process, with exit code 0 or 2.

    Args:
        arguments: of the process, the program first. Those of ROS 2 are left to rclpy.
        program: its name, what it is, and examples and topics.
        table: parameters of the node; by default those of the node eom_dynamics.
    """
    name, description, examples = program
    parser = argparse.ArgumentParser(
        prog=name,
        usage=f"{name} [--ros-args [--params-file FILE] [-p NAME:=VALUE] [-r FROM:=TO] …]",
        description=f"{description} All its arguments follow --ros-args.",
        epilog=f"{examples}\nparameters (robot.* and urdf.* describe the robot: docs/robots.md, docs/node.md):\n"
        + "\n".join(_lines(table)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _, unknown = parser.parse_known_args(remove_ros_args(list(arguments))[1:])
    if unknown:
        parser.error(f"unknown arguments: {' '.join(unknown)}; parameters and remappings follow --ros-args")


def _lines(table: parameters.Table | None) -> list[str]:
    lines = []
    for name, text in parameters.descriptions(table).items():
        first, *rest = textwrap.wrap(text, _WIDTH - 22)
        lines += [f"  {name:<19} {first}", *(f"{'':22}{line}" for line in rest)]
    return lines

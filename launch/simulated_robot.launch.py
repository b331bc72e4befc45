# SPDX-License-Identifier: Apache-2.0
r"""Start the feedforward node, the planning node and a simulated robot: the whole stack without hardware.

The packaged iiwa; publish setpoints on /setpoint or trajectories on /joint_trajectory, and read /joint_states:

    ros2 launch eom_dynamics simulated_robot.launch.py

Your own robot, in a namespace, with parameters of the simulated robot (docs/simulated_robot.md) in a file:

    ros2 launch eom_dynamics simulated_robot.launch.py robot_file:=/path/to/arm.yaml namespace:=left \
        simulated_robot_params_file:=/path/to/simulation.yaml

Shown in RViz, which needs the packages rviz2 and robot_state_publisher:

    ros2 launch eom_dynamics simulated_robot.launch.py rviz:=true

Driven by the motor efforts of another controller:

    ros2 launch eom_dynamics simulated_robot.launch.py command:=motor_effort command_topic:=effort_controller/commands

All arguments: ros2 launch eom_dynamics simulated_robot.launch.py --show-args
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from eom_dynamics.ros.launch_arguments import (
    PACKAGED_ROBOT,
    argument,
    end_with,
    files,
    of_all_nodes,
    planning_node,
    remappings,
    robot,
    rviz_nodes,
    settings,
    stack_arguments,
    texts,
    typed,
    value_of,
)

COMMAND_TOPICS = {"motor_setpoint": "motor_setpoint", "feedforward": "feedforward", "motor_effort": "effort_command"}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the nodes with them."""
    return LaunchDescription(
        [
            argument(
                "robot_file",
                "File of the robot (parameter file .yaml, URDF or xacro) or name of a packaged one, for all nodes.",
                PACKAGED_ROBOT,
            ),
            argument(
                "simulated_robot_params_file",
                "Additional parameter file of the simulated robot, read last; empty for none.",
            ),
            argument(
                "command",
                "Command that the drives of the simulated robot follow.",
                "motor_setpoint",
                list(COMMAND_TOPICS),
            ),
            argument("command_topic", "Topic of the command; empty for that of the feedforward node."),
            *stack_arguments(),
            OpaqueFunction(function=start_nodes),
        ]
    )


def start_nodes(context: LaunchContext) -> list[Node]:
    """Start the nodes."""
    command = value_of(context, "command")
    topic = COMMAND_TOPICS[command]
    parameters = [
        *robot(context),
        # After the robot, whose file must not overrule the arguments; the last value counts.
        {"use_sim_time": typed("use_sim_time", bool)},
        *files(context, "params_file"),
        *texts(context, "joint_prefix"),
    ]
    common, remapped = of_all_nodes(), remappings()
    followed = [(topic, value_of(context, "command_topic"))] if value_of(context, "command_topic") else []
    return [
        Node(
            executable="dynamics_node",
            name="eom_dynamics",
            parameters=[*parameters, *settings(context)],
            remappings=remapped,
            **end_with(context, "dynamics_node"),
            **common,
        ),
        planning_node(parameters, remappings=remapped, **common),
        Node(
            executable="simulated_robot_node",
            name="simulated_robot",
            parameters=[*parameters, *files(context, "simulated_robot_params_file"), {"command": command}],
            remappings=[*followed, *remapped],  # the first one counts
            **end_with(context, "simulated_robot_node"),
            **common,
        ),
        *rviz_nodes(context, value_of(context, "robot_file"), "", typed("use_sim_time", bool)),
    ]

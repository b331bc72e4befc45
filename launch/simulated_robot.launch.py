# SPDX-License-Identifier: Apache-2.0
r"""Start the feedforward node and a simulated robot that it drives: the whole stack without hardware.

The packaged iiwa; publish setpoints on /setpoint, and see the arm move on /joint_states:

    ros2 launch eom_dynamics simulated_robot.launch.py

A robot of your own, in a namespace, with parameters of the simulated robot (docs/simulated_robot.md) in a file:

    ros2 launch eom_dynamics simulated_robot.launch.py robot_file:=/path/to/arm.yaml namespace:=left \
        simulated_robot_params_file:=/path/to/simulation.yaml

Driven by efforts alone, from another controller:

    ros2 launch eom_dynamics simulated_robot.launch.py command:=motor_effort command_topic:=effort_controller/commands

All arguments: ros2 launch eom_dynamics simulated_robot.launch.py --show-args
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

COMMAND_TOPICS = {
    "motor_setpoint": "motor_setpoint",
    "feedforward": "feedforward",
    "motor_effort": "effort_command",
    "joint_effort": "effort_command",
}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start both nodes with them."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot_file",
                default_value=PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"]),
                description="Parameter file of the robot, for both nodes; by default the packaged iiwa.",
            ),
            DeclareLaunchArgument(
                "params_file", default_value="", description="Further parameter file of both nodes; empty for none."
            ),
            DeclareLaunchArgument(
                "simulated_robot_params_file",
                default_value="",
                description="Further parameter file of the simulated robot; empty for none.",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of the nodes and their topics."
            ),
            DeclareLaunchArgument(
                "command",
                default_value="motor_setpoint",
                choices=list(COMMAND_TOPICS),
                description="What the drives of the simulated robot take.",
            ),
            DeclareLaunchArgument(
                "command_topic",
                default_value="",
                description="Topic on which it comes; empty for that of the feedforward node.",
            ),
            DeclareLaunchArgument(
                "joint_states_topic", default_value="joint_states", description="Topic on which joint states go out."
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                choices=["true", "false"],
                description="Whether time comes from the topic /clock.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                choices=["debug", "info", "warn", "error", "fatal"],
                description="Least severity that the nodes log.",
            ),
            OpaqueFunction(function=start_nodes),
        ]
    )


def start_nodes(context: LaunchContext) -> list[Node]:
    """Start both nodes; what was left empty is not passed on."""

    def given(argument: str) -> str:
        return LaunchConfiguration(argument).perform(context)

    def files(*arguments: str) -> list[ParameterFile]:
        return [ParameterFile(LaunchConfiguration(argument)) for argument in arguments if given(argument)]

    command = given("command")
    topic = COMMAND_TOPICS[command]
    use_sim_time = {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)}
    common = {
        "package": "eom_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "arguments": ["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        "output": "screen",
    }
    carried = {"effort_command": "joint" if command == "joint_effort" else "motor"}
    return [
        Node(
            executable="dynamics_node",
            name="eom_dynamics",
            parameters=[carried, use_sim_time, *files("robot_file", "params_file")],
            **common,
        ),
        Node(
            executable="simulated_robot_node",
            name="simulated_robot",
            parameters=[
                use_sim_time,
                *files("robot_file", "params_file", "simulated_robot_params_file"),
                {"command": command},
            ],
            remappings=[
                (topic, given("command_topic") or topic),
                ("joint_states", LaunchConfiguration("joint_states_topic")),
            ],
            **common,
        ),
    ]

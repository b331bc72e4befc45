# SPDX-License-Identifier: Apache-2.0
r"""Start the feedforward node, the planning node and a simulated robot: the whole stack without hardware.

The packaged iiwa; publish setpoints on /setpoint or trajectories on /joint_trajectory, and read /joint_states:

    ros2 launch eom_dynamics simulated_robot.launch.py

Your own robot, in a namespace, with parameters of the simulated robot (docs/simulated_robot.md) in a file:

    ros2 launch eom_dynamics simulated_robot.launch.py robot_file:=/path/to/arm.yaml namespace:=left \
        simulated_robot_params_file:=/path/to/simulation.yaml

Driven by the motor efforts of another controller:

    ros2 launch eom_dynamics simulated_robot.launch.py command:=motor_effort command_topic:=effort_controller/commands

All arguments: ros2 launch eom_dynamics simulated_robot.launch.py --show-args
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from eom_dynamics.ros.robot_argument import robot_parameters

COMMAND_TOPICS = {
    "motor_setpoint": "motor_setpoint",
    "feedforward": "feedforward",
    "motor_effort": "effort_command",
    "joint_effort": "effort_command",
}

# Between the end of the planning node and its next start, s.
RESPAWN_DELAY = 1.0


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the nodes with them."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot_file",
                default_value=PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"]),
                description="File of the robot, for all nodes: parameter file (.yaml), URDF or xacro; by default the "
                "packaged iiwa.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Additional parameter file of all nodes, read after robot_file; empty for none.",
            ),
            DeclareLaunchArgument(
                "simulated_robot_params_file",
                default_value="",
                description="Additional parameter file of the simulated robot, read last; empty for none.",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of the nodes and their topics."
            ),
            DeclareLaunchArgument(
                "joint_prefix",
                default_value="",
                description="Put before the names of the robot's joints, motors and tools, such as left_.",
            ),
            DeclareLaunchArgument(
                "command",
                default_value="motor_setpoint",
                choices=list(COMMAND_TOPICS),
                description="Command that the drives of the simulated robot follow.",
            ),
            DeclareLaunchArgument(
                "command_topic",
                default_value="",
                description="Topic of the command; empty for that of the feedforward node.",
            ),
            DeclareLaunchArgument(
                "joint_states_topic", default_value="joint_states", description="Topic of the joint states published."
            ),
            DeclareLaunchArgument(
                "planning",
                default_value="true",
                choices=["true", "false"],
                description="Whether to start the planning node: services for planners, and trajectories to be played.",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                choices=["true", "false"],
                description="Whether to take the time from the topic /clock.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                choices=["debug", "info", "warn", "error", "fatal"],
                description="Minimum severity to log.",
            ),
            OpaqueFunction(function=start_nodes),
        ]
    )


def start_nodes(context: LaunchContext) -> list[Node]:
    """Start the nodes. Empty arguments are not passed on."""

    def given(argument: str) -> str:
        return LaunchConfiguration(argument).perform(context)

    def files(*arguments: str) -> list[ParameterFile]:
        return [ParameterFile(file_given(context, argument)) for argument in arguments if given(argument)]

    command = given("command")
    topic = COMMAND_TOPICS[command]
    effort_command = {"effort_command": "joint" if command == "joint_effort" else "motor"}
    parameters = [
        *(robot_parameters(file_given(context, "robot_file")) if given("robot_file") else []),
        # After the robot, whose file must not overrule the arguments; the last value counts.
        {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)},
        *files("params_file"),
        *([{"joint_prefix": ParameterValue(given("joint_prefix"), value_type=str)}] if given("joint_prefix") else []),
    ]
    common = {
        "package": "eom_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "arguments": ["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        "output": "screen",
    }
    planning = Node(
        executable="planning_node",
        name="eom_dynamics_planning",
        parameters=parameters,
        condition=IfCondition(LaunchConfiguration("planning")),
        respawn=True,
        respawn_delay=RESPAWN_DELAY,
        **common,
    )
    return [
        Node(executable="dynamics_node", name="eom_dynamics", parameters=[effort_command, *parameters], **common),
        planning,
        Node(
            executable="simulated_robot_node",
            name="simulated_robot",
            parameters=[*parameters, *files("simulated_robot_params_file"), {"command": command}],
            remappings=[
                (topic, given("command_topic") or topic),
                ("joint_states", LaunchConfiguration("joint_states_topic")),
            ],
            **common,
        ),
    ]


def file_given(context: LaunchContext, argument: str) -> str:
    """Return the absolute path of the file that an argument names. launch_ros ignores a missing parameter file."""
    path = LaunchConfiguration(argument).perform(context)
    if not Path(path).is_file():
        raise FileNotFoundError(f"{argument}: no such file, is {path!r}; give the path of a file")
    return str(Path(path).resolve())

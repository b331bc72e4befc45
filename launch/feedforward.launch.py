# SPDX-License-Identifier: Apache-2.0
r"""Start the feedforward node of one robot.

The packaged iiwa:

    ros2 launch eom_dynamics feedforward.launch.py

A robot of your own, in a namespace, fed by and feeding other topics:

    ros2 launch eom_dynamics feedforward.launch.py robot_file:=/path/to/arm.yaml namespace:=left \
        setpoint_topic:=planner/setpoint effort_command_topic:=effort_controller/commands

The robot as a URDF: its text, the parameters of another node, or the topic of robot_state_publisher; springs, rotors
and the part of it are parameters urdf.* (see docs/node.md) in params_file:

    ros2 launch eom_dynamics feedforward.launch.py robot_description:="$(cat arm.urdf)" params_file:=springs.yaml
    ros2 launch eom_dynamics feedforward.launch.py robot_source_node:=/robot_state_publisher
    ros2 launch eom_dynamics feedforward.launch.py robot_description_topic:=/robot_description

Left to a lifecycle manager:

    ros2 launch eom_dynamics feedforward.launch.py autostart:=false

All arguments: ros2 launch eom_dynamics feedforward.launch.py --show-args
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

TOPICS = {
    "setpoint": "setpoints come in (eom_dynamics/msg/JointTrajectorySetpoint)",
    "feedforward": "the whole feedforward goes out (eom_dynamics/msg/FeedforwardCommand)",
    "motor_setpoint": "the motor side goes out (sensor_msgs/msg/JointState)",
    "effort_command": "efforts go out (std_msgs/msg/Float64MultiArray)",
}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the node with them."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot_file",
                default_value="",
                description="Parameter file of the robot; by default the packaged iiwa, unless one of the next three "
                "says where the robot comes from.",
            ),
            DeclareLaunchArgument(
                "robot_description",
                default_value="",
                description="URDF text for the node's parameter robot_description; empty to leave it unset.",
            ),
            DeclareLaunchArgument(
                "robot_source_node",
                default_value="",
                description="Node whose parameters hold the robot, such as /robot_state_publisher; empty for none.",
            ),
            DeclareLaunchArgument(
                "robot_description_topic",
                default_value="",
                description="Topic that brings the robot as a URDF (std_msgs/msg/String); empty for none.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Further parameter file, read after robot_file; empty for none.",
            ),
            DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its topics."),
            *(
                DeclareLaunchArgument(f"{topic}_topic", default_value=topic, description=f"Topic on which {what}.")
                for topic, what in TOPICS.items()
            ),
            DeclareLaunchArgument(
                "autostart",
                default_value="true",
                choices=["true", "false"],
                description="Whether the node configures and activates itself, or waits for a lifecycle manager.",
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
                description="Least severity that the node logs.",
            ),
            OpaqueFunction(function=start_node),
        ]
    )


def start_node(context: LaunchContext) -> list[Node]:
    """Start the node; what was left empty is not passed on, since an empty parameter would override the default."""

    def given(argument: str) -> bool:
        return bool(LaunchConfiguration(argument).perform(context))

    parameters = [{"autostart": typed("autostart", bool), "use_sim_time": typed("use_sim_time", bool)}]
    if given("robot_file"):
        parameters.append(ParameterFile(LaunchConfiguration("robot_file")))
    elif not any(map(given, ("robot_description", "robot_source_node", "robot_description_topic"))):
        parameters.append(
            ParameterFile(PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"]))
        )
    if given("params_file"):
        parameters.append(ParameterFile(LaunchConfiguration("params_file")))
    parameters += [{name: typed(name, str)} for name in ("robot_description", "robot_source_node") if given(name)]
    topics = [*TOPICS, *(["robot_description"] if given("robot_description_topic") else [])]
    return [
        Node(
            package="eom_dynamics",
            executable="dynamics_node",
            name="eom_dynamics",
            namespace=LaunchConfiguration("namespace"),
            parameters=parameters,
            remappings=[(topic, LaunchConfiguration(f"{topic}_topic")) for topic in topics],
            arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
            output="screen",
        )
    ]


def typed(argument: str, value_type: type) -> ParameterValue:
    """Return the argument as a parameter of this type, whatever its text looks like."""
    return ParameterValue(LaunchConfiguration(argument), value_type=value_type)

# SPDX-License-Identifier: Apache-2.0
r"""Start the feedforward node of one robot.

The packaged iiwa:

    ros2 launch eom_dynamics feedforward.launch.py

A robot of your own, in a namespace, fed by and feeding other topics:

    ros2 launch eom_dynamics feedforward.launch.py robot_file:=/path/to/arm.yaml namespace:=left \
        setpoint_topic:=planner/setpoint effort_command_topic:=effort_controller/commands

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
    iiwa = PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"])
    return LaunchDescription(
        [
            DeclareLaunchArgument("robot_file", default_value=iiwa, description="Parameter file of the robot."),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Further parameter file, read after robot_file; empty for none.",
            ),
            DeclareLaunchArgument(
                "robot_description",
                default_value="",
                description="URDF text for the node's parameter robot_description; empty to leave it unset.",
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
    parameters = [
        ParameterFile(LaunchConfiguration("robot_file")),
        {
            "autostart": typed("autostart", bool),
            "use_sim_time": typed("use_sim_time", bool),
        },
    ]
    if LaunchConfiguration("params_file").perform(context):
        parameters.append(ParameterFile(LaunchConfiguration("params_file")))
    if LaunchConfiguration("robot_description").perform(context):
        parameters.append({"robot_description": typed("robot_description", str)})
    return [
        Node(
            package="eom_dynamics",
            executable="dynamics_node",
            name="eom_dynamics",
            namespace=LaunchConfiguration("namespace"),
            parameters=parameters,
            remappings=[(topic, LaunchConfiguration(f"{topic}_topic")) for topic in TOPICS],
            arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
            output="screen",
        )
    ]


def typed(argument: str, value_type: type) -> ParameterValue:
    """Return the argument as a parameter of this type, whatever its text looks like."""
    return ParameterValue(LaunchConfiguration(argument), value_type=value_type)

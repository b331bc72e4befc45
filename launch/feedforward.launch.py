# SPDX-License-Identifier: Apache-2.0
r"""Start the feedforward node of a robot, and the planning node beside it.

The packaged iiwa:

    ros2 launch eom_dynamics feedforward.launch.py

Your own robot, in a namespace, with remapped topics:

    ros2 launch eom_dynamics feedforward.launch.py robot_file:=/path/to/arm.yaml namespace:=left \
        setpoint_topic:=planner/setpoint effort_command_topic:=effort_controller/commands

A robot described by a URDF: in a file, as text, in the parameters of another node, or on the topic of
robot_state_publisher. Springs, rotors and the tip are parameters urdf.* (docs/node.md) in params_file:

    ros2 launch eom_dynamics feedforward.launch.py robot_file:=arm.urdf params_file:=springs.yaml
    ros2 launch eom_dynamics feedforward.launch.py robot_description:="$(cat arm.urdf)" params_file:=springs.yaml
    ros2 launch eom_dynamics feedforward.launch.py robot_source_node:=/robot_state_publisher
    ros2 launch eom_dynamics feedforward.launch.py robot_description_topic:=/robot_description

Configured and activated by a lifecycle manager, and without the planning node:

    ros2 launch eom_dynamics feedforward.launch.py autostart:=false planning:=false

All arguments: ros2 launch eom_dynamics feedforward.launch.py --show-args
"""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction
from launch.conditions import IfCondition
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from eom_dynamics.ros.robot_argument import robot_parameters

TOPICS = {
    "setpoint": "setpoints received (eom_dynamics/msg/JointTrajectorySetpoint)",
    "joint_trajectory": "trajectories received by the planning node (trajectory_msgs/msg/JointTrajectory)",
    "feedforward": "complete feedforward published (eom_dynamics/msg/FeedforwardCommand)",
    "motor_setpoint": "motor setpoints published (sensor_msgs/msg/JointState)",
    "effort_command": "effort commands published (std_msgs/msg/Float64MultiArray)",
}

# Between the end of the planning node and its next start, s.
RESPAWN_DELAY = 1.0


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the nodes with them."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot_file",
                default_value="",
                description="File of the robot: parameter file (.yaml), URDF or xacro; by default the packaged iiwa, "
                "unless one of the next three arguments gives the robot.",
            ),
            DeclareLaunchArgument(
                "robot_description",
                default_value="",
                description="URDF text for the parameter robot_description; empty to leave it unset.",
            ),
            DeclareLaunchArgument(
                "robot_source_node",
                default_value="",
                description="Node whose parameters describe the robot, such as /robot_state_publisher; empty for none.",
            ),
            DeclareLaunchArgument(
                "robot_description_topic",
                default_value="",
                description="Topic with the URDF of the robot (std_msgs/msg/String); empty for none.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Additional parameter file of both nodes, read after robot_file; empty for none.",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of the nodes and their topics."
            ),
            DeclareLaunchArgument(
                "joint_prefix",
                default_value="",
                description="Put before the names of the robot's joints, motors and tools, such as left_.",
            ),
            *(
                DeclareLaunchArgument(f"{topic}_topic", default_value=topic, description=f"Topic of {what}.")
                for topic, what in TOPICS.items()
            ),
            DeclareLaunchArgument(
                "autostart",
                default_value="true",
                choices=["true", "false"],
                description="Whether the feedforward node configures and activates itself, or waits for a lifecycle "
                "manager.",
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
    """Start the nodes. Empty arguments are not passed on, since an empty parameter would override the default."""

    def given(argument: str) -> bool:
        return bool(LaunchConfiguration(argument).perform(context))

    parameters = []
    if given("robot_file"):
        parameters += robot_parameters(file_given(context, "robot_file"))
    elif not any(map(given, ("robot_description", "robot_source_node", "robot_description_topic"))):
        parameters.append(
            ParameterFile(PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"]))
        )
    # After the robot, whose file must not overrule the arguments; the last value counts.
    switches = {"use_sim_time": typed("use_sim_time", bool)}
    more = [ParameterFile(file_given(context, "params_file"))] if given("params_file") else []
    more += [
        {name: typed(name, str)} for name in ("robot_description", "robot_source_node", "joint_prefix") if given(name)
    ]
    topics = [*TOPICS, *(["robot_description"] if given("robot_description_topic") else [])]
    common = {
        "package": "eom_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "remappings": [(topic, LaunchConfiguration(f"{topic}_topic")) for topic in topics],
        "arguments": ["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        "output": "screen",
    }
    planning = Node(
        executable="planning_node",
        name="eom_dynamics_planning",
        parameters=[*parameters, switches, *more],
        condition=IfCondition(LaunchConfiguration("planning")),
        respawn=True,
        respawn_delay=RESPAWN_DELAY,
        **common,
    )
    dynamics = Node(
        executable="dynamics_node",
        name="eom_dynamics",
        parameters=[*parameters, switches | {"autostart": typed("autostart", bool)}, *more],
        # Respawned forever, the planning node would keep the launch running without a stream.
        on_exit=[EmitEvent(event=ShutdownProcess(process_matcher=matches_action(planning)))],
        **common,
    )
    return [dynamics, planning]


def file_given(context: LaunchContext, argument: str) -> str:
    """Return the absolute path of the file that an argument names. launch_ros ignores a missing parameter file."""
    path = LaunchConfiguration(argument).perform(context)
    if not Path(path).is_file():
        raise FileNotFoundError(f"{argument}: no such file, is {path!r}; give the path of a file")
    return str(Path(path).resolve())


def typed(argument: str, value_type: type) -> ParameterValue:
    """Return the argument as a parameter of this type, whatever its text looks like."""
    return ParameterValue(LaunchConfiguration(argument), value_type=value_type)

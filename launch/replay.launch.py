# SPDX-License-Identifier: Apache-2.0
r"""Play a bag's setpoints to the feedforward node, and record what it answers.

The clock is the bag's (use_sim_time), and play begins when the node is active. It needs ros2bag:

    ros2 launch eom_dynamics replay.launch.py bag:=/path/to/bag robot_file:=/path/to/arm.yaml record:=/path/to/live

What comes out equals the offline replay of the same bag, which needs no ROS and runs at the speed of the machine:

    eom_dynamics replay /path/to/bag --robot /path/to/arm.yaml -o /path/to/offline --compare /path/to/live --match stamp

All arguments: ros2 launch eom_dynamics replay.launch.py --show-args
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit, OnProcessStart
from launch.events import Shutdown, matches_action
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.parameter_descriptions import ParameterFile
from launch_ros.substitutions import FindPackageShare
from lifecycle_msgs.msg import Transition

OUTPUTS = ("feedforward", "motor_setpoint", "effort_command")

# Time for the last answers to arrive and be written.
SETTLING = 2.0


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, start the node, and play the bag to it."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="The bag: what ros2 bag play takes."),
            DeclareLaunchArgument(
                "robot_file",
                default_value=PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"]),
                description="Parameter file of the robot; by default the packaged iiwa.",
            ),
            DeclareLaunchArgument(
                "params_file", default_value="", description="Further parameter file, read after it; empty for none."
            ),
            DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its topics."),
            DeclareLaunchArgument(
                "setpoint_topic", default_value="setpoint", description="Topic of the bag that has the setpoints."
            ),
            DeclareLaunchArgument(
                "record", default_value="", description="Bag to record the node's answers to; empty for none."
            ),
            DeclareLaunchArgument("storage", default_value="mcap", description="Storage of that bag."),
            DeclareLaunchArgument("rate", default_value="1.0", description="How many times as fast as recorded."),
            DeclareLaunchArgument(
                "delay",
                default_value="2.0",
                description="Seconds between the node being active and the first message, for all to find each other.",
            ),
            DeclareLaunchArgument("log_level", default_value="info", description="Least severity that the node logs."),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list:
    """Start recorder and node; then bring the node up, then play, then end."""

    def given(argument: str) -> str:
        return LaunchConfiguration(argument).perform(context)

    namespace = "/" + given("namespace").strip("/")
    prefix = namespace.rstrip("/")
    node = LifecycleNode(
        package="eom_dynamics",
        executable="dynamics_node",
        name="eom_dynamics",
        namespace=namespace,
        parameters=[
            # Here the launch brings it up, so as to see when it is active.
            {"use_sim_time": True, "autostart": False},
            ParameterFile(LaunchConfiguration("robot_file")),
            *([ParameterFile(LaunchConfiguration("params_file"))] if given("params_file") else []),
        ],
        remappings=[("setpoint", LaunchConfiguration("setpoint_topic"))],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
    )
    play = ExecuteProcess(
        cmd=[
            *("ros2", "bag", "play", LaunchConfiguration("bag"), "--clock"),
            *("--rate", LaunchConfiguration("rate"), "--delay", LaunchConfiguration("delay")),
        ],
        output="screen",
    )
    recorder = ExecuteProcess(
        cmd=[
            *("ros2", "bag", "record", "--output", LaunchConfiguration("record")),
            *("--storage", LaunchConfiguration("storage"), "--topics"),
            *(f"{prefix}/{topic}" for topic in OUTPUTS),
        ],
        output="screen",
    )

    def transition(number: int) -> EmitEvent:
        return EmitEvent(event=ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=number))

    return [
        *([recorder] if given("record") else []),
        RegisterEventHandler(
            OnProcessStart(target_action=node, on_start=[transition(Transition.TRANSITION_CONFIGURE)])
        ),
        RegisterEventHandler(
            OnStateTransition(
                target_lifecycle_node=node,
                start_state="configuring",
                goal_state="inactive",
                entities=[transition(Transition.TRANSITION_ACTIVATE)],
            )
        ),
        RegisterEventHandler(OnStateTransition(target_lifecycle_node=node, goal_state="active", entities=[play])),
        # A robot that cannot be used: the node has said why, and waits in vain here.
        RegisterEventHandler(
            OnStateTransition(
                target_lifecycle_node=node,
                start_state="configuring",
                goal_state="unconfigured",
                entities=[EmitEvent(event=Shutdown(reason="the node has no robot"))],
            )
        ),
        RegisterEventHandler(
            OnProcessExit(
                target_action=play,
                on_exit=[
                    TimerAction(period=SETTLING, actions=[EmitEvent(event=Shutdown(reason="the bag has been played"))])
                ],
            )
        ),
        RegisterEventHandler(
            OnProcessExit(target_action=node, on_exit=[EmitEvent(event=Shutdown(reason="the node has ended"))])
        ),
        node,
    ]

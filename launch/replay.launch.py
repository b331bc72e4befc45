# SPDX-License-Identifier: Apache-2.0
r"""Play the setpoints of a bag to the feedforward node, and record its commands.

Time is that of the bag (use_sim_time), and playing begins when the node is active. The exit code is 1 unless the whole
bag was played, and setpoints of it have reached the node. It needs ros2bag:

    ros2 launch eom_dynamics replay.launch.py bag:=/path/to/bag robot_file:=/path/to/arm.yaml record:=/path/to/live

The commands equal those of the offline replay of the same bag, which needs no ROS:

    eom_dynamics replay /path/to/bag --robot /path/to/arm.yaml -o /path/to/offline --compare /path/to/live --match stamp

All arguments: ros2 launch eom_dynamics replay.launch.py --show-args
"""

from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray
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
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.parameter_descriptions import ParameterFile
from launch_ros.ros_adapters import get_ros_node
from launch_ros.substitutions import FindPackageShare
from lifecycle_msgs.msg import Transition

from eom_dynamics.ros.robot_argument import robot_parameters

OUTPUTS = ("feedforward", "motor_setpoint", "effort_command")

# For the last commands to arrive and be written, s.
SETTLING_TIME = 2.0

# Commands of a node that await the recorder.
RECORDED_DEPTH = 1000

# For the node to acknowledge the last setpoints, ms.
ACKNOWLEDGMENT_TIMEOUT = "10000"


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, start the node, and play the bag to it."""
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="Bag to play: a folder or file, as for ros2 bag play."),
            DeclareLaunchArgument(
                "robot_file",
                default_value=PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"]),
                description="File of the robot: parameter file (.yaml), URDF or xacro; by default the packaged iiwa.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Additional parameter file of the node, read after robot_file; empty for none.",
            ),
            DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node and its topics."),
            DeclareLaunchArgument(
                "setpoint_topic", default_value="setpoint", description="Topic of the bag with the setpoints."
            ),
            DeclareLaunchArgument(
                "record", default_value="", description="Bag to record the node's commands to; empty for none."
            ),
            DeclareLaunchArgument(
                "storage",
                default_value="mcap",
                choices=["mcap", "sqlite3"],
                description="Storage format of the recorded bag.",
            ),
            DeclareLaunchArgument(
                "rate", default_value="1.0", description="Speed of playing; 2.0 is twice as fast as recorded."
            ),
            DeclareLaunchArgument(
                "delay",
                default_value="5.0",
                description="Seconds from the activation of the node to the first message: player, recorder and node "
                "must have discovered each other, which may take 3 s.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                choices=["debug", "info", "warn", "error", "fatal"],
                description="Minimum severity that the node logs.",
            ),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list:
    """Start the recorder and the node, activate the node, play the bag, and shut down."""

    def given(argument: str) -> str:
        return LaunchConfiguration(argument).perform(context)

    if not Path(given("bag")).exists():
        raise FileNotFoundError(f"bag: no such folder or file, is {given('bag')!r}; give the path of a bag")
    namespace = "/" + given("namespace").strip("/")
    commands = [f"{namespace.rstrip('/')}/{topic}" for topic in OUTPUTS]
    node = LifecycleNode(
        package="eom_dynamics",
        executable="dynamics_node",
        name="eom_dynamics",
        namespace=namespace,
        parameters=[
            *(robot_parameters(file_given(context, "robot_file")) if given("robot_file") else []),
            *([ParameterFile(file_given(context, "params_file"))] if given("params_file") else []),
            # The launch file activates it, in order to play from then on. Last, so that no file overrules it.
            {"use_sim_time": True, "autostart": False},
            # Every command is recorded, including those computed while the recorder stalls.
            {f"qos_overrides.{command}.publisher.depth": RECORDED_DEPTH for command in commands},
        ],
        remappings=[("setpoint", LaunchConfiguration("setpoint_topic"))],
        arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        output="screen",
    )
    play = ExecuteProcess(
        cmd=[
            *("ros2", "bag", "play", LaunchConfiguration("bag"), "--clock"),
            *("--rate", LaunchConfiguration("rate"), "--delay", LaunchConfiguration("delay")),
            # Otherwise setpoints that are still in transit when the player exits are lost.
            *("--wait-for-all-acked", ACKNOWLEDGMENT_TIMEOUT),
            # In the recording of a whole stack; the node publishes its own.
            *("--exclude-topics", *commands),
        ],
        output="screen",
    )
    recorder = ExecuteProcess(
        cmd=[
            *("ros2", "bag", "record", "--output", LaunchConfiguration("record")),
            *("--storage", LaunchConfiguration("storage"), "--topics", *commands),
        ],
        output="screen",
    )

    def transition(number: int) -> EmitEvent:
        return EmitEvent(event=ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=number))

    def end(failure: str = "") -> OpaqueFunction:
        """End the launch, with exit code 1 and this line if there is a failure."""

        def act(context: LaunchContext) -> list[EmitEvent] | None:
            # Once: launch_ros fails on a second Shutdown, and with it ros2 launch.
            if context.is_shutdown:
                return None
            if failure:
                raise RuntimeError(failure)
            return [EmitEvent(event=Shutdown(reason="playing has ended"))]

        return OpaqueFunction(function=act)

    # Counts of setpoints that the node reports, the latest last.
    received: list[int] = []

    def on_diagnostics(message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == f"{namespace}/eom_dynamics: feedforward".lstrip("/"):
                received.extend(int(entry.value) for entry in status.values if entry.key == "received")

    get_ros_node(context).create_subscription(DiagnosticArray, "/diagnostics", on_diagnostics, 10)

    def end_of_playing(context: LaunchContext) -> list[OpaqueFunction]:
        nothing = f"bag: no setpoint of it has reached the node on {given('setpoint_topic')}: check setpoint_topic, or "
        return [end(f"{nothing}try a longer delay" if received and not received[-1] else "")]

    def on_play_exit(event: ProcessExited, context: LaunchContext) -> TimerAction | OpaqueFunction:
        if event.returncode:
            return end(f"bag: ros2 bag play ended with exit code {event.returncode}; its output above says why")
        received.clear()  # only what the node reports from now on tells of the whole bag
        return TimerAction(period=SETTLING_TIME, actions=[OpaqueFunction(function=end_of_playing)])

    without_robot = "bag not played: the node could not be configured or activated; its error above says why"
    return [
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
        # From configuring, or after an exception in a transition.
        RegisterEventHandler(
            OnStateTransition(target_lifecycle_node=node, goal_state="unconfigured", entities=[end(without_robot)])
        ),
        RegisterEventHandler(OnProcessExit(target_action=play, on_exit=on_play_exit)),
        RegisterEventHandler(
            OnProcessExit(
                target_action=node, on_exit=[end("the node ended while the bag was played; its output above says why")]
            )
        ),
        RegisterEventHandler(
            OnProcessExit(
                target_action=recorder,
                on_exit=[end("record: ros2 bag record ended while the bag was played; its output above says why")],
            )
        ),
        *([recorder] if given("record") else []),
        node,
    ]


def file_given(context: LaunchContext, argument: str) -> str:
    """Return the absolute path of the file that an argument names. launch_ros ignores a missing parameter file."""
    path = LaunchConfiguration(argument).perform(context)
    if not Path(path).is_file():
        raise FileNotFoundError(f"{argument}: no such file, is {path!r}; give the path of a file")
    return str(Path(path).resolve())

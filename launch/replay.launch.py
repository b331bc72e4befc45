# SPDX-License-Identifier: Apache-2.0
r"""Play the setpoints of a bag to the feedforward node, and record its commands.

Time is that of the bag (use_sim_time), and playing begins when the node is active. The exit code is 1 unless the whole
bag was played, and setpoints of it have reached the node. It needs ros2bag:

    ros2 launch eom_dynamics replay.launch.py bag:=/path/to/bag robot_file:=/path/to/arm.yaml record:=/path/to/live

The commands equal those of the offline replay of the same bag, which needs no ROS:

    eom_dynamics replay /path/to/bag --robot /path/to/arm.yaml -o /path/to/offline --compare /path/to/live --match stamp

All arguments: ros2 launch eom_dynamics replay.launch.py --show-args
"""

import shutil
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
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.ros_adapters import get_ros_node
from lifecycle_msgs.msg import Transition

from eom_dynamics.ros.launch_arguments import (
    LEVELS,
    PACKAGED_ROBOT,
    argument,
    files,
    of_all_nodes,
    robot,
    rviz_nodes,
    rviz_switch,
    value_of,
)

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
            argument(
                "robot_file",
                "File of the robot (parameter file .yaml, URDF or xacro), or name of a packaged one.",
                PACKAGED_ROBOT,
            ),
            argument("params_file", "Additional parameter file of the node, read after robot_file; empty for none."),
            argument("namespace", "Namespace of the node and its topics."),
            argument("setpoint_topic", "Topic of the bag with the setpoints.", "setpoint"),
            argument("record", "Bag to record the node's commands to; empty for none."),
            argument("storage", "Storage format of the recorded bag.", "mcap", ["mcap", "sqlite3"]),
            argument("rate", "Speed of playing; 2.0 is twice as fast as recorded.", "1.0"),
            argument(
                "delay",
                "Seconds from the activation of the node to the first message: player, recorder and node "
                "must have discovered each other, which may take 3 s.",
                "5.0",
            ),
            rviz_switch(),
            argument("joint_states_topic", "Topic of the bag with the joint states that RViz shows.", "joint_states"),
            argument("log_level", "Minimum severity that the node logs.", "info", LEVELS),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list:
    """Start the recorder and the node, activate the node, play the bag, and shut down."""
    bag = value_of(context, "bag")
    if not Path(bag).exists():
        raise FileNotFoundError(f"bag: no such folder or file, is {bag!r}; give the path of a bag")
    namespace = "/" + value_of(context, "namespace").strip("/")
    commands = [f"{namespace.rstrip('/')}/{topic}" for topic in OUTPUTS]
    node = LifecycleNode(
        executable="dynamics_node",
        name="eom_dynamics",
        parameters=[
            {"safety": "permissive"},  # as recorded, unless a file says otherwise
            *robot(context),
            *files(context, "params_file"),
            # The launch file activates it, in order to play from then on. Last, so that no file overrules it.
            {"use_sim_time": True, "autostart": False},
            # Every command is recorded, including those computed while the recorder stalls.
            {f"qos_overrides.{command}.publisher.depth": RECORDED_DEPTH for command in commands},
        ],
        remappings=[("setpoint", LaunchConfiguration("setpoint_topic"))],
        **of_all_nodes() | {"namespace": namespace},
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
        topic = value_of(context, "setpoint_topic")
        nothing = f"bag: no setpoint of it has reached the node on {topic}: check setpoint_topic, or try a longer delay"
        return [end(nothing if received and not received[-1] else "")]

    # Of this launch: ros2 bag record refuses a folder that exists.
    own_recording = value_of(context, "record") and not Path(value_of(context, "record")).exists()
    empty: list[Path] = []

    def on_play_exit(event: ProcessExited, context: LaunchContext) -> TimerAction | OpaqueFunction:
        if event.returncode:
            if own_recording and not any(received):
                empty.append(Path(value_of(context, "record")))
            return end(f"bag: ros2 bag play ended with exit code {event.returncode}; its output above says why")
        received.clear()  # only what the node reports from now on tells of the whole bag
        return TimerAction(period=SETTLING_TIME, actions=[OpaqueFunction(function=end_of_playing)])

    def on_record_exit(event: ProcessExited, context: LaunchContext) -> OpaqueFunction:
        for folder in empty:
            shutil.rmtree(folder, ignore_errors=True)
        return end("record: ros2 bag record ended while the bag was played; its output above says why")

    # Not before, so that a node without a robot leaves no empty bag.
    playing = [recorder, play] if value_of(context, "record") else [play]
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
        RegisterEventHandler(OnStateTransition(target_lifecycle_node=node, goal_state="active", entities=playing)),
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
        RegisterEventHandler(OnProcessExit(target_action=recorder, on_exit=on_record_exit)),
        *rviz_nodes(context, value_of(context, "robot_file"), "", True),
        node,
    ]

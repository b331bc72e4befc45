# SPDX-License-Identifier: Apache-2.0
"""Arguments and nodes of the launch files; needs launch_ros, which comes with ROS 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, EmitEvent
from launch.conditions import IfCondition
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from ..robot.readers.files import located
from .robot_argument import file_of_robot, robot_parameters, urdf_to_show

PACKAGED_ROBOT = "iiwa"

LEVELS = ["debug", "info", "warn", "error", "fatal"]

TOPICS = {
    "setpoint": "setpoints received (eom_dynamics/msg/JointTrajectorySetpoint)",
    "joint_trajectory": "trajectories received (trajectory_msgs/msg/JointTrajectory)",
    "target": "target positions received (sensor_msgs/msg/JointState)",
    "payload": "payload received (eom_dynamics/msg/Payload)",
    "joint_states": "measured joint states (sensor_msgs/msg/JointState)",
    "motor_states": "measured motor states (sensor_msgs/msg/JointState)",
    "feedforward": "complete feedforward published (eom_dynamics/msg/FeedforwardCommand)",
    "motor_setpoint": "motor setpoints published (sensor_msgs/msg/JointState)",
    "effort_command": "effort commands published (std_msgs/msg/Float64MultiArray)",
}
"""Topics of the nodes with an argument each, ``<topic>_topic``, and their contents."""

# Parameters of the feedforward node with an argument each: type, and meaning.
_SETTINGS: dict[str, tuple[type, str]] = {
    "safety": (str, "level of safety: strict, permissive or off"),
    "setpoint_timeout": (float, "time without setpoints until the arm is stopped, in s"),
    "stream_rate": (float, "commands per second of trajectories and targets"),
}

# Between the end of a node and its next start, s.
_RESPAWN_DELAY = 1.0


def argument(name: str, what: str, default: Any = "", choices: list[str] | None = None) -> DeclareLaunchArgument:
    """Declare an argument with a default; ``what`` describes it."""
    return DeclareLaunchArgument(name, default_value=default, description=what, choices=choices)


def switch(name: str, description: str, default: str) -> DeclareLaunchArgument:
    """Declare an argument that is true or false; Python writes True and False."""
    return argument(name, description, default, ["true", "false", "True", "False"])


def stack_arguments() -> list[DeclareLaunchArgument]:
    """Arguments of the launch files that start the feedforward node and the planning node."""
    return [
        argument("params_file", "Additional parameter file of all nodes, read after robot_file; empty for none."),
        *(argument(f"{topic}_topic", f"Topic of {what}.", topic) for topic, what in TOPICS.items()),
        *(argument(name, f"The {what}; empty for the node's default.") for name, (_, what) in _SETTINGS.items()),
        argument("namespace", "Namespace of the nodes and their topics."),
        argument("joint_prefix", "Prefix of the names of the robot's joints, motors and tools, such as left_."),
        switch(
            "required",
            "End the launch with the feedforward node, and fail if it fails; false: the other nodes continue.",
            "true",
        ),
        switch("respawn", "Restart also the feedforward node when it ends.", "false"),
        switch("planning", "Start the planning node, for its services.", "true"),
        rviz_switch(),
        switch("use_sim_time", "Use the time of the topic /clock.", "false"),
        argument("log_level", "Minimum severity to log.", "info", LEVELS),
    ]


def rviz_switch() -> DeclareLaunchArgument:
    """Argument of the launch files that start :func:`rviz_nodes`."""
    return switch("rviz", "Show the robot in RViz.", "false")


def value_of(context: LaunchContext, name: str) -> str:
    """Value of an argument."""
    return LaunchConfiguration(name).perform(context)


def chosen(context: LaunchContext, name: str) -> bool:
    """Value of a switch."""
    return value_of(context, name).lower() == "true"


def file_given(context: LaunchContext, name: str, locate: Callable[[str], str] = located) -> str:
    """Return the absolute path of the file that an argument names. launch_ros ignores a missing parameter file."""
    path = locate(value_of(context, name))
    if not Path(path).is_file():
        raise FileNotFoundError(f"{name}: no such file, is {path!r}; give the path of a file")
    return str(Path(path).resolve())


def robot(context: LaunchContext, default: str = "") -> list[Any]:
    """Node parameters for the robot of the argument ``robot_file``, or for a packaged one if it is not given."""
    if value_of(context, "robot_file"):
        return list(robot_parameters(file_given(context, "robot_file", file_of_robot)))
    return list(robot_parameters(file_of_robot(default))) if default else []


def files(context: LaunchContext, *names: str) -> list[ParameterFile]:
    """Parameter files named by arguments; empty arguments are skipped, and empty files refused."""
    files = []
    for name in names:
        if not value_of(context, name):
            continue
        path = file_given(context, name)
        if not Path(path).read_text(encoding="utf-8").strip():
            raise ValueError(f"{name}: {path} is empty; write parameters into it, as /**: {{ros__parameters: {{…}}}}")
        files.append(ParameterFile(path))
    return files


def typed(name: str, value_type: type) -> ParameterValue:
    """Return the argument as a parameter of this type."""
    return ParameterValue(LaunchConfiguration(name), value_type=value_type)


def texts(context: LaunchContext, *names: str) -> list[dict[str, ParameterValue]]:
    """Arguments as string parameters; empty arguments are skipped, so that defaults apply."""
    return [{name: typed(name, str)} for name in names if value_of(context, name)]


def settings(context: LaunchContext) -> list[dict[str, ParameterValue]]:
    """Parameters of the feedforward node set by launch arguments."""
    return [{name: typed(name, kind)} for name, (kind, _) in _SETTINGS.items() if value_of(context, name)]


def of_all_nodes() -> dict[str, Any]:
    """Arguments of ``launch_ros.actions.Node`` shared by all nodes of a launch file."""
    return {
        "package": "eom_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "arguments": ["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        "output": "screen",
    }


def remappings(*topics: str) -> list[tuple[str, LaunchConfiguration]]:
    """Names of topics by their arguments, of :data:`TOPICS` and others."""
    return [(topic, LaunchConfiguration(f"{topic}_topic")) for topic in (*TOPICS, *topics)]


def end_with(context: LaunchContext, executable: str) -> dict[str, Any]:
    """Arguments of the node that all others need, according to the arguments ``required`` and ``respawn``.

    A launch ends with a node that is required, and fails if the node did: a planning node, which is restarted
    forever, would keep it running.
    """
    if chosen(context, "respawn"):
        return {"respawn": True, "respawn_delay": _RESPAWN_DELAY}
    if not chosen(context, "required"):
        return {}

    def end(event: ProcessExited, context: LaunchContext) -> list[EmitEvent]:
        # Once: launch_ros fails on a second Shutdown, and with it ros2 launch.
        if context.is_shutdown:
            return []
        if event.returncode:
            raise RuntimeError(f"{executable} has ended with exit code {event.returncode}; its output above says why")
        return [EmitEvent(event=Shutdown(reason=f"{executable} has ended"))]

    return {"on_exit": end}


def planning_node(parameters: Sequence[Any], **options: Any) -> Node:
    """Start the planning node if the argument ``planning`` is true; restart it whenever it ends."""
    return Node(
        executable="planning_node",
        name="eom_dynamics_planning",
        parameters=parameters,
        condition=IfCondition(LaunchConfiguration("planning")),
        respawn=True,
        respawn_delay=_RESPAWN_DELAY,
        **options,
    )


def rviz_nodes(context: LaunchContext, robot_source: str, description_topic: str, use_sim_time: Any) -> list[Node]:
    """RViz if the argument ``rviz`` is true, and robot_state_publisher unless another node publishes the description.

    Args:
        context: of the launch file, with an argument ``joint_states_topic``.
        robot_source: file of the robot, or its URDF as text; empty for the packaged robot.
        description_topic: topic of the URDF of another node; empty if this node publishes it.
        use_sim_time: whether to take the time from the topic /clock.
    """
    if not chosen(context, "rviz"):
        return []
    common = {"namespace": LaunchConfiguration("namespace"), "output": "screen"}
    options = ["-d", PathJoinSubstitution([FindPackageShare("eom_dynamics"), "layouts", "robot.rviz"])]
    nodes = []
    if not description_topic:
        prefix = LaunchConfiguration("joint_prefix", default="").perform(context)
        text, root = urdf_to_show(robot_source or PACKAGED_ROBOT, prefix)
        described = {"robot_description": ParameterValue(text, value_type=str), "use_sim_time": use_sim_time}
        options += ["-f", root]
        nodes = [
            Node(
                package="robot_state_publisher",
                executable="robot_state_publisher",
                parameters=[described],
                remappings=[("joint_states", LaunchConfiguration("joint_states_topic"))],
                **common,
            )
        ]
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=options,
        parameters=[{"use_sim_time": use_sim_time}],
        # The layout has the topic of the root namespace.
        remappings=[("/robot_description", description_topic or "robot_description")],
        **common,
    )
    return [*nodes, rviz]

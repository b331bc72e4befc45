# SPDX-License-Identifier: Apache-2.0
"""Arguments and nodes of the launch files; needs launch_ros, which comes with ROS 2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, EmitEvent, OpaqueFunction
from launch.conditions import IfCondition
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

from ..robot.readers.files import located
from .robot_argument import robot_parameters, urdf_to_show

PACKAGED_ROBOT = PathJoinSubstitution([FindPackageShare("eom_dynamics"), "config", "iiwa.yaml"])

LEVELS = ["debug", "info", "warn", "error", "fatal"]

# Between the end of the planning node and its next start, s.
_RESPAWN_DELAY = 1.0


def argument(name: str, what: str, default: Any = "", choices: list[str] | None = None) -> DeclareLaunchArgument:
    """Declare an argument with a default; ``what`` describes it."""
    return DeclareLaunchArgument(name, default_value=default, description=what, choices=choices)


def switch(name: str, description: str, default: str) -> DeclareLaunchArgument:
    """Declare an argument that is true or false."""
    return argument(name, description, default, ["true", "false"])


def stack_arguments() -> list[DeclareLaunchArgument]:
    """Arguments of the launch files that start the feedforward node and the planning node."""
    return [
        argument("namespace", "Namespace of the nodes and their topics."),
        argument("joint_prefix", "Put before the names of the robot's joints, motors and tools, such as left_."),
        switch("planning", "Whether to start the planning node: services, and trajectories to be played.", "true"),
        rviz_switch(),
        switch("use_sim_time", "Whether to take the time from the topic /clock.", "false"),
        argument("log_level", "Minimum severity to log.", "info", LEVELS),
    ]


def rviz_switch() -> DeclareLaunchArgument:
    """Argument of the launch files that start :func:`rviz_nodes`."""
    return switch("rviz", "Whether to show the robot in RViz.", "false")


def given(context: LaunchContext, name: str) -> str:
    """Value of an argument."""
    return LaunchConfiguration(name).perform(context)


def file_given(context: LaunchContext, name: str) -> str:
    """Return the absolute path of the file that an argument names. launch_ros ignores a missing parameter file."""
    path = located(given(context, name))
    if not Path(path).is_file():
        raise FileNotFoundError(f"{name}: no such file, is {path!r}; give the path of a file")
    return str(Path(path).resolve())


def robot(context: LaunchContext) -> list[Any]:
    """Node parameters for the robot of the argument ``robot_file``, if given."""
    return list(robot_parameters(file_given(context, "robot_file"))) if given(context, "robot_file") else []


def files(context: LaunchContext, *names: str) -> list[ParameterFile]:
    """Parameter files named by arguments; empty arguments are skipped."""
    return [ParameterFile(file_given(context, name)) for name in names if given(context, name)]


def typed(name: str, value_type: type) -> ParameterValue:
    """Return the argument as a parameter of this type."""
    return ParameterValue(LaunchConfiguration(name), value_type=value_type)


def texts(context: LaunchContext, *names: str) -> list[dict[str, ParameterValue]]:
    """Arguments as string parameters; empty ones are skipped, so that defaults apply."""
    return [{name: typed(name, str)} for name in names if given(context, name)]


def of_all_nodes() -> dict[str, Any]:
    """Arguments of ``launch_ros.actions.Node`` shared by all nodes of a launch file."""
    return {
        "package": "eom_dynamics",
        "namespace": LaunchConfiguration("namespace"),
        "arguments": ["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        "output": "screen",
    }


def end_of_launch(node: str) -> OpaqueFunction:
    """End the launch, when a node has ended without which the others are of no use; for ``on_exit`` of the node.

    A planning node, which is respawned forever, would keep it running.
    """

    def end(context: LaunchContext) -> list[EmitEvent]:
        # Once: launch_ros fails on a second Shutdown, and with it ros2 launch.
        return [] if context.is_shutdown else [EmitEvent(event=Shutdown(reason=f"{node} has ended"))]

    return OpaqueFunction(function=end)


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
        description_topic: topic on which another node publishes the URDF; empty for none.
        use_sim_time: whether to take the time from the topic /clock.
    """
    if given(context, "rviz") != "true":
        return []
    common = {"namespace": LaunchConfiguration("namespace"), "output": "screen"}
    options = ["-d", PathJoinSubstitution([FindPackageShare("eom_dynamics"), "layouts", "robot.rviz"])]
    nodes = []
    if not description_topic:
        prefix = LaunchConfiguration("joint_prefix", default="").perform(context)
        text, root = urdf_to_show(robot_source or PACKAGED_ROBOT.perform(context), prefix)
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

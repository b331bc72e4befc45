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

With RViz, which shows the robot at the positions on the topic joint_states:

    ros2 launch eom_dynamics feedforward.launch.py rviz:=true

All arguments: ros2 launch eom_dynamics feedforward.launch.py --show-args
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction
from launch_ros.actions import Node

from eom_dynamics.ros.launch_arguments import (
    PACKAGED_ROBOT,
    argument,
    end_with,
    files,
    of_all_nodes,
    planning_node,
    remappings,
    robot,
    rviz_nodes,
    settings,
    stack_arguments,
    switch,
    texts,
    typed,
    value_of,
)


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments and start the nodes with them."""
    return LaunchDescription(
        [
            argument(
                "robot_file",
                "File of the robot (parameter file .yaml, URDF or xacro) or name of a packaged one; by default iiwa, "
                "unless one of the next three arguments gives the robot.",
            ),
            argument("robot_description", "URDF text for the parameter robot_description; empty to leave it unset."),
            argument(
                "robot_source_node",
                "Node whose parameters describe the robot, such as /robot_state_publisher; empty for none.",
            ),
            argument(
                "robot_description_topic", "Topic with the URDF of the robot (std_msgs/msg/String); empty for none."
            ),
            switch(
                "autostart",
                "Whether the feedforward node configures and activates itself, or waits for a lifecycle manager.",
                "true",
            ),
            *stack_arguments(),
            OpaqueFunction(function=start_nodes),
        ]
    )


def start_nodes(context: LaunchContext) -> list[Node]:
    """Start the nodes."""
    described = [
        value_of(context, f"robot_{name}") for name in ("file", "description", "source_node", "description_topic")
    ]
    parameters = robot(context, "" if any(described) else PACKAGED_ROBOT)
    # After the robot, whose file must not overrule the arguments; the last value counts.
    switches = {"use_sim_time": typed("use_sim_time", bool)}
    more = [*files(context, "params_file"), *texts(context, "robot_description", "robot_source_node", "joint_prefix")]
    topics = ["robot_description"] if value_of(context, "robot_description_topic") else []
    common = of_all_nodes() | {"remappings": remappings(*topics)}
    planning = planning_node([*parameters, switches, *more], **common)
    dynamics = Node(
        executable="dynamics_node",
        name="eom_dynamics",
        parameters=[*parameters, switches | {"autostart": typed("autostart", bool)}, *more, *settings(context)],
        **end_with(context, "dynamics_node"),
        **common,
    )
    # A node that has the description in its parameters publishes it, too, if it is a robot_state_publisher.
    published = value_of(context, "robot_description_topic") or (
        "robot_description" if value_of(context, "robot_source_node") else ""
    )
    source = value_of(context, "robot_file") or value_of(context, "robot_description")
    return [dynamics, planning, *rviz_nodes(context, source, published, typed("use_sim_time", bool))]

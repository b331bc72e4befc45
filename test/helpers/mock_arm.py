# SPDX-License-Identifier: Apache-2.0
"""joint_trajectory_controller on mock hardware, which follows commands without delay, under a controller manager."""

import json

import processes
from managed_arm import node_path
from trajectory_goals import HOME, NAMES

_TYPES = {
    "joint_state_broadcaster": "joint_state_broadcaster/JointStateBroadcaster",
    "trajectory_controller": "joint_trajectory_controller/JointTrajectoryController",
}

ACTION = "/trajectory_controller/follow_joint_trajectory"


def _description():
    links = "".join(f'<link name="link{k}"/>' for k in range(len(NAMES) + 1))
    joint = (
        '<joint name="{0}" type="revolute"><parent link="link{1}"/><child link="link{2}"/><axis xyz="0 0 1"/>'
        '<limit lower="-3" upper="4" velocity="3" effort="90"/></joint>'
    )
    start, speed = '<{0}_interface name="position">{1}</{0}_interface>', '<{0}_interface name="velocity"/>'
    value = '<param name="initial_value">{}</param>'
    states = ""
    for name, q in zip(NAMES, HOME, strict=True):
        interfaces = "".join((start + speed).format(x, value.format(q)) for x in ("command", "state"))
        states += f'<joint name="{name}">{interfaces}</joint>'
    tree = "".join(joint.format(name, k, k + 1) for k, name in enumerate(NAMES))
    plugin = "<hardware><plugin>mock_components/GenericSystem</plugin></hardware>"
    control = f'<ros2_control name="mock" type="system">{plugin}{states}</ros2_control>'
    return f'<robot name="arm">{links}{tree}{control}</robot>'


def start(node, executor, folder):
    """Start the manager with both controllers active, at 250 Hz; returns its process."""
    from controller_manager_msgs.srv import ConfigureController, LoadController, SwitchController
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import String

    file = folder / "parameters.yaml"
    both = ["position", "velocity"]
    controllers = {name: {"type": kind, "params_file": [str(file)]} for name, kind in _TYPES.items()}
    controller = {"joints": NAMES, "command_interfaces": both, "state_interfaces": both}
    parameters = {
        "controller_manager": {"ros__parameters": {"update_rate": 250, **controllers}},
        "trajectory_controller": {"ros__parameters": controller},
    }
    file.write_text(json.dumps(parameters))
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, "/robot_description", latched).publish(String(data=_description()))
    process = processes.popen([node_path(), "--ros-args", "--params-file", file])

    def call(kind, **fields):
        name = "".join(f"_{x.lower()}" if x.isupper() else x for x in kind.__name__).strip("_")
        client = node.create_client(kind, f"/controller_manager/{name}")
        assert client.wait_for_service(timeout_sec=20)
        future = client.call_async(kind.Request(**fields))
        executor.spin_until_future_complete(future, 20)
        assert future.result().ok

    for name in _TYPES:
        call(LoadController, name=name)
        call(ConfigureController, name=name)
    call(SwitchController, activate_controllers=[*_TYPES], strictness=SwitchController.Request.STRICT)
    return process

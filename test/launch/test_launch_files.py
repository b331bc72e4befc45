# SPDX-License-Identifier: Apache-2.0
"""All launch files on a ROS 2 installation, without starting nodes: arguments, their defaults and files, and RViz."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from launch import LaunchContext
from launch.actions import OpaqueFunction
from launching import description_of, error_line, refusal
from paths import CONFIG

FILES = {
    "feedforward.launch.py": ("robot_file", "params_file"),
    "replay.launch.py": ("robot_file", "params_file"),
    "simulated_robot.launch.py": ("robot_file", "params_file", "simulated_robot_params_file"),
}
"""Launch files, and their arguments that name files."""


def bag(file: str, folder: Path) -> dict[str, object]:
    """The argument without a default."""
    return {"bag": folder} if file == "replay.launch.py" else {}


@pytest.mark.parametrize("file", FILES)
def test_every_argument_is_described_and_only_the_bag_must_be_given(file: str, tmp_path: Path) -> None:
    arguments = description_of(file).get_launch_arguments()
    assert all(argument.description for argument in arguments)
    assert [argument.name for argument in arguments if argument.default_value is None] == [*bag(file, tmp_path)]


@pytest.mark.parametrize(("file", "argument"), [(file, name) for file, names in FILES.items() for name in names])
def test_a_missing_file_is_refused(file: str, argument: str, tmp_path: Path) -> None:
    error = error_line(refusal(file, **{**bag(file, tmp_path), argument: "/nowhere.yaml"}))
    assert error == f"{argument}: no such file, is '/nowhere.yaml'; give the path of a file"


@pytest.mark.parametrize("file", FILES)
def test_a_parameter_file_without_a_robot_is_refused(file: str, tmp_path: Path) -> None:
    arm = tmp_path / "arm.yaml"
    arm.write_text("/**: {ros__parameters: {start_tolerance: 2.0}}")
    error = error_line(refusal(file, robot_file=arm, **bag(file, tmp_path)))
    assert error == f"{arm}: no ros__parameters section has an entry robot"


@pytest.mark.parametrize("file", FILES)
def test_an_empty_parameter_file_is_refused(file: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.touch()
    error = error_line(refusal(file, params_file=empty, **bag(file, tmp_path)))
    assert error.startswith(f"params_file: {empty} is empty; write parameters into it")


@pytest.fixture(autouse=True)
def _no_ros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the subscription node of a launch file."""
    monkeypatch.setattr("launch_ros.ros_adapters.get_ros_node", lambda context: Mock())


def started(file: str, **arguments: object) -> dict[str, list[str]]:
    """Texts of the arguments, parameters and remappings of each RViz node that a launch file starts, by package."""
    description = description_of(file)
    context = LaunchContext()
    given = {"robot_file": CONFIG / "sea_planar_2r.yaml", "bag": CONFIG, "rviz": "true"} | arguments
    for argument in description.get_launch_arguments():
        if argument.name in given:
            context.launch_configurations[argument.name] = str(given[argument.name])
        else:
            argument.visit(context)
    (start,) = (entity for entity in description.entities if isinstance(entity, OpaqueFunction))
    nodes = [entity for entity in start.execute(context) or [] if hasattr(entity, "node_package")]
    return {node.node_package: texts(node, context) for node in nodes if node.node_package != "eom_dynamics"}


def texts(node: Any, context: LaunchContext) -> list[str]:
    from launch.utilities import perform_substitutions

    command = [perform_substitutions(context, word) for word in node.process_description.cmd[1:]]
    rules = [f"{perform_substitutions(context, a)}:={perform_substitutions(context, b)}" for a, b in remappings(node)]
    return command + rules


def remappings(node: Any) -> Any:
    return getattr(node, "_Node__remappings", ())


@pytest.mark.parametrize("file", FILES)
def test_rviz_is_started_on_request_with_the_robot_and_its_root(file: str) -> None:
    assert started(file, rviz="false") == {}
    nodes = started(file, joint_states_topic="arm_states")
    assert set(nodes) == {"robot_state_publisher", "rviz2"}
    assert "joint_states:=arm_states" in nodes["robot_state_publisher"]
    assert "/robot_description:=robot_description" in nodes["rviz2"]
    assert nodes["rviz2"][nodes["rviz2"].index("-f") + 1] == "base"
    layout = Path(nodes["rviz2"][nodes["rviz2"].index("-d") + 1])
    assert layout.parts[-4:] == ("share", "eom_dynamics", "layouts", "robot.rviz")


def test_a_description_that_is_published_is_not_published_again() -> None:
    nodes = started("feedforward.launch.py", robot_file="", robot_description_topic="/description")
    assert set(nodes) == {"rviz2"} and "/robot_description:=/description" in nodes["rviz2"]
    nodes = started("feedforward.launch.py", robot_file="", robot_source_node="/robot_state_publisher")
    assert set(nodes) == {"rviz2"}

# SPDX-License-Identifier: Apache-2.0
"""Arguments of all launch files on a ROS 2 installation, which has launch_ros: descriptions, defaults and files."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("launch_ros", reason="launch_ros comes with a ROS 2 installation only, not from PyPI")

from launching import description_of, error_line, refusal

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
    arm.write_text("/**: {ros__parameters: {diagnostic_period: 2.0}}")
    error = error_line(refusal(file, robot_file=arm, **bag(file, tmp_path)))
    assert error == f"{arm}: no ros__parameters section has an entry robot"

# SPDX-License-Identifier: Apache-2.0
"""``package.xml`` and docs: what rosdep installs, and what is left to pip."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from paths import DOCS, ROOT

MANIFEST = ElementTree.parse(ROOT / "package.xml")
INSTALLED = {entry.text for kind in ("depend", "exec_depend") for entry in MANIFEST.iter(kind)}

KEYS = {"numpy": "python3-numpy", "scipy": "python3-scipy", "yaml": "python3-yaml"}
"""Keys of rosdep by the names of modules that differ from them."""

OPTIONAL = {"mujoco", "robot_descriptions", "trimesh"}


def imported(folder: Path) -> Iterator[str]:
    """Top-level modules that the Python files of a folder import, without those of Python and of this package."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            yield from {name.partition(".")[0] for name in names} - {"eom_dynamics", *sys.stdlib_module_names}


@pytest.mark.parametrize("folder", ["eom_dynamics/ros", "eom_dynamics/control", "eom_dynamics/robot", "launch"])
def test_rosdep_installs_what_nodes_and_launch_files_import(folder: str) -> None:
    needed = {KEYS.get(name, name) for name in imported(ROOT / folder)}
    assert needed
    assert needed - OPTIONAL <= INSTALLED


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("ros2launch", id="ros2 launch"),
        pytest.param("ros2bag", id="player and recorder of replay.launch.py"),
        pytest.param("rosbag2_storage_mcap", id="its default storage"),
        "xacro",
    ],
)
def test_rosdep_installs_what_they_run(key: str) -> None:
    assert key in INSTALLED


def test_the_oldest_rclpy_has_the_events_executor() -> None:
    (rclpy,) = (entry for entry in MANIFEST.iter("exec_depend") if entry.text == "rclpy")
    assert rclpy.get("version_gte") == "7.1.4"


def test_the_docs_name_the_libraries_that_pip_installs() -> None:
    text = (DOCS / "node.md").read_text(encoding="utf-8")
    (paragraph,) = (part for part in text.split("\n\n") if "rosdep install" in part)
    commands = [command.partition("`")[0] for command in paragraph.split("`pip install ")[1:]]
    libraries = {"rosbags", "rich", "plotly", "viser", "pycollada", "casadi"}
    assert {name for command in commands for name in command.split()} == libraries

# SPDX-License-Identifier: Apache-2.0
"""Manifest and build file of exported ROS 2 packages."""

from collections.abc import Sequence

from .. import __version__
from ..codegen.c_functions import filled
from ..robot import Robot
from .templates import template

_CMAKE_NAMES = {"eigen": "Eigen3"}

_IN_XML = ((" ", "\ud7ff"), ("\ue000", "\ufffd"), ("\U00010000", "\U0010ffff"))


def ros_package(
    name: str, description: str, notice: str, depends: Sequence[str], build: str, launched: Sequence[str] = ()
) -> dict[str, str]:
    """Text of package.xml and CMakeLists.txt.

    Args:
        description: description in XML.
        notice: comment at the head of the build file.
        depends: packages to build and run with.
        build: end of the build file.
        launched: packages to run with.
    """
    needed = [f"  <depend>{x}</depend>" for x in depends] + [f"  <exec_depend>{x}</exec_depend>" for x in launched]
    packages = [f"find_package({_CMAKE_NAMES.get(x, x)} REQUIRED)" for x in ("ament_cmake", *depends)]
    version = ".".join(__version__.split(".")[:3])  # a ROS package has three numbers
    values = {"package": name, "version": version, "description": description, "notice": notice}
    values |= {"needed": "\n".join(needed), "packages": "\n".join(packages)}
    texts = [filled(template(file), **values) for file in ("package.xml.in", "ros_package.cmake.in")]
    return {"package.xml": texts[0], "CMakeLists.txt": texts[1] + build}


def refused_names(robot: Robot) -> str | None:
    """Reason why XML cannot contain a name of the robot, even escaped; None if it can."""
    for name in (robot.name, *robot.joint_names):
        if not all(x in "\t\n\r" or any(low <= x <= high for low, high in _IN_XML) for x in name):
            return f"XML cannot have the name {name!r}: rename it without such characters"
    return None

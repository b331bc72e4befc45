# SPDX-License-Identifier: Apache-2.0
"""Arguments of a xacro file, NAME=VALUE by line, in an arm whose numbers and names they become."""

from __future__ import annotations

import re
from pathlib import Path

from eom_dynamics.robot import robot_from_urdf
from eom_dynamics.robot.readers.urdf import expand_xacro

from .promises import check_robot, refused

FILE = Path(__file__).with_name("arm.urdf.xacro")

TOKENS = (
    *("side=", "mass=", "length=", "tool=", "left", "right", "true", "false"),
    *("1e308", "nan", "inf", "-1", "${", "}"),
)

# An argument may hold Python, which runs with the rights of its author and for as long as it says.
_PROGRAM = re.compile(r"\$[({]")


def check(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    if _PROGRAM.search(text):
        return
    pairs = [line.partition("=") for line in text.split("\n") if line]
    with refused():
        check_robot(robot_from_urdf(expand_xacro(FILE, {name: value for name, _, value in pairs})))

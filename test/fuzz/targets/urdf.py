# SPDX-License-Identifier: Apache-2.0
"""Text of a URDF, as it comes on the topic ``robot_description``."""

from __future__ import annotations

from eom_dynamics import load_robot

from .promises import check_robot, refused

TOKENS = (
    *("<robot name='r'>", "</robot>", "<link name='a'/>", "<link name='b'>", "</link>", "<inertial>", "</inertial>"),
    *("<mass value='1'/>", "<inertia ixx='1' iyy='1' izz='1'/>", "<origin xyz='0 0 0' rpy='0 0 0'/>", "</joint>"),
    *("<joint name='j' type='revolute'>", "<parent link='a'/>", "<child link='b'/>", "<axis xyz='0 0 1'/>"),
    *("<limit lower='-1' upper='1' effort='1' velocity='1'/>", "<mimic joint='j' multiplier='2' offset='1'/>"),
    *(
        "<dynamics damping='1' friction='1'/>",
        "<transmission name='t'>",
        "<actuator name='m'>",
        "<mechanicalReduction>",
    ),
    *("continuous", "prismatic", "fixed", "floating", "planar", "spherical", "1e308", "nan", "inf", "<!DOCTYPE a>"),
)


def check(data: bytes) -> None:
    with refused():
        check_robot(load_robot("<" + data.decode("utf-8", "surrogateescape").removeprefix("<")))

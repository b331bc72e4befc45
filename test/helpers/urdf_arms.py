# SPDX-License-Identifier: Apache-2.0
"""URDF texts of arms that differ in their joints' names and in mass."""

import random

MASSLESS_TIP = """<robot name="massless"><link name="base"/><link name="b"/>
  <link name="a"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
  <joint name="j1" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
  <joint name="j2" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/></joint>
</robot>"""
"""An arm of which the last link has no mass, as many public robots have it for a flange."""


def fresh_mass():
    """A mass that no robot of an earlier run had, so that its code is compiled and not in the cache."""
    return random.SystemRandom().uniform(1.0, 5.0)


def urdf_arm(name="arm", joints=("shoulder", "elbow"), mass=1.0):
    """A chain of revolute joints, each of which moves a body of this mass."""
    links, rows = ['<link name="base"/>'], []
    for i, joint in enumerate(joints):
        parent = "base" if i == 0 else f"{joints[i - 1]}_link"
        links.append(
            f'<link name="{joint}_link"><inertial><origin xyz="0.1 0.02 0.2"/><mass value="{mass}"/>'
            f'<inertia ixx="0.03" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.05"/></inertial></link>'
        )
        rows.append(
            f'<joint name="{joint}" type="revolute"><parent link="{parent}"/><child link="{joint}_link"/>'
            f'<origin xyz="0 0.1 0.3" rpy="{0.4 * i} 0 0"/><axis xyz="0 {1 - i % 2} {i % 2}"/>'
            '<limit lower="-3" upper="3" effort="100" velocity="10"/></joint>'
        )
    return f'<robot name="{name}">{"".join(links)}{"".join(rows)}</robot>'

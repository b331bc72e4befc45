# SPDX-License-Identifier: Apache-2.0
"""Equations of motion of a URDF.

Usage: python examples/load_urdf.py [FILE.urdf] [TIP], by default with the arm below.
"""

import sys

import numpy as np

import eom_dynamics as eom

URDF = """
<robot name="two_links">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.005" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="50"/></joint>
  <joint name="elbow" type="revolute"><origin xyz="0.4 0 0"/><parent link="upper"/><child link="lower"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="3" effort="30"/></joint>
</robot>"""


def main(source: str = URDF, tip: str | tuple[str, ...] = ()) -> None:
    """Load a robot, and print mass matrix, its time derivative and gravity in one state."""
    robot = eom.load_robot(source, tip=tip)
    print(f"{robot.name}: {robot.n} joints: {', '.join(robot.joint_names)}")

    q, qd = np.full(robot.n, 0.3), np.full(robot.n, 0.5)
    equations = eom.equations_of_motion(robot, q, qd, np.zeros(robot.n))
    with np.printoptions(precision=4, suppress=True):
        print(f"M(q) [kg m²]:\n{equations.M[0]}")
        print(f"dM/dt:\n{equations.M[1]}")
        print(f"gravity [N m]: {equations.gravity[0]}")

    # Ṁ − 2C is skew symmetric for the default choice of C.
    skew = equations.M[1] - 2 * equations.C[0]
    print(f"Ṁ − 2C plus its transpose: {np.max(np.abs(skew + skew.T)):.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:3])

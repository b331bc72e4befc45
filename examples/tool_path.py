# SPDX-License-Identifier: Apache-2.0
"""A tool moves through poses: joint motion to snap, checked against limits, with its feedforward.

python examples/tool_path.py
"""

import numpy as np

import eom_dynamics as eom
from eom_dynamics.trajectory import check, follow, through_poses


def main() -> None:
    """Move the flange of the UR5e along a loop, and compare its actual and desired path."""
    robot = eom.load_robot("ur5e")
    kinematics = eom.Kinematics(robot)

    # Present pose of the tool, and the joint variables that put it 0.2 m to the side.
    q = np.array([0.3, -1.2, 1.4, 0.3, 0.9, 0.6])
    start = kinematics.pose(q)
    aside = start @ eom.lie.pose(np.eye(3), [0.2, 0.0, 0.0])
    found = eom.inverse_kinematics(kinematics, aside, start=q)
    print(f"inverse kinematics: {found.reason} after {found.iterations} steps, {found.distance:.1g} m away")

    # Through poses at given times, continuous from pose to snap, at rest at both ends.
    turned = aside @ eom.lie.exp([0.0, 0.3, 0.5, 0.0, 0.0, 0.0])
    path = through_poses([0.0, 1.0, 2.0, 3.0], [start, aside, turned, start])
    motion = follow(kinematics, path, q)

    t = np.linspace(0.0, 3.0, 301)
    states = motion.derivatives(t)  # q ... qdddd, each (301, 6)
    reached = kinematics.motion(*states)  # pose, twist and three derivatives
    for name, x, y in zip(("pose", "twist", "its rate"), reached, path.derivatives(t), strict=False):
        print(f"{name}: off by {np.max(np.abs(x - y)):.1e}")

    arm = eom.ElasticArm(robot)
    verdict = check(arm, motion.spline, rate=1000.0)
    print(f"{'within' if verdict.ok else 'beyond'} the limits of joints and motors")
    command = arm.feedforward(*states)
    print(f"largest motor effort: {np.max(np.abs(command.motor_effort)):.0f} N m")


if __name__ == "__main__":
    main()

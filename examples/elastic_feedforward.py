# SPDX-License-Identifier: Apache-2.0
"""Motor motion and effort of an arm with elastic joints, and the error of a rigid-arm feedforward.

python examples/elastic_feedforward.py
"""

import numpy as np

import eom_dynamics as eom
from eom_dynamics.trajectory import rest_to_rest


def main() -> None:
    """Move the Panda from pose to pose in 1 s, with joints as soft as harmonic drives with torque sensors."""
    robot = eom.load_robot("panda")
    stiffness = [14e3, 14e3, 12e3, 12e3, 8e3, 8e3, 6e3]  # N m/rad, on the link side of the gear
    rotor_inertia = [0.6, 0.6, 0.5, 0.5, 0.2, 0.2, 0.2]  # kg m², on the link side of the gear
    arm = eom.ElasticArm(robot, stiffness=stiffness, rotor_inertia=rotor_inertia)

    motion = rest_to_rest([0, -0.5, 0, -2, 0, 1.5, 0], [1, 0.3, 0.5, -1.2, 0.5, 2, 0.8], duration=1.0)
    q, qd, qdd, qddd, qdddd = motion.derivatives(np.linspace(0.0, 1.0, 1001))
    command = arm.feedforward(q, qd, qdd, qddd, qdddd)

    # A rigid-arm feedforward sends the link motion to the motors, and accelerates the rotors with the links.
    rigid_effort = command.tau + arm.rotor_inertia * qdd
    deflection = command.motor_position - q
    print("joint              deflection [mrad]   effort beyond the rigid arm's [N m]")
    for i, joint in enumerate(robot.joint_names):
        effort = np.max(np.abs(command.motor_effort - rigid_effort)[:, i])
        print(f"{joint:18}{1e3 * np.max(np.abs(deflection[:, i])):12.2f}{effort:24.3f}")


if __name__ == "__main__":
    main()

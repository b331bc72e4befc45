# SPDX-License-Identifier: Apache-2.0
"""Link errors with the feedforward of a rigid arm and with flatness, for a wrong model.

Both have the same PD on the motors, kp = w² B and kd = 2 w B. The arm moves 1 s along the paper's motion, and starts in
the state that this requires.

python examples/feedforward_errors.py [ROBOT] [STIFFNESS_ERROR MASS_ERROR]
"""

import sys

import numpy as np

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import ElasticPlant, motor_gains, simulate
from eom_dynamics.simulation.feedforward_comparison import motor_references, perturbed
from eom_dynamics.trajectory import paper_motion

W = 70.0  # natural frequency of the PD, rad/s


def error(robot: eom.Robot, real: eom.Robot, feedforward: str) -> float:
    """Root mean square error of the links of the real robot, rad or m."""
    model, plant, motion = (
        ElasticPlant(eom.ElasticArm(robot)),
        ElasticPlant(eom.ElasticArm(real)),
        paper_motion(robot.n),
    )
    kp, kd = motor_gains(model, motion.derivatives(0.0, 0)[0], W)

    def control(t: float, state: Array) -> Array:
        command, position, velocity, effort_at = motor_references(model, motion.derivatives(t))
        effort = effort_at(velocity)
        if feedforward == "flatness":
            effort, position, velocity = command.motor_effort, command.motor_position, command.motor_velocity
        now = plant.parts(state)
        return effort + kp * (position - now.theta) + kd * (velocity - now.thetad)

    t, start = np.linspace(0.0, 1.0, 201), plant.on_trajectory(*motion.derivatives(0.0))
    found = simulate(plant, control, t, start, relative_tolerance=1e-8, absolute_tolerance=1e-8)
    return float(np.sqrt(np.mean((plant.parts(found.states).q - motion.derivatives(t, 0)[0]) ** 2)))


def main() -> None:
    """Simulate and print."""
    name, *errors = sys.argv[1:] or ["planar_2r"]
    robot = eom.load_robot(name)
    stiffness, mass = map(float, errors or ("-0.1", "0.05"))
    real = perturbed(robot, stiffness=stiffness, mass=mass)
    print(f"{robot.name}: springs {100 * stiffness:+g} %, bodies {100 * mass:+g} %, PD of {W:g} rad/s")
    for feedforward in ("rigid", "flatness"):
        print(f"{feedforward:9} {1e3 * error(robot, real, feedforward):.3g} mrad or mm RMS")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Identify springs, rotors and motor friction of a simulated arm from a recording of both sides of its springs."""

from pathlib import Path
from tempfile import gettempdir

import numpy as np
from numpy.typing import NDArray

import eom_dynamics as eom
from eom_dynamics.identification.elastic.arm import identify_elasticity
from eom_dynamics.identification.recording import ArmRecording
from eom_dynamics.trajectory import Fourier

# Twenty seconds of both joints, with noise of encoders and torque sensors; efforts of the motors by the true model.
robot = eom.load_robot("sea_planar_2r")
noise = np.random.default_rng(0)
sine, cosine = 0.5 * noise.standard_normal((2, robot.n, 8))
motion = Fourier(0.1, sine, cosine, np.zeros(robot.n), periods=2)
t = np.arange(0.0, 20.0, 0.002, dtype=np.float64)
q, *derivatives = motion.derivatives(t)
command = eom.ElasticArm(robot).feedforward(q, *derivatives)


def measured(values: NDArray[np.float64], deviation: float) -> NDArray[np.float64]:
    """Values with noise."""
    return values + deviation * noise.standard_normal(values.shape)


recording = ArmRecording(
    t,
    measured(q, 1e-5),
    None,
    measured(command.tau, 0.05),
    measured(command.motor_position, 1e-5),
    measured(command.motor_effort, 0.05),
)

found = identify_elasticity(robot, [recording])
for joint in robot.joints:
    spring, motor = found.springs[joint.name], found.motors[joint.name]
    for name, true in (("rotor_inertia", joint.rotor_inertia), ("coulomb", joint.actuator.friction.coulomb)):
        print(f"{joint.name}: {name} {motor.parameters[name][0]:.4f} ± {motor.parameters[name][1]:.4f}, true {true}")
    print(f"{joint.name}: stiffness {spring.parameters['stiffness'][0]:.1f} ± {spring.parameters['stiffness'][1]:.1f}")

# The equivalent command: eom_dynamics identify recording.csv --robot sea_planar_2r -o identified.yaml
columns = {
    "position": recording.q,
    "effort": recording.tau,
    "motor_position": recording.theta,
    "motor_effort": recording.motor_effort,
}
names = ["t", *(f"{name}.{joint}" for name in columns for joint in robot.joint_names)]
path = Path(gettempdir()) / "recording.csv"
np.savetxt(path, np.column_stack([t, *columns.values()]), delimiter=",", header=",".join(names), comments="")
print(f"wrote {path}")

# SPDX-License-Identifier: Apache-2.0
"""Learn the nominal torque of a repeated motion from the feedback of its last run, not from a model of the arm.

A. De Luca, G. Paesano, G. Ulivi, "A frequency-domain approach to learning control: implementation for a robot
manipulator", IEEE Trans. Industrial Electronics 39 (1992): the feedforward of the next run is that of the last with the
PD effort added, low-pass filtered. Where the arm has repeated the motion well, the PD has nothing left to do, and the
feedforward is the nominal torque, that of the inverse dynamics.

python examples/nominal_torque.py
"""

import numpy as np
from scipy.signal import butter, sosfiltfilt

import eom_dynamics as eom
from eom_dynamics.arrays import Array
from eom_dynamics.simulation import SimulatedDrives, SimulatedRobot
from eom_dynamics.trajectory import rest_to_rest

PERIOD, DURATION, RUNS = 0.004, 1.0, 6  # s, s
FILTER = butter(2, 15.0, fs=1 / PERIOD, output="sos")  # Q, applied without phase; Hz


def run(arm: eom.ElasticArm, motion: tuple[Array, ...], nominal: Array) -> tuple[Array, Array]:
    """Tracking errors and PD efforts (N, n) of a run of the motors under PD with this feedforward (N, n)."""
    robot = SimulatedRobot(arm, period=PERIOD, position=motion[0][0], drives=SimulatedDrives(natural_frequency=15.0))
    errors, efforts = [], []
    for q, qd, effort in zip(*motion[:2], nominal, strict=True):
        before = robot.readings()
        robot.follow(q, qd, effort)
        robot.advance()
        # Setpoints and efforts are held for a period: they belong to its middle.
        after = robot.readings()
        errors.append(q - (before.q + after.q) / 2)
        efforts.append(robot.kp * errors[-1] + robot.kd * (qd - (before.qd + after.qd) / 2))
    return np.array(errors), np.array(efforts)


def main() -> None:
    """Learn a swing of a planar arm with rigid joints."""
    arm = eom.ElasticArm(eom.load_robot("planar_2r"), stiffness=np.inf)
    swing = rest_to_rest([-1.0, 0.5], [0.5, -0.7], duration=DURATION)
    motion = swing.derivatives(np.arange(PERIOD / 2, DURATION, PERIOD))
    needed = arm.feedforward(*motion).motor_effort
    # The first run has the torques that hold the ends, which the arm has shown at rest.
    nominal = np.linspace(needed[0], needed[-1], len(needed))
    for k in range(RUNS):
        errors, efforts = run(arm, motion, nominal)
        off = np.sqrt(np.mean((nominal - needed) ** 2) / np.mean(needed**2))
        print(
            f"run {k + 1}: error {1e3 * np.sqrt(np.mean(errors**2)):6.3f} mrad, nominal torque {100 * off:5.2f} % off"
        )
        nominal = sosfiltfilt(FILTER, nominal + efforts, axis=0)


if __name__ == "__main__":
    main()

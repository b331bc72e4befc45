# SPDX-License-Identifier: Apache-2.0
"""Arms that add gravity and Coriolis efforts themselves, in MuJoCo and in the simulated robot: links track as well."""

from dataclasses import replace

import numpy as np
from own_drives import AGES, with_drives

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.simulation import SimulatedRobot
from eom_dynamics.trajectory import Cosine


def test_the_simulated_robot_tracks_as_well() -> None:
    own = ("gravity", "coriolis", "friction")
    motion, errors = Cosine([0.3, 0.2], [2.0, 1.7]), []
    for names in ((), own):
        arm = ElasticArm(with_drives(load_robot("sea_planar_2r"), *names, ages=AGES))
        robot, off = SimulatedRobot(arm, position=motion.derivatives(0.0, 0)[0]), []
        for k in range(200):
            x = motion.derivatives(1e-3 * (k + 0.5), 4)  # the drives hold it for a period: that of its middle
            robot.follow(*arm.drive_state(*arm.drive_command(arm.feedforward(*x), *x[:3])[:3]))
            robot.advance()
            off.append(robot.readings().q - motion.derivatives(1e-3 * (k + 1), 0)[0])
        errors.append(float(np.max(np.abs(off))))
    whole, without = errors
    assert without < 1.1 * whole + 1e-6


def test_without_a_command_the_arm_holds_with_what_its_drives_add() -> None:
    q = np.array([0.4, -0.3])
    arm = ElasticArm(replace(load_robot("sea_planar_2r"), compensated_by_robot=("gravity",)))
    robot = SimulatedRobot(arm, position=q)
    for _ in range(50):
        robot.advance()
    still = robot.readings()
    np.testing.assert_allclose(still.q, q, rtol=0, atol=1e-9)
    # Drives that get no effort fall, but for gravity, which they add: the whole effort is that against it.
    robot.apply(np.zeros(2))
    robot.advance()
    np.testing.assert_allclose(robot.readings().motor_effort, arm.dynamics.gravity(q), rtol=0, atol=1e-6)
    # A robot of which efforts are whole gets them as they are.
    whole = SimulatedRobot(arm, position=q, compensates=False)
    whole.apply(np.zeros(2))
    whole.advance()
    assert np.max(np.abs(whole.readings().motor_effort)) < 1e-9

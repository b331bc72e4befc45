# SPDX-License-Identifier: Apache-2.0
"""The iiwa of tests of nodes, and its commands by the closed form with the textbook's springs and rotors."""

import re

import numpy as np
from paths import CONFIG

import eom_dynamics as eom

ROBOT = eom.load_robot(CONFIG / "iiwa.yaml")
NAMES, N = list(ROBOT.joint_names), ROBOT.n
STIFFNESS = np.array([2.0e4, 2.0e4, 1.5e4, 1.5e4, 1.0e4, 7.5e3, 7.5e3])
ROTOR_INERTIA = np.array([3.2, 3.2, 1.6, 1.6, 1.0, 0.5, 0.5])


def without_limits(folder):
    """File of the iiwa without joint limits."""
    file = folder / "iiwa.yaml"
    file.write_text(re.sub(r" +limits: .*\n", "", (CONFIG / "iiwa.yaml").read_text()))
    return file


def command(state, wrench=()):
    """The seven quantities of a command for a state q … qdddd, in the order of the message; and the equations."""
    *below, qdddd = state
    equations = eom.equations_of_motion(ROBOT, *below, wrench=tuple(wrench))
    efforts = equations.efforts(qdddd)
    motors = [x + tau / STIFFNESS for x, tau in zip(below, efforts, strict=False)]
    return [*efforts, *motors, ROTOR_INERTIA * motors[2] + efforts[0]], equations


def assert_close(actual, wanted):
    """Equal to 1e-12 of the largest entry: a node may sum in another order than the closed form."""
    actual, wanted = np.array(actual), np.array(wanted)
    assert actual.shape == wanted.shape
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())

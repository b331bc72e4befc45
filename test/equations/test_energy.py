# SPDX-License-Identifier: Apache-2.0
"""The terms of the equations of motion against energy and virtual work, from poses by matrix exponentials.

The poses are differentiated by finite differences; 3e-12 is about ten times the largest deviation in 400 random chains.
"""

import numpy as np
from chains import Case, cases
from differences import deviation, gradient
from hypothesis import given, settings
from textbook import body_twists, kinetic_energy, potential_energy

from eom_dynamics import equations_of_motion

WRENCH = np.array([1.0, -2.0, 0.5, 3.0, 1.5, -0.7])


def check(case: Case) -> None:
    q, qd = case.motion
    terms = equations_of_motion(case.robot, q, qd, wrench=[WRENCH])
    kinetic = qd @ terms.M[0] @ qd / 2
    assert deviation(kinetic, kinetic_energy(case.parameters, q, qd), floor=1.0) < 3e-12
    gravity = gradient(lambda x: np.array(potential_energy(case.parameters, x)), q)
    assert deviation(terms.gravity[0], gravity, floor=1.0) < 3e-12
    # Virtual work of the wrench on the surroundings: qd' Q_ext = W' V of the tool, at its place on the last body.
    twists = np.array([body_twists(case.parameters, q, unit)[-1] for unit in np.eye(case.robot.n)])
    twists[:, 3:] += np.cross(twists[:, :3], case.robot.tools[0].pose[:3, 3])
    assert deviation(terms.external[0], twists @ WRENCH, floor=1.0) < 3e-12


@settings(max_examples=15)
@given(case=cases(derivatives=1))
def test_random_chains(case: Case) -> None:
    check(case)

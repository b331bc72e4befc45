# SPDX-License-Identifier: Apache-2.0
"""Public examples of the literature, written out from the papers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.actuators.springs import AntagonisticPair, ExponentialPair, QuadraticPair
from eom_dynamics.elastic import flat_state, linearizing_effort
from eom_dynamics.jet import Jet


@given(state=st.tuples(*[st.floats(-1.5, 1.5)] * 4), snap=st.floats(-1e3, 1e3))
def test_single_link_with_a_flexible_joint(state: tuple[float, ...], snap: float) -> None:
    """M. W. Spong (1987), and J.-J. E. Slotine and W. Li, "Applied Nonlinear Control" (1991), example 6.10.

    I q1dd + M g L sin q1 + k (q1 - q2) = 0, J q2dd - k (q1 - q2) = u is linearised by u = (I J/k) (v - a), with
    a = (MgL/I) sin q1 (q1d² + (MgL/I) cos q1 + k/I) + (k/I) (q1 - q2) (k/I + k/J + (MgL/I) cos q1).
    """
    q1, q2, q1d, q2d = state[0], state[0] + 0.1 * state[1], state[2], state[3]
    inertia, J, k, MgL = 1.0 * 0.5**2, 0.05, 200.0, 1.0 * 9.80665 * 0.5
    sine, cosine = MgL / inertia * np.sin(q1), MgL / inertia * np.cos(q1)
    a = sine * (q1d**2 + cosine + k / inertia) + k / inertia * (q1 - q2) * (k / inertia + k / J + cosine)
    arm = ElasticArm(load_robot("pendulum"))
    flat = flat_state(arm, [q2], [q2d], [q1], [q1d])
    reference = [np.zeros(1)] * 4 + [np.array([snap])]
    effort = linearizing_effort(arm, flat, reference, np.zeros(4))
    np.testing.assert_allclose(effort, inertia * J / k * (snap - a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(flat.qdd, -sine - k / inertia * (q1 - q2), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(flat.qddd, -cosine * q1d - k / inertia * (q1d - q2d), rtol=1e-10, atol=1e-9)


def stiffness(pair: AntagonisticPair, delta: np.ndarray) -> float:
    jet = pair.efforts([Jet([x]) for x in delta]).stiffness
    assert jet is not None
    return float(jet[0])


@given(pretension=st.floats(0.1, 0.4), share=st.floats(-0.9, 0.9))
def test_antagonistic_springs_of_palli_melchiorri_de_luca(pretension: float, share: float) -> None:
    """G. Palli, C. Melchiorri, A. De Luca (ICRA 2008): quadratic transmissions have stiffness that is linear in
    the pretension; exponential ones an effort like sinh of the deflection, and a stiffness like its cosh.
    """
    spread = pretension * share
    delta = np.array([pretension + spread, -(pretension - spread)])
    quadratic, exponential = QuadraticPair(50.0, 4e3, 500.0), ExponentialPair(50.0, 6.0, 500.0)
    np.testing.assert_allclose(stiffness(quadratic, delta), 2 * (50.0 + 4e3 * pretension), rtol=1e-12)
    tension = 2 * 50.0 * np.exp(6.0 * pretension)
    np.testing.assert_allclose(stiffness(exponential, delta), tension * np.cosh(6.0 * spread), rtol=1e-12)
    tau = np.sum(exponential.load(delta, delta))
    np.testing.assert_allclose(tau, tension / 6.0 * np.sinh(6.0 * spread), rtol=1e-11, atol=1e-11)

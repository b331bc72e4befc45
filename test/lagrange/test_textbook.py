# SPDX-License-Identifier: Apache-2.0
"""The worked examples of docs/lagrange.md, entry by entry against the formulas of textbooks, which stand here.

Nothing is rounded: each difference has to vanish identically.
"""

from itertools import product

import numpy as np
import pytest
import sympy as sp

from eom_dynamics import equations_of_motion, lagrange, load_robot

g = sp.Symbol("g", positive=True)


def assert_equal(actual: sp.Matrix, expected: list[object]) -> None:
    wanted = sp.Matrix(expected)
    assert actual.shape == wanted.shape
    for i, j in product(range(wanted.rows), range(wanted.cols)):
        assert lagrange.normal_form(actual[i, j] - wanted[i, j]) == 0, f"entry {i}, {j}: {actual[i, j]}"


def positive(names: str) -> tuple[sp.Symbol, ...]:
    return sp.symbols(names, positive=True)


def test_actuated_pendulum_with_gear_and_friction() -> None:
    """De Luca's single link: the equation on the side of the link, with viscous and dry friction."""
    (theta,), (thetad,) = lagrange.variables("theta")
    m, length, inertia, rotor, N, b, b_m, f = positive("m l I I_m N b b_m f")
    motor = N * thetad
    system = lagrange.Lagrangian(
        (theta,),
        T=(inertia + m * length**2) * thetad**2 / 2 + rotor * motor**2 / 2,
        U=-m * g * length * sp.cos(theta),
        dissipation=b * thetad**2 / 2 + b_m * motor**2 / 2 + f * sp.Abs(thetad),
    )
    total = inertia + m * length**2 + N**2 * rotor
    expected = total * system.qdd[0] + (b + N**2 * b_m) * thetad + f * sp.sign(thetad) + m * g * length * sp.sin(theta)
    assert sp.expand(system.effort[0] - expected) == 0
    assert system.M[0] == sp.expand(total)


def test_pendulum_with_a_force_at_its_tip() -> None:
    """De Luca's single link with a horizontal force F at its tip, l sin(theta) from the axis: Q = J' F."""
    (theta, F), (thetad, Fd) = lagrange.variables("theta F")
    m, length, d = positive("m l d")
    system = lagrange.Lagrangian(
        (theta,),
        T=m * d**2 * thetad**2 / 2,
        U=-m * g * d * sp.cos(theta),
        forces=(sp.diff(length * sp.sin(theta), theta) * F,),
        inputs=(F,),
    )
    (thetadd,) = system.qdd
    thetaddd = lagrange.rate(thetadd)
    arm = length * sp.cos(theta)
    effort = m * d**2 * thetadd + m * g * d * sp.sin(theta) - arm * F
    rate = m * d**2 * thetaddd + m * g * d * sp.cos(theta) * thetad - arm * Fd + length * sp.sin(theta) * thetad * F
    assert [sp.expand(a[0] - b) for a, b in zip(system.efforts(1), (effort, rate), strict=True)] == [0, 0]
    assert "def effort_rate(q, qd, qdd, qddd, F, Fd, d, g, l, m):" in lagrange.code(system, order=1)
    assert r"Q = \left[\begin{matrix}F l \cos" in lagrange.latex(system, 1) and r"\dot{F}" in lagrange.latex(system, 1)
    assert system.with_values({m: 2.0}).effort[0] == effort.subs(m, 2)


def test_planar_pr_robot() -> None:
    system = lagrange.robot_lagrangian(load_robot("planar_pr"), symbols=True)
    m1, m2, d, inertia = positive("m1 m2 c_x2 I_zz2")
    _, q2 = system.q
    _, qd2 = system.qd
    assert_equal(system.M, [[m1 + m2, -m2 * d * sp.sin(q2)], [-m2 * d * sp.sin(q2), inertia + m2 * d**2]])
    assert_equal(system.velocity_terms, [-m2 * d * sp.cos(q2) * qd2**2, 0])
    assert_equal(system.gravity, [0, m2 * g * d * sp.cos(q2)])
    assert_equal(system.C_k[0], [[0, 0], [0, -m2 * d * sp.cos(q2)]])
    assert_equal(system.C_k[1], [[0, 0], [0, 0]])


def test_planar_2r_with_motors() -> None:
    """The two-link planar arm of Siciliano et al., section 7.3.2, with geared rotors, the second on the first link."""
    arm = lagrange.robot_lagrangian(lagrange.planar_arm(2))
    qd1, qd2 = arm.qd
    I_m1, I_m2, m_m2, k_r1, k_r2, L1 = positive("I_m1 I_m2 m_m2 k_r1 k_r2 L1")
    rotors = I_m1 * (k_r1 * qd1) ** 2 / 2 + I_m2 * (qd1 + k_r2 * qd2) ** 2 / 2 + m_m2 * (L1 * qd1) ** 2 / 2
    driven = lagrange.Lagrangian(arm.q, arm.T + rotors, arm.U)
    first = I_m1 * k_r1**2 + I_m2 + m_m2 * L1**2
    assert_equal(driven.M - arm.M, [[first, I_m2 * k_r2], [I_m2 * k_r2, I_m2 * k_r2**2]])
    assert driven.velocity_terms == arm.velocity_terms


@pytest.mark.parametrize("n", [1, 2, 3, pytest.param(4, marks=pytest.mark.soak)])
def test_planar_arm_with_n_joints(n: int) -> None:
    """By absolute angles: link k has its centre of mass at the sum of l_ka (cos phi_a, sin phi_a) over a <= k."""
    system = lagrange.robot_lagrangian(lagrange.planar_arm(n))
    m, inertia, center, length = (positive(f"{name}1:{n + 1}") for name in ("m", "I", "a", "L"))
    phi = [sum(system.q[: k + 1]) for k in range(n)]

    def reach(k: int, a: int) -> sp.Symbol:
        return length[a] if a < k else center[k]

    def mass(i: int, j: int) -> sp.Expr:
        return sum(
            inertia[k]
            + m[k]
            * sum(reach(k, a) * reach(k, b) * sp.cos(phi[a] - phi[b]) for a in range(i, k + 1) for b in range(j, k + 1))
            for k in range(max(i, j), n)
        )

    gravity = [
        g * sum(m[k] * reach(k, a) * sp.cos(phi[a]) for k in range(i, n) for a in range(i, k + 1)) for i in range(n)
    ]
    assert_equal(system.M, [[mass(i, j) for j in range(n)] for i in range(n)])
    assert_equal(system.gravity, gravity)


def test_elastic_pendulum() -> None:
    system = lagrange.robot_lagrangian(load_robot("pendulum"), symbols=True, motors=True)
    m, K, B = positive("m1 K1 B1")
    c = sp.Symbol("c_z1", real=True)
    (q, theta), (qdd, thetadd) = system.q, system.qdd
    link = m * c**2 * qdd - m * g * c * sp.sin(q) + K * (q - theta)
    assert_equal(system.effort, [link, B * thetadd + K * (theta - q)])
    assert_equal(system.M, [[m * c**2, 0], [0, B]])


def test_terms_of_the_closed_form_of_the_planar_2r() -> None:
    """The closed form takes symbols, too: its terms and efforts, with derivatives, are those of the Lagrangian."""
    arm = lagrange.planar_arm(2)
    system = lagrange.robot_lagrangian(arm)
    states = [system.q]
    for _ in range(4):
        states.append(tuple(map(lagrange.rate, states[-1])))
    *below, last = map(np.array, states)
    terms = equations_of_motion(arm, *below)
    for name, matrix in {"M": system.M, "C": system.coriolis_matrix(), "gravity": system.gravity}.items():
        for found in getattr(terms, name)[:3]:
            assert_equal(sp.Matrix(found), matrix)
            matrix = matrix.applyfunc(system.time_derivative)
    for found, expected in zip(terms.efforts(last), system.efforts(2), strict=True):
        assert_equal(sp.Matrix(found), expected)

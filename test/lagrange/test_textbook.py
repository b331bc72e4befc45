# SPDX-License-Identifier: Apache-2.0
"""The worked examples of docs/lagrange.md, entry by entry against the formulas of textbooks, which stand here.

Nothing is rounded: each difference has to vanish identically.
"""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import sympy as sp

from eom_dynamics import equations_of_motion, lagrange, lie, load_robot
from eom_dynamics.robot import Inertial, solids

g = sp.Symbol("g", positive=True)


def assert_equal(actual: sp.Matrix, expected: list[object]) -> None:
    wanted = sp.Matrix(expected)
    assert actual.shape == wanted.shape
    for i, j in product(range(wanted.rows), range(wanted.cols)):
        assert lagrange.normal_form(actual[i, j] - wanted[i, j]) == 0, f"entry {i}, {j}: {actual[i, j]}"


def positive(names: str) -> tuple[sp.Symbol, ...]:
    return sp.symbols(names, positive=True)


def test_actuated_pendulum_with_gear_and_friction() -> None:
    """De Luca, slides "Dynamics of an actuated pendulum": the equation on the link side, with dry friction."""
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


def test_actuated_pendulum_by_the_angle_of_its_motor() -> None:
    """De Luca's single link, in q = theta_m: the equation of the link divided by N, with a force F at the tip."""
    (phi, F), (phid, _) = lagrange.variables("phi F")
    m, tip, d, inertia, rotor, N, b, b_m = positive("m l d I_l I_m N b_l b_m")
    theta = phi / N
    system = lagrange.Lagrangian(
        (phi,),
        T=(inertia + m * d**2) * (phid / N) ** 2 / 2 + rotor * phid**2 / 2,
        U=-m * g * d * sp.cos(theta),
        dissipation=b * (phid / N) ** 2 / 2 + b_m * phid**2 / 2,
        forces=(sp.diff(tip * sp.sin(theta), phi) * F,),
        inputs=(F,),
    )
    total = inertia + m * d**2 + rotor * N**2
    expected = total / N**2 * system.qdd[0] + m / N * g * d * sp.sin(theta) + (b / N**2 + b_m) * phid
    assert sp.expand(system.effort[0] - expected + tip / N * sp.cos(theta) * F) == 0


def test_pendulum_with_a_force_at_its_tip() -> None:
    """De Luca, slides "Dynamics of an actuated pendulum": a horizontal force F at the tip, Q = l cos(theta) F."""
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


@cache
def planar_pr() -> tuple[lagrange.Lagrangian, tuple[sp.Symbol, ...]]:
    """The PR robot on a horizontal plane, and m1, m2, d, I2."""
    system = lagrange.robot_lagrangian(load_robot("planar_pr"), symbols=True)
    return replace(system, U=sp.S.Zero), positive("m1 m2 c_x2 I_zz2")


def test_q1_the_first_coordinate_of_a_chain_is_not_in_its_mass_matrix() -> None:
    for system in (planar_pr()[0], lagrange.robot_lagrangian(lagrange.planar_arm(3))):
        assert system.M.diff(system.q[0]) == sp.zeros(system.n)
        assert not system.M[-1, -1].free_symbols & set(system.q)  # the last entry is constant


def test_q2_the_pr_robot_has_no_coriolis_terms() -> None:
    system, (_, m2, d, _) = planar_pr()
    _, q2 = system.q
    centrifugal = -m2 * d * sp.cos(q2)
    assert system.christoffel.tolist() == [[[0, 0], [0, centrifugal]], [[0, 0], [0, 0]]]


def test_q3_a_force_on_the_carriage_accelerates_the_link_unless_it_is_along_the_rail() -> None:
    system, (m1, m2, d, inertia) = planar_pr()
    (_, q2), (_, qd2), u1 = system.q, system.qd, sp.Symbol("u1")
    determinant = (m1 + m2) * (inertia + m2 * d**2) - (m2 * d * sp.sin(q2)) ** 2
    _, link = system.M.inv() * (sp.Matrix([u1, 0]) - system.velocity_terms)
    assert sp.simplify(link - m2 * d * sp.sin(q2) * (u1 + m2 * d * sp.cos(q2) * qd2**2) / determinant) == 0
    assert [sp.simplify(link.subs({q2: along, qd2: 0})) for along in (0, sp.pi)] == [0, 0]
    assert sp.simplify(link.subs(u1, -m2 * d * sp.cos(q2) * qd2**2)) == 0


def test_q4_factorisations_of_the_pr_robot_of_which_one_is_skew_symmetric() -> None:
    system, (_, m2, d, _) = planar_pr()
    (_, q2), (qd1, qd2) = system.q, system.qd
    S, z = system.coriolis_matrix(), sp.Matrix(sp.symbols("z1 z2"))
    assert_equal(S, [[0, -m2 * d * sp.cos(q2) * qd2], [0, 0]])
    other = S + z * sp.Matrix([[qd2, -qd1]])
    assert_equal(other * sp.Matrix([qd1, qd2]), list(system.velocity_terms))
    N = system.mass_rate - 2 * other
    assert sp.solve(list(N + N.T), list(z), dict=True) == [{z[0]: 0, z[1]: 0}]


def test_q5_the_inertia_of_the_pr_robot_is_largest_with_the_link_along_the_rail() -> None:
    system, _ = planar_pr()
    (q1, q2), M = system.q, system.M
    for largest in (M.det(), M[0, 0] - M[0, 1] ** 2 / M[1, 1], M[1, 1] - M[0, 1] ** 2 / M[0, 0]):
        lost = sp.cancel((largest.subs(q2, 0) - largest) / sp.sin(q2) ** 2)
        assert not lost.free_symbols & {q1, q2} and lost.is_positive


def test_homework_1_and_2_euler_matrix_and_inertia_matrix() -> None:
    """A. De Luca, Robotics 2: tr(S J_c S') = w' I_c w, for the integrals of x², x y, … over the mass."""
    w, r = sp.Matrix(sp.symbols("w1:4")), sp.Matrix(sp.symbols("r1:4"))
    S = sp.Matrix(lie.skew(np.array(w).ravel()))
    xx, xy, xz, yy, yz, zz = sp.symbols("xx xy xz yy yz zz")
    euler = sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    I_c = sp.Matrix([[yy + zz, -xy, -xz], [-xy, xx + zz, -yz], [-xz, -yz, xx + yy]])
    assert sp.expand((S * euler * S.T).trace() - (w.T * I_c * w)[0]) == 0
    assert sp.expand(I_c - (sp.eye(3) * euler.trace() - euler)) == sp.zeros(3)
    assert sp.expand(euler - (sp.eye(3) * I_c.trace() / 2 - I_c)) == sp.zeros(3)
    # Of one particle: its speed squared.
    particle = dict(zip((xx, xy, xz, yy, yz, zz), (r[i] * r[j] for i in range(3) for j in range(i, 3)), strict=True))
    assert sp.expand((S * euler.subs(particle) * S.T).trace() - w.cross(r).dot(w.cross(r))) == 0


def test_homework_3_theorem_of_steiner() -> None:
    """A. De Luca, Robotics 2: r'r 1 - r r' = S'(r) S(r), and the inertia about a point at -r from there."""
    r = sp.Matrix(sp.symbols("r1:4"))
    S = sp.Matrix(lie.skew(np.array(r).ravel()))
    assert_equal(sp.eye(3) * r.dot(r) - r * r.T, (S.T * S).tolist())
    x, y, z = 1.0, 2.0, 3.0
    about_point = [[y**2 + z**2, -x * y, -x * z], [-x * y, x**2 + z**2, -y * z], [-x * z, -y * z, x**2 + y**2]]
    body = Inertial.about_center(2.0, np.array([x, y, z]), np.eye(3))
    assert np.array_equal(body.about_origin, np.eye(3) + 2.0 * np.array(about_point))


def test_inertia_matrices_of_a_parallelepiped_and_an_empty_cylinder() -> None:
    """De Luca's table, by integrals over the bodies; across the axis of the cylinder, a square is too many."""
    m, a, b, c, h, r, angle = positive("m a b c h r phi")
    x, y, z = sp.symbols("x y z")

    def of_box(square: sp.Expr) -> sp.Expr:
        return sp.integrate(square * m / (a * b * c), (x, -a / 2, a / 2), (y, -b / 2, b / 2), (z, -c / 2, c / 2))

    sides = {a: 0.3, b: 0.2, c: 0.1, m: 2}
    diagonal = [m * (b**2 + c**2) / 12, m * (a**2 + c**2) / 12, m * (a**2 + b**2) / 12]
    integrals = [of_box(y**2 + z**2), of_box(x**2 + z**2), of_box(x**2 + y**2)]
    assert [sp.simplify(p - q) for p, q in zip(integrals, diagonal, strict=True)] == [0, 0, 0]
    found = solids.box([0.3, 0.2, 0.1], mass=2.0).about_center_of_mass
    np.testing.assert_allclose(found, np.diag([float(x.subs(sides)) for x in diagonal]), rtol=1e-15)

    def of_tube(square: sp.Expr) -> sp.Expr:  # a is the external radius, b the internal one, x along the axis
        density = m / (sp.pi * (a**2 - b**2) * h)
        polar = square.subs({y: r * sp.cos(angle), z: r * sp.sin(angle)}) * r * density
        return sp.integrate(polar, (angle, 0, 2 * sp.pi), (r, b, a), (x, -h / 2, h / 2))

    across = m * (3 * (a**2 + b**2) + h**2) / 12
    assert sp.simplify(of_tube(y**2 + z**2) - m * (a**2 + b**2) / 2) == 0
    assert sp.simplify(of_tube(x**2 + y**2) - across) == 0
    tube = {a: 0.05, b: 0.04, h: 0.3, m: 2}
    printed = m * (3 * (a**2 + b**2) ** 2 + h**2) / 12
    assert abs(float((printed - across).subs(tube))) > 1e-3
    found = solids.hollow_cylinder(0.04, 0.05, 0.3, mass=2.0)
    np.testing.assert_allclose(found.about_center_of_mass[0, 0], float(across.subs(tube)), rtol=1e-15)
    end = found.moved(lie.pose(np.eye(3), [0.0, 0.0, 0.15])).about_origin[0, 0]
    assert end == pytest.approx(float((across + m * (h / 2) ** 2).subs(tube)), rel=1e-14)


def test_skew_symmetry_and_energy_of_a_chain() -> None:
    """De Luca's structural property, his appendix in vector form, and dE/dt = qd' u for every factorization."""
    system = lagrange.robot_lagrangian(lagrange.planar_arm(2))
    M, q, qd = system.M, system.q, sp.Matrix(system.qd)
    rates = sum((M.diff(x) * xd for x, xd in zip(q, qd, strict=True)), sp.zeros(2))
    # Row k of S is qd' C_k with C_k = (dM_k/dq + (dM_k/dq)' - dM/dq_k)/2, of the column M_k.
    rows = []
    for k in range(2):
        of_column = M[:, k].jacobian(q)
        C_k = (of_column + of_column.T - M.diff(q[k])) / 2
        assert_equal(system.C_k[k], C_k.tolist())
        assert system.christoffel[k, k, k] == 0
        rows.append(qd.T * C_k)
    christoffel = sp.Matrix(rows)
    appendix = sum((M[:, i].jacobian(q) * qd[i] - M[:, i].jacobian(q).T * qd[i] / 2 for i in range(2)), sp.zeros(2))
    assert_equal(system.coriolis_matrix(), christoffel.tolist())
    assert_equal(system.coriolis_matrix("momentum"), appendix.tolist())
    for form in lagrange.FORMS:
        S = system.coriolis_matrix(form)
        assert_equal(S * qd, list(system.velocity_terms))
        N = (rates - 2 * S).applyfunc(lagrange.normal_form)
        assert ((N + N.T).applyfunc(lagrange.normal_form) == sp.zeros(2)) is (form == "christoffel")
        assert lagrange.normal_form((qd.T * N * qd)[0]) == 0
    power = system.time_derivative(system.T + system.U) - (qd.T * system.effort)[0]
    assert lagrange.normal_form(power) == 0


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
    """By absolute angles: link k has its center of mass at the sum of l_ka (cos phi_a, sin phi_a) over a <= k."""
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

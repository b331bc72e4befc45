# SPDX-License-Identifier: Apache-2.0
"""Every equation of Müller and Kumar by its number, as in the text, in dense block matrices, against the public names.

Numbers refer to the preprint, arXiv:2507.11076; ranges are displays of several lines. Only the names under test are
from the library. Deviations are relative to the largest entry: most are 2e-15, the rounding of products of
matrices of up to 42 rows; terms of d²M/dt² are ten times as large as their sum, and it deviates by 1.3e-14.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from chains import fixed_case
from differences import derivative, deviation, polynomial_motion
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

from eom_dynamics import Robot, equations, equations_of_motion, kinematics, lie
from eom_dynamics.arrays import Array
from eom_dynamics.robot import Inertial

TOLERANCE = 1e-13

# --- Section 2.1: poses, screws and twists -------------------------------------------------------------


def tilde(x: Array) -> Array:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def euler_rodrigues(axis: Array, angle: float) -> Array:
    """Equation (14)."""
    return np.eye(3) + np.sin(angle) * tilde(axis) + (1 - np.cos(angle)) * tilde(axis) @ tilde(axis)


def transform(R: Array, p: Array) -> Array:
    return np.vstack([np.column_stack([R, p]), [0, 0, 0, 1]])


def exponential(X: Array, q: float) -> Array:
    """Equations (10)-(13): a screw of the axis e through x = e x m with the pitch h = e · m, and a translation."""
    e, m = X[:3], X[3:]
    if not np.any(e):
        return transform(np.eye(3), q * m)
    R, x, h = euler_rodrigues(e, q), np.cross(e, m), e @ m
    return transform(R, (np.eye(3) - R) @ x + q * h * e)


def inverse(C: Array) -> Array:
    return transform(C[:3, :3].T, -C[:3, :3].T @ C[:3, 3])


def Ad(C: Array) -> Array:
    """Equation (18)."""
    R, zero = C[:3, :3], np.zeros((3, 3))
    return np.block([[R, zero], [tilde(C[:3, 3]) @ R, R]])


def ad(X: Array) -> Array:
    """Equation (21)."""
    zero = np.zeros((3, 3))
    return np.block([[tilde(X[:3]), zero], [tilde(X[3:]), tilde(X[:3])]])


def body_inertia(mass: float, center: Array, about_center: Array, R: Array) -> Array:
    """Equation (31), with Steiner's theorem for the inertia about the center of mass in a frame turned by R."""
    about_origin = R @ about_center @ R.T - mass * tilde(center) @ tilde(center)
    return np.block([[about_origin, mass * tilde(center)], [-mass * tilde(center), mass * np.eye(3)]])


def symmetric(entries: Any) -> Array:
    xx, xy, xz, yy, yz, zz = entries
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def plus_transpose(K: Array) -> Array:
    return K + K.T


@dataclass(frozen=True)
class Text:
    """Quantities of the text, for one chain in one state; derivatives are numbered from 0.

    q is (5, n), with four time derivatives; W (3, 6) is the wrench at the tool with two, and ``tool`` its pose in the
    last body.
    """

    parameters: Any
    robot: Robot
    q: Array
    wrench: Array

    # Results of the library, whose public names are under test.

    @cached_property
    def found(self) -> equations.EquationsOfMotion:
        return equations_of_motion(self.robot, *self.q[:4], wrench=self.wrench, coriolis="paper")

    @cached_property
    def skew(self) -> equations.EquationsOfMotion:
        return equations_of_motion(self.robot, *self.q[:4], wrench=self.wrench, coriolis="skew")

    @cached_property
    def system(self) -> equations.SystemMatrices:
        return equations.system_matrices(self.robot, *self.q[:4])

    @cached_property
    def efforts(self) -> tuple[Array, ...]:
        return self.found.efforts(self.q[4])

    # Formulas of the text.

    @property
    def n(self) -> int:
        return self.q.shape[1]

    @cached_property
    def joints(self) -> list[dict[str, Any]]:
        return [self.parameters["joints"][name] for name in self.parameters["joint_names"]]

    @cached_property
    def screws(self) -> list[Array]:
        return [np.array(joint["screw"]) for joint in self.joints]

    @cached_property
    def C(self) -> list[Array]:
        """Equation (5)."""
        poses, here = [], np.eye(4)
        for joint, X, q in zip(self.joints, self.screws, self.q[0], strict=True):
            B = transform(Rotation.from_euler("xyz", joint["origin"]["rpy"]).as_matrix(), joint["origin"]["xyz"])
            here = here @ B @ exponential(X, q)
            poses.append(here)
        return poses

    def relative(self, i: int, j: int) -> Array:
        """Equation (4): from the frame of body j to body i."""
        return inverse(self.C[i]) @ self.C[j]

    @cached_property
    def A(self) -> Array:
        zero = np.zeros((6, 6))
        return np.block([[Ad(self.relative(i, j)) if j <= i else zero for j in range(self.n)] for i in range(self.n)])

    @cached_property
    def X(self) -> Array:
        return block_diag(*(X[:, np.newaxis] for X in self.screws))

    @cached_property
    def D(self) -> Array:
        """Equation (24)."""
        D = np.zeros((6 * self.n, 6 * self.n))
        for i in range(1, self.n):
            D[6 * i : 6 * i + 6, 6 * i - 6 : 6 * i] = Ad(self.relative(i, i - 1))
        return D

    def a(self, k: int) -> Array:
        """Equation (20) and its derivatives."""
        return block_diag(*(rate * ad(X) for rate, X in zip(self.q[k + 1], self.screws, strict=True)))

    @cached_property
    def J(self) -> Array:
        """Equation (16)."""
        return self.A @ self.X

    @cached_property
    def Ad1(self) -> Array:
        """Equation (26)."""
        A, a = self.A, self.a(0)
        return A @ a - A @ a @ A

    @cached_property
    def Ad2(self) -> Array:
        """Its derivative."""
        A, Ad1, a, ad1 = self.A, self.Ad1, self.a(0), self.a(1)
        return Ad1 @ a + A @ ad1 - Ad1 @ a @ A - A @ ad1 @ A - A @ a @ Ad1

    def V(self, k: int) -> Array:
        """Equation (15) and its derivatives, derivatives of A X q̇."""
        q, X = self.q, self.X
        return (
            self.A @ X @ q[1],
            self.Ad1 @ X @ q[1] + self.A @ X @ q[2],
            self.Ad2 @ X @ q[1] + 2 * self.Ad1 @ X @ q[2] + self.A @ X @ q[3],
        )[k]

    def b(self, k: int) -> Array:
        """Equation (30) and its derivatives."""
        return block_diag(*map(ad, self.V(k).reshape(-1, 6)))

    # --- Section 2.2: matrices of the equations of motion ---------------------------------------------------

    @cached_property
    def M_b(self) -> Array:
        """Equations (28), (31)."""
        return block_diag(
            *(
                body_inertia(joint["mass"], np.array(joint["center_of_mass"]), symmetric(joint["inertia"]), np.eye(3))
                for joint in self.joints
            )
        )

    @cached_property
    def Aa(self) -> Array:
        return self.A @ self.a(0)

    def C_b_of(self, a: Array, b: Array) -> Array:
        """Equation (29), of any a and b."""
        return -self.M_b @ self.A @ a - b.T @ self.M_b

    @cached_property
    def C_b(self) -> Array:
        return self.C_b_of(self.a(0), self.b(0))

    @cached_property
    def U(self) -> Array:
        """Equation (33)."""
        return np.vstack([Ad(inverse(C)) for C in self.C])

    @cached_property
    def G(self) -> Array:
        return np.concatenate([np.zeros(3), -np.array(self.parameters["gravity"])])

    def W(self, k: int) -> Array:
        """The wrench at the tool, in the frame of the last body and about its origin."""
        at_body = Ad(inverse(self.robot.tools[0].pose)).T @ self.wrench[k]
        return np.concatenate([np.zeros(6 * (self.n - 1)), at_body])

    # --- Section 3: first time derivatives --------------------------------------------------------------------

    @cached_property
    def J1(self) -> Array:
        """Equation (19)."""
        return -self.Aa @ self.J

    def M_b1_of(self, a: Array) -> Array:
        """Equation (37), of any a."""
        return -plus_transpose(self.M_b @ self.A @ a)

    @cached_property
    def M_b1(self) -> Array:
        return self.M_b1_of(self.a(0))

    @cached_property
    def C_b_rate(self) -> Array:
        """Equation (40)."""
        return -self.M_b @ (self.Ad1 @ self.a(0) + self.A @ self.a(1)) - self.b(1).T @ self.M_b

    @cached_property
    def C_b1(self) -> Array:
        """Equation (39)."""
        return self.C_b_rate - self.C_b @ self.Aa - self.Aa.T @ self.C_b

    # --- Section 4: second time derivatives -------------------------------------------------------------------

    @cached_property
    def Aa_rate(self) -> Array:
        return self.Ad1 @ self.a(0) + self.A @ self.a(1)

    @cached_property
    def M_b1_rate(self) -> Array:
        """Equation (48)."""
        return -plus_transpose(self.M_b @ self.Aa_rate)

    @cached_property
    def M_b2(self) -> Array:
        return self.M_b1_rate - self.M_b1 @ self.Aa - self.Aa.T @ self.M_b1

    @cached_property
    def C_b_rate2(self) -> Array:
        """Display for the second derivative of C_b."""
        a, a1, a2 = self.a(0), self.a(1), self.a(2)
        return -self.M_b @ (self.Ad2 @ a + 2 * self.Ad1 @ a1 + self.A @ a2) - self.b(2).T @ self.M_b

    @cached_property
    def C_b1_rate(self) -> Array:
        """Display for the derivative of (39)."""
        return (
            self.C_b_rate2
            - self.C_b_rate @ self.Aa
            - self.C_b @ self.Aa_rate
            - self.Aa_rate.T @ self.C_b
            - self.Aa.T @ self.C_b_rate
        )

    @cached_property
    def C_b2(self) -> Array:
        """Equation (53)."""
        return self.C_b1_rate - self.C_b1 @ self.Aa - self.Aa.T @ self.C_b1

    # --- Section 5: the skew-symmetric arrangement ------------------------------------------------------------

    @cached_property
    def C_b_skew(self) -> Array:
        """The body-level matrix of equation (61)."""
        return self.C_b + self.M_b @ self.b(0)

    def projected(self, K: Array) -> Array:
        return self.J.T @ K @ self.J


def with_jacobian_rates(t: Text, K: Array, K_rate: Array) -> Array:
    """Product rule on J' K J with the rate of J of equation (19)."""
    return t.J1.T @ K @ t.J + t.J.T @ K @ t.J1 + t.J.T @ K_rate @ t.J


def joint_screws(t: Text) -> tuple[Any, Any]:
    """Equations (6), (7): the unit vector e, a point x and the pitch h; revolute; prismatic."""
    e, x, h = np.array([2.0, -1.0, 2.0]) / 3, t.q[0][:1] * np.array([0.3, 0.1, -0.2]), 0.2
    own = [np.r_[e, np.cross(x, e) + h * e], np.r_[e, np.cross(x, e)], np.r_[np.zeros(3), e]]
    return [lie.screw(e, x, h), lie.screw(e, x), lie.screw(e, x, np.inf)], own


def steiner(t: Text) -> tuple[Any, Any]:
    """Equation (31) for a body with inertia about the center of mass, along the axes of another frame."""
    mass, center = t.joints[0]["mass"], np.array(t.joints[0]["center_of_mass"])
    about_center, R = symmetric(t.joints[0]["inertia"]), euler_rodrigues(np.array([0.6, 0, 0.8]), 0.7)
    found = Inertial.about_center(mass, np.zeros(3), about_center).moved(transform(R, center))
    return found.spatial_inertia, body_inertia(mass, center, about_center, R)


def second_derivative_of_external(t: Text) -> Array:
    """J' W differentiated twice with (19)."""
    W, Wd, Wdd = (t.W(k) for k in range(3))
    return t.J.T @ (Wdd - 2 * t.Aa.T @ Wd - t.Aa_rate.T @ W + t.Aa.T @ t.Aa.T @ W)


def efforts(t: Text) -> tuple[Array, Array, Array]:
    """Equations (1), (35), (45)."""
    _, qd, qdd, qddd, qdddd = t.q
    M, Md, Mdd = (t.projected(K) for K in (t.M_b, t.M_b1, t.M_b2))
    C, Cd, Cdd = (t.projected(K) for K in (t.C_b, t.C_b1, t.C_b2))
    gravity = [t.J.T @ K @ t.U @ t.G for K in (t.M_b, t.M_b1, t.M_b2)]
    external = [t.J.T @ t.W(0), t.J.T @ (t.W(1) - t.Aa.T @ t.W(0)), second_derivative_of_external(t)]
    inertial = (
        M @ qdd + C @ qd,
        M @ qddd + (Md + C) @ qdd + Cd @ qd,
        M @ qdddd + (2 * Md + C) @ qddd + (Mdd + 2 * Cd) @ qdd + Cdd @ qd,
    )
    tau, taud, taudd = (x + g + W for x, g, W in zip(inertial, gravity, external, strict=True))
    return tau, taud, taudd


def C_b2_written_out(t: Text) -> Array:
    """C_b'' in terms of C_b and its derivatives."""
    S, Sd = t.Aa, t.A @ t.a(1) + t.Aa @ t.a(0) - t.Aa @ t.Aa
    first = 2 * t.C_b_rate @ S + 2 * S.T @ t.C_b_rate + t.C_b @ Sd + Sd.T @ t.C_b
    return t.C_b_rate2 - first + t.C_b @ S @ S + 2 * S.T @ t.C_b @ S + S.T @ S.T @ t.C_b


def C_b_rate_by_26(t: Text) -> Array:
    """Equation (40) with (26)."""
    a, a1 = t.a(0), t.a(1)
    return t.M_b @ t.Aa @ t.Aa - t.M_b @ t.Aa @ a - t.M_b @ t.A @ a1 - t.b(1).T @ t.M_b


def M_b1_rate_by_26(t: Text) -> Array:
    return -plus_transpose(t.M_b @ t.A @ t.a(1) + t.M_b @ t.Aa @ t.a(0) - t.M_b @ t.Aa @ t.Aa)


def M_b2_reusing(t: Text, first: Array) -> Array:
    """Equation (50), with -M_b A ȧ and its transpose as ``first``, by M_b A a."""
    P = t.M_b @ t.Aa
    return first - plus_transpose(P @ t.a(0)) + 2 * plus_transpose(P @ t.Aa) + 2 * t.Aa.T @ P


NUMBERS: dict[str, Callable[[Text], tuple[Any, Any]]] = {
    "(1)": lambda t: (t.efforts[0], efforts(t)[0]),
    "(2)-(4)": lambda t: (
        [lie.inverse(C) @ kinematics.body_poses(t.robot, t.q[0])[0] for C in kinematics.body_poses(t.robot, t.q[0])],
        [t.relative(i, 0) for i in range(t.n)],
    ),
    "(5)": lambda t: (kinematics.body_poses(t.robot, t.q[0]), t.C),
    "(6)-(9)": joint_screws,
    "(10)-(13)": lambda t: (
        [lie.exp(X, q) for X, q in zip(t.screws, t.q[0], strict=True)],
        [exponential(X, q) for X, q in zip(t.screws, t.q[0], strict=True)],
    ),
    "(14)": lambda t: (
        lie.rotation_from_rotation_vector(t.q[0][0] * np.array([0.6, 0, 0.8])),
        euler_rodrigues(np.array([0.6, 0, 0.8]), t.q[0][0]),
    ),
    "(15)": lambda t: (t.system.V[0], t.J @ t.q[1]),
    "(16)": lambda t: (t.system.J[0], t.J),
    "(17) A": lambda t: (t.system.A[0], t.A),
    "(17) X": lambda t: (t.system.X, t.X),
    "(18)": lambda t: (lie.Ad(t.C[-1]), Ad(t.C[-1])),
    "(19)": lambda t: (t.system.J[1], -t.A @ t.a(0) @ t.J),
    "(20)": lambda t: (list(t.system.a), [t.a(k) for k in range(3)]),
    "(21)": lambda t: ([lie.ad(X) for X in t.screws], [ad(X) for X in t.screws]),
    "(22)": lambda t: (t.system.V[1], t.J @ t.q[2] - t.A @ t.a(0) @ t.J @ t.q[1]),
    "(23)": lambda t: (t.system.A[0], np.linalg.inv(np.eye(6 * t.n) - t.D)),
    "(24)": lambda t: (t.system.D, t.D),
    "(25)": lambda t: (t.system.A[1], t.A @ (-t.a(0) @ t.D) @ t.A),
    "(26)": lambda t: (t.system.A[1], t.Ad1),
    "(27) M": lambda t: (t.found.M[0], t.J.T @ t.M_b @ t.J),
    "(27) C": lambda t: (t.found.C[0], t.J.T @ t.C_b @ t.J),
    "(28)": lambda t: (t.system.M_b[0], t.M_b),
    "(29)": lambda t: (t.system.C_b[0], t.C_b),
    "(30)": lambda t: (list(t.system.b), [t.b(k) for k in range(3)]),
    "(31)": lambda t: (block_diag(*(joint.spatial_inertia for joint in t.robot.joints)), t.M_b),
    "(31), Steiner": steiner,
    "(32)": lambda t: (t.found.gravity[0], t.J.T @ t.M_b @ t.U @ t.G),
    "(33)": lambda t: (t.system.U[0], t.U),
    "(34)": lambda t: (t.found.external[0], t.J.T @ t.W(0)),
    "(35)": lambda t: (t.efforts[1], efforts(t)[1]),
    "(36)": lambda t: (t.found.M[1], with_jacobian_rates(t, t.M_b, 0 * t.M_b)),
    "(37)": lambda t: (t.system.M_b[1], t.M_b1),
    "(38)": lambda t: (t.found.C[1], with_jacobian_rates(t, t.C_b, t.C_b_rate)),
    "(39)": lambda t: (t.system.C_b[1], t.C_b1),
    "(40)": lambda t: (t.system.C_b_rates[0][1], t.C_b_rate),
    "(41)": lambda t: (t.system.C_b_rates[0][1], C_b_rate_by_26(t)),
    "(42)": lambda t: (t.system.C_b_rates[0][1], t.C_b_of(t.a(1), t.b(1)) - t.M_b @ (t.Aa - t.Aa @ t.A) @ t.a(0)),
    "(43)": lambda t: (t.found.gravity[1], t.J.T @ t.M_b1 @ t.U @ t.G),
    "(44)": lambda t: (t.found.external[1], t.J.T @ (t.W(1) - t.Aa.T @ t.W(0))),
    "(45)": lambda t: (t.efforts[2], efforts(t)[2]),
    "(45), gravity": lambda t: (t.found.gravity[2], t.J.T @ t.M_b2 @ t.U @ t.G),
    "(45), external": lambda t: (t.found.external[2], second_derivative_of_external(t)),
    "(46)": lambda t: (t.found.M[2], with_jacobian_rates(t, t.M_b1, t.M_b1_rate)),
    "(47)": lambda t: (t.found.M[2], t.projected(t.M_b2)),
    "(48)": lambda t: (t.system.M_b_rates[1][1], t.M_b1_rate),
    "(49)": lambda t: (t.system.M_b_rates[1][1], M_b1_rate_by_26(t)),
    "(50)": lambda t: (t.system.M_b[2], M_b2_reusing(t, -plus_transpose(t.M_b @ t.A @ t.a(1)))),
    "(51)": lambda t: (t.system.M_b[2], M_b2_reusing(t, t.M_b1_of(t.a(1)))),
    "(52)": lambda t: (t.found.C[2], with_jacobian_rates(t, t.C_b1, t.C_b1_rate)),
    "(53)": lambda t: (t.system.C_b[2], t.C_b2),
    "(54)-(60), rate of (39)": lambda t: (t.system.C_b_rates[1][1], t.C_b1_rate),
    "(54)-(60), rate of (40)": lambda t: (t.system.C_b_rates[0][2], t.C_b_rate2),
    "(54)-(60), explicit": lambda t: (t.system.C_b[2], C_b2_written_out(t)),
    "(61)": lambda t: (t.skew.C[0], t.projected(t.C_b_skew)),
    "(61), body matrix": lambda t: (equations.system_matrices(t.robot, *t.q[:4], coriolis="skew").C_b[0], t.C_b_skew),
    "(62)": lambda t: (t.skew.C[0] @ t.q[1], t.projected(t.C_b) @ t.q[1]),
    "(63)": lambda t: (
        t.skew.M[1] - 2 * t.skew.C[0],
        t.projected(t.M_b @ t.Aa - (t.M_b @ t.Aa).T + 2 * (t.b(0).T @ t.M_b - t.M_b @ t.b(0))),
    ),
    "(64)": lambda t: (
        [t.skew.M[k + 1] - 2 * t.skew.C[k] for k in range(2)],
        [-(t.skew.M[k + 1] - 2 * t.skew.C[k]).T for k in range(2)],
    ),
}


@cache
def text(name: str) -> Text:
    case = fixed_case(name, 4)
    return Text(case.parameters, case.robot, case.motion, np.random.default_rng(7).uniform(-2, 2, (3, 6)))


@pytest.mark.parametrize("name", ["mixed_chain", "iiwa"])
@pytest.mark.parametrize("number", NUMBERS)
def test_equation(number: str, name: str) -> None:
    found, own = NUMBERS[number](text(name))
    assert np.any(own)
    assert deviation(found, own) < TOLERANCE


def test_every_number_has_a_case() -> None:
    known: set[int] = set()
    for key in NUMBERS:
        ends = [int(x) for x in re.findall(r"\((\d+)\)", key.split(",")[0])]
        known |= set(range(ends[0], ends[-1] + 1))
    assert known == set(range(1, 65))


@pytest.mark.parametrize("coriolis", ["paper", "skew"])
def test_rates_of_body_matrices_beyond_the_paper(coriolis: str) -> None:
    """By differences of the previous derivative, to order 3; their error is 1e-12."""
    t = text("mixed_chain")
    motion = polynomial_motion(t.q)

    def system(time: float) -> equations.SystemMatrices:
        return equations.system_matrices(t.robot, *motion(time), coriolis=coriolis)

    here = system(0.0)
    for rates in ("M_b_rates", "C_b_rates"):
        for j in range(4):
            for k in range(1, 4 - j):
                below = derivative(lambda time, j=j, k=k, rates=rates: getattr(system(time), rates)[j][k - 1])
                assert deviation(getattr(here, rates)[j][k], below, floor=1.0) < 1e-12

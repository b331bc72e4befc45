# SPDX-License-Identifier: Apache-2.0
"""The conversions of docs/notation.md: each against the definition in the book, or Pinocchio (linear part first)."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from differences import derivative, deviation, gradient
from page_links import attribute, public_names
from paths import DOCS
from scipy.linalg import expm
from scipy.spatial.transform import Rotation
from textbook import twist_matrix, twist_vector

from eom_dynamics import lie

TOLERANCE = 1e-12  # rounding errors of matrix exponentials of six joints, and of differences


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    pytest.importorskip("sybil", reason="sybil is not installed")
    from pages import run_page

    return SimpleNamespace(**run_page("notation", tmp_path_factory.mktemp("page")))


def along(page: SimpleNamespace, t: float) -> np.ndarray:
    return page.kinematics.pose(page.q + t * page.qd + t**2 / 2 * page.qdd)


def test_twists_by_their_definitions(page: SimpleNamespace) -> None:
    """V_b = T^-1 Td and V_s = Td T^-1 (Lynch and Park, 3.3.2), and the velocity of the tool's origin."""
    Td = derivative(lambda t: along(page, t))
    w_s, v_s = np.split(twist_vector(Td @ np.linalg.inv(page.C)), 2)
    assert deviation(page.V, twist_vector(np.linalg.inv(page.C) @ Td)) < TOLERANCE
    assert deviation(page.V_s, np.concatenate([w_s, v_s])) < TOLERANCE
    assert deviation(page.mixed, np.concatenate([w_s, Td[:3, 3]])) < TOLERANCE
    assert deviation(page.J_S @ page.qd, np.concatenate([Td[:3, 3], w_s])) < TOLERANCE
    np.testing.assert_array_equal(page.V_again, page.V)
    np.testing.assert_array_equal(page.xi, np.concatenate([page.V[3:], page.V[:3]]))


def test_accelerations_by_their_definitions(page: SimpleNamespace) -> None:
    def velocity(t: float) -> np.ndarray:
        return page.kinematics.jacobian(page.q + t * page.qd + t**2 / 2 * page.qdd, reference="world_aligned") @ (
            page.qd + t * page.qdd
        )

    wd, pdd = np.split(derivative(velocity), 2)
    assert deviation(page.V_dot_S, np.concatenate([pdd, wd])) < TOLERANCE
    assert deviation(page.C[:3, :3] @ page.classical, pdd) < TOLERANCE


def test_linear_first_is_what_pinocchio_has(page: SimpleNamespace) -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    from pinocchio_model import pinocchio_model

    model = pinocchio_model(page.robot)
    data, frame = model.createData(), model.getFrameId(page.robot.tools[0].name)
    J = pin.computeFrameJacobian(model, data, page.q, frame, pin.LOCAL)
    assert deviation(page.J_MLS, J) < TOLERANCE
    placement = pin.SE3(page.C)
    assert deviation(page.Ad_MLS, placement.toActionMatrix()) < TOLERANCE
    assert deviation(page.W_s[page.linear_first], placement.act(pin.Force(page.F)).vector) < TOLERANCE
    assert deviation(page.X_force @ page.W, page.W_s) < TOLERANCE
    cross = pin.Motion(page.xi).cross(pin.Force(page.F)).vector
    assert deviation((page.crf @ page.W)[page.linear_first], cross) < TOLERANCE
    inertia = pin.Inertia(2.0, np.array([0, 0, 0.1]), 0.1 * np.eye(3))
    V, Vd = (pin.Motion(x[page.linear_first]) for x in (page.V, page.Vd))
    assert deviation(page.f[page.linear_first], (inertia * Vd + V.cross(inertia * V)).vector) < TOLERANCE


def test_products_of_exponentials(page: SimpleNamespace) -> None:
    """T = exp([S_1] q_1) … M = M exp([B_1] q_1) …, by matrix exponentials."""
    space, body = np.eye(4), page.M_home
    for S, B, x in zip(page.S_list.T, page.B_list.T, page.q, strict=True):
        space, body = space @ expm(twist_matrix(S) * x), body @ expm(twist_matrix(B) * x)
    assert deviation(space @ page.M_home, page.C) < TOLERANCE
    assert deviation(body, page.C) < TOLERANCE
    assert deviation(page.same_pose, page.C) < TOLERANCE
    np.testing.assert_array_equal(page.xi_list, np.roll(page.S_list, 3, axis=0))


def turn(axis: str, angle: float) -> np.ndarray:
    return lie.pose(Rotation.from_euler(axis, angle).as_matrix(), np.zeros(3))


def test_velocity_terms(page: SimpleNamespace) -> None:
    """Christoffel symbols of the mass matrix by differences; 1e-10 is their error."""
    dM = gradient(page.dynamics.mass_matrix, page.q)
    symbols = (dM + np.swapaxes(dM, 1, 2) - np.moveaxis(dM, 2, 0)) / 2
    C = symbols @ page.qd
    assert deviation(page.C_MLS, C) < 1e-10
    assert deviation(page.c_DL, C @ page.qd) < 1e-10
    assert deviation(page.h_LP, C @ page.qd + page.dynamics.gravity(page.q)) < 1e-10


def test_motors(page: SimpleNamespace) -> None:
    """The balance of the rotor itself, before the gear: I_m thetadd_m = tau_m - tau / k_r."""
    acceleration = page.N * page.command.motor_acceleration
    balance = page.I_m * acceleration + page.command.tau / page.N
    assert deviation(page.tau_motor, balance) < TOLERANCE
    deflection = page.theta_m / page.N - page.q
    assert deviation(page.arm.stiffness * deflection, page.command.tau) < 1e-9  # angles lose digits to their difference


def test_quaternions_and_angles(page: SimpleNamespace) -> None:
    R = Rotation.from_matrix(page.R)
    assert deviation([page.x, page.y, page.z, page.w], R.as_quat(canonical=True)) < TOLERANCE
    np.testing.assert_array_equal(page.real_first, [page.w, page.x, page.y, page.z])
    assert deviation(page.zyx, page.rpy[::-1]) < TOLERANCE
    roll, pitch, yaw = page.rpy
    assert deviation(page.R, (turn("z", yaw) @ turn("y", pitch) @ turn("x", roll))[:3, :3]) < TOLERANCE


METHODS = (DOCS / "notation.md").read_text(encoding="utf-8").partition("## Names of methods")[2]


def test_the_functions_of_the_index_exist_in_alphabetical_order() -> None:
    assert [name for name in public_names(METHODS) if attribute(name) is None] == []
    listed = re.findall(r"^\| ([^|`]+) \| [`\[]", METHODS, re.MULTILINE)
    assert len(listed) > 60 and listed == sorted(listed, key=lambda name: name.split(",")[0].lower().replace("-", " "))


def test_all_sixteen_examples_of_zhang_have_a_heading() -> None:
    page = (DOCS / "worked_examples.md").read_text(encoding="utf-8")
    section = page.partition("## Zhang, *Robot Kinematics*, by number")[2].partition("\n## ")[0]
    headings = re.findall(r"^### Examples? (\d+)(?: and (\d+))?: ", section, re.MULTILINE)
    assert [int(number) for pair in headings for number in pair if number] == list(range(1, 17))


def test_calls_of_pinocchio_have_their_names_here() -> None:
    """Numbers of both are compared in the tests of each method."""
    pin = pytest.importorskip("pinocchio")
    table = (DOCS / "notation.md").read_text(encoding="utf-8").partition("## From Pinocchio")[2].partition("\n## ")[0]
    calls = [name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert len(calls) > 20
    assert [name for name in calls if not (hasattr(pin, name) or hasattr(pin.ReferenceFrame, name))] == []

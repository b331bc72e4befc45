# SPDX-License-Identifier: Apache-2.0
"""A single rigid body: against the rate of its momentum in an inertial frame, and against itself in other frames."""

import numpy as np
from chains import inertias, numbers
from differences import derivative, deviation
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from eom_dynamics import lie
from eom_dynamics.arrays import Array
from eom_dynamics.equations import RigidBody, newton_euler
from eom_dynamics.robot.inertia import Inertial, symmetric

TOLERANCE = 1e-13  # holds for 400 random bodies; rounding errors are relative to terms that cancel


@st.composite
def bodies(draw: st.DrawFn) -> RigidBody:
    inertia = symmetric(*draw(inertias()))
    return RigidBody(Inertial.about_center(draw(st.floats(0.5, 5.0)), draw(numbers(0.3, 3)), inertia))


@st.composite
def poses(draw: st.DrawFn) -> Array:
    return lie.pose(Rotation.from_rotvec(draw(numbers(3.0, 3))).as_matrix(), draw(numbers(1.0, 3)))


twists = numbers(2.0, 6)


@given(bodies(), twists, twists)
def test_the_wrench_changes_the_momentum_in_an_inertial_frame(body: RigidBody, V: Array, Vd: Array) -> None:
    """By differences of the momentum along a motion with this twist and its derivative; their error is 1e-11."""

    def momentum(t: float) -> Array:
        # The body twist of exp(t V + t² Vd / 2) is V + t Vd + O(t²): its brackets begin with [V, V] = 0.
        return lie.space_wrench(lie.exp(t * V + t**2 / 2 * Vd), body.momentum(V + t * Vd))

    assert deviation(body.wrench(V, Vd), derivative(momentum), floor=1.0) < 1e-11
    batch = body.wrench(np.stack([0 * V, V]), np.stack([V, Vd]))
    np.testing.assert_allclose(batch[1], body.wrench(V, Vd), rtol=1e-13, atol=1e-13)


@given(bodies(), poses(), twists, twists)
def test_all_frames_give_the_same(body: RigidBody, frame: Array, V: Array, Vd: Array) -> None:
    other = body.seen_from(frame)
    there, rate = lie.body_twist(frame, V), lie.body_twist(frame, Vd)
    Ad = lie.Ad(frame)
    assert deviation(other.inertia_matrix, Ad.T @ body.inertia_matrix @ Ad, floor=1.0) < TOLERANCE
    assert deviation(other.wrench(there, rate), lie.body_wrench(frame, body.wrench(V, Vd)), floor=1.0) < TOLERANCE
    assert deviation(other.momentum(there), lie.body_wrench(frame, body.momentum(V)), floor=1.0) < TOLERANCE
    assert deviation(other.kinetic_energy(there), body.kinetic_energy(V), floor=1.0) < TOLERANCE


@given(bodies(), twists, twists)
def test_about_the_centre_of_mass_these_are_the_equations_of_newton_and_euler(body: RigidBody, V: Array, Vd: Array):
    center = body.about_center_of_mass()
    assert deviation(center.inertial.center_of_mass, np.zeros(3), floor=1.0) < 1e-15
    w, v = V[:3], V[3:]
    moment, force = newton_euler(
        body.inertial.mass, body.inertial.about_center_of_mass, w, Vd[:3], Vd[3:] + np.cross(w, v)
    )
    assert deviation(center.wrench(V, Vd), np.concatenate([moment, force]), floor=1.0) < TOLERANCE


@given(bodies(), twists, twists)
def test_acceleration_power_and_energy(body: RigidBody, V: Array, F: Array) -> None:
    Vd = body.acceleration(V, F)
    # The condition number of the inertia of a random body is up to 1e4.
    assert deviation(body.wrench(V, Vd), F, floor=np.max(np.abs(V)) ** 2 + 1.0) < 1e-12
    energy = derivative(lambda t: body.kinetic_energy(V + t * Vd))
    assert deviation(body.power(V, F), energy, floor=np.max(np.abs(Vd)) + 1.0) < 1e-10

# SPDX-License-Identifier: Apache-2.0
"""Inertia of solids: compared with Pinocchio; hollow solids as differences of full solids."""

import numpy as np
import pytest
from differences import deviation
from refusals import refusals

from eom_dynamics import RobotDescriptionError
from eom_dynamics.robot import solids
from eom_dynamics.robot.inertia import body_violation


def test_solids_against_pinocchio() -> None:
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")
    pairs = (
        (solids.box([0.1, 0.2, 0.3], mass=2), pin.Inertia.FromBox(2, 0.1, 0.2, 0.3)),
        (solids.cylinder(0.1, 0.5, mass=2), pin.Inertia.FromCylinder(2, 0.1, 0.5)),
        (solids.sphere(0.1, mass=2), pin.Inertia.FromSphere(2, 0.1)),
        (solids.ellipsoid([0.1, 0.2, 0.3], mass=2), pin.Inertia.FromEllipsoid(2, 0.1, 0.2, 0.3)),
        (solids.capsule(0.1, 0.5, mass=2), pin.Inertia.FromCapsule(2, 0.1, 0.5)),
    )
    for ours, theirs in pairs:
        assert ours.mass == theirs.mass
        assert deviation(ours.about_origin, theirs.inertia) < 1e-15
        assert body_violation(ours) is None
    assert solids.ellipsoid([0.1, 0.2, 0.3], density=3).mass == pytest.approx(4 * np.pi * 0.006, rel=1e-15)
    assert solids.capsule(0.1, 0.5, density=3).mass == pytest.approx(np.pi * (0.015 + 0.004), rel=1e-15)


def test_hollow_solids_are_differences_of_solid_ones() -> None:
    tube = solids.cylinder(0.3, 0.8, density=3) + solids.cylinder(0.2, 0.8, density=-3)
    shell = solids.sphere(0.3, density=3) + solids.sphere(0.2, density=-3)
    for ours, expected in (
        (solids.hollow_cylinder(0.2, 0.3, 0.8, density=3), tube),
        (solids.hollow_sphere(0.2, 0.3, density=3), shell),
    ):
        assert ours.mass == pytest.approx(expected.mass, rel=1e-14)
        assert deviation(ours.about_origin, expected.about_origin) < 1e-14
    thin = solids.hollow_sphere(1.0, 1.0 + 1e-12, mass=3.0)
    assert thin.about_origin[0, 0] == pytest.approx(2.0, rel=1e-11)  # 2/3 m r²


test_impossible_solids = refusals(
    RobotDescriptionError,
    (lambda: solids.box([1, -1, 1], mass=1), "size: must be positive"),
    (lambda: solids.sphere(1), "mass: give either mass or density$"),
    (lambda: solids.sphere(1, density=0), "density: must be a number other than zero"),
    (lambda: solids.box([1e200] * 3, density=1), "size: must give lengths from"),
    (lambda: solids.box([1e50] * 3, mass=1e300), "mass: is too large, 1e.300 kg"),
    (lambda: solids.capsule(1e-200, 1e-200, mass=1), "radius: must give lengths from 1e-50 to 1e.50 m, gives 1e-200"),
    (lambda: solids.box([1e50] * 3, density=1e300), "density: gives the impossible mass inf kg"),
    (lambda: solids.box([1e-30, 1, 1], density=1e-300), "density: gives the impossible mass 0 kg"),
    (lambda: solids.sphere(1, mass=1, density=1), "mass: give either mass or density, not both"),
    (lambda: solids.hollow_cylinder(0.2, 0.2, 1, mass=1), "inner_radius: must be below outer_radius, 0.2, is 0.2"),
)

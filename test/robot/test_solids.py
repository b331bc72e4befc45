# SPDX-License-Identifier: Apache-2.0
"""Inertia of solids: against Pinocchio, numeric integration, and meshes against sums of tetrahedra."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from differences import deviation
from refusals import refusals
from scipy.spatial import ConvexHull

from eom_dynamics import RobotDescriptionError
from eom_dynamics.arrays import Array
from eom_dynamics.extras import MissingLibraryError
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
    (lambda: solids.box([1, 1], mass=1), r"size: must be three numbers, has shape \(2,\)"),
    (lambda: solids.box([1, -1, 1], mass=1), "size: must be positive"),
    (lambda: solids.sphere(float("nan"), mass=1), "radius: must be finite, is nan"),
    (lambda: solids.sphere("wide", mass=1), "radius: must be numbers, is 'wide'"),
    (lambda: solids.sphere([1, 2], mass=1), r"radius: must be one number, has shape \(2,\)"),
    (lambda: solids.sphere(1), "mass: give either mass or density$"),
    (lambda: solids.capsule(1e-200, 1e-200, mass=1), "radius: must give lengths from 1e-50 to 1e.50 m, gives 1e-200"),
    (lambda: solids.hollow_sphere(1e-200, 2e-200, mass=1), "inner_radius: must give lengths from"),
    (lambda: solids.box([1e200] * 3, density=1), "size: must give lengths from"),
    (lambda: solids.box([1e50] * 3, density=1e300), "density: gives the impossible mass inf kg"),
    (lambda: solids.box([1e-30, 1, 1], density=1e-300), "density: gives the impossible mass 0 kg"),
    (lambda: solids.box([1e50] * 3, mass=1e300), "mass: is too large, 1e.300 kg"),
    (lambda: solids.sphere(1, mass=1, density=1), "mass: give either mass or density, not both"),
    (lambda: solids.sphere(1, mass=float("inf")), "mass: must be finite"),
    (lambda: solids.sphere(1, density=0), "density: must be a number other than zero"),
    (lambda: solids.hollow_cylinder(0.2, 0.2, 1, mass=1), "inner_radius: must be below outer_radius, 0.2, is 0.2"),
)


def stl(points: Array, triangles: Array) -> str:
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in points[list(triangle)].tolist())
        + "endloop\nendfacet\n"
        for triangle in triangles
    ]
    return f"solid part\n{''.join(facets)}endsolid part\n"


def hull() -> tuple[Array, Array]:
    """Points and outward triangles of a convex body far from the origin; coordinates as exact as STL's single ones."""
    points = np.random.default_rng(2).integers(-20, 20, (12, 3)) / 64 + [10.0, -5.0, 3.0]
    found = ConvexHull(points)
    triangles = found.simplices.copy()
    corners = points[triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.sum(normals * found.equations[:, :3], axis=1) < 0
    triangles[inward] = triangles[inward][:, ::-1]
    return points, triangles


def tetrahedra(points: Array, triangles: Array) -> tuple[float, Array, Array]:
    """Volume, centre, and inertia about it for density 1, by tetrahedra between an inner point and the triangles.

    A tetrahedron with corners a, b, c, d has the mean (a a' + b b' + c c' + d d' + 16 m m') / 20 of x x', with m its
    centroid.
    """
    inner = points.mean(axis=0)
    volume, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
    for triangle in triangles:
        corners = np.vstack([points[triangle] - inner, np.zeros(3)])
        v = abs(np.linalg.det(corners[:3])) / 6
        m = corners.mean(axis=0)
        volume, first = volume + v, first + v * m
        second += v * (corners.T @ corners + 16 * np.outer(m, m)) / 20
    center = first / volume
    second -= volume * np.outer(center, center)
    return volume, inner + center, np.trace(second) * np.eye(3) - second


@pytest.mark.parametrize("flipped", [False, True])
def test_a_mesh_is_the_sum_of_its_tetrahedra(tmp_path: Path, flipped: bool) -> None:
    pytest.importorskip("trimesh", reason="trimesh is not installed")
    points, triangles = hull()
    (tmp_path / "part.stl").write_text(stl(points, triangles[:, ::-1] if flipped else triangles), encoding="ascii")
    volume, center, inertia = tetrahedra(points, triangles)
    body = solids.mesh(tmp_path / "part.stl", density=3, scale=0.5)
    assert body.mass == pytest.approx(3 * volume / 8, rel=1e-11)
    assert deviation(body.center_of_mass, center / 2) < 1e-14
    assert deviation(body.about_center_of_mass, 3 * inertia / 32) < 1e-10
    assert solids.mesh(tmp_path / "part.stl", mass=3).mass == 3
    mirrored = solids.mesh(tmp_path / "part.stl", density=3, scale=[-0.5, 0.5, 0.5])
    assert deviation(mirrored.center_of_mass, center / 2 * [-1, 1, 1]) < 1e-14
    assert mirrored.mass == pytest.approx(body.mass)


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("open", 1.0, r"open\.stl: the mesh is not closed"),
        ("none", 1.0, r"none\.stl: the mesh cannot be read"),
        ("flat", 1.0, r"flat\.stl: the mesh is flat"),
        ("part", [1, 0, 1], "scale: must not be zero"),
        ("part", 1e-200, "scale: must give lengths from"),
        ("part", [1, 2], r"scale: must be one number or three, has shape \(2,\)"),
    ],
)
def test_unusable_meshes(tmp_path: Path, name: str, scale: Any, message: str) -> None:
    pytest.importorskip("trimesh", reason="trimesh is not installed")
    points, triangles = hull()
    bodies = {"open": (points, triangles[1:]), "flat": (points * [1, 1, 0], triangles), "part": (points, triangles)}
    for other, body in bodies.items():
        (tmp_path / f"{other}.stl").write_text(stl(*body), encoding="ascii")
    with pytest.raises(RobotDescriptionError, match=message):
        solids.mesh(tmp_path / f"{name}.stl", density=1, scale=scale)


def test_a_mesh_needs_trimesh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingLibraryError, match=r"trimesh is not installed; run: make build EXTRAS=mesh, or"):
        solids.mesh("part.stl", mass=1)

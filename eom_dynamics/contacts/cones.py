# SPDX-License-Identifier: Apache-2.0
"""Friction cones of points, contact wrench cones of flat surfaces, and quadratic programs over second-order cones.

A point contact transmits forces of the cone |f_t| <= mu f_n, a flat surface all sums of such forces at the corners of
its polygon. Wrenches are (moment; force) in the frame of the contact, z along the normal, which points to the robot.
With pyramids at the corners the cone is polyhedral: spanned by the edges of the pyramids (generators), or cut out by
half-spaces. S. Caron, Q.-C. Pham and Y. Nakamura, "Stability of surface contacts for humanoid robots: closed-form
formulae of the contact wrench cone for rectangular support areas", ICRA 2015.

Programs are solved by the interior-point solver Clarabel (the extra ``contacts``): P. J. Goulart and Y. Chen,
"Clarabel: an interior-point solver for conic programs with quadratic objectives" (2024). It takes second-order cones as
they are, so that exact friction cones need no pyramids.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.sparse import csc_matrix
from scipy.spatial import ConvexHull

from .. import lie
from ..arguments import count, positive
from ..arrays import Array
from ..exceptions import ContactError
from ..extras import require
from ..states import real_array

# Relative accuracy of the cost; that of the solution is about its square root where the cost is flat.
_ACCURACY = 1e-10


def minimize(
    P: Array, p: Array, equal: tuple[Array, Array], below: tuple[Array, Array], cones: Array, reason: str
) -> Array:
    """Minimise u' P u / 2 + p' u over E u = e, A u <= a, with every three rows of B u in a second-order cone.

    Args:
        P, p: (k, k) positive semidefinite and (k,).
        equal: E, e.
        below: A, a.
        cones: B.
        reason: message of the error if there is no such u.

    Raises:
        ContactError: there is no such u.
        MissingLibraryError: Clarabel is not installed.
    """
    require("contacts")
    import clarabel

    (E, e), (A, a) = equal, below
    size = len(p)
    rows = np.concatenate([E, A, -cones])
    bounds = np.concatenate([e, a, np.zeros(len(cones))])
    kinds: list[Any] = [clarabel.ZeroConeT(len(e))] if len(e) else []
    kinds += [clarabel.NonnegativeConeT(len(a))] if len(a) else []
    kinds += [clarabel.SecondOrderConeT(3)] * (len(cones) // 3)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _ACCURACY
    # For problems of this size a second thread costs more than it saves.
    settings.max_threads = 1
    solver = clarabel.DefaultSolver(
        csc_matrix(np.triu(P), shape=(size, size)), p, csc_matrix(rows, shape=rows.shape), bounds, kinds, settings
    )
    solution = solver.solve()
    if solution.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        raise ContactError(f"{reason} (Clarabel: {solution.status})")
    return np.array(solution.x)


FEWEST_FACES = 3
"""Faces of the coarsest pyramid."""


@dataclass(frozen=True)
class FrictionCone:
    """Forces (x, y, z) that a point contact can transmit, z along the normal, which points to the robot.

    Attributes:
        friction: coefficient of friction mu, positive.
    """

    friction: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "friction", positive(self.friction, "friction", ContactError))

    def contains(self, force: ArrayLike, faces: int | None = None, tolerance: float = 0.0) -> bool:
        """Whether a force (3,) is inside the cone, or at most ``tolerance`` N beyond; see :meth:`margin`."""
        return self.margin(force, faces) >= -real_array(tolerance, "tolerance", ()).item()

    def margin(self, force: ArrayLike, faces: int | None = None) -> float:
        """Normal-force margin, N: by how much f_n may fall before the contact slips or opens; negative outside.

        Args:
            force: (3,), N.
            faces: of a pyramid inside the cone; by default the cone itself.
        """
        f = real_array(force, "force", (3,))
        if faces is None:
            return float(f[2] - np.hypot(f[0], f[1]) / self.friction)
        A = self.half_spaces(faces)
        return float(np.min((A @ f) / A[:, 2]))

    def project(self, force: ArrayLike) -> Array:
        """The force of the cone that is nearest to a force (3,)."""
        f, mu = real_array(force, "force", (3,)), self.friction
        tangential = float(np.hypot(f[0], f[1]))
        if tangential <= mu * f[2]:
            return f
        if mu * tangential <= -f[2]:  # in the polar cone
            return np.zeros(3)
        normal = (f[2] + mu * tangential) / (1 + mu**2)
        scale = mu * normal / tangential
        return np.array([scale * f[0], scale * f[1], normal])

    def generators(self, faces: int = 4) -> Array:
        """Edges (faces, 3) of a pyramid inside the cone, for a normal force of 1 N."""
        faces = checked_faces(faces)
        angle = (2 * np.arange(faces) + 1) * np.pi / faces
        return np.stack([self.friction * np.cos(angle), self.friction * np.sin(angle), np.ones(faces)], axis=1)

    def half_spaces(self, faces: int = 4) -> Array:
        """Rows A (faces, 3) of the pyramid inside the cone, A f <= 0; for four faces
        ``|f_x|, |f_y| <= mu f_n/sqrt(2)``.
        """
        faces = checked_faces(faces)
        angle = 2 * np.arange(faces) * np.pi / faces
        inner = self.friction * np.cos(np.pi / faces)
        return np.stack([np.cos(angle), np.sin(angle), np.full(faces, -inner)], axis=1)


def second_order_rows(friction: float, points: int) -> Array:
    """Rows (3 points, 3 points) that map forces at points to triples (mu f_z, f_x, f_y) of second-order cones."""
    one = np.array([[0.0, 0.0, friction], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    return np.asarray(np.kron(np.eye(points), one), dtype=float)


def checked_faces(faces: int) -> int:
    """A valid number of faces of a pyramid; ContactError if it is something else."""
    return count(faces, "faces", FEWEST_FACES, error=ContactError)


# Of half-spaces with unit normals; Qhull splits a facet into simplices with almost equal ones.
_DIGITS = 9

# For their convex hull, which may have as many facets as the square of this.
_MOST_GENERATORS = 512

# Smallest relative width of a polygon.
_FLAT = 1e-9


class WrenchCone:
    """Wrenches (6,) that a flat polygon can transmit.

    Attributes:
        corners: (m, 2), m, in the frame of the contact; points inside their convex hull are allowed.
        friction: coefficient of friction mu, positive.
    """

    def __init__(self, corners: ArrayLike, friction: float) -> None:
        """Check corners and friction.

        Raises:
            ContactError: the corners span no area, or friction is not positive.
            StateError: corners are not finite numbers (m, 2).
        """
        self.corners = real_array(corners, "corners")
        if self.corners.ndim != 2 or self.corners.shape[1] != 2 or len(self.corners) < 3:
            raise ContactError(f"corners must have shape (m, 2) with at least 3 of them, have {self.corners.shape}")
        self._point = FrictionCone(friction)
        self.friction = self._point.friction
        spread = np.linalg.svd(self.corners - np.mean(self.corners, axis=0), compute_uv=False)
        if spread[1] <= _FLAT * spread[0]:
            raise ContactError("corners are on one line; describe the contact by point contacts")

    @property
    def grasp_matrix(self) -> Array:
        """G (6, 3 m): maps forces at the corners to their wrench."""
        return _grasp_matrix(self.corners)

    def generators(self, faces: int = 4) -> Array:
        """Wrenches (m faces, 6) that span the cone with pyramids at the corners, for 1 N of normal force each."""
        return self._generators(self.corners, faces)

    def half_spaces(self, faces: int = 4) -> Array:
        """Rows A (h, 6) of the cone with pyramids at the corners, A w <= 0: closed form for rectangles and four faces.

        Rectangles have sides along x and y. Other half-spaces are found as the convex hull of the generators.

        Raises:
            ContactError: ``faces`` is out of range, or they are too many for so many corners.
        """
        faces, sides = checked_faces(faces), _rectangle(self._vertices)
        if faces == 4 and sides is not None:
            return _rectangle_half_spaces(*sides, self.friction / np.sqrt(2))
        total = faces * len(self._vertices)
        if total > _MOST_GENERATORS:
            raise ContactError(
                f"{len(self._vertices)} corners with {faces} faces are {total} generators, more than "
                f"{_MOST_GENERATORS} take too long; describe the surface by fewer corners, or use exact cones"
            )
        return _hull_half_spaces(self._generators(self._vertices, faces).tobytes())

    def contains(self, wrench: ArrayLike, faces: int | None = 4, tolerance: float = 0.0) -> bool:
        """Whether a wrench (6,) is inside the cone, or at most ``tolerance`` N beyond; see :meth:`margin`."""
        return self.margin(wrench, faces) >= -real_array(tolerance, "tolerance", ()).item()

    def margin(self, wrench: ArrayLike, faces: int | None = 4) -> float:
        """Normal-force margin at the centre of the corners, N; negative outside.

        By how much the normal force may fall, at the mean of the corners, before the contact slips, tilts or opens.

        Args:
            wrench: (6,), N m and N.
            faces: of the pyramids at the corners, inside their friction cones; None for these cones themselves, which
                requires the extra ``contacts``.
        """
        w = real_array(wrench, "wrench", (6,))
        if faces is None:
            return self._largest_shift(w)
        A = self.half_spaces(faces)
        return float(np.min((A @ w) / (A @ self.center_force)))

    def project(self, wrench: ArrayLike, faces: int = 4) -> Array:
        """The wrench of the cone with pyramids that is nearest to a wrench (6,).

        Moments count as forces at the distance of the farthest corner from their mean.
        """
        w = real_array(wrench, "wrench", (6,))
        offsets = self.corners - np.mean(self.corners, axis=0)
        units = np.repeat([float(np.max(np.hypot(*offsets.T))), 1.0], 3)
        generators = self.generators(faces).T
        amounts, _ = nnls(generators / units[:, np.newaxis], w / units)
        return generators @ amounts

    @property
    def center_force(self) -> Array:
        """Wrench (6,) of a normal force of 1 N at the mean of the corners."""
        x, y = np.mean(self.corners, axis=0)
        return np.array([y, -x, 0.0, 0.0, 0.0, 1.0])

    def _largest_shift(self, wrench: Array) -> float:
        """Largest t, N, for which the wrench less t times :attr:`center_force` is in the exact cone."""
        forces = 3 * len(self.corners)
        B = second_order_rows(self.friction, len(self.corners))
        solution = minimize(
            np.zeros((forces + 1, forces + 1)),
            np.append(np.zeros(forces), -1.0),
            (np.column_stack([self.grasp_matrix, self.center_force]), wrench),
            (np.zeros((0, forces + 1)), np.zeros(0)),
            np.column_stack([B, np.zeros(len(B))]),
            "no forces at the corners sum up to this wrench",
        )
        return float(solution[-1])

    def _generators(self, corners: Array, faces: int) -> Array:
        edges = self._point.generators(faces)
        return np.concatenate([edges @ block.T for block in np.split(_grasp_matrix(corners), len(corners), axis=1)])

    @cached_property
    def _vertices(self) -> Array:
        """Corners (k, 2) of the convex hull: the others add nothing to the cone."""
        centered = self.corners - np.mean(self.corners, axis=0)
        _, spread, axes = np.linalg.svd(centered, full_matrices=False)
        return self.corners[ConvexHull(centered @ axes.T / spread).vertices]


def _grasp_matrix(corners: Array) -> Array:
    blocks = [np.concatenate([lie.skew([x, y, 0.0]), np.eye(3)]) for x, y in corners]
    return np.concatenate(blocks, axis=1)


def _rectangle(corners: Array) -> tuple[Array, Array] | None:
    """Centre (2,) and half lengths (2,) of a rectangle along x and y; None for other polygons."""
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    at = {tuple(corner) for corner in corners.tolist()}
    if at != set(product((low[0], high[0]), (low[1], high[1]))):
        return None
    return (low + high) / 2, (high - low) / 2


def _rectangle_half_spaces(center: Array, half: Array, mu: float) -> Array:
    """Caron, Pham and Nakamura's conditions, for |f_x|, |f_y| <= mu f_z at the corners.

    With half lengths X and Y: |f_x|, |f_y| <= mu f_z, |m_x| <= Y f_z, |m_y| <= X f_z, and m_z between

        -mu (X + Y) f_z + |Y f_x - mu m_x| + |X f_y - mu m_y|  and
        +mu (X + Y) f_z - |Y f_x + mu m_x| - |X f_y + mu m_y|.
    """
    X, Y = half
    rows = []
    for sign in (1.0, -1.0):
        rows += [[0, 0, 0, sign, 0, -mu], [0, 0, 0, 0, sign, -mu], [sign, 0, 0, 0, 0, -Y], [0, sign, 0, 0, 0, -X]]
    for side, a, b in product((-1.0, 1.0), repeat=3):
        # side m_z + a (Y f_x + side mu m_x) + b (X f_y + side mu m_y) <= mu (X + Y) f_z
        rows.append([a * side * mu, b * side * mu, side, a * Y, b * X, -mu * (X + Y)])
    # From the centre to the origin of the frame: m_center = m - r x f.
    x, y = center
    to_center = np.eye(6)
    to_center[:3, 3:] = -lie.skew([x, y, 0.0])
    return np.array(rows) @ to_center


@lru_cache(64)
def _hull_half_spaces(generators: bytes) -> Array:
    """Rows A (h, 6), A w <= 0, of the cone of generators with unit normal forces: the hull of a section of it."""
    section = np.frombuffer(generators).reshape(-1, 6)
    scale = np.concatenate([np.max(np.abs(section), axis=0)[:5], [1.0]])
    equations = ConvexHull(section[:, :5] / scale[:5]).equations  # normal . x + offset <= 0
    _, distinct = np.unique(np.round(equations, _DIGITS), axis=0, return_index=True)
    rows: Array = equations[distinct] / scale
    rows.setflags(write=False)
    return rows

# SPDX-License-Identifier: Apache-2.0
"""Contact wrench cone of a flat surface: all sums of friction forces at the corners of its polygon.

Wrenches are (moment; force) in the frame of the contact, z along the normal, which points to the robot. With pyramids
at the corners the cone is polyhedral: spanned by the edges of the pyramids (generators), or cut out by half-spaces.
S. Caron, Q.-C. Pham and Y. Nakamura, "Stability of surface contacts for humanoid robots: closed-form formulae of the
contact wrench cone for rectangular support areas", ICRA 2015.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

from .. import lie
from ..arrays import Array
from ..exceptions import ContactError
from ..states import real_array
from .conic_program import minimize
from .friction_cone import FrictionCone, checked_faces, second_order_rows

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
        count = faces * len(self._vertices)
        if count > _MOST_GENERATORS:
            raise ContactError(
                f"{len(self._vertices)} corners with {faces} faces are {count} generators, more than "
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
        found = minimize(
            np.zeros((forces + 1, forces + 1)),
            np.append(np.zeros(forces), -1.0),
            (np.column_stack([self.grasp_matrix, self.center_force]), wrench),
            (np.zeros((0, forces + 1)), np.zeros(0)),
            np.column_stack([B, np.zeros(len(B))]),
            "no forces at the corners sum up to this wrench",
        )
        return float(found[-1])

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

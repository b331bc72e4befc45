# SPDX-License-Identifier: Apache-2.0
"""Point and surface contacts between a body of a robot and its surroundings, or another body; their cones.

The frame of a contact is fixed to a body. Contact forces act on the robot at its origin; their z axis is the normal,
which points to the robot. A sticking contact admits no motion of a point (3 rows) or of a surface (6 rows). A sliding
contact admits the tangential motion, and friction is part of the direction of the remaining forces:

    point:    f = f_n (-mu e; 1) for the unit direction e of sliding,
    surface:  moments m_x, m_y and force f_n remain; m_z = mu (m_x e_x + m_y e_y), since friction acts at the center
              of pressure (-m_y, m_x)/f_n. All points of the surface slide alike: it does not spin.

A point contact transmits forces of the cone |f_t| <= mu f_n. A flat surface transmits all sums of such forces at the
corners of its polygon. Wrenches are (moment; force) in the frame of the contact, z along the normal, which points to
the robot. Margins are for these exact cones, or for pyramids inside the friction cones, as programs with linear
constraints need them. The wrench cone is then polyhedral: spanned by the edges of the pyramids (generators), or bounded
by half-spaces. S. Caron, Q.-C. Pham and Y. Nakamura, "Stability of surface contacts for humanoid robots: closed-form
formulae of the contact wrench cone for rectangular support areas", ICRA 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.spatial import ConvexHull

from .. import lie
from ..arguments import count, positive, real_array
from ..arrays import Array
from ..exceptions import ContactError
from ..spelling import shown

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
        """Check that a force (3,) is inside the cone, or at most ``tolerance`` N beyond; see :meth:`margin`."""
        return self.margin(force, faces) >= -real_array(tolerance, "tolerance", ()).item()

    def margin(self, force: ArrayLike, faces: int | None = None) -> float:
        """Normal-force margin, N: possible decrease of f_n before the contact slips or opens; negative outside.

        Args:
            force: (3,), N.
            faces: number of faces of a pyramid inside the cone; by default the cone itself.
        """
        f = real_array(force, "force", (3,))
        if faces is None:
            return float(f[2] - np.hypot(f[0], f[1]) / self.friction)
        A = self.half_spaces(faces)
        return float(np.min((A @ f) / A[:, 2]))

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


def checked_faces(faces: int) -> int:
    """Valid number of pyramid faces; ContactError for anything else."""
    return count(faces, "faces", FEWEST_FACES, error=ContactError)


# Tolerance of half-spaces with unit normals; Qhull splits a facet into simplices with almost equal half-spaces.
_DIGITS = 9

# Largest number of generators; their convex hull may have as many facets as the square of it.
_MOST_GENERATORS = 512

# Smallest relative width of a polygon.
_FLAT = 1e-9

# Barrier method: least weight of the barrier relative to the wrench; Newton decrement near a minimum, at which the
# weight decreases by a factor; maximum number of steps (about 55 are needed).
_ACCURACY, _NEAR, _DECREASE, _MOST_STEPS = 1e-13, 0.25, 0.02, 500


# Metric of s_n² - |s_t|².
_LORENTZ = np.array([-1.0, -1.0, 1.0])


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
        """Rows A (h, 6) of the cone with pyramids at the corners, A w <= 0: the convex hull of the generators.

        Raises:
            ContactError: ``faces`` is out of range, or too large for the number of corners.
        """
        faces = checked_faces(faces)
        total = faces * len(self._vertices)
        if total > _MOST_GENERATORS:
            raise ContactError(
                f"{len(self._vertices)} corners with {faces} faces are {total} generators, more than "
                f"{_MOST_GENERATORS} take too long; describe the surface by fewer corners, or use exact cones"
            )
        return _hull_half_spaces(self._generators(self._vertices, faces).tobytes())

    def contains(self, wrench: ArrayLike, faces: int | None = None, tolerance: float = 0.0) -> bool:
        """Check that a wrench (6,) is inside the cone, or at most ``tolerance`` N beyond; see :meth:`margin`."""
        return self.margin(wrench, faces) >= -real_array(tolerance, "tolerance", ()).item()

    def margin(self, wrench: ArrayLike, faces: int | None = None) -> float:
        """Normal-force margin at the center of the corners, N; negative outside.

        Possible decrease of the normal force at the mean of the corners before the contact slips, tilts or opens.

        Args:
            wrench: (6,), N m and N.
            faces: number of faces of pyramids inside the corners' friction cones; by default the cones themselves.
        """
        w = real_array(wrench, "wrench", (6,))
        if faces is None:
            return self._largest_shift(w)
        A = self.half_spaces(faces)
        return float(np.min((A @ w) / (A @ self.center_force)))

    @property
    def center_force(self) -> Array:
        """Wrench (6,) of a normal force of 1 N at the mean of the corners."""
        x, y = np.mean(self.corners, axis=0)
        return np.array([y, -x, 0.0, 0.0, 0.0, 1.0])

    def _largest_shift(self, wrench: Array) -> float:
        """Largest t, N, for which the wrench less t times :attr:`center_force` is in the exact cone.

        The dual problem minimizes the power of the wrench over motions y of the polygon with unit normal velocity at
        the center; its minimum is t. The corner velocities s = G_i' y satisfy mu |s_t| <= s_n. A barrier method
        decreases the power by damped Newton steps, which stay inside. S. Boyd and L. Vandenberghe, *Convex
        Optimization* (2004), sections 9.6 and 11.6.
        """
        center = np.mean(self.corners, axis=0)
        # Triples (mu s_t; s_n) of all corners: S y + (0, 0, 1), for the motions y without the normal velocity.
        S = _grasp_matrix(self._vertices - center).T.reshape(-1, 3, 6) * [[self.friction], [self.friction], [1.0]]
        # Orthonormal columns make the unit ball of x = R y fit inside the cones, for any size and friction.
        Q, R = np.linalg.qr(S[:, :, :5].reshape(-1, 5))
        S, moment = Q.reshape(-1, 3, 5), wrench[:3] - np.cross([*center, 0.0], wrench[3:])
        w = np.linalg.solve(R.T, [*moment, *wrench[3:5]])
        least = _ACCURACY * float(np.max(np.abs(w)))
        x, weight = np.zeros(5), least / _ACCURACY
        for _ in range(_MOST_STEPS):
            s = S @ x + [0.0, 0.0, 1.0]
            tangential = np.hypot(s[:, 0], s[:, 1])
            room = (s[:, 2] - tangential) * (s[:, 2] + tangential)  # argument of the barrier -log(s_n² - mu² |s_t|²)
            if not np.all((room > 0) & (s[:, 2] > 0)):
                break  # rounding reached the edge of a cone: the last motion inside is the nearest computable
            best = x
            if weight <= least:
                break
            size = np.sqrt(room)[:, np.newaxis]
            u = s * _LORENTZ / size
            gradient = w / weight - 2 * np.einsum("ka,kai->i", u / size, S)
            # The Hessian of the barrier is 2/room S' (2 u u' - J) S, and 2 v v' - J the root of its middle. The
            # triangular factor of the root remains accurate for motions with corners almost at the apex of their cones.
            v = np.add(u, [0.0, 0.0, 1.0]) / np.sqrt(2 * (1 + u[:, 2:]))
            root = (2 * v[:, :, np.newaxis] * v[:, np.newaxis] - np.diag(_LORENTZ)) @ S
            triangle = np.linalg.qr((np.sqrt(2) * root / size[:, np.newaxis]).reshape(-1, 5), mode="r")
            if not np.all(np.diag(triangle)):
                break
            half = solve_triangular(triangle, -gradient, trans="T")
            step, decrement = solve_triangular(triangle, half), float(np.linalg.norm(half))
            if decrement < _NEAR:
                x, weight = x + step, weight * _DECREASE
            else:
                x = x + step / (1 + decrement)
        return float(w @ best + wrench[5])

    def _generators(self, corners: Array, faces: int) -> Array:
        edges = self._point.generators(faces)
        return np.concatenate([edges @ block.T for block in np.split(_grasp_matrix(corners), len(corners), axis=1)])

    @cached_property
    def _vertices(self) -> Array:
        """Corners (k, 2) of the convex hull; other corners add nothing to the cone."""
        centered = self.corners - np.mean(self.corners, axis=0)
        _, spread, axes = np.linalg.svd(centered, full_matrices=False)
        return self.corners[ConvexHull(centered @ axes.T / spread).vertices]


def _grasp_matrix(corners: Array) -> Array:
    blocks = [np.concatenate([lie.skew([x, y, 0.0]), np.eye(3)]) for x, y in corners]
    return np.concatenate(blocks, axis=1)


@lru_cache(64)
def _hull_half_spaces(generators: bytes) -> Array:
    """Rows A (h, 6), A w <= 0, of the cone of generators with unit normal forces, from the hull of a section."""
    section = np.frombuffer(generators).reshape(-1, 6)
    scale = np.concatenate([np.max(np.abs(section), axis=0)[:5], [1.0]])
    equations = ConvexHull(section[:, :5] / scale[:5]).equations  # normal . x + offset <= 0
    _, distinct = np.unique(np.round(equations, _DIGITS), axis=0, return_index=True)
    rows: Array = equations[distinct] / scale
    rows.setflags(write=False)
    return rows


# Tolerance of rotation matrices and unit vectors.
_ORTHONORMAL = 1e-9


@dataclass(frozen=True, eq=False)
class PointContact:
    """Point contact, which transmits a force (3,).

    Attributes:
        name: name of the contact.
        frame: name of the robot frame that is in contact.
        friction: coefficient of friction mu, positive.
        pose: pose (4, 4) of the contact frame in this robot frame.
        axes: rotation (3, 3) from the contact axes to the axes of the surroundings. Its last column is the normal, see
            :func:`axes_of_normal`. None selects the axes of the contact frame, which move with it.
        on: name of the other robot frame, for contact of the robot with itself; None for the surroundings.
    """

    name: str
    frame: str
    friction: float
    pose: Array = field(default_factory=lambda: np.eye(4))
    axes: Array | None = field(default_factory=lambda: np.eye(3))
    on: str | None = None
    cone: FrictionCone = field(init=False, repr=False)

    rows: ClassVar = (3, 4, 5)
    """Rows of a twist (angular; linear) that a sticking contact keeps at zero."""

    def __post_init__(self) -> None:
        _check_placement(self)
        object.__setattr__(self, "cone", FrictionCone(self.friction))

    @property
    def size(self) -> int:
        """Number of entries of the contact force."""
        return len(self.rows)

    def sliding(self, direction: ArrayLike) -> tuple[Array, Array]:
        """Constraints P (1, 3) of a sliding contact, and the force D (1, 3) per unit of normal force.

        The direction (2,) is a unit vector along x and y.
        """
        x, y = self.friction * real_array(direction, "direction", (2,))
        return np.array([[0.0, 0.0, 1.0]]), np.array([[-x, -y, 1.0]])


@dataclass(frozen=True, eq=False)
class SurfaceContact:
    """Flat polygonal contact, which transmits a wrench (6,), moment first.

    Attributes:
        name, frame, friction, on: as for :class:`PointContact`.
        corners: at least three corners (m, 2), m, in the xy plane of the contact frame.
        pose: pose (4, 4) of the contact frame in ``frame``; its z axis points to the robot.
        axes: as for :class:`PointContact`, by default None.
    """

    name: str
    frame: str
    friction: float
    corners: Array
    pose: Array = field(default_factory=lambda: np.eye(4))
    axes: Array | None = None
    on: str | None = None
    cone: WrenchCone = field(init=False, repr=False)

    rows: ClassVar = (0, 1, 2, 3, 4, 5)

    def __post_init__(self) -> None:
        _check_placement(self)
        object.__setattr__(self, "cone", WrenchCone(self.corners, self.friction))
        object.__setattr__(self, "corners", self.cone.corners)

    @classmethod
    def rectangle(
        cls, name: str, frame: str, friction: float, half_lengths: Sequence[float], pose: ArrayLike | None = None
    ) -> SurfaceContact:
        """Rectangular contact centered on the origin of its frame, with half lengths (x, y), m."""
        X, Y = real_array(half_lengths, "half_lengths", (2,)).tolist()
        if not (X > 0 and Y > 0):
            raise ContactError(f"half_lengths must be positive, are {X:g} and {Y:g}")
        corners = np.array([[X, Y], [-X, Y], [-X, -Y], [X, -Y]])
        placed = real_array(np.eye(4) if pose is None else pose, "pose", (4, 4))
        return cls(name, frame, friction, corners, placed)

    @property
    def size(self) -> int:
        """Number of entries of the contact wrench."""
        return len(self.rows)

    def points(self) -> tuple[PointContact, ...]:
        """Point contacts at the corners, named after the surface: ``foot 0``, ``foot 1``, ….

        Their forces are redundant, so that only their sum is determined.
        """
        first = PointContact(self.name, self.frame, self.friction, self.pose, self.axes, self.on)
        places = [self.pose @ lie.pose(np.eye(3), [x, y, 0.0]) for x, y in self.corners]
        return tuple(replace(first, name=f"{self.name} {i}", pose=place) for i, place in enumerate(places))

    def sliding(self, direction: ArrayLike) -> tuple[Array, Array]:
        """Constraints P (3, 6) of a sliding contact, and the wrenches D (3, 6) per unit of m_x, m_y and f_n."""
        x, y = self.friction * real_array(direction, "direction", (2,))
        P = np.eye(6)[[0, 1, 5]]
        return P, P + np.array([[0, 0, x, 0, 0, 0], [0, 0, y, 0, 0, 0], [0, 0, 0, -x, -y, 0]])


Contact: TypeAlias = PointContact | SurfaceContact
"""A contact of either kind."""


def axes_of_normal(normal: ArrayLike) -> Array:
    """Shortest rotation (3, 3) of the z axis onto a normal (3,) of any length.

    For a normal below the xy plane: half a turn about x, then the shortest rotation of the -z axis.

    Raises:
        ContactError: the normal is zero.
    """
    n = real_array(normal, "normal", (3,))
    largest = float(np.max(np.abs(n)))
    if not largest:
        raise ContactError("the normal of a contact is zero")
    turn = np.diag([1.0, -1.0, -1.0]) if n[2] < 0 else np.eye(3)
    # Scaled first: squares of entries could overflow or vanish.
    n = n / largest
    x, y, z = turn @ n / np.linalg.norm(n)
    v = lie.skew([-y, x, 0.0])
    return turn @ (np.eye(3) + v + v @ v / (1 + z))


def _check_placement(contact: Contact) -> None:
    """Replace pose and axes by arrays, and check them and the names.

    Raises:
        ContactError: a name is not a string, friction is not positive, or a rotation is invalid.
        StateError: pose or axes have the wrong shape or are not finite.
    """
    for name in ("name", "frame"):
        if not isinstance(getattr(contact, name), str) or not getattr(contact, name):
            raise ContactError(f"{name} of a contact must be a text, is {shown(getattr(contact, name))}")
    if contact.on is not None and (not isinstance(contact.on, str) or not contact.on):
        raise ContactError(f"{contact.name}: on must be the name of a frame, or None, is {shown(contact.on)}")
    pose = real_array(contact.pose, f"{contact.name}: pose", (4, 4))
    _check_rotation(pose[:3, :3], f"{contact.name}: pose")
    if not np.array_equal(pose[3], [0, 0, 0, 1]):
        raise ContactError(f"{contact.name}: the last row of pose must be 0 0 0 1, is {pose[3].tolist()}")
    object.__setattr__(contact, "pose", pose)
    if contact.axes is not None:
        axes = real_array(contact.axes, f"{contact.name}: axes", (3, 3))
        _check_rotation(axes, f"{contact.name}: axes")
        object.__setattr__(contact, "axes", axes)


def _check_rotation(R: Array, name: str) -> None:
    if np.max(np.abs(R.T @ R - np.eye(3))) > _ORTHONORMAL or np.linalg.det(R) < 0:
        raise ContactError(f"{name} is not a rotation matrix: its columns must be orthonormal and right-handed")

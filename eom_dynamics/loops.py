# SPDX-License-Identifier: Apache-2.0
"""Closed kinematic loops: a spanning tree and cut joints.

A cut joint is a pair of frames on two bodies, its predecessor and its successor. With the twist V_rel of the
successor's frame relative to the predecessor's, in the successor's frame, the constraints P V_rel = 0 are rows J_c = P
J_rel of the constraint Jacobian; see :mod:`eom_dynamics.constraints`. With the joint rates qd = F ud of the tree, J_c F
= 0, the principle of virtual work gives the efforts at the independent joints, tau_u = F' tau, from the efforts tau of
the tree. Time derivatives follow from Leibniz' rule; derivatives of F follow from J_c F = 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares

from . import lie
from .arguments import checked_pose, count, joint_vectors, number_of_states, real_array, sequence, wrenches
from .arrays import STATE_NAMES, AnyArray, derivative_names
from .codegen.backends import require_robot
from .constraints import at_rest, body_motion, solve
from .dynamics import Dynamics
from .equations.body_matrices import BodyMatrices
from .equations.system import system_matrices
from .exceptions import RobotDescriptionError, StateError
from .jet import Jet, leibniz
from .kinematics import body_poses
from .robot import Robot
from .spelling import duplicates, shown


@dataclass(frozen=True, eq=False)
class CutJoint:
    """Cut joint: a joint that closes a loop.

    Attributes:
        name: name of the joint.
        predecessor: index of the tree joint that moves the predecessor; -1 for the base.
        predecessor_pose: pose (4, 4) of the joint's frame in the predecessor.
        successor: index of the tree joint that moves the successor.
        successor_pose: pose (4, 4) of the joint's frame in the successor. The loop is closed if the two frames differ
            only by a motion of the joint.
        screws: screws (k, 6) of the admitted motions in the joint's frame: one for a revolute joint, three for a
            spherical joint. They must generate a subgroup of SE(3), so that they are the same in both frames.
    """

    name: str
    predecessor: int
    predecessor_pose: AnyArray
    successor: int
    successor_pose: AnyArray
    screws: AnyArray

    @property
    def forbidden(self) -> AnyArray:
        """P (6 - k, 6): orthonormal basis of the constraints, orthogonal to the screws."""
        _, values, rows = np.linalg.svd(np.atleast_2d(self.screws))
        return rows[np.count_nonzero(values > 1e-9) :]

    def gap(self, poses: list[AnyArray]) -> AnyArray:
        """Pose (4, 4) of the successor's frame in the predecessor's frame, for body poses in the base frame."""
        at = self.predecessor_pose if self.predecessor < 0 else poses[self.predecessor] @ self.predecessor_pose
        return lie.inverse(at) @ poses[self.successor] @ self.successor_pose

    def jacobian(self, body: BodyMatrices, poses: list[AnyArray]) -> Jet:
        """Constraint Jacobian J_c (6 - k, n) to the order of the kinematics, for body poses in the base frame."""
        J, P = body.J, self.forbidden
        predecessor = at_rest(J[0].shape[1], len(J) - 1)
        if self.predecessor >= 0:
            predecessor = body_motion(body, poses, self.predecessor)
        successor = body_motion(body, poses, self.successor)
        relative = successor.at(self.successor_pose).relative_to(predecessor.at(self.predecessor_pose))
        return Jet([P @ J for J in relative.jacobian])


# Largest closure error (rad, m) of a closed loop: about 1000 times the rounding error.
_CLOSED = 1e-11

# Largest closure error (rad, m) of joint variables as arguments.
_OPEN = 1e-6

# Relative threshold for rates that open the loops, and for singular values in the count of degrees of freedom. It
# exceeds the effect of a closure error of _OPEN on constraints that are redundant in closed loops.
_RATE = 1e-4

# Relative smallest singular value of the constraints below which a configuration is singular.
_SINGULAR = 1e-8


class ClosedLoopArm:
    """Mechanism with closed loops, driven at its independent joints.

    Attributes:
        tree: spanning tree, the robot without its cut joints.
        loops: the cut joints.
        independent: names of the independent (actuated) joints, in the order of the vectors u.
    """

    def __init__(self, tree: Robot, loops: Sequence[CutJoint], independent: Sequence[str]) -> None:
        """Compile the dynamics of the tree.

        Raises:
            RobotDescriptionError: an independent joint is not in the tree or listed twice, or a body of a cut joint is
                not in the tree.
            StateError: a pose or the screws of a cut joint have the wrong shape or are not finite.
            TypeError: ``tree`` is not a Robot.
        """
        require_robot(tree)
        names = sequence(independent, "independent", "names of joints")
        for name in names:
            if not isinstance(name, str) or name not in tree.joint_names:
                raise RobotDescriptionError(
                    f"{tree.name}: independent joint {shown(name)} is not one of {', '.join(tree.joint_names)}"
                )
        if duplicates(names):
            raise RobotDescriptionError(f"{tree.name}: an independent joint is listed twice")
        self.tree = tree
        self.loops = tuple(sequence(loops, "loops", "cut joints"))
        self.independent = tuple(names)
        for loop in self.loops:
            _require_cut_joint(loop, tree)
        self._dynamics = Dynamics(tree)
        self._free = [tree.joint_names.index(name) for name in names]
        self._bound = [i for i in range(tree.n) if i not in self._free]

    def close(self, u: ArrayLike, guess: ArrayLike) -> AnyArray:
        """Joint variables of the tree (n,) that close the loops for independent joint variables u.

        The solution is near ``guess`` (n,), which selects an assembly mode. StateError if the loops cannot be closed
        near the guess, or with too many independent joints.
        """
        q = real_array(guess, "guess", (self.tree.n,)).copy()
        q[self._free] = real_array(u, "u", (len(self._free),))

        def residual(bound: AnyArray) -> AnyArray:
            q[self._bound] = bound
            return self._gaps(q)

        start = q[self._bound].copy()
        # If the loops cannot be closed, the solver may divide by zero, and its joint variables are NaN.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            try:
                if self._bound:
                    q[self._bound] = least_squares(residual, start, xtol=None, ftol=None, gtol=1e-15, max_nfev=200).x
            except StateError:
                q[self._bound] = start
        error = self._closure_error(q)
        if error > _CLOSED:
            reason = self._mismatch(self._constraints(q, [])[0], too_many=True)
            raise StateError(
                f"{self.tree.name}: the loops do not close near this guess, by {error:.2g} rad or m"
                + (f": {reason}" if reason else "")
            )
        return q

    def motion(self, q: ArrayLike, *rates: ArrayLike) -> tuple[list[AnyArray], Jet]:
        """Motion of the tree for a motion of the independent joints.

        Args:
            q: joint variables of the tree (n,) that close the loops to 1e-6 rad or m; see :meth:`close`.
            rates: ud, udd, …, time derivatives of the independent joint variables.

        Returns:
            qd, qdd, …, a vector (n,) for each rate; and F (n, number of independent joints) with one derivative less.

        Raises:
            StateError: the loops are open; the configuration is singular; or there are more or fewer independent
                joints than the mechanism has degrees of freedom.
        """
        q = real_array(q, STATE_NAMES[0], (self.tree.n,))
        error = self._closure_error(q)
        if error > _OPEN:
            raise StateError(
                f"{self.tree.name}: q does not close the loops, by {error:.2g} rad or m: take it from close()"
            )
        names = derivative_names(STATE_NAMES[0], len(rates) + 1)[1:]
        u = [real_array(rate, name, (len(self._free),)) for rate, name in zip(rates, names, strict=True)]
        moved: list[AnyArray] = []
        F: list[AnyArray] = []
        for k in range(len(u)):
            # The k-th derivative of F depends on rates up to the k-th, known from the last iteration.
            F.append(self._map_rate(q, moved, F, k))
            moved.append(leibniz(F, u, k))
        return moved, Jet(F)

    def inverse_dynamics(
        self, q: ArrayLike, *rates: ArrayLike, wrench: Sequence[ArrayLike] = ()
    ) -> tuple[AnyArray, ...]:
        """Efforts tau, taud, taudd at the independent joints, of a batch with a leading axis N.

        Args:
            q: as for :meth:`motion`, (n,) or (N, n), with its errors.
            rates: ud, udd, uddd, udddd, time derivatives of the independent joint variables, of one or N states.
            wrench: as in :meth:`eom_dynamics.Dynamics.inverse_dynamics`.
        """
        if len(rates) != 4:
            raise StateError(f"inverse_dynamics needs ud, udd, uddd and udddd, has {len(rates)} rates")
        if (N := number_of_states(q)) is not None:
            (q,) = joint_vectors(self.tree.n, q, samples=(N,))
            u = joint_vectors(len(self._free), *rates, first=1, samples=(N,))
            at_tools = wrenches(wrench, None, self.tree.wrench_shape, (N,))
            batch = [self.inverse_dynamics(q[i], *(x[i] for x in u), wrench=[W[i] for W in at_tools]) for i in range(N)]
            return tuple(map(np.stack, zip(*batch, strict=True)))
        moved, F = self.motion(q, *rates)
        efforts = self._dynamics.inverse_dynamics(q, *moved, wrench=wrench)
        return tuple(F.T @ Jet(efforts))

    def forward_dynamics(self, q: ArrayLike, ud: ArrayLike, tau: ArrayLike) -> tuple[AnyArray, tuple[AnyArray, ...]]:
        """Accelerations under efforts at the independent joints, and wrenches in the cut joints.

        They follow from the equations of motion of the tree under rigid constraints, as in
        :mod:`eom_dynamics.contacts`.

        Args:
            q: as for :meth:`motion`, with its errors; or RobotDescriptionError if the mass matrix of the tree is not
                positive definite.
            ud, tau: rates of the independent joint variables, and efforts at these joints.

        Returns:
            udd, and the wrench (6,) of each cut joint on its successor, in the successor's frame of the joint; moment
            first. Wrenches of redundant constraints are of least norm.
        """
        q = real_array(q, STATE_NAMES[0], (self.tree.n,))
        efforts = np.zeros(self.tree.n)
        efforts[self._free] = real_array(tau, "tau", (len(self._free),))
        (qd,), _ = self.motion(q, ud)
        J_c = self._constraints(q, [qd])
        inertia = self._dynamics.mass_matrix(q)
        solution = solve(self.tree.name, inertia, efforts - self._dynamics.bias(q, qd), J_c[0], -J_c[1] @ qd)
        P = [loop.forbidden for loop in self.loops]
        parts = np.split(solution.forces, np.cumsum([len(rows) for rows in P])[:-1])
        return solution.x[self._free], tuple(rows.T @ f for rows, f in zip(P, parts, strict=True))

    def _gaps(self, q: AnyArray) -> AnyArray:
        """Closure errors of all loops, rad or m."""
        poses = body_poses(self.tree, q)
        return np.concatenate([loop.forbidden @ lie.log(loop.gap(poses)) for loop in self.loops])

    def _closure_error(self, q: AnyArray) -> float:
        return float(np.max(np.abs(self._gaps(q)), initial=0.0))

    def _mismatch(self, J_c: AnyArray, *, too_many: bool) -> str:
        """Message about too many or too few independent joints; empty if the number is right."""
        values = np.linalg.svd(J_c, compute_uv=False)
        freedom = self.tree.n - int(np.count_nonzero(values > _RATE * np.max(values, initial=0.0)))
        names, count = ", ".join(self.independent) or "none", len(self._free)
        if (count <= freedom) if too_many else (count >= freedom):
            return ""
        return (
            f"the mechanism has {freedom} degree{'s' * (freedom != 1)} of freedom here, but {count} "
            f"independent joint{'s' * (count != 1)} ({names}): name as many as it has degrees of freedom"
        )

    def _constraints(self, q: AnyArray, rates: Sequence[AnyArray]) -> Jet:
        """Constraint Jacobian J_c of all loops, and a time derivative for each of the rates qd, qdd, …."""
        # The jets take one rate more than they depend on.
        body, poses = system_matrices(self.tree, q, *rates, np.zeros(self.tree.n)), body_poses(self.tree, q)
        J = [loop.jacobian(body, poses) for loop in self.loops]
        return Jet([np.concatenate(rows) for rows in zip(*J, strict=True)])

    def _map_rate(self, q: AnyArray, moved: list[AnyArray], F: list[AnyArray], k: int) -> AnyArray:
        """k-th derivative of F from the k-th derivative of J_c F = 0, with q … q^(k) and lower derivatives of F."""
        J_c = self._constraints(q, moved[:k])
        # The rows of F for the independent joints are constant rows of the identity matrix.
        known = sum(comb(k, j) * (J_c[j] @ F[k - j]) for j in range(1, k + 1)) if k else J_c[0][:, self._free]
        bound, _, _, values = np.linalg.lstsq(J_c[0][:, self._bound], -known, rcond=None)
        if len(values) < len(self._bound) or (self._bound and values[-1] < _SINGULAR * values[0]):
            reason = self._mismatch(J_c[0], too_many=False)
            raise StateError(
                f"{self.tree.name}: singular configuration: the independent joints do not determine the other joints"
                + (f"; {reason}" if reason else "")
            )
        result = np.zeros((self.tree.n, len(self._free)))
        result[self._bound] = bound
        if k == 0:
            result[self._free] = np.eye(len(self._free))
            if np.max(np.abs(J_c[0] @ result), initial=0.0) > _RATE * np.max(np.abs(J_c[0]), initial=0.0):
                reason = self._mismatch(J_c[0], too_many=True) or "the independent joints would open the loops"
                raise StateError(f"{self.tree.name}: {reason}")
        return result


def _require_cut_joint(loop: CutJoint, tree: Robot) -> None:
    """Raise RobotDescriptionError or StateError for an invalid cut joint between bodies of the tree."""
    if not isinstance(loop, CutJoint):
        raise RobotDescriptionError(f"{tree.name}: loops must be cut joints, one is {shown(loop)}")
    for name, least in (("predecessor", -1), ("successor", 0)):
        what = f"{tree.name}: {loop.name}: {name}, the index of a joint,"
        count(getattr(loop, name), what, least, len(tree.joints) - 1, RobotDescriptionError)
    for name in ("predecessor_pose", "successor_pose"):
        checked_pose(real_array(getattr(loop, name), f"{loop.name}: {name}", (4, 4)), f"{loop.name}: {name}")
    screws = real_array(loop.screws, f"{loop.name}: screws")
    if screws.ndim not in (1, 2) or screws.shape[-1] != 6:
        raise StateError(f"{loop.name}: screws must have shape (k, 6), has {screws.shape}")


__all__ = ["ClosedLoopArm", "CutJoint"]

# SPDX-License-Identifier: Apache-2.0
"""Base inertial parameters: the identifiable combinations of masses, first moments and inertias.

Efforts are tau = Y pi, and columns of Y depend linearly on each other for every motion: a body that turns about a fixed
axis shows nothing of its inertia about others. With b independent columns Y_b, all others are Y_b times constants, so
that

    tau = Y pi = Y_b beta,      beta = K pi,      K (b, 10 B), a unit matrix in the independent columns.

M. Gautier, "Numerical calculation of the base inertial parameters of robots", Journal of Robotic Systems 8 (1991).
Columns are taken body by body from the base to the tips, and of each body first those that its own joint always feels.
The others join those of the parent, as in W. Khalil and E. Dombre, Modeling, Identification and Control of Robots
(2002), section 9.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..dynamics import Dynamics
from ..recursion import PARAMETERS
from ..robot import Joint, Robot

# Random states that decide on independence, per parameter; each gives n equations.
_STATES = 4

# Standard deviations of their velocities and accelerations, rad/s and rad/s²: inertia then counts as much as gravity.
_RATES = (3.0, 10.0)

# Part of a column that is independent of others, relative to the column: rounding errors are at 1e-15, and the smallest
# true parts of the packaged robots at 1e-2.
_INDEPENDENT = 1e-7

# Coefficients below are rounding errors; larger ones are lengths and products of them, m and m².
_ZERO = 1e-9

_MASS, _MOMENTS, _INERTIAS = 0, (1, 2, 3), ((4, 5, 6), (5, 7, 8), (6, 8, 9))
"""Places of the mass, the first moments (3) and the inertias (3, 3) in the parameters of a body."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters beta = K pi of a robot.

    Attributes:
        names: of the P = 10 B inertial parameters pi, such as ``m3``, ``mx3`` and ``Ixx3`` of the third body.
        independent: (b,) indices of the parameters that beta is named after, one of which is in each combination.
        combinations: K (b, P).
    """

    names: tuple[str, ...]
    independent: NDArray[np.intp]
    combinations: Array

    def __len__(self) -> int:
        return len(self.independent)

    def __call__(self, parameters: Array) -> Array:
        """Base parameters beta (…, b) of inertial parameters pi (…, P)."""
        return np.asarray(parameters, dtype=float) @ self.combinations.T

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Each base parameter as a sum, such as ``Izz1 + Iyy2 + 0.0625 m3``; lengths in m."""
        pairs = zip(self.independent.tolist(), self.combinations, strict=True)
        return tuple(_sum(self.names, row, first) for first, row in pairs)

    @cached_property
    def without_effect(self) -> tuple[str, ...]:
        """Names of the inertial parameters without effect on any joint effort."""
        felt = np.any(self.combinations, axis=0)
        return tuple(name for name, is_felt in zip(self.names, felt, strict=True) if not is_felt)


def base_parameters(robot: Robot, *, dynamics: Dynamics | None = None) -> BaseParameters:
    """Find the base parameters of a robot from the columns of its regressor in random states.

    They depend neither on its inertias nor on how well a motion shows them.

    Args:
        robot: the robot.
        dynamics: of the robot, if there are any already.
    """
    dynamics = Dynamics(robot, order=0) if dynamics is None else dynamics
    columns = PARAMETERS * len(robot.joints)
    Y = dynamics.regressor(*random_states(robot.n, _STATES * columns, seed=1991)).reshape(-1, columns)
    size = np.linalg.norm(Y, axis=0)
    size[size <= _ZERO * np.max(size)] = 0.0
    # Only inner products of columns are needed from here on, which R has too.
    R: Array = np.asarray(np.linalg.qr(np.divide(Y, size, out=np.zeros_like(Y), where=size > 0), mode="r"))
    chosen: list[int] = []
    axes: Array = np.zeros((len(R), 0))
    for k in (PARAMETERS * body + k for body, joint in enumerate(robot.joints) for k in _order(joint)):
        rest = R[:, k]
        for _ in range(2):  # the second time removes what rounding left
            rest = rest - axes @ (axes.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > _INDEPENDENT:
            chosen.append(k)
            axes = np.column_stack([axes, rest / length])
    independent = np.array(sorted(chosen), dtype=np.intp)
    K: Array = np.asarray(np.linalg.lstsq(R[:, independent], R, rcond=None)[0], dtype=float)
    K *= size / size[independent, np.newaxis]
    K[np.abs(K) < _ZERO] = 0.0
    K[:, independent] = np.eye(len(independent))
    return BaseParameters(parameter_names(robot), independent, K)


def parameter_names(robot: Robot) -> tuple[str, ...]:
    """Names of the inertial parameters pi, in their order; bodies are counted from 1 in the order of their joints."""
    kinds = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
    return tuple(f"{kind}{body}" for body in range(1, len(robot.joints) + 1) for kind in kinds)


def random_states(n: int, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Random q, qd, qdd, each (count, n), in which columns that depend on each other do so for all motions."""
    draw = np.random.default_rng(seed)
    q = draw.uniform(-np.pi, np.pi, (count, n))
    qd, qdd = (rate * draw.standard_normal((count, n)) for rate in _RATES)
    return q, qd, qdd


def _order(joint: Joint) -> list[int]:
    """Order in which the ten parameters of a body are chosen: those that the parent can take come last."""
    if joint.type == "prismatic":
        return list(range(PARAMETERS))
    z = int(np.argmax(np.abs(joint.axis)))
    x, y = (z + 1) % 3, (z + 2) % 3
    inertia = [_INERTIAS[i][j] for i, j in ((z, z), (x, x), (x, y), (x, z), (y, z))]
    return [*inertia, _MOMENTS[x], _MOMENTS[y], _INERTIAS[y][y], _MOMENTS[z], _MASS]


def _sum(names: tuple[str, ...], coefficients: Array, first: int) -> str:
    """A sum of parameters in words; it starts with the one of index ``first``, whose coefficient is one."""
    text = names[first]
    for k in np.flatnonzero(coefficients).tolist():
        if k != first:
            size = abs(coefficients[k])
            factor = "" if abs(size - 1) < _ZERO else f"{size:.4g} "
            text += f" {'-' if coefficients[k] < 0 else '+'} {factor}{names[k]}"
    return text

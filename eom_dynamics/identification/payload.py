# SPDX-License-Identifier: Apache-2.0
"""Identification of a payload on one body: tau - tau_file = Y_body pi_payload + offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from ..arrays import Array
from ..recursion import PARAMETERS
from .consistent import Unknowns, free_bodies, solve
from .equations import Equations
from .estimators import Estimate, weighted
from .exceptions import IdentificationError
from .regressor import Regressor

# A ball to start from: 1 kg, radius of gyration 5 cm in each direction, at the origin of the body.
_MASS, _RADIUS = 1.0, 0.05

# Of the distance from it: little, since nothing is known of a payload.
_WEIGHT = 0.1


@dataclass(frozen=True, eq=False)
class IdentifiedPayload:
    """A payload in the frame of the body that carries it.

    Attributes:
        joint: of the body.
        parameters: inertial parameters (10,) of the payload, physically consistent; kg, kg m, kg m².
        deviations: their standard deviations (10,).
        offsets: of the sensors (n,), N m or N.
        offset_deviations: likewise.
        estimate: by the data alone, of the parameters and offsets.
    """

    joint: str
    parameters: Array
    deviations: Array
    offsets: Array
    offset_deviations: Array
    estimate: Estimate

    @property
    def center_of_mass(self) -> Array:
        """Centre of mass (3,), m."""
        return np.asarray(self.parameters[1:4] / self.parameters[0])

    @property
    def words(self) -> str:
        """Mass, centre of mass and inertia on one line."""
        m, c, inertia = self.parameters[0], self.center_of_mass, self.parameters[4:]
        return (
            f"payload on {self.joint}: mass {m:.4g} ± {self.deviations[0]:.2g} kg, centre of mass "
            f"[{', '.join(f'{x:.4g}' for x in c)}] m, inertia about the origin of the body "
            f"[{', '.join(f'{x:.3g} ± {s:.1g}' for x, s in zip(inertia, self.deviations[4:], strict=True))}] kg m²"
        )


def find_payload(regressor: Regressor, systems: Sequence[Equations], file: Array, joint: str) -> IdentifiedPayload:
    """Identify the payload that explains the residual of the robot's file.

    Args:
        regressor: of the equations.
        systems: equations of blocks of the data.
        file: parameters (P,) of the robot's file.
        joint: whose body carries the payload.

    Raises:
        IdentificationError: there is no such joint.
    """
    names = [each.name for each in regressor.robot.joints]
    if joint not in names:
        raise IdentificationError(f"payload: {regressor.robot.name} has no joint {joint!r}; it has {', '.join(names)}")
    body, n = names.index(joint), regressor.robot.n
    K = regressor.base.combinations[:, PARAMETERS * body : PARAMETERS * (body + 1)]
    offsets = [regressor.column("offset", j) for j in range(n)] if "offset" in regressor.terms else []
    known = file.copy()
    known[offsets] = 0.0
    k = regressor.inertial
    factors = [
        np.column_stack([M[:, :k] @ K, M[:, offsets], M[:, -1] - M[:, :-1] @ known])
        for M in reduce(add, systems).factors
    ]
    system = Equations(tuple(factors), reduce(add, systems).counts)
    ball = np.array([_MASS, 0, 0, 0, 2, 0, 0, 2, 0, 2]) * np.array([1, 1, 1, 1, *6 * (_MASS * _RADIUS**2,)])
    estimate = weighted(system, np.append(ball, np.zeros(len(offsets))))
    R, right = system.weighted(np.nan_to_num(1 / estimate.sigma))
    free = np.full(len(offsets), np.inf)
    found = solve(
        Unknowns(free_bodies(ball), np.eye(PARAMETERS), -free, np.zeros(len(offsets)), free), R, right, _WEIGHT
    )
    spread = found.term_deviations if offsets else np.zeros(n)
    return IdentifiedPayload(
        joint,
        found.parameters,
        found.parameter_deviations,
        found.terms if offsets else np.zeros(n),
        spread,
        estimate,
    )

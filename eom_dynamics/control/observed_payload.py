# SPDX-License-Identifier: Apache-2.0
"""Payload from external efforts: mass and centre of mass at rest in a few poses, or along a motion."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import StateError
from ..identification.sampling import correlation_time
from ..robot import Payload
from ..spelling import hint
from .external_effort import ExternalEffortObserver

# Ratio of the smallest singular value to the largest, of columns of length one, below which poses do not suffice.
_DEPENDENT = 1e-3


class ObservedPayload(NamedTuple):
    """Payload that explains external efforts, with standard deviations.

    Attributes:
        payload: mass and centre of mass, in the frame of its tool, as a point mass.
        mass_deviation: kg.
        center_deviation: (3,) m.
        unexplained: (n,) RMS of the external efforts that it leaves, N m or N.
    """

    payload: Payload
    mass_deviation: float
    center_deviation: Array
    unexplained: Array

    def __str__(self) -> str:
        rows = zip("xyz", np.asarray(self.payload.center_of_mass), self.center_deviation, strict=True)
        center = ", ".join(f"{axis} {1e3 * x:.1f} ± {1e3 * deviation:.1f} mm" for axis, x, deviation in rows)
        return f"{self.payload.tool}: {self.payload.mass:.4g} ± {self.mass_deviation:.2g} kg, centre {center}"


def estimate_payload(
    observer: ExternalEffortObserver, t: ArrayLike, *motion: ArrayLike, tool: str | None = None, **sensors: ArrayLike
) -> ObservedPayload:
    """Estimate what a tool carries from a recording, as of :meth:`.ExternalEffortObserver.observe`.

    External efforts are affine in mass and first moment of the payload given to the observer; the estimate is the
    least-squares payload, which leaves the smallest ones. Rests in poses with two orientations of the tool to gravity
    suffice, one after the other with gaps that start the observer again; joints weigh by what is left, and deviations
    count correlated samples once.

    Args:
        observer: the observer, which starts again.
        t, motion, sensors: the recording.
        tool: name of the tool; by default the first.

    Raises:
        StateError: the poses do not tell the payload, or no mass explains the efforts.
    """
    robot = observer.arm.robot
    names = [frame.name for frame in robot.tools]
    if tool is not None and tool not in names:
        raise StateError(f"tool: {robot.name} has no tool {tool!r}; {hint(tool, names)}")
    place = 0 if tool is None else names.index(tool)
    found = []
    for k in (None, 0, 1, 2, 3):
        P = np.zeros((len(names), 10))
        if k is not None:
            P[place, k] = 1.0
        observer.reset()
        seen = observer.observe(t, *motion, payload=[P if len(names) > 1 else P[0]], **sensors)
        found.append(np.where(seen.settled[:, np.newaxis], seen.external, np.nan))
    used = np.isfinite(found[0]).all(axis=1)
    if not np.any(used):
        raise StateError(f"the observer is not settled in {len(found[0])} samples; record for longer")
    without = found[0][used]
    columns = np.stack([x[used] - without for x in found[1:]], axis=-1)
    weight = np.ones(robot.n)
    for _ in range(3):
        A, b = (columns * weight[:, np.newaxis]).reshape(-1, 4), -(without * weight).ravel()
        length = np.linalg.norm(A, axis=0)
        U, values, V = np.linalg.svd(A / np.maximum(length, 1e-300), full_matrices=False)
        if not values[-1] > _DEPENDENT * values[0]:
            raise StateError(
                "the poses do not tell the centre of mass; add poses in which the tool is turned to gravity"
            )
        x = V.T @ (U.T @ b / values) / length
        left = without + columns @ x
        unexplained = np.sqrt(np.mean(left**2, axis=0))
        weight = 1 / np.maximum(unexplained, 1e-3 * unexplained.max() + 1e-12)
    covariance = (V.T / values**2) @ V / np.outer(length, length) * float(correlation_time([left]).max())
    m, h = float(x[0]), x[1:]
    if not m > 0:
        raise StateError(f"no mass explains the efforts: {m:.3g} ± {np.sqrt(covariance[0, 0]):.2g} kg")
    slope = np.hstack([-h[:, np.newaxis] / m**2, np.eye(3) / m])
    center = np.sqrt(np.diag(slope @ covariance @ slope.T))
    return ObservedPayload(Payload(m, h / m, tool=names[place]), float(np.sqrt(covariance[0, 0])), center, unexplained)

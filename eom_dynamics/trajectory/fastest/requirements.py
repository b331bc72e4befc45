# SPDX-License-Identifier: Apache-2.0
"""Requirements on limits and path of a fastest motion."""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.limit_violations import IN_DEGREES, TURN, beyond
from ...elastic.limits import TOLERANCE, GivenLimits, LimitCheck, arm_limits
from ...exceptions import StateError, TrajectoryError
from ..quantities import Load, quantities
from ..spline import ORDERS
from .path import GeometricPath
from .settings import SETTINGS
from .speed import SquaredSpeed


def positive_limits(arm: ElasticArm, limits: GivenLimits | None) -> LimitCheck:
    """Limits of an arm; raises TrajectoryError unless they are positive, and none is of RMS efforts."""
    checked = arm_limits(arm, limits)
    for quantity, largest in checked.largest.items():
        for name, most in zip(checked.names[quantity], largest, strict=True):
            if not most > 0:
                raise TrajectoryError(f"{name}: limit of {quantity} must be positive, is {most:g}")
    for i in np.flatnonzero(checked.of_rms)[:1]:
        name = checked.names["effort_rms"][i]
        raise TrajectoryError(
            f"{name}: the search has no limits of effort_rms; omit them, and slow the motion down as check tells"
        )
    return checked


def require_limits_everywhere(curve: GeometricPath, speed: SquaredSpeed, slow: Array, fast: Array) -> None:
    """Raise an error where shares of limits (R, M) are the same in a slow and in a fast motion."""
    unlimited = np.max(np.abs(fast - slow), axis=0) < SETTINGS.unlimited
    # The path does not move at its ends.
    unlimited[: speed.counts[0]] = unlimited[-speed.counts[-1] :] = False
    if np.any(unlimited):
        place = curve.percent(speed.nodes[int(np.argmax(unlimited))])
        raise TrajectoryError(f"the motion has no shortest duration: the path is without limits at {place:.4g} % of it")


def require_positions(arm: ElasticArm, limits: LimitCheck, q: Array, percent: Array) -> None:
    """Raise an error where positions (M, n), at these places on the path in per cent, are out of their ranges."""
    E, e = arm.robot.coupling
    q = q @ E.T + e
    scale = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
    distance = beyond(q, limits.lower, limits.upper) - TOLERANCE * np.where(np.isfinite(scale), scale, 1.0)
    if np.max(distance) > 0:
        k, joint = np.unravel_index(int(np.argmax(distance)), distance.shape)
        unit = limits.units["position"][joint]
        remedy = f", {IN_DEGREES}" if unit == "rad" and distance[k, joint] > TURN else "; change the path"
        raise TrajectoryError(
            f"{limits.names['position'][joint]}: position {q[k, joint]:.6g} {unit} at {percent[k]:.4g} % of "
            f"the path is out of its range, {limits.lower[joint]:g} to {limits.upper[joint]:g}{remedy}"
        )


def require_statics(arm: ElasticArm, limits: LimitCheck, q: Array, percent: Array) -> None:
    """Raise an error where an effort at rest exceeds its limit."""
    try:
        values = quantities(arm, Load((q, *[np.zeros_like(q)] * (ORDERS - 1))), limits)
    except StateError as error:
        raise TrajectoryError(f"the springs cannot hold the arm at rest on the path: {error}") from error
    for quantity, value in values.items():
        used = np.nan_to_num(np.abs(value) / limits.largest[quantity], nan=0.0)
        if np.max(used) >= 1:
            k, i = np.unravel_index(int(np.argmax(used)), used.shape)
            unit = limits.units[quantity][i]
            raise TrajectoryError(
                f"{limits.names[quantity][i]}: {quantity} {value[k, i]:.6g} {unit} at rest at "
                f"{percent[k]:.4g} % of the path leaves nothing of its limit {limits.largest[quantity][i]:g} "
                f"{unit} for motion; change the path, the payload or the limit"
            )

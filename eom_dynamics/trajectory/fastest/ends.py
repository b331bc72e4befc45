# SPDX-License-Identifier: Apache-2.0
"""Requirements of fastest motions, and motions with given states at the ends to start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from ...arguments import number_by_rule
from ...arrays import Array
from ...elastic import ElasticArm
from ...elastic.bounds import TOLERANCE, Bounds, GivenLimits, bounds
from ...elastic.limit_violations import IN_DEGREES, TURN, beyond
from ...exceptions import StateError, TrajectoryError
from ..quantities import Load, quantities
from ..spline import ORDERS, numbers
from .constraints import Constraints, ToolLimits, tool_slowdowns
from .interior_point import meet
from .path import GeometricPath
from .speed import SquaredSpeed

# Choices for motions with given states at their ends.
_POWERS = (0.0, 4 / 3, 3.0)  # powers of x at an end at rest, for smooth motions, limited jerk and limited acceleration
_FADING = (0.25, 0.06, 0.015)  # lengths within which accelerations change
_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.04)  # lengths within which speeds change
_LEVELS = (4.0, 1.0, 0.25, 0.06, 0.015, 0.001)  # squared speeds elsewhere

AT_MOVING_ENDS = 1e-6
"""Relative violation of limits that is left if an end has a given state: its motion is not slowed down."""

SLOW = 1e-30  # share of the largest squared speed of a slow motion
_UNLIMITED = 1e-10  # change of shares of limits from there to the largest speed below which there is no limit

# Derivatives that quantities depend on; those of motors, on all.
_ORDERS = {"velocity": 1, "acceleration": 2, "effort": 2, "jerk": 3, "effort_rate": 3}


def end_states(name: str, rates: Sequence[ArrayLike]) -> list[Array]:
    """Derivatives at an end, each finite (n,)."""
    states = [numbers(x, f"a derivative of {name}") for x in rates]
    if len(states) >= ORDERS:
        raise TrajectoryError(f"{name} must be (velocity, acceleration, jerk, snap) or the first of them")
    if not all(rate.ndim == 1 for rate in states):
        raise TrajectoryError(f"derivatives of {name} must have one number for each joint")
    if states and not np.any(states[0]):
        raise TrajectoryError(f"the velocity of {name} is zero; omit {name} for a motion from or to rest")
    return states


def outset(
    curve: GeometricPath, ends: Mapping[str, Sequence[Array]], names: Sequence[str]
) -> list[tuple[int, Array, int]]:
    """Ends that move: 0 or -1, x … x''' there, zero if not given, and how many of them are given."""
    moving = []
    for end, rates in zip((0, -1), ends.values(), strict=True):
        if rates:
            a, b, c, d = np.append(curve.end_rates(end, rates, names), np.zeros(ORDERS - 1 - len(rates)))
            moving.append((end, np.array([a * a, 2 * b, 2 * c / a, (d - b * c / a) * 2 / a**2]), len(rates)))
    return moving


def positive_limits(arm: ElasticArm, limits: GivenLimits | None) -> Bounds:
    """Limits of an arm; raises TrajectoryError unless they are positive."""
    checked = bounds(arm, limits)
    for quantity, largest in (*checked.largest.items(), ("effort_rms", checked.effort_rms)):
        for name, most in zip(checked.names[quantity], largest, strict=True):
            if not most > 0:
                raise TrajectoryError(f"{name}: limit of {quantity} must be positive, is {most:g}")
    return checked


def require_limits(limits: Bounds, tool: ToolLimits) -> None:
    """Raise an error where there are no limits, or those of the tool are not positive."""
    for value, name in ((tool.speed, "speed"), (tool.acceleration, "acceleration")):
        number_by_rule(value, f"limit of the tool's {name}", TrajectoryError, rule="positive", unlimited=np.inf)
    limited = any(np.any(np.isfinite(largest)) for largest in (*limits.largest.values(), limits.effort_rms))
    if not limited and not np.isfinite(min(tool[:2])):
        raise TrajectoryError("there are no limits, hence no shortest duration; give limits of velocity and effort")


def require_limits_everywhere(curve: GeometricPath, speed: SquaredSpeed, slow: Array, fast: Array | None) -> None:
    """Raise an error where shares of limits (number of names, M) are those of a slow motion in a fast one, too."""
    if fast is None:
        return
    unlimited = np.max(np.abs(fast - slow), axis=0) < _UNLIMITED
    # A path from or to rest does not move there.
    unlimited[: speed.counts[0]] = unlimited[-speed.counts[-1] :] = False
    if np.any(unlimited):
        place = curve.percent(speed.nodes[int(np.argmax(unlimited))])
        raise TrajectoryError(f"the motion has no shortest duration: the path is without limits at {place:.4g} % of it")


def require_positions(arm: ElasticArm, limits: Bounds, q: Array, percent: Array) -> None:
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


def require_statics(arm: ElasticArm, limits: Bounds, q: Array, percent: Array) -> None:
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


def require_ends(
    arm: ElasticArm, limits: Bounds, tool: ToolLimits, curve: GeometricPath, ends: Mapping[str, Sequence[Array]]
) -> None:
    """Raise an error where a given state at an end exceeds a limit."""
    for (name, rates), sigma in zip(ends.items(), (0.0, 1.0), strict=True):
        if not rates:
            continue
        q = curve.derivatives(np.array([sigma]))[0]
        load = Load((q, *[x[np.newaxis] for x in rates], *[np.zeros_like(q)] * (ORDERS - 1 - len(rates))))
        try:
            values = quantities(arm, load)
        except StateError as error:
            raise TrajectoryError(f"the springs cannot follow at the {name}: {error}") from error
        for quantity, value in values.items():
            used = np.nan_to_num(np.abs(value[0]) / limits.largest[quantity], nan=0.0)
            i = int(np.argmax(used))
            if used[i] > 1 + AT_MOVING_ENDS and _ORDERS.get(quantity, ORDERS - 1) <= len(rates):
                unit, most = limits.units[quantity][i], limits.largest[quantity][i]
                raise TrajectoryError(
                    f"{limits.names[quantity][i]}: {quantity} {value[0, i]:.6g} {unit} at the {name} exceeds its limit "
                    f"{most:g} {unit} by {abs(value[0, i]) - most:.3g} {unit}"
                )
        slower = ToolLimits(tool.speed, tool.acceleration if len(rates) > 1 else np.inf, tool.frame)
        factor = tool_slowdowns(arm, slower, load.states)[0]
        if factor > 1 + AT_MOVING_ENDS:
            raise TrajectoryError(f"at the {name} the tool is {factor:.4g} times too fast for its limits")


def motion_between(speed: SquaredSpeed, constraints: Constraints, moving: Sequence[tuple[int, Array, int]]) -> Array:
    """Coefficients of the motion with given states at its ends that exceeds limits least, of several between them.

    Accelerations at the ends fade within a length, and the speed changes within another.
    """
    sigma = np.linspace(0.0, 1.0, 20 * len(speed.knots))
    known = np.zeros(speed.count)
    for end, x, count in moving:
        known[slice(0, count) if end == 0 else slice(-count, None)] = speed.end_coefficients(end, x[:count])
    places, least, best = speed.places, np.inf, known
    fastest = max(x[0] for _, x, _ in moving)
    for power, fading, length, level in product(_POWERS, _FADING, _LENGTHS, _LEVELS):
        logarithm = np.full(len(sigma), np.log(level * fastest))
        for end in speed.resting:
            logarithm -= power * np.log(np.abs(sigma + end) + 0.01)
        for end, x, _ in moving:
            away = sigma + end
            rates = x[1:] / x[0]
            slope = (rates[0] + (rates[1] - rates[0] ** 2) * away) * _fade(away / fading)
            change = np.append(0.0, np.cumsum(0.5 * (slope[1:] + slope[:-1]) * np.diff(sigma)))
            near = np.log(x[0]) + change - change[end]
            logarithm += _fade(away / length) * (near - logarithm)
        x = np.exp(np.interp(places, sigma, np.clip(logarithm, -200.0, 200.0)))
        c = speed.interpolated(x, known)
        at_nodes = speed.at_nodes(c)
        used = constraints.used(at_nodes) if np.min(at_nodes[0]) > 0 else None
        if used is not None and np.max(used) < least:
            least, best = float(np.max(used)), c
    return best


def _fade(u: Array) -> Array:
    """From 1 at 0 to 0 at -1 and 1."""
    v = np.clip(1.0 - np.abs(u), 0.0, 1.0)
    faded: Array = v**3 * (10 - 15 * v + 6 * v**2)
    return faded


def entered(curve: GeometricPath, speed: SquaredSpeed, constraints: Constraints, start: Array) -> Array:
    """Coefficients within all limits, near those to start from.

    Raises:
        TrajectoryError: there are none, for given states at the ends.
    """
    c = meet(speed, constraints, start)
    used, where = constraints.used(speed.at_nodes(c)), ""
    if used is not None:
        i, k = np.unravel_index(int(np.argmax(used)), used.shape)
        if used[i, k] < 1:
            return c
        place = float(curve.percent(speed.nodes[k]))
        where = f": at best, {constraints.names[i]} is {used[i, k]:.4g} times its limit at {place:.4g} % of the path"
    raise TrajectoryError(f"no motion with the given states at its ends meets the limits{where}; give slower ones")

# SPDX-License-Identifier: Apache-2.0
"""Fields of SplineTrajectory as a spline, checked, and back.

A piecewise polynomial of degree 9 at most that is continuous from position to snap is the Hermite interpolant of its
states at the knots. Reading therefore takes those states, and loses nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import factorial, perm
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..exceptions import StateError
from ..trajectory import Spline
from ..trajectory.spline import DEGREE, ORDERS
from .fields import STATE_FIELDS, doubles, first_not_finite
from .joint_order import JointOrder

MAX_COEFFICIENTS = 500_000
"""The constant of the same name in the message."""

SHORTEST_PIECE = 1e-4
"""The constant of the same name in the message, s. On shorter pieces, rounding of positions would hide jumps."""

_LARGEST_KNOT = 1e9

# Largest jump at a knot, of a piece's range of motion and of the position that it starts from. Rounding gives 1e-11 of
# the range. The spline takes the state after the knot, which smooths the rest of a jump.
_JUMP_OF_RANGE, _JUMP_OF_POSITION = 1e-6, 1e-11


# Coefficients that are counted for each piece and joint at least: a spline takes memory for its pieces, whatever their
# degree, and pieces of a lower degree are one polynomial.
_FEWEST_POWERS = 6

# Pieces that are read together, so that the working memory is bounded.
_CHUNK = 1024


class SplineMessage(Protocol):
    """The fields of SplineTrajectory that describe the motion."""

    joint_names: list[str]
    knots: array[float]
    degree: int
    coefficients: array[float]


def check_size(message: SplineMessage) -> None:
    """Raise StateError if a message is too large to read quickly."""
    if max(len(message.coefficients), len(message.knots)) > MAX_COEFFICIENTS:
        raise StateError(
            f"coefficients has {len(message.coefficients)} entries and knots {len(message.knots)}, may have "
            f"{MAX_COEFFICIENTS}: send the motion in parts"
        )


def read_spline(message: SplineMessage, robot_names: Sequence[str]) -> Spline:
    """The motion of a message, joints in the robot's order.

    Args:
        message: with one knot at least.
        robot_names: the robot's joints.

    Raises:
        StateError: a joint is missing, a field has the wrong length or a number that is not finite, knots do not
            increase or are too close, the degree is too high, or a derivative jumps at a knot.
    """
    check_size(message)
    order = JointOrder(robot_names, list(message.joint_names))
    knots = np.array(message.knots, dtype=float)
    if not np.isfinite(knots).all():
        (place,) = first_not_finite(knots)
        raise StateError(f"knots[{place}] is {knots[place]}")
    _check_knots(knots)
    steps = np.diff(knots)
    if message.degree > DEGREE:
        raise StateError(f"degree is {message.degree}, must be at most {DEGREE}: split pieces, or fit them")
    n, powers, pieces = len(order.names), message.degree + 1, max(len(steps), 1)
    if len(message.coefficients) != pieces * powers * n:
        raise StateError(
            f"coefficients has {len(message.coefficients)} entries, must have {pieces * powers * n}: {pieces} pieces, "
            f"{powers} powers, {n} joints"
        )
    if pieces * n * max(powers, _FEWEST_POWERS) > MAX_COEFFICIENTS:
        most = MAX_COEFFICIENTS // (n * _FEWEST_POWERS)
        raise StateError(
            f"{pieces} pieces of {n} joints and degree {message.degree} are more than {most}: pieces of degree "
            f"{_FEWEST_POWERS - 2} or less that are continuous up to the snap are one polynomial; send fewer pieces"
        )
    coefficients = np.asarray(message.coefficients, dtype=float).reshape(pieces, powers, n)
    if not np.isfinite(coefficients).all():
        piece, power, joint = first_not_finite(coefficients)
        raise StateError(
            f"coefficients[{(piece * powers + power) * n + joint}] (piece {piece}, power {power}, joint "
            f"{order.names[joint]!r:.60}) is {coefficients[piece, power, joint]}"
        )
    states = np.empty((ORDERS, len(knots), n))
    with np.errstate(all="ignore"):
        for first in range(0, pieces, _CHUNK):
            part = slice(first, first + _CHUNK + 1)  # with the piece after them, for the jump to it
            starts = _states(coefficients[part], np.zeros(len(coefficients[part])))
            states[:, first : first + len(coefficients[part])] = order.to_robot(starts)
            if len(steps):
                ends = _states(coefficients[part], steps[part])
                _check_continuity(first, knots, steps[part], coefficients[part], starts, ends, order.names)
                states[:, -1] = order.to_robot(ends[:, -1])
    return Spline(knots, states)


def write_spline(message: Any, motion: Spline, joint_names: Sequence[str]) -> None:
    """Write a motion into the fields of a message.

    Raises:
        StateError: the motion has more coefficients, shorter pieces or later knots than a message may have.
    """
    _check_knots(motion.t)
    check_waypoints(len(motion.t), motion.n)
    single = len(motion.t) == 1
    degree = ORDERS - 1 if single else DEGREE
    derivatives = motion.derivatives(motion.t[: max(len(motion.t) - 1, 1)], degree)
    coefficients = np.stack([values / factorial(p) for p, values in enumerate(derivatives)], axis=1)
    message.joint_names = list(joint_names)
    message.knots = doubles(motion.t)
    message.degree = degree
    message.coefficients = doubles(coefficients)


def check_waypoints(count: int, n: int) -> None:
    """Raise StateError if a motion through so many waypoints of n joints has more coefficients than a message may."""
    coefficients = (DEGREE + 1) * max(count - 1, 1) * n
    if coefficients > MAX_COEFFICIENTS:
        raise StateError(
            f"{count} waypoints of {n} joints make {coefficients} coefficients, must be at most "
            f"{MAX_COEFFICIENTS}: send the trajectory in parts"
        )


def _check_knots(knots: Array) -> None:
    steps = np.diff(knots)
    if not (steps > 0).all():
        place = int(np.argmin(steps > 0)) + 1
        raise StateError(f"knots[{place}] is {knots[place]:g} s, must be later than {knots[place - 1]:g} s before it")
    # Knots at a distance of the shortest piece may be rounded.
    if not (steps > 0.999 * SHORTEST_PIECE).all():
        place = int(np.argmin(steps)) + 1
        raise StateError(
            f"knots[{place}] is {steps[place - 1]:.3g} s after the one before it, must be at least {SHORTEST_PIECE:g} s"
        )
    if not (np.abs(knots) <= _LARGEST_KNOT).all():
        place = int(np.argmax(np.abs(knots)))
        raise StateError(f"knots[{place}] is {knots[place]:g} s, must be at most {_LARGEST_KNOT:g} s from 0")


def _states(coefficients: Array, local: Array) -> Array:
    """Position to snap (ORDERS, pieces, n) of each piece at one local time (pieces,)."""
    states = []
    for order in range(ORDERS):
        value = np.zeros_like(coefficients[:, 0])
        for power in range(coefficients.shape[1] - 1, order - 1, -1):
            value = value * local[:, np.newaxis] + perm(power, order) * coefficients[:, power]
        states.append(value)
    return np.stack(states)


def _check_continuity(
    first: int, knots: Array, steps: Array, coefficients: Array, starts: Array, ends: Array, names: Sequence[str]
) -> None:
    """Refuse states (ORDERS, pieces, n) at the ends of pieces that are not those at the starts of the next pieces.

    Args:
        first: number of the first of these pieces; ``knots`` are those of all pieces.
    """
    if not np.isfinite(ends).all():
        order, piece, joint = first_not_finite(ends)
        name = f"{STATE_FIELDS[order]} of {names[joint]}"
        raise StateError(f"the motion is too fast: {name} overflows on piece {first + piece}")
    size = np.abs(coefficients)
    size[:, 0] *= _JUMP_OF_POSITION
    size[:, 1:] *= _JUMP_OF_RANGE * (steps[:, np.newaxis] ** np.arange(1, coefficients.shape[1]))[..., np.newaxis]
    allowed = size.sum(axis=1) / (steps ** np.arange(ORDERS)[:, np.newaxis])[..., np.newaxis]
    jumps = starts[:, 1:] - ends[:, :-1]
    too_large = ~(np.abs(jumps) <= allowed[:, 1:] + allowed[:, :-1])  # also where a bound overflows
    if too_large.any():
        place, order, joint = np.argwhere(too_large.transpose(1, 0, 2))[0]
        raise StateError(
            f"{STATE_FIELDS[order]} of {names[joint]} jumps by {jumps[order, place, joint]:.3g} at "
            f"knots[{first + place + 1}] ({knots[first + place + 1]:g} s): position to snap must be continuous"
        )

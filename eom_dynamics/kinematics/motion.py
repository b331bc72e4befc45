# SPDX-License-Identifier: Apache-2.0
"""Differential inverse kinematics: joint rates to snap, from a tool's twist and its derivatives.

The equations are in :mod:`..recursion.kinematics`; its matrix K is inverted here. Lengths are in units of the robot,
so that neither damping nor the definition of singular depends on its size. Joint rates are in units of the inverse
square root of their weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import all_finite, joint_states, not_negative, positive, real_array, sequence
from ..arrays import AnyArray, Array
from ..exceptions import StateError
from ..robot import Robot
from ..robot.task_space import TWIST, characteristic_length, moving_joints
from .compiled import Kinematics, kinematics_of
from .inverse import inverse_kinematics

# Singular values below this share of the largest are damped.
_NEAR_SINGULAR = 0.01

# Damping at a singularity, in singular values.
_DAMPING = 0.5

# Singular values below this share of the largest are rounding errors.
_ROUNDING = 1e-7


@dataclass(frozen=True)
class InverseMotion:
    """Joint rates of a tool's motion; ``qd, qdd, … = motion`` unpacks them.

    Attributes:
        rates: qd, qdd, …, a vector for each twist, each (n,) or (N, n); rad or m, per s, s², ….
        missed: error V - J qd of each twist and of its derivatives, each (6,) or (N, 6). Zero up to rounding unless the
            motion was damped or the robot has too few joints.
        damping: damping d, () or (N,); zero away from singularities.
    """

    rates: tuple[Array, ...]
    missed: tuple[Array, ...]
    damping: Array

    def __iter__(self) -> Iterator[Array]:
        """Iterate over the rates."""
        return iter(self.rates)


def differential_inverse_kinematics(
    robot: Robot | Kinematics,
    q: ArrayLike,
    twists: Sequence[ArrayLike],
    *,
    frame: str | None = None,
    reference: str = "body",
    null_motion: Sequence[ArrayLike] = (),
    weights: ArrayLike | None = None,
    task: ArrayLike = (1.0,) * TWIST,
    damping: float | None = None,
    length: float | None = None,
) -> InverseMotion:
    """Joint rates, accelerations, … for the twist of a tool and its time derivatives.

    Args:
        robot: the robot, or its kinematics.
        q: joint variables (n,) or (N, n), rad or m.
        twists: (V, Vd, …), at least the first, each (6,) or (N, 6); rad/s and m/s, and per s, ….
        frame: name of the frame; by default the first tool.
        reference: kind of the twists, as for :meth:`.Kinematics.jacobian`.
        null_motion: u, ud, …, preferred joint rates and their derivatives, in the shape of q, as far as the tool motion
            admits them. Omitted derivatives are zero.
        weights: positive cost of the squared rate of each joint (n,); by default 1.
        task: selection (6,) of the entries of the twists, angular first, 1 or 0 each: POSITION leaves the orientation
            free.
        damping: damping d. By default it is zero, and near singularities (a singular value below a hundredth of the
            largest) it rises to a two-hundredth of the largest. Derivatives assume constant damping: a motion through a
            singularity requires a number, for example 0.01. Singular values are of the Jacobian with lengths in units
            of about half of the arm length.
        length: this unit of length, m. With 1 the damped inverse is the textbook form in SI units: the
            singularity-robust inverse J' (J J' + d² I)⁻¹ of Y. Nakamura and H. Hanafusa, ASME J. Dyn. Syst. 108 (1986);
            with λ for d², damped least squares: C. W. Wampler, IEEE Trans. Syst. Man Cybern. 16 (1986).

    >>> import eom_dynamics as eom
    >>> robot, q = eom.load_robot("ur5e"), [0.3, -1.2, 1.4, 0.3, 0.9, 0.6]
    >>> twist, still = [0.0, 0.0, 0.0, 0.0, 0.0, 0.1], [0.0] * 6  # upwards, m/s
    >>> motion = eom.differential_inverse_kinematics(robot, q, (twist, still), reference="world_aligned")
    >>> qd, qdd = motion
    >>> bool(abs(motion.missed[0]).max() < 1e-12), float(motion.damping)
    (True, 0.0)

    Raises:
        StateError: an argument has the wrong shape, is not finite or out of range, there is no such frame, or numbers
            are so large that the rates overflow.
    """
    kinematics = kinematics_of(robot)
    levels = sequence(twists, "twists", "the twist and its time derivatives, (V, Vd, …)", least=1)
    n, orders = kinematics.robot.n, len(levels)
    states = joint_states(n, q)
    samples = states[0].shape[:-1]
    twist = [real_array(V, f"twist {k}" if k else "twist", (*samples, TWIST)) for k, V in enumerate(levels)]
    others = sequence(null_motion, "null_motion", "joint rates, one for each twist, (u, ud, …)", most=orders)
    u = np.zeros((orders, *samples, n))
    for k, preferred in enumerate(others):
        u[k] = real_array(preferred, "null_motion", (*samples, n))
    if damping is not None:
        not_negative(damping, "damping")
    tool = kinematics.frame(frame)
    moving = moving_joints(kinematics.robot, tool)
    scales = None if weights is None else _scales(weights, moving, n)
    lengths = _units(task, characteristic_length(kinematics.robot, (tool,)) if length is None else length)
    J = kinematics.jacobian(states[0], frame, reference)[..., moving] * lengths[:, np.newaxis]
    d, inverse = _damped_inverse(J, lengths > 0, None if scales is None else scales[moving], damping)
    inputs = [*twist, inverse.reshape(*samples, -1)]
    if others:
        inputs += [*(u if scales is None else u / scales), d[..., np.newaxis] ** 2]
    if scales is not None:
        inputs.append(scales)
    finite = all_finite(*inputs)
    if finite:
        details: dict[str, Any] = {
            "units": tuple(lengths.tolist()),
            "preferred": bool(others),
            "weighted": scales is not None,
        }
        motion = kinematics.joint_rates(states[0], inputs, orders, frame=frame, reference=reference, **details)
    if not finite or not all_finite(*motion[:orders]):
        raise StateError("the joint rates overflow: the twists or their derivatives are too large")
    return InverseMotion(motion[:orders], motion[orders:], d)


def _units(task: ArrayLike, length: float) -> Array:
    """Inverse units (6,) of the twist's entries for damping; 0 for entries that are not selected."""
    counts = real_array(task, "task", (TWIST,))
    if not np.all((counts == 0) | (counts == 1)):
        raise StateError(f"task must be 6 numbers 0 or 1, angular first, is {task!r:.60}")
    return counts * np.repeat([1.0, 1.0 / positive(length, "length")], 3)


def _scales(weights: ArrayLike, moving: AnyArray, n: int) -> Array:
    """Units (n,) of joint rates that make all weights 1; 1 for joints that do not move the tool."""
    W = real_array(weights, "weights", (n,), rule="positive")
    scales = np.ones(n)
    scales[moving] = 1.0 / np.sqrt(W[moving])
    return scales


def _damped_inverse(J: Array, rows: AnyArray, scales: Array | None, damping: float | None) -> tuple[Array, Array]:
    """Damping d, and the inverse or pseudo-inverse of K, from the singular values of the selected rows of J.

    The default damping is due to Y. Nakamura and H. Hanafusa, ASME J. Dyn. Syst. 108 (1986), with the singular values
    of the Jacobian without weights.
    """
    wide, J = J.shape[-1] >= TWIST, J[..., rows, :]
    left_vectors, values, right_vectors = np.linalg.svd(J if scales is None else J * scales, full_matrices=False)
    if damping is None and values.size:
        spread = values if scales is None else np.linalg.svd(J, compute_uv=False)
        threshold = _NEAR_SINGULAR * spread[..., :1]
        share = np.minimum(spread[..., -1:] / np.where(threshold > 0, threshold, 1.0), 1.0)
        d = _DAMPING * threshold[..., 0] * (1 - share[..., 0]) ** 2
    else:
        d = np.full(J.shape[:-2], damping or 0.0)
    squared = values**2 + d[..., np.newaxis] ** 2
    known = squared > _ROUNDING**2 * squared[..., :1]
    factors = known / np.where(known, squared, 1.0)
    vectors = np.swapaxes(right_vectors, -1, -2)
    if wide:
        vectors = np.zeros((*J.shape[:-2], TWIST, values.shape[-1]))
        vectors[..., rows, :] = left_vectors
    inverse: Array = (vectors * factors[..., np.newaxis, :]) @ np.swapaxes(vectors, -1, -2)
    return d, inverse


# Tolerance of the pose, m and rad: Newton's last step leaves rounding errors only.
_TOLERANCE = 1e-13

# Tolerance of a twist or its derivative, m and rad, or its share: larger than rounding errors.
_MISSED = 1e-6

_TWISTS = ("twist", *(f"{name} derivative of the twist" for name in ("first", "second", "third")))

LARGEST_JUMP = 0.1
"""Largest difference of a solution from its prediction, rad or m; a larger difference is another branch."""


class Tracked(NamedTuple):
    """Joint motion of a tracked tool at N samples.

    Attributes:
        q, rates: joint variables (N, n), rad or m (of the smallest error without a solution); qd, qdd, … (orders, N,
            n).
        refusals: (N,) reason of a sample without motion; empty if there is a motion.
    """

    q: Array
    rates: Array
    refusals: AnyArray


class ToolTracker:
    """Solver of a tool's motion, sample by sample, with each solution nearest to a prediction.

    Its first use compiles code for the robot.

    Attributes:
        kinematics, frame: kinematics of the robot, and frame of the tool; None for the first tool.
    """

    def __init__(self, kinematics: Kinematics, frame: str | None = None, weights: ArrayLike | None = None) -> None:
        """Set the frame, by default the first tool, and weights as for :func:`.differential_inverse_kinematics`.

        Raises StateError if there is no such frame.
        """
        moving = moving_joints(kinematics.robot, kinematics.frame(frame))
        self.kinematics, self.frame, self._weights = kinematics, frame, weights
        # Fewer joints cannot realize any twist of the tool.
        self._few = len(moving) < TWIST

    def solve(self, expected: Array, poses: Array, *twists: Array) -> Tracked:
        """Joint motion for poses (N, 4, 4) and body twists V, Vd, … (N, 6); raises KernelError without a C compiler.

        ``expected`` (N, n) are predicted joint variables.
        """
        solution = inverse_kinematics(
            self.kinematics, poses, self.frame, expected, attempts=1, tolerance=_TOLERANCE, objective=None
        )
        refusals = np.full(len(expected), "", dtype=object)
        for i in np.flatnonzero(~solution.success):
            refusals[i] = (
                "the tool cannot reach its pose within the ranges of the joints: it stays "
                f"{float(solution.distance[i]):.3g} m and {float(solution.angle[i]):.3g} rad away"
            )
        rates = np.zeros((len(twists), *expected.shape))
        if twists:
            # A single state uses the compiled caller.
            q, V = (solution.q[0], [x[0] for x in twists]) if len(expected) == 1 else (solution.q, twists)
            motion = differential_inverse_kinematics(self.kinematics, q, V, frame=self.frame, weights=self._weights)
            rates[:] = np.reshape(motion.rates, rates.shape)
            if self._few:
                missed = np.max(np.abs(np.reshape(motion.missed, (len(twists), -1, TWIST))), axis=2)
                beyond = missed > _MISSED * np.maximum(np.max(np.abs(twists), axis=2), 1.0)
                for i in np.flatnonzero(np.any(beyond, axis=0) & solution.success):
                    k = int(np.argmax(beyond[:, i]))
                    refusals[i] = f"the joints cannot give the tool its {_TWISTS[k]}: {missed[k, i]:.3g} is missing"
            refusals[(motion.damping > 0) & solution.success] = "the tool comes too close to a singularity of the arm"
        steps = np.abs(solution.q - expected)
        for i in np.flatnonzero((np.max(steps, axis=1) > LARGEST_JUMP) & solution.success):
            joint = int(np.argmax(steps[i]))
            refusals[i] = (
                f"{self.kinematics.robot.joint_names[joint]} would jump by {steps[i, joint]:.3g} rad or m, more than "
                f"{LARGEST_JUMP:g}: the tool passes a singularity of the arm, or comes from elsewhere"
            )
        return Tracked(solution.q, rates, refusals)


def predicted(states: Array, after: ArrayLike) -> Array:
    """q after a time, s, by the Taylor series of q, qd, … (orders, …, n)."""
    step = np.asarray(after, dtype=float)
    total: Array = states[0]
    for k in range(1, len(states)):
        total = total + states[k] * step**k / factorial(k)
    return total

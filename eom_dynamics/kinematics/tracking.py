# SPDX-License-Identifier: Apache-2.0
"""Joint motion from a tool's motion, sample by sample, each solution nearest to a prediction."""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import AnyArray, Array
from ..robot.task_space import TWIST, moving_joints
from .compiled import Kinematics
from .inverse import inverse_kinematics
from .motion import differential_inverse_kinematics

# Of the pose, m and rad: Newton's last step leaves rounding.
_TOLERANCE = 1e-13

# Of a twist or its derivative, m and rad, or its share: more than rounding leaves.
_MISSED = 1e-6

_TWISTS = ("twist", *(f"{name} derivative of the twist" for name in ("first", "second", "third")))

LARGEST_JUMP = 0.1
"""Largest difference of a solution from its prediction, rad or m: beyond, it is another branch."""


class Tracked(NamedTuple):
    """Joint motion of a tracked tool at N samples.

    Attributes:
        q: joint variables (N, n), rad or m; where there is no solution, those of the smallest error.
        rates: qd, qdd, … (orders, N, n).
        refusals: (N,) why there is no motion at a sample; empty where there is one.
    """

    q: Array
    rates: Array
    refusals: AnyArray


class ToolTracker:
    """Solver of a tool's motion. Its first use compiles code for the robot.

    Attributes:
        kinematics: of the robot.
        frame: its name; None for the first tool.
    """

    def __init__(self, kinematics: Kinematics, frame: str | None = None, weights: ArrayLike | None = None) -> None:
        """Set the frame.

        Args:
            kinematics: of the robot.
            frame: its name; by default the first tool.
            weights: cost of the squared rate of each joint of a redundant arm, as for
                :func:`.differential_inverse_kinematics`.

        Raises:
            StateError: there is no such frame.
        """
        moving = moving_joints(kinematics.robot, kinematics.frame(frame))
        self.kinematics, self.frame, self._weights = kinematics, frame, weights
        # Fewer joints cannot realise any twist of the tool.
        self._few = len(moving) < TWIST

    def solve(self, expected: Array, poses: Array, *twists: Array, reference: str = "body") -> Tracked:
        """Joint motion for poses and twists with their derivatives.

        Args:
            expected: predicted joint variables (N, n), rad or m.
            poses: C (N, 4, 4).
            twists: V, Vd, … (N, 6).
            reference: kind of the twists, as for :meth:`.Kinematics.jacobian`.

        Raises:
            KernelError: there is no C compiler.
        """
        found = inverse_kinematics(
            self.kinematics, poses, self.frame, expected, attempts=1, tolerance=_TOLERANCE, objective=None
        )
        refusals = np.full(len(expected), "", dtype=object)
        for i in np.flatnonzero(~found.success):
            refusals[i] = (
                "the tool cannot reach its pose within the ranges of the joints: it stays "
                f"{float(found.distance[i]):.3g} m and {float(found.angle[i]):.3g} rad away"
            )
        rates = np.zeros((len(twists), *expected.shape))
        if twists:
            # One state goes by the compiled caller.
            q, V = (found.q[0], [x[0] for x in twists]) if len(expected) == 1 else (found.q, twists)
            motion = differential_inverse_kinematics(
                self.kinematics, q, V, frame=self.frame, reference=reference, weights=self._weights
            )
            rates[:] = np.reshape(motion.rates, rates.shape)
            if self._few:
                missed = np.max(np.abs(np.reshape(motion.missed, (len(twists), -1, TWIST))), axis=2)
                beyond = missed > _MISSED * np.maximum(np.max(np.abs(twists), axis=2), 1.0)
                for i in np.flatnonzero(np.any(beyond, axis=0) & found.success):
                    k = int(np.argmax(beyond[:, i]))
                    refusals[i] = f"the joints cannot give the tool its {_TWISTS[k]}: {missed[k, i]:.3g} is missing"
            refusals[(motion.damping > 0) & found.success] = "the tool comes too close to a singularity of the arm"
        steps = np.abs(found.q - expected)
        for i in np.flatnonzero((np.max(steps, axis=1) > LARGEST_JUMP) & found.success):
            joint = int(np.argmax(steps[i]))
            refusals[i] = (
                f"{self.kinematics.robot.joint_names[joint]} would jump by {steps[i, joint]:.3g} rad or m, more than "
                f"{LARGEST_JUMP:g}: the tool passes a singularity of the arm, or comes from elsewhere"
            )
        return Tracked(found.q, rates, refusals)


def predicted(states: Array, after: ArrayLike) -> Array:
    """q after a time, s, by the Taylor series of q, qd, … (orders, …, n)."""
    step = np.asarray(after, dtype=float)
    total: Array = states[0]
    for k in range(1, len(states)):
        total = total + states[k] * step**k / factorial(k)
    return total

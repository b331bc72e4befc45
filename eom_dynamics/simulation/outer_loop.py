# SPDX-License-Identifier: Apache-2.0
"""Feedback of the links around the PD of the motors: a linear-quadratic regulator with integral action.

With the deviations x of links and motors from their references, as in :mod:`.margins`, and z the integral of those of
the links, it adds the motor efforts u = -F (x, z), which minimize

    integral of  g² (|e|² + w² |z|²) + |u / kp|²,

with errors e of the links, the stiffness kp of the motors' PD, and w their lowest frequency on the springs:
B. D. O. Anderson, J. B. Moore, "Optimal Control: Linear Quadratic Methods" (1990), sections 3.2 and 9.1. Errors below w
fall, and the links are damped on their springs. The PD acts in the drives at once; F acts with the delay of commands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, solve_continuous_are

from ..arguments import not_negative
from ..arrays import Array
from ..exceptions import StateError
from ..states import joint_states
from .elastic_plant import ElasticPlant
from .margins import LinearLoop, Margins, motor_gains, motor_loop

# Weights g of the links' errors that are tried, and the margins, as factors on gains and delay, that a loop leaves.
_WEIGHTS = 2.0 * 0.5 ** np.arange(7)
_LEAST = 2.0


class OuterLoop(NamedTuple):
    """Recommended feedback of the links.

    Attributes:
        weight: g.
        frequency: w, rad/s.
        F: (m, N + n) motor efforts from deviations of links (n,) and motors of elastic joints, their rates, and the
            integrals of those of the links; N m or N.
        loop: linearized, with motors under their PD.
        margins: under the delay.
    """

    weight: float
    frequency: float
    F: Array
    loop: LinearLoop
    margins: Margins


def outer_loop(plant: ElasticPlant, q: ArrayLike, natural_frequency: float, delay: float) -> OuterLoop:
    """Recommend feedback of the links with gain and delay margins of at least two.

    Args:
        plant: links and motors.
        q: (n,) joint variables at rest, rad or m.
        natural_frequency: of the motors' PD, rad/s.
        delay: of the feedback of the links, s: half the period of the commands, and the delay of the drives.

    Raises:
        StateError: an argument is out of range, the arm has no springs, or no weight from 2 down to 1/32 leaves these
            margins.
    """
    T, n = not_negative(delay, "delay"), plant.arm.robot.n
    kp, _ = motor_gains(plant, q, natural_frequency)
    inner, w = motor_loop(plant, q, natural_frequency), lowest_frequency(plant, q)
    A = inner.A - inner.B @ inner.F
    links = np.eye(n, len(A))
    # With the integrals z of the links, and motor efforts as shifts of the PD's reference.
    A = np.block([[A, np.zeros((len(A), n))], [links, np.zeros((n, n))]])
    B = np.vstack([inner.B, np.zeros((n, len(kp)))])
    weights = block_diag(links.T @ links, w**2 * np.eye(n))
    for g in _WEIGHTS.tolist():
        P = solve_continuous_are(A, B * kp, g**2 * weights, np.eye(len(kp)))
        F = kp[:, np.newaxis] ** 2 * B.T @ P
        loop = LinearLoop(A, B, F)
        margins = loop.margins(T)
        if margins.delay >= _LEAST * T and margins.gain >= _LEAST:
            return OuterLoop(g, w, F, loop, margins)
    raise StateError(
        f"delay of {1e3 * T:g} ms is too long for feedback of the links: it leaves no gain and delay margins of "
        f"{_LEAST:g}; shorten it, or use feedforward and the PD of the motors alone"
    )


def squared_frequencies(plant: ElasticPlant, q: ArrayLike) -> Array:
    """Squared frequencies (..., n) of the links at q (..., n) on unloaded springs, with motors at rest, rad²/s²."""
    (at,) = joint_states(plant.arm.robot.n, q)
    M, E = plant.arm.dynamics.mass_matrix(at), plant.joints
    K = E.T @ plant.springs.tangents(np.zeros(len(E)))[0] @ E
    # NumPy 1 takes a matrix beside a stack of them for a stack of vectors.
    return np.asarray(np.linalg.eigvals(np.linalg.solve(M, np.broadcast_to(K, M.shape))).real)


def lowest_frequency(plant: ElasticPlant, q: ArrayLike) -> float:
    """Lowest frequency of the links at q (..., n) on unloaded springs, with motors at rest, rad/s.

    Raises:
        StateError: the arm has no springs, or none with stiffness at rest.
    """
    squares = squared_frequencies(plant, q)
    # Links on rigid joints have none.
    elastic = squares[squares > 1e-9 * np.max(squares)]
    if not elastic.size:
        raise StateError(f"{plant.arm.robot.name} has no springs with stiffness at rest, so no feedback of links")
    return float(np.sqrt(np.min(elastic)))

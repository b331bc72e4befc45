# SPDX-License-Identifier: Apache-2.0
"""Motion of a plant over time, to the accuracy of SciPy's integrators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from ..exceptions import EomDynamicsError
from .elastic_plant import ElasticPlant

Array = NDArray[np.float64]

Control = Callable[[float, Array], Array]
"""Motor efforts (m,) or (N, m) from time (s) and state, as of :class:`ElasticPlant`."""


class SimulationError(EomDynamicsError):
    """A simulation cannot go on."""


@dataclass(frozen=True)
class Simulation:
    """What a plant did; T times, and N arms side by side if there were N at the start.

    Attributes:
        t: (T,) s.
        states: (T, 2n + 2m) or (T, N, 2n + 2m), as of :class:`ElasticPlant`.
        work: (T,) or (T, N), that motors put in since the start, J.
        heat: alike, that friction, gears and dampers took since then, J.
    """

    t: Array
    states: Array
    work: Array
    heat: Array


def simulate(
    plant: ElasticPlant,
    control: Control,
    t: ArrayLike,
    start: Array,
    *,
    relative_tolerance: float = 1e-12,
    absolute_tolerance: float = 1e-12,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Integrate by an explicit Runge-Kutta method of order 8 (Dormand and Prince).

    Args:
        plant: links and motors.
        control: motor efforts at a time and state; continuous, for steps not to shrink.
        t: times (T,) at which to know the state, rising, s.
        start: state (2n + 2m,) or (N, 2n + 2m) at the first of them.
        relative_tolerance, absolute_tolerance: of one step, the first of the state, the second in its units.
        progress: is told the time that is reached, s.

    Raises:
        SimulationError: the motion leaves all bounds, or steps became too small to go on.
    """
    times = np.asarray(t, dtype=float)
    split = start.size

    def rate(now: float, y: Array) -> Array:
        state = y[:split].reshape(start.shape)
        if not np.all(np.isfinite(state)):
            raise SimulationError(f"{plant.arm.robot.name}: the motion leaves all bounds at {now:.6g} s")
        if progress is not None:
            progress(now)
        effort = control(now, state)
        return np.concatenate([plant.rate(state, effort).ravel(), plant.powers(state, effort).ravel()])

    arms = start.shape[:-1]
    initial = np.concatenate([start.ravel(), np.zeros(2 * int(np.prod(arms)))])
    solution = solve_ivp(
        rate,
        (times[0], times[-1]),
        initial,
        method="DOP853",
        t_eval=times,
        rtol=relative_tolerance,
        atol=absolute_tolerance,
    )
    if not solution.success:
        raise SimulationError(f"{plant.arm.robot.name}: at {solution.t[-1]:.6g} s: {solution.message}")
    y = solution.y.T
    work, heat = np.moveaxis(y[:, split:].reshape(len(times), 2, *arms), 1, 0)
    return Simulation(times, y[:, :split].reshape(len(times), *start.shape), work, heat)

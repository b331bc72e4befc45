# SPDX-License-Identifier: Apache-2.0
"""Simulation of a plant by SciPy's integrators.

The simulation of an arm ends where its model does: where a tension-only spring goes slack - a quadratic one would push
its link away, ever faster - or where the motion leaves all bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from ..arrays import Array
from ..exceptions import EomDynamicsError
from .elastic_plant import ElasticPlant

Control = Callable[[float, Array], Array]
"""Control law: motor efforts (m,) or (N, m) from time (s) and state, see :class:`ElasticPlant`."""


# Bound on positions and velocities, in rad or m, and per s; and on states that the integrator tries.
_BOUND = 1e4
_TRIED = 100 * _BOUND

# At its least stiffness a pair has an unstretched spring, which rounding must not make slack.
_SLACK = 1e-9

# Rounding error of a margin where the event finder puts its zero.
_INSTANT = 1e-12


class SimulationError(EomDynamicsError):
    """A simulation cannot continue."""


@dataclass(frozen=True)
class End:
    """Early end of the simulation of an arm.

    Attributes:
        t: time, s.
        reason: in words.
    """

    t: float
    reason: str


@dataclass(frozen=True)
class Simulation:
    """States of a plant at T times, of one arm or of N side by side; NaN after an early end.

    Attributes:
        t: (T,) s.
        states: (T, 2n + 2m) or (T, N, 2n + 2m), see :class:`ElasticPlant`.
        work: (T,) or (T, N), work of the motors since the start, J.
        heat: (T,) or (T, N), dissipated by friction, gears and dampers since the start, J.
        ends: (N,), or (1,) for a single arm, early ends; None for a complete simulation.
    """

    t: Array
    states: Array
    work: Array
    heat: Array
    ends: tuple[End | None, ...]


def simulate(
    plant: ElasticPlant,
    control: Control,
    t: ArrayLike,
    start: Array,
    *,
    relative_tolerance: float = 1e-12,
    absolute_tolerance: float = 1e-12,
    partial: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Integrate by an explicit Runge-Kutta method of order 8 (Dormand and Prince).

    Args:
        plant: links and motors.
        control: motor efforts from time and state; continuous, or steps become tiny.
        t: times (T,) of the result, increasing, s.
        start: state (2n + 2m,) or (N, 2n + 2m) at the first time.
        relative_tolerance, absolute_tolerance: of one step, relative to the state and in its units.
        partial: whether arms end one by one instead of raising an error.
        progress: is called with the time reached, s.

    Raises:
        SimulationError: without ``partial``, a tension-only spring goes slack, or the motion leaves all bounds; or the
            integrator's steps become too small.
    """
    times = np.asarray(t, dtype=float)
    arms = _Arms(plant, control, start, progress)
    known = np.full((len(times), *arms.start.shape), np.nan)
    now, y, reached = times[0], arms.start, 0
    while True:
        arms.end(now, y)
        if not partial and not np.all(arms.going):
            (end,) = [end for end in arms.ends if end][:1]
            raise SimulationError(f"{plant.arm.robot.name}: at {end.t:.6g} s {end.reason}")
        if reached == len(times) or not np.any(arms.going):
            break
        # States that the integrator tries may overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            solution = solve_ivp(
                arms.rate,
                (now, times[-1]),
                y.ravel(),
                method="DOP853",
                t_eval=times[reached:],
                events=arms.margin,
                rtol=relative_tolerance,
                atol=absolute_tolerance,
            )
        if not solution.success:
            raise SimulationError(f"{plant.arm.robot.name}: at {solution.t[-1]:.6g} s: {solution.message}")
        passed = reached + len(solution.t)
        known[reached:passed, arms.going] = solution.y.T.reshape(-1, *y.shape)[:, arms.going]
        reached = passed
        if solution.status == 0:
            break
        now, y = float(solution.t_events[0][-1]), solution.y_events[0][-1].reshape(y.shape)
    states, work, heat = known[..., :-2], known[..., -2], known[..., -1]
    shape = (len(times), *start.shape)
    return Simulation(
        times, states.reshape(shape), work.reshape(shape[:-1]), heat.reshape(shape[:-1]), tuple(arms.ends)
    )


class _Arms:
    """Differential equation of the integrator: a row for each arm, its state, then work and heat of its motors.

    An arm that has ended stands still.

    Attributes:
        start: (N, 2n + 2m + 2) initial rows.
        ends: (N,) early ends.
    """

    def __init__(
        self, plant: ElasticPlant, control: Control, start: Array, progress: Callable[[float], None] | None
    ) -> None:
        self._plant, self._control, self._progress = plant, control, progress
        self._shape = start.shape
        states = start.reshape(-1, start.shape[-1])
        self.start = np.concatenate([states, np.zeros((len(states), 2))], axis=1)
        self.ends: list[End | None] = [None] * len(states)

        def margin(_: float, y: Array) -> float:
            return float(np.min(self._margins(y)[self.going]))

        # The integrator stops where the margin falls below zero.
        margin.terminal, margin.direction = True, -1.0  # type: ignore[attr-defined]
        self.margin = margin

    @property
    def going(self) -> NDArray[np.bool_]:
        """(N,) whether an arm has not ended."""
        return np.array([end is None for end in self.ends])

    def rate(self, now: float, y: Array) -> Array:
        """Time derivative of all rows."""
        if self._progress is not None:
            self._progress(now)
        state = self._states(y)
        # The rate of a state out of bounds is NaN, which makes the integrator try a shorter step.
        wild = ~np.all(np.abs(state) <= _TRIED, axis=1)
        state = np.where(wild[:, np.newaxis], self._states(self.start), state).reshape(self._shape)
        effort = self._control(now, state)
        change = np.empty_like(self.start)
        change[:, :-2] = self._plant.rate(state, effort).reshape(len(wild), -1)
        change[:, -2:] = self._plant.powers(state, effort).reshape(2, -1).T
        change[wild] = np.nan
        change[~self.going] = 0.0
        return change.ravel()

    def end(self, now: float, y: Array) -> None:
        """End the arms whose margins are used up."""
        margins = self._margins(y)
        for arm in np.flatnonzero(self.going & ~np.all(margins > _INSTANT, axis=1)):
            self.ends[arm] = End(now, self._reason(margins[arm]))

    def _states(self, y: Array) -> Array:
        return y.reshape(self.start.shape)[:, :-2]

    def _margins(self, y: Array) -> Array:
        """(N, m + 1) stretch of tension-only springs, infinite for others, and distance to the bounds."""
        states = self._states(y)
        q, theta, *_ = self._plant.parts(states)
        stretch = self._plant.springs.stretch(self._plant.deflection(theta, q))
        return np.column_stack([stretch + _SLACK, 1 - np.max(np.abs(states), axis=1) / _BOUND])

    def _reason(self, margins: Array) -> str:
        names = self._plant.arm.motor_names
        worst = int(np.argmin(margins))
        if worst == len(names):
            return f"the motion leaves all bounds: {_BOUND:g} rad (m), or as much per second"
        return f"the tension-only spring at {names[worst]} goes slack"

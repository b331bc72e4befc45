# SPDX-License-Identifier: Apache-2.0
"""Motion of a plant over time, to the accuracy of SciPy's integrators.

An arm is followed for as long as its model holds: until a spring that only pulls goes slack, where its law ends - that
of a quadratic one would push its link away, ever faster - or until the motion leaves all bounds.
"""

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


# No link or motor goes further, or faster, than this, in rad or m, and per s. What the integrator tries on the way may.
_BOUND = 1e4
_TRIED = 100 * _BOUND

# A pair at the least stiffness that it has holds its springs without any stretch: rounding does not make them slack.
_SLACK = 1e-9

# The instant at which a margin is zero is found but for rounding.
_INSTANT = 1e-12


class SimulationError(EomDynamicsError):
    """A simulation cannot go on."""


@dataclass(frozen=True)
class End:
    """Where an arm is followed no further.

    Attributes:
        t: time, s.
        reason: in words.
    """

    t: float
    reason: str


@dataclass(frozen=True)
class Simulation:
    """What a plant did; T times, and N arms side by side if there were N at the start.

    What is not known, of an arm that is followed no further, is NaN.

    Attributes:
        t: (T,) s.
        states: (T, 2n + 2m) or (T, N, 2n + 2m), as of :class:`ElasticPlant`.
        work: (T,) or (T, N), that motors put in since the start, J.
        heat: alike, that friction, gears and dampers took since then, J.
        ends: (N,), or (1,) for a single arm; None of one that is followed to the last time.
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
        control: motor efforts at a time and state; continuous, for steps not to shrink.
        t: times (T,) at which to know the state, rising, s.
        start: state (2n + 2m,) or (N, 2n + 2m) at the first of them.
        relative_tolerance, absolute_tolerance: of one step, the first of the state, the second in its units.
        partial: whether an arm that cannot go on ends alone, and the others go on.
        progress: is told the time that is reached, s.

    Raises:
        SimulationError: a spring that only pulls goes slack, or the motion leaves all bounds, and this is not to be
            ``partial``; or steps became too small to go on.
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
        # What is tried on the way may overflow.
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
    """What the integrator is to follow: a row for each arm, its state, then the work and the heat of its motors.

    An arm that has come to its end stands still from then on.

    Attributes:
        start: (N, 2n + 2m + 2).
        ends: (N,) where arms have ended.
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

        # As the integrator reads them: where the margin falls below zero it stops.
        margin.terminal, margin.direction = True, -1.0  # type: ignore[attr-defined]
        self.margin = margin

    @property
    def going(self) -> NDArray[np.bool_]:
        """(N,) which arms have not ended."""
        return np.array([end is None for end in self.ends])

    def rate(self, now: float, y: Array) -> Array:
        """Time derivative of all rows."""
        if self._progress is not None:
            self._progress(now)
        state = self._states(y)
        # Where a step is too long for the motion: no number, and the integrator tries a shorter one.
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
        """End the arms that cannot go on from here."""
        margins = self._margins(y)
        for arm in np.flatnonzero(self.going & ~np.all(margins > _INSTANT, axis=1)):
            self.ends[arm] = End(now, self._reason(margins[arm]))

    def _states(self, y: Array) -> Array:
        return y.reshape(self.start.shape)[:, :-2]

    def _margins(self, y: Array) -> Array:
        """(N, m + 1) stretch of the springs that only pull, infinite of others, and what is left to the bounds."""
        states = self._states(y)
        q, theta, *_ = self._plant.parts(states)
        stretch = self._plant.springs.stretch(self._plant.deflection(theta, q))
        return np.column_stack([stretch + _SLACK, 1 - np.max(np.abs(states), axis=1) / _BOUND])

    def _reason(self, margins: Array) -> str:
        names = self._plant.arm.motor_names
        worst = int(np.argmin(margins))
        if worst == len(names):
            return f"it leaves all bounds: beyond {_BOUND:g} rad (m), or that a second"
        return f"the spring at {names[worst]}, which only pulls, goes slack"

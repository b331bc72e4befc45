# SPDX-License-Identifier: Apache-2.0
"""Integration of a plant over time, by SciPy's integrators or by fixed steps.

The simulation of an arm ends where its model does: where a tension-only spring goes slack - a quadratic one would push
its link away, ever faster - or where the motion leaves all bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import SimulationError, StateError
from ..spelling import shown
from .elastic_plant import ElasticPlant, require_plant
from .integrators import ADAPTIVE, FIXED_STEP, check_method, even_steps, integrated, output_times

Control: TypeAlias = Callable[[float, Array], Array]
"""Control law: motor efforts (m,) or (N, m) from time (s) and state, see :class:`ElasticPlant`; or tool wrenches."""

# Bound on positions and velocities, in rad or m, and per s; and on states that the integrator tries.
_BOUND = 1e4
_TRIED = 100 * _BOUND

# At its least stiffness a pair has an unstretched spring, which rounding must not make slack.
_SLACK = 1e-9

# Rounding error of a margin where the event finder puts its zero.
_INSTANT = 1e-12


@dataclass(frozen=True)
class End:
    """Early end of the simulation of an arm, at a time, s, for a reason in words."""

    t: float
    reason: str


class Arms:
    """Differential equation to integrate: a row for each arm, with state, motor work and heat.

    An arm that has ended stands still.

    Attributes:
        start: (N, 2n + 2m + 2) initial rows.
        ends: (N,) early ends.
        going: (N,) whether the simulation of an arm continues.
        robot: name of the robot.
    """

    def __init__(
        self,
        plant: ElasticPlant,
        control: Control | None,
        start: Array,
        progress: Callable[[float], None] | None,
        *,
        wrench: Control | None = None,
    ) -> None:
        """Take the state (2n + 2m,) or (N, 2n + 2m) at the start, and the functions of :func:`simulate`."""
        self._plant, self._progress = plant, progress
        self._given = {"control": (control, (len(plant.rigid),)), "wrench": (wrench, plant.arm.robot.wrench_shape)}
        self._shape, self._safe = start.shape, start.reshape(-1, start.shape[-1])
        self.robot = plant.arm.robot.name
        self.start = np.concatenate([self._safe, np.zeros((len(self._safe), 2))], axis=1)
        self.ends: list[End | None] = [None] * len(self._safe)
        self.going = np.ones(len(self._safe), dtype=bool)

        def margin(_: float, y: Array) -> float:
            return float(np.min(self._margins(y.reshape(self.start.shape))[self.going]))

        # The integrator stops where the margin falls below zero.
        margin.terminal, margin.direction = True, -1.0  # type: ignore[attr-defined]
        self.margin = margin

    def rates(self, now: float, rows: Array) -> Array:
        """Time derivative of all rows (N, columns) at a time."""
        state = rows[:, :-2]
        # The rate of a state out of bounds is NaN, which makes the integrator try a shorter step.
        wild = ~np.all(np.abs(state) <= _TRIED, axis=1)
        if wild.any():
            state = np.where(wild[:, np.newaxis], self._safe, state)
        # One state as a vector, for which compiled code is called directly.
        samples = () if len(state) == 1 else (len(state),)
        effort = self._load("control", now, state, samples)
        wrench = None if self._given["wrench"][0] is None else self._load("wrench", now, state, samples)
        if self._progress is not None:
            self._progress(now)
        change = np.empty_like(rows)
        change[:, :-2], powers = self._plant.rate_and_powers(state.reshape(*samples, -1), effort, wrench)
        change[:, -2:] = powers.reshape(2, -1).T
        change[wild] = np.nan
        change[~self.going] = 0.0
        return change

    def end(self, now: float, y: Array) -> None:
        """End the simulation of arms whose margins are used up."""
        margins = self._margins(y)
        for arm in np.flatnonzero(self.going & ~np.all(margins > _INSTANT, axis=1)).tolist():
            self._stop_arm(arm, End(now, self._reason(margins[arm])))

    def end_within(self, now: float, h: float, before: Array, advanced: Callable[[float], Array]) -> Array:
        """Rows after a step of length h; arms whose margins are used up end within it.

        The step starts ``now`` with the rows ``before``; ``advanced`` gives those after a part of it, from 0 to 1.
        """
        from scipy.optimize import brentq  # here for its import, as in integrated()

        after = advanced(1.0)
        margins = self._margins(after)
        ends = []
        # False for NaN, too.
        for arm in np.flatnonzero(self.going & ~np.all(margins > 0, axis=1)).tolist():
            if np.any(np.isnan(margins[arm])):
                ends.append((arm, End(now, f"a step of {h:.3g} s is too long, or the motion leaves all bounds")))
                continue

            def margin(part: float, arm: int = arm) -> float:
                return float(np.min(self._margins(advanced(part))[arm]))

            share = float(brentq(margin, 0.0, 1.0, xtol=_INSTANT))
            ends.append((arm, End(now + share * h, self._reason(self._margins(advanced(share))[arm]))))
        for arm, end in ends:
            self._stop_arm(arm, end)
        after[~self.going] = before[~self.going]
        return after

    def _stop_arm(self, arm: int, end: End) -> None:
        self.ends[arm], self.going[arm] = end, False

    def _load(self, name: str, now: float, state: Array, samples: tuple[int, ...]) -> Array:
        """Efforts or wrenches (*samples, …), as the function that gives them returns for states (N, columns)."""
        function, size = self._given[name]
        shape = (*self._shape[:-1], *size)
        if function is None:
            return np.zeros((*samples, *size))
        returned, what = function(now, state.reshape(self._shape)), "efforts" if name == "control" else "wrenches"
        load = np.asarray(returned)
        if load.shape != shape or load.dtype.kind not in "biuf":
            raise StateError(
                f"{self.robot}: {name} must return {what} of shape {shape}, returns "
                f"{load.shape if load.dtype.kind in 'biuf' else repr(returned)[:60]}"
            )
        if not np.isfinite(load).all():
            raise SimulationError(f"{self.robot}: at {now:.6g} s: {name} returns {what} that are not finite")
        return load.reshape(*samples, *size)

    def _margins(self, y: Array) -> Array:
        """(N, m + 1) stretch of tension-only springs, infinite for others, and distance to the bounds; NaN of NaN."""
        states = y[:, :-2]
        q, theta, *_ = self._plant.parts(states)
        stretch = self._plant.springs.stretch(self._plant.deflection(theta, q))
        return np.column_stack([stretch + _SLACK, 1 - np.max(np.abs(states), axis=1) / _BOUND])

    def _reason(self, margins: Array) -> str:
        names = self._plant.arm.motor_names
        worst = int(np.argmin(margins))
        if worst == len(names):
            return f"the motion leaves all bounds: {_BOUND:g} rad (m), or as much per second"
        return f"the tension-only spring at {names[worst]} goes slack"


# Times that SciPy's integrator may stop at a margin without an arm that ends.
_IDLE = 20


@dataclass(frozen=True)
class Simulation:
    """States of a plant at T times, of one arm or of N side by side; NaN after an early end.

    Attributes:
        t: (T,) s.
        states: (T, 2n + 2m) or (T, N, 2n + 2m), see :class:`ElasticPlant`.
        work: (T,) or (T, N), work of the motors, and on the tools, since the start, J.
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
    control: Control | None,
    t: ArrayLike,
    start: ArrayLike,
    *,
    wrench: Control | None = None,
    method: str = "DOP853",
    step: float | None = None,
    relative_tolerance: float = 1e-12,
    absolute_tolerance: float = 1e-12,
    partial: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Simulation:
    """Integrate the motion of a plant.

    ==================================  ===============  =======================================================
    method                              order            keeps, without control and losses
    ==================================  ===============  =======================================================
    ``DOP853``, ``RK45``, ``RK23``,     by tolerance     nothing but by accuracy; ``Radau``, ``BDF``, ``LSODA``
    ``Radau``, ``BDF``, ``LSODA``                        are for stiff springs and friction
    ``euler``                           1                nothing: adds energy
    ``rk4``                             4                nothing but by accuracy
    ==================================  ===============  =======================================================

    Args:
        plant: links and motors.
        control: motor efforts from time and state, finite, (m,) or (N, m) as the state is one or N; continuous, or
            steps become tiny. None for none.
        t: times (T,) of the result, increasing, s; at most 1e7 s from first to last.
        start: state (2n + 2m,) or (N, 2n + 2m) at the first time.
        wrench: W that the robot exerts on its surroundings at its tools, from time and state as the control: (6,) or
            (N, 6), with k > 1 tools (k, 6) or (N, k, 6), moment first, in the frame of the tool, N m and N. None for
            none.
        method: one of the table; the first is SciPy's explicit Runge-Kutta method of order 8.
        step: longest step of the methods from ``euler`` on, s; from one time of the result to the next they take steps
            of equal length, at most ten million in all.
        relative_tolerance, absolute_tolerance: of one step of SciPy's methods, relative to the state and in its units.
        partial: whether arms end one by one instead of raising an error.
        progress: is called with the time reached, s.

    Raises:
        SimulationError: without ``partial``, a tension-only spring goes slack, the motion leaves all bounds, or a fixed
            step is too long; the steps of SciPy's integrator become too small; or the control returns NaN or infinity.
        StateError: the times or the initial state have the wrong shape, are not finite, or do not increase; they are
            too far apart; there would be too many steps; a tolerance is not positive; or the control returns no
            efforts, or the wrench no wrench.
        ValueError: the method is unknown, or a step is missing or superfluous.
        TypeError: ``plant`` is not an ElasticPlant, or ``control``, ``wrench`` or ``progress`` not a function.
    """
    require_plant(plant)
    require_progress(progress)
    for name, function in (("control", control), ("wrench", wrench)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of time and state, or None for none, is {shown(function)}")
    check_method(method, step, relative_tolerance=relative_tolerance, absolute_tolerance=absolute_tolerance)
    times, initial = output_times(t, step), plant.checked(start, "start")
    if initial.ndim > 2 or not initial.size:
        size = initial.shape[-1]
        raise StateError(f"start must have shape ({size},) or (N, {size}), N > 0; has {initial.shape}")
    arms = Arms(plant, control, initial, progress, wrench=wrench)
    known = np.full((len(times), *arms.start.shape), np.nan)
    if method in ADAPTIVE:
        _by_scipy(arms, times, known, partial, method=method, rtol=relative_tolerance, atol=absolute_tolerance)
    else:
        assert step is not None
        _by_steps(arms, times, known, partial, method, step)
    states, work, heat = known[..., :-2], known[..., -2], known[..., -1]
    shape = (len(times), *initial.shape)
    return Simulation(
        times, states.reshape(shape), work.reshape(shape[:-1]), heat.reshape(shape[:-1]), tuple(arms.ends)
    )


def require_progress(progress: object) -> None:
    """Raise TypeError unless ``progress`` is callable or None."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a function of the time reached, or None, is {shown(progress)}")


def _by_scipy(arms: Arms, times: Array, known: Array, partial: bool, **options: object) -> None:
    """Fill in the rows (T, N, columns) of all times, by an integrator that chooses its steps."""
    now, y, reached, idle = times[0], arms.start, 0, 0
    while True:
        going = int(np.count_nonzero(arms.going))
        arms.end(now, y)
        _stop(arms, partial)
        # A margin that is used up too fast to find the time at which it is zero.
        idle = idle + 1 if now > times[0] and np.count_nonzero(arms.going) == going else 0
        if idle > _IDLE:
            raise SimulationError(f"{arms.robot}: at {now:.6g} s the motion leaves all bounds")
        if reached == len(times) or not np.any(arms.going):
            return
        # States that the integrator tries may overflow.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            solution = integrated(
                arms.robot,
                lambda t, y: arms.rates(t, y.reshape(arms.start.shape)).ravel(),
                (now, times[-1]),
                y.ravel(),
                t_eval=times[reached:],
                events=arms.margin,
                **options,
            )
        passed = reached + len(solution.t)
        known[reached:passed, arms.going] = np.reshape(solution.y, (y.size, -1)).T.reshape(-1, *y.shape)[:, arms.going]
        reached = passed
        if solution.status == 0:
            return
        now, y = float(solution.t_events[0][-1]), solution.y_events[0][-1].reshape(y.shape)


def _by_steps(arms: Arms, times: Array, known: Array, partial: bool, method: str, step: float) -> None:
    """Fill in the rows (T, N, columns) of all times, by equal steps from each to the next."""
    y = arms.start
    arms.end(times[0], y)
    _stop(arms, partial)
    known[0, arms.going] = y[arms.going]
    for i, (start, end) in enumerate(pairwise(times.tolist()), start=1):
        count = even_steps(start, end, step)
        h = (end - start) / count
        for j in range(count):
            if not np.any(arms.going):
                return
            now, before = start + j * h, y

            def advanced(share: float, now: float = now, y: Array = before, h: float = h) -> Array:
                # The step may overflow, which ends the arm.
                with np.errstate(over="ignore", invalid="ignore"):
                    after = FIXED_STEP[method](arms.rates, now, y, share * h)
                return np.where(arms.going[:, np.newaxis], after, y)

            y = arms.end_within(now, h, before, advanced)
            _stop(arms, partial)
        known[i, arms.going] = y[arms.going]


def _stop(arms: Arms, partial: bool) -> None:
    """Raise SimulationError if an arm has ended, unless arms may."""
    ended = [end for end in arms.ends if end]
    if ended and not partial:
        end = min(ended, key=lambda end: end.t)
        raise SimulationError(f"{arms.robot}: at {end.t:.6g} s {end.reason}")

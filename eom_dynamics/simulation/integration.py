# SPDX-License-Identifier: Apache-2.0
"""Integration of a plant over time, by SciPy's integrators or by fixed steps.

The simulation of an arm ends where its model does: where a tension-only spring goes slack - a quadratic one would push
its link away, ever faster - or where the motion leaves all bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..exceptions import SimulationError, StateError
from ..spelling import shown
from ..states import real_array
from .arms import Arms, Control, End
from .elastic_plant import ElasticPlant, require_plant
from .integrators import ADAPTIVE, FIXED_STEP, FixedStep, check_method, check_times, check_tolerances, even_steps

# Evaluations of the rate at one time, in all and for each entry of y, after which no progress is expected.
_STANDING = 1000, 200

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
    ``semi_implicit_euler``             1                the symplectic form for a constant mass matrix
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
    for name, given in (("control", control), ("wrench", wrench)):
        if given is not None and not callable(given):
            raise TypeError(f"{name} must be a function of time and state, or None for none, is {shown(given)}")
    check_method(method, step)
    check_tolerances(relative_tolerance, absolute_tolerance)
    times, initial = output_times(t), _initial(plant, start)
    check_times(times, step)
    arms = Arms(plant, control, initial, progress, wrench=wrench)
    known = np.full((len(times), *arms.start.shape), np.nan)
    if method in ADAPTIVE:
        _by_scipy(arms, times, known, partial, method=method, rtol=relative_tolerance, atol=absolute_tolerance)
    else:
        assert step is not None
        _by_steps(arms, times, known, partial, FIXED_STEP[method], step)
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
                arms.flat_rate,
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


def _by_steps(arms: Arms, times: Array, known: Array, partial: bool, method: FixedStep, step: float) -> None:
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
                    after = method.step(arms.rates, now, y, share * h, arms.positions)
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


def integrated(
    robot: str, rate: Callable[[float, Array], Array], span: tuple[float, float], y: Array, **options: Any
) -> Any:
    """Result of SciPy's ``solve_ivp``.

    Args:
        robot: name of the robot, for errors.
        rate: time derivative of y; NaN where the integrator shall try a shorter step.
        span: first and last time, s.
        y: at the first time.
        options: of ``solve_ivp``.

    Raises:
        SimulationError: the rate at the start is not finite, or the integrator cannot continue.
    """
    from scipy.integrate import solve_ivp  # here for its import, which would double the start of every command

    now, inside, place, standing = span[0], False, np.inf, 0
    spacing, most = 1e-15 * (span[1] - span[0]), _STANDING[0] + _STANDING[1] * y.size

    def watched(t: float, y: Array) -> Array:
        nonlocal now, inside, place, standing
        now, inside = t, True
        # Not from the latest time reached: a first step that is too long and rejected may lie far ahead.
        standing = standing + 1 if abs(t - place) <= spacing else 0
        place = place if standing else t
        # LSODA shortens its steps without end.
        if standing > most:
            raise SimulationError(_located(robot, now, "the motion leaves all bounds"))
        found = rate(t, y)
        inside = False
        return found

    # With a rate of NaN at the start SciPy looks for a first step without end.
    if not np.all(np.isfinite(watched(span[0], y))):
        raise SimulationError(_located(robot, now, "accelerations are not finite"))
    try:
        solution = solve_ivp(watched, span, y, **options)
    except (ValueError, np.linalg.LinAlgError):
        # Errors of the rate itself pass; the implicit methods raise others for matrices that are not finite.
        if inside:
            raise
        raise SimulationError(_located(robot, now, "the motion leaves all bounds, or needs another method")) from None
    if not solution.success:
        raise SimulationError(_located(robot, now, solution.message))
    return solution


def _located(robot: str, now: float, reason: str) -> str:
    return f"{robot}: at {now:.6g} s: {reason}" if robot else f"at {now:.6g} s: {reason}"


def output_times(t: ArrayLike) -> Array:
    """Times (T,) as an array; raises StateError unless they are finite and increase."""
    times = real_array(t, "t")
    if np.ndim(t) != 1 or not len(times) or np.any(np.diff(times) <= 0):
        raise StateError(f"t must be finite, increase and have shape (T,), T > 0; has shape {np.shape(t)}")
    return times


def _initial(plant: ElasticPlant, start: ArrayLike) -> Array:
    initial = plant.checked(start, "start")
    if initial.ndim > 2 or not initial.size:
        raise StateError(
            f"start must have shape ({initial.shape[-1]},) or (N, {initial.shape[-1]}), N > 0; has {initial.shape}"
        )
    return initial

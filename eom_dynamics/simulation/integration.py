# SPDX-License-Identifier: Apache-2.0
"""Integration of a plant over time, by SciPy's integrators or by Euler's method, and the audit of its energy.

A simulation ends at the limits of its model: if a tension-only spring goes slack (a quadratic spring would push its
link away, ever faster) or the motion leaves all bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import all_finite, choice, positive, real_array, violation
from ..arrays import Array
from ..exceptions import SimulationError, StateError
from ..spelling import shown
from .elastic_plant import ElasticPlant, require_plant

Control: TypeAlias = Callable[[float, Array], Array]
"""Control law: motor efforts (m,) from time (s) and state, see :class:`ElasticPlant`; or tool wrenches."""

ADAPTIVE = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")  # SciPy's integrators by name
_LONGEST = 1e7  # longest simulation, s, so that every simulation ends
_MOST_STEPS = 10_000_000  # maximum number of Euler steps in a simulation: some ten steps take a millisecond

# Evaluations of the rate at one time, in total and for each entry of y, that indicate a lack of progress.
_STANDING = 1000, 200

# Bounds on positions and velocities, in rad or m, and per s; and on trial states of the integrator.
_BOUND = 1e4
_TRIED = 100 * _BOUND

# At least stiffness, a pair has an unstretched spring, which rounding must not make slack.
_SLACK = 1e-9


class Simulation(NamedTuple):
    """States of a plant at T times.

    Attributes:
        t: times (T,), s.
        states: (T, 2n + 2m), see :class:`ElasticPlant`.
        work: work (T,) of the motors, and on the tools, since the start, J.
        heat: heat (T,) of friction, gears and dampers since the start, J.
    """

    t: Array
    states: Array
    work: Array
    heat: Array


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
) -> Simulation:
    """Integrate the motion of a plant.

    ==================================  ===============  =======================================================
    method                              order            keeps, without control and losses
    ==================================  ===============  =======================================================
    ``DOP853``, ``RK45``, ``RK23``,     by tolerance     nothing but by accuracy; ``Radau``, ``BDF``, ``LSODA``
    ``Radau``, ``BDF``, ``LSODA``                        are for stiff springs and friction
    ``euler``                           1                nothing: adds energy
    ==================================  ===============  =======================================================

    Args:
        plant: links and motors.
        control: function from time and state to finite motor efforts (m,); discontinuities make steps tiny. None for
            zero.
        t: times (T,) of the result, increasing, s; at most 1e7 s from first to last.
        start: state (2n + 2m,) at the first time.
        wrench: function from time and state to the wrench W that the robot exerts on its surroundings at its tools:
            (6,), or (k, 6) with k > 1 tools, moment first, in the frame of the tool, N m and N. None for zero.
        method: name in the table; the first is SciPy's explicit Runge-Kutta method of order 8.
        step: longest step of ``euler``, s. Steps between two times of the result have equal length; at most ten million
            in total.
        relative_tolerance, absolute_tolerance: tolerances of one step of SciPy's methods, relative to the state and in
            its units.

    Raises:
        SimulationError: a tension-only spring goes slack, the motion leaves all bounds, or a step is too long; the
            steps of SciPy's integrator become too small; or the control returns NaN or infinity.
        StateError: the times or the initial state have the wrong shape, are not finite, or do not increase; they are
            too far apart; there would be too many steps; a tolerance is not positive; or the control returns no
            efforts, or ``wrench`` returns no wrench.
        ValueError: the method is unknown, or a step is missing or superfluous.
        TypeError: ``plant`` is not an ElasticPlant, or ``control`` or ``wrench`` not a function.
    """
    require_plant(plant)
    for name, function in (("control", control), ("wrench", wrench)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function of time and state, or None, is {shown(function)}")
    choice(method, "method", (*ADAPTIVE, "euler"))
    if method in ADAPTIVE and step is not None:
        raise StateError(f"{method} chooses its steps by tolerances; omit step, or use euler")
    if method == "euler" and violation(step, "positive"):
        raise StateError(f"euler needs a step, a number of seconds > 0, is {shown(step)}")
    rtol = positive(relative_tolerance, "relative_tolerance")
    atol = positive(absolute_tolerance, "absolute_tolerance")
    times, initial = _output_times(t, step), plant.checked(start, "start")
    if initial.ndim != 1:
        raise StateError(f"start must have shape ({initial.shape[-1]},), has {initial.shape}")
    equation = _Equation(plant, control, wrench)
    y = np.concatenate([initial, np.zeros(2)])
    equation.check(times[0], y)
    if step is None:
        rows = _by_scipy(equation, times, y, method=method, rtol=rtol, atol=atol)
    else:
        rows = _by_euler(equation, times, y, step)
    return Simulation(times, rows[:, :-2], rows[:, -2], rows[:, -1])


class _Equation:
    """Differential equation to integrate, y: state, motor work and heat."""

    def __init__(self, plant: ElasticPlant, control: Control | None, wrench: Control | None) -> None:
        self.robot, self._plant = plant.arm.robot.name, plant
        self._functions = {"control": (control, (len(plant.rigid),)), "wrench": (wrench, plant.arm.robot.wrench_shape)}

    def rate(self, now: float, y: Array) -> Array:
        """Time derivative of y; NaN out of bounds, so that the integrator tries a shorter step."""
        state = y[:-2]
        if not np.all(np.abs(state) <= _TRIED):
            return np.full_like(y, np.nan)
        effort = self._load("control", now, state)
        wrench = None if self._functions["wrench"][0] is None else self._load("wrench", now, state)
        change, powers = self._plant.rate_and_powers(state, effort, wrench)
        return np.concatenate([change, powers])

    def margins(self, y: Array) -> Array:
        """Stretch of tension-only springs (others: infinite) and distance to the bounds, (m + 1,); NaN for NaN."""
        state = y[:-2]
        q, theta, *_ = self._plant.parts(state)
        stretch = self._plant.springs.stretch(self._plant.deflection(theta, q))
        return np.append(stretch + _SLACK, 1 - np.max(np.abs(state)) / _BOUND)

    def check(self, now: float, y: Array) -> None:
        """Raise SimulationError, with time and reason, unless all margins are positive."""
        if not np.all(self.margins(y) > 0):
            raise self.end(now, y)

    def end(self, now: float, y: Array) -> SimulationError:
        """Error of a simulation that ends early, in a state with an exhausted margin."""
        margins, names = self.margins(y), self._plant.arm.motor_names
        worst = int(np.argmin(margins))  # a NaN, if any
        reason = f"the motion leaves all bounds: {_BOUND:g} rad (m), or as much per second"
        if worst < len(names) and not np.isnan(margins[worst]):
            reason = f"the tension-only spring at {names[worst]} goes slack"
        return SimulationError(f"{self.robot}: at {now:.6g} s {reason}")

    def _load(self, name: str, now: float, state: Array) -> Array:
        """Efforts or wrenches, as returned by their function."""
        function, shape = self._functions[name]
        if function is None:
            return np.zeros(shape)
        returned, what = function(now, state), "efforts" if name == "control" else "wrenches"
        load = np.asarray(returned)
        if load.shape != shape or load.dtype.kind not in "biuf":
            raise StateError(
                f"{self.robot}: {name} must return {what} of shape {shape}, returns "
                f"{load.shape if load.dtype.kind in 'biuf' else repr(returned)[:60]}"
            )
        if not all_finite(load):
            raise SimulationError(f"{self.robot}: at {now:.6g} s: {name} returns {what} that are not finite")
        return load


def _by_scipy(equation: _Equation, times: Array, y: Array, **options: Any) -> Array:
    """Rows (T, columns) at all times, by an integrator with adaptive steps."""

    def margin(_: float, y: Array) -> float:
        return float(np.min(equation.margins(y)))

    # The integrator stops if the margin falls below zero.
    margin.terminal, margin.direction = True, -1.0  # type: ignore[attr-defined]
    # Trial states of the integrator may overflow.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        span = times[0], times[-1]
        solution = integrated(equation.robot, equation.rate, span, y, t_eval=times, events=margin, **options)
    if solution.status:
        raise equation.end(solution.t_events[0][-1], solution.y_events[0][-1])
    rows: Array = solution.y.T
    return rows


def _by_euler(equation: _Equation, times: Array, y: Array, step: float) -> Array:
    """Rows (T, columns) at all times, by y + h f(t, y): the simplest integrator, which adds energy to vibrations."""
    rows = [y]
    for start, end in pairwise(times.tolist()):
        # Equal steps, at most ``step`` up to rounding.
        count = max(1, int(np.ceil((end - start) / step * (1 - 1e-9))))
        h = (end - start) / count
        for j in range(count):
            # Too long a step may overflow.
            with np.errstate(over="ignore", invalid="ignore"):
                y = y + h * equation.rate(start + j * h, y)
            equation.check(start + (j + 1) * h, y)
        rows.append(y)
    return np.array(rows)


def integrated(
    robot: str, rate: Callable[[float, Array], Array], span: tuple[float, float], y: Array, **options: Any
) -> Any:
    """Result of SciPy's ``solve_ivp`` for a rate that is NaN to demand a shorter step.

    Raises SimulationError, with the name of the robot, if the rate at the start is not finite or the integrator cannot
    continue.
    """
    from scipy.integrate import solve_ivp  # imported here, since it would double the start time of every command

    now, inside, place, standing = span[0], False, np.inf, 0
    spacing, most = 1e-15 * (span[1] - span[0]), _STANDING[0] + _STANDING[1] * y.size

    def failed(reason: str) -> SimulationError:
        return SimulationError(f"{robot}: at {now:.6g} s: {reason}")

    def watched(t: float, y: Array) -> Array:
        nonlocal now, inside, place, standing
        now, inside = t, True
        # Not from the latest time reached: a first step that is too long and rejected may lie far ahead.
        standing = standing + 1 if abs(t - place) <= spacing else 0
        place = place if standing else t
        # LSODA shortens its steps without end.
        if standing > most:
            raise failed("the motion leaves all bounds")
        rates = rate(t, y)
        inside = False
        return rates

    # With a rate of NaN at the start, SciPy searches for a first step without end.
    if not all_finite(watched(span[0], y)):
        raise failed("accelerations are not finite")
    try:
        solution = solve_ivp(watched, span, y, **options)
    except (ValueError, np.linalg.LinAlgError):
        # Errors of the rate itself pass; implicit methods raise other errors for matrices that are not finite.
        if inside:
            raise
        raise failed("the motion leaves all bounds, or needs another method") from None
    if not solution.success:
        raise failed(solution.message)
    return solution


def _output_times(t: ArrayLike, step: float | None) -> Array:
    """Times (T,) as an array.

    Raises:
        StateError: the times are not finite, do not increase, or span too much time or too many steps of fixed length.
    """
    times = real_array(t, "t")
    if np.ndim(t) != 1 or not len(times) or np.any(np.diff(times) <= 0):
        raise StateError(f"t must be finite, increase and have shape (T,), T > 0; has shape {np.shape(t)}")
    duration = float(times[-1] - times[0])
    if not duration <= _LONGEST:
        raise StateError(f"t must span at most {_LONGEST:g} s, spans {duration:.3g} s; choose a larger unit of time")
    if step is not None and not duration <= step * _MOST_STEPS:
        raise StateError(
            f"step must be so long that there are at most {_MOST_STEPS:,} of them; {float(step):g} s is too short for "
            f"{duration:.6g} s"
        )
    return times


class Energy(NamedTuple):
    """Energy of an arm by part, J; arrays have the leading shape of the states.

    Attributes:
        kinetic: kinetic energy of links and rotors.
        gravity: potential energy of constant loads, parallel springs and links; the link energy is 0 with all centers
            of mass at the base frame's origin.
        spring: energy of the springs, 0 without deflection.
    """

    kinetic: Array
    gravity: Array
    spring: Array

    @property
    def total(self) -> Array:
        """Total energy, J."""
        return self.kinetic + self.gravity + self.spring


def energy(plant: ElasticPlant, state: ArrayLike) -> Energy:
    """Energy of a plant in one or many states (…, 2n + 2m), at nominal stiffness.

    The arm's rotor model determines the kinetic energy of rotors.

    Raises:
        StateError: the state is not finite, or not of this plant.
        TypeError: ``plant`` is not an ElasticPlant.
    """
    require_plant(plant)
    q, theta, qd, thetad = plant.parts(plant.checked(state))
    rows = [x.reshape(-1, x.shape[-1]) for x in (q, qd, thetad)]
    kinetic = plant.inertia.kinetic_energy(*rows).reshape(q.shape[:-1])
    gravity = plant.arm.dynamics.potential_energy(rows[0]).reshape(q.shape[:-1])
    return Energy(kinetic, gravity, plant.springs.energy(plant.deflection(theta, q)))


def energy_audit(plant: ElasticPlant, simulation: Simulation) -> float:
    """Largest imbalance E - E(0) - work + heat of a simulated plant, relative to the largest energy, work or heat.

    The imbalance is the integration error: the change of energy is the work of the motors minus friction, dE/dt = qd'(u
    - friction).

    Raises:
        StateError: the simulation is of another plant, with states of another length.
        TypeError: ``plant`` is not an ElasticPlant, or ``simulation`` not a Simulation.
    """
    if not isinstance(simulation, Simulation):
        raise TypeError(f"simulation must be the result of simulate, is {shown(simulation)}")
    held = energy(plant, simulation.states)
    imbalance = held.total - held.total[0] - simulation.work + simulation.heat
    largest = float(np.max(np.abs([*held, simulation.work, simulation.heat])))
    return float(np.max(np.abs(imbalance))) / (largest or 1.0)

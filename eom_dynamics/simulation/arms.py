# SPDX-License-Identifier: Apache-2.0
"""Arms under integration: differential equation, and end of the model's validity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..exceptions import SimulationError, StateError
from .elastic_plant import ElasticPlant

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
    """Early end of the simulation of an arm.

    Attributes:
        t: time, s.
        reason: in words.
    """

    t: float
    reason: str


class Arms:
    """Differential equation to integrate: a row for each arm, with state, motor work and heat.

    An arm that has ended stands still.

    Attributes:
        start: (N, 2n + 2m + 2) initial rows.
        ends: (N,) early ends.
        positions: number of positions in a row, n + m.
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
        """Take the state (2n + 2m,) or (N, 2n + 2m) of all arms at the start.

        Args:
            plant: links and motors.
            control: as for :func:`eom_dynamics.simulation.simulate`.
            start: initial state.
            progress: is called with the time reached, s.
            wrench: as for :func:`eom_dynamics.simulation.simulate`.
        """
        self._plant, self._progress = plant, progress
        self._given = {"control": (control, (len(plant.rigid),)), "wrench": (wrench, plant.arm.robot.wrench_shape)}
        self._shape, self._safe = start.shape, start.reshape(-1, start.shape[-1])
        self.robot, self.positions = plant.arm.robot.name, start.shape[-1] // 2
        self.start = np.concatenate([self._safe, np.zeros((len(self._safe), 2))], axis=1)
        self.ends: list[End | None] = [None] * len(self._safe)

        def margin(_: float, y: Array) -> float:
            return float(np.min(self._margins(y.reshape(self.start.shape))[self.going]))

        # The integrator stops where the margin falls below zero.
        margin.terminal, margin.direction = True, -1.0  # type: ignore[attr-defined]
        self.margin = margin

    @property
    def going(self) -> NDArray[np.bool_]:
        """(N,) whether the simulation of an arm continues."""
        return np.array([end is None for end in self.ends])

    def flat_rate(self, now: float, y: Array) -> Array:
        """Time derivative of all rows, flattened to one vector."""
        return self.rates(now, y.reshape(self.start.shape)).ravel()

    def rates(self, now: float, rows: Array) -> Array:
        """Time derivative of all rows (N, columns) at a time."""
        state = rows[:, :-2]
        # The rate of a state out of bounds is NaN, which makes the integrator try a shorter step.
        wild = ~np.all(np.abs(state) <= _TRIED, axis=1)
        state = np.where(wild[:, np.newaxis], self._safe, state)
        # One state as a vector, for which compiled code is called directly.
        samples = () if len(state) == 1 else (len(state),)

        def load(name: str) -> Array:
            return self._load(name, now, state.reshape(self._shape)).reshape(*samples, *self._given[name][1])

        effort, wrench = load("control"), None if self._given["wrench"][0] is None else load("wrench")
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
        for arm in np.flatnonzero(self.going & ~np.all(margins > _INSTANT, axis=1)):
            self.ends[arm] = End(now, self._reason(margins[arm]))

    def end_within(self, now: float, h: float, before: Array, advanced: Callable[[float], Array]) -> Array:
        """Rows after a step of length h; arms whose margins are used up end within it.

        Args:
            now: time at its start, s.
            h: its length, s.
            before: rows at its start.
            advanced: rows after a part of the step, from 0 to 1.
        """
        after = advanced(1.0)
        margins = self._margins(after)
        found = []
        # False for NaN, too.
        for arm in np.flatnonzero(self.going & ~np.all(margins > 0, axis=1)).tolist():
            if np.any(np.isnan(margins[arm])):
                found.append((arm, End(now, f"a step of {h:.3g} s is too long, or the motion leaves all bounds")))
                continue
            share = self._last_share(arm, advanced)
            found.append((arm, End(now + share * h, self._reason(self._margins(advanced(share))[arm]))))
        for arm, end in found:
            self.ends[arm] = end
        after[~self.going] = before[~self.going]
        return after

    def _last_share(self, arm: int, advanced: Callable[[float], Array]) -> float:
        """Part of a step after which the first margin of an arm is used up."""
        from scipy.optimize import brentq  # here for its import, as in integrated()

        def margin(part: float) -> float:
            return float(np.min(self._margins(advanced(part))[arm]))

        return float(brentq(margin, 0.0, 1.0, xtol=_INSTANT))

    def _load(self, name: str, now: float, state: Array) -> Array:
        function, size = self._given[name]
        shape = (*state.shape[:-1], *size)
        if function is None:
            return np.zeros(shape)
        given, what = function(now, state), "efforts" if name == "control" else "wrenches"
        load = np.asarray(given)
        if load.shape != shape or load.dtype.kind not in "biuf":
            raise StateError(
                f"{self.robot}: {name} must return {what} of shape {shape}, returns "
                f"{load.shape if load.dtype.kind in 'biuf' else repr(given)[:60]}"
            )
        if not np.isfinite(load).all():
            raise SimulationError(f"{self.robot}: at {now:.6g} s: {name} returns {what} that are not finite")
        return load

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

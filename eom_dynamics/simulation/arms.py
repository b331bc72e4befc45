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
        momenta: bool = False,
    ) -> None:
        """Take the state (2n + 2m,) or (N, 2n + 2m) of all arms at the start.

        Args:
            plant: links and motors.
            control: as for :func:`eom_dynamics.simulation.simulate`.
            start: initial state.
            progress: is called with the time reached, s.
            wrench: as for :func:`eom_dynamics.simulation.simulate`.
            momenta: whether rows have momenta in place of velocities, see :meth:`ElasticPlant.momenta`.
        """
        self._plant, self._progress = plant, progress
        self._given = {"control": (control, (len(plant.rigid),)), "wrench": (wrench, plant.arm.robot.wrench_shape)}
        self._shape, self._momenta = start.shape, momenta
        self.robot, self.positions = plant.arm.robot.name, start.shape[-1] // 2
        rows = start.reshape(-1, start.shape[-1])
        self._safe = plant.momenta(rows) if momenta else rows
        self.start = np.concatenate([self._safe, np.zeros((len(rows), 2))], axis=1)
        self.ends: list[End | None] = [None] * len(rows)

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
        return self.rates(np.array([now]), y.reshape(1, *self.start.shape)).ravel()

    def rates(self, times: Array, rows: Array) -> Array:
        """Time derivative of all rows (s, N, columns) at times (s,)."""
        values = rows[..., :-2]
        # The rate of a state out of bounds is NaN, which makes the integrator try a shorter step.
        wild = ~np.all(np.abs(values) <= _TRIED, axis=-1)
        values = np.where(wild[..., np.newaxis], self._safe, values)
        state = self._states(values.reshape(-1, values.shape[-1]))
        each = list(zip(times.tolist(), np.split(state, len(times)), strict=True))
        # One state as a vector, for which compiled code is called directly.
        samples = () if len(state) == 1 else (len(state),)

        def loads(name: str) -> Array:
            values = [self._load(name, now, x.reshape(self._shape)) for now, x in each]
            return np.reshape(values, (*samples, *self._given[name][1]))

        effort = loads("control")
        wrench = None if self._given["wrench"][0] is None else loads("wrench")
        state = state.reshape(*samples, -1)
        if self._progress is not None:
            self._progress(each[-1][0])
        change = np.empty_like(rows)
        flat = change.reshape(-1, rows.shape[-1])
        flat[:, :-2], powers = self._plant.rate_and_powers(state, effort, wrench, momenta=self._momenta)
        flat[:, -2:] = powers.reshape(2, -1).T
        change[wild] = np.nan
        change[:, ~self.going] = 0.0
        return change

    def states(self, rows: Array) -> Array:
        """States (…, 2n + 2m) from rows (…, columns); NaN stays NaN."""
        values = rows[..., :-2]
        if not self._momenta:
            return values
        known = np.all(np.isfinite(values), axis=-1, keepdims=True)
        flat = np.where(known, values, self._safe).reshape(-1, values.shape[-1])
        return np.where(known, self._states(flat).reshape(values.shape), np.nan)

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

    def _states(self, values: Array) -> Array:
        """States of finite rows (N, 2n + 2m), without work and heat."""
        return self._plant.from_momenta(values) if self._momenta else values

    def _margins(self, y: Array) -> Array:
        """(N, m + 1) stretch of tension-only springs, infinite for others, and distance to the bounds; NaN of NaN."""
        states = self.states(y)
        q, theta, *_ = self._plant.parts(states)
        stretch = self._plant.springs.stretch(self._plant.deflection(theta, q))
        return np.column_stack([stretch + _SLACK, 1 - np.max(np.abs(states), axis=1) / _BOUND])

    def _reason(self, margins: Array) -> str:
        names = self._plant.arm.motor_names
        worst = int(np.argmin(margins))
        if worst == len(names):
            return f"the motion leaves all bounds: {_BOUND:g} rad (m), or as much per second"
        return f"the tension-only spring at {names[worst]} goes slack"

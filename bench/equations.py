# SPDX-License-Identifier: Apache-2.0
"""Terms of the equations of motion in one state, called from Python, and in batches, beside Pinocchio's functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from floating_base import beside, floating_base
from pinocchio_model import pinocchio_model
from random_states import RandomStates, one_by_one
from report import Bar, Section, Table, seconds
from settings import BATCH, Settings
from timing import TimedTask, interleaved

from eom_dynamics import Dynamics, Robot, load_robot
from eom_dynamics.arrays import Array

_STATES = 64


@dataclass(frozen=True)
class _Pair:
    """A method of :class:`Dynamics` and the function of Pinocchio that gives the same.

    Attributes:
        arguments: names of the vectors that both take.
        function: of Pinocchio.
        read: what of its result, or of its data, is compared.
        results: of its result and its data, what a loop stores for each state.
    """

    arguments: tuple[str, ...]
    function: Callable[..., Any]
    read: Callable[[Any, Any], Any] = lambda result, data: result
    results: Callable[[Any, Any], tuple[Any, ...]] = lambda result, data: (result,)


_STATE = ("q", "qd", "qdd")
_PAIRS = {
    "effort": _Pair(_STATE, pin.rnea),
    "bias": _Pair(_STATE[:2], pin.nonLinearEffects),
    "gravity": _Pair(_STATE[:1], pin.computeGeneralizedGravity),
    "mass_matrix": _Pair(_STATE[:1], pin.crba, lambda result, data: np.triu(result) + np.triu(result, 1).T),
    "coriolis_matrix": _Pair(_STATE[:2], pin.computeCoriolisMatrix),
    "forward_dynamics": _Pair(("q", "qd", "tau"), pin.aba),
    "inverse_dynamics_derivatives": _Pair(
        _STATE,
        pin.computeRNEADerivatives,
        lambda result, data: np.array([data.dtau_dq, data.dtau_dv]),
        lambda result, data: (data.dtau_dq, data.dtau_dv, data.M),
    ),
    "forward_dynamics_derivatives": _Pair(
        ("q", "qd", "tau"),
        pin.computeABADerivatives,
        lambda result, data: np.array([data.ddq_dq, data.ddq_dv]),
        lambda result, data: (data.ddq_dq, data.ddq_dv, data.Minv),
    ),
    "regressor": _Pair(_STATE, pin.computeJointTorqueRegressor),
    "kinetic_energy": _Pair(_STATE[:2], pin.computeKineticEnergy),
    "potential_energy": _Pair(_STATE[:1], pin.computePotentialEnergy),
}


def run(settings: Settings) -> Section:
    """Compare results with Pinocchio's, then measure times."""
    section = Section("equations", "Terms of the equations of motion")
    robot = load_robot("iiwa")
    model = pinocchio_model(robot)
    data = model.createData()
    dynamics = Dynamics(robot)
    vectors = _vectors(robot, BATCH)
    each = [{name: x[i].copy() for name, x in vectors.items()} for i in range(_STATES)]
    errors = {name: _error(robot, dynamics, model, name, pair, each) for name, pair in _PAIRS.items()}
    tasks = {}
    for name, pair in _PAIRS.items():
        states = [tuple(state[key] for key in pair.arguments) for state in each]
        tasks[name] = one_by_one(getattr(dynamics, name), states)
        tasks[f"pin {name}"] = one_by_one(pair.function, [(model, data, *state) for state in states])
    functions = {name: pair.function for name, pair in _PAIRS.items()}
    table, ratios = beside("iiwa", "Dynamics", functions, tasks, errors, settings)
    of_base, more = floating_base(settings)
    section.tables = [table, of_base, batches(dynamics, model, vectors, settings, section)]
    ratios |= {f"FloatingBase.{name}": ratio for name, ratio in more.items()}
    worst = max(ratios, key=lambda name: ratios[name])
    section.bars.insert(
        0,
        Bar("each call at most 1.0 × Pinocchio's", f"at most {ratios[worst]:.2f} × (`{worst}`)", ratios[worst] <= 1.0),
    )
    section.text = [
        "Differences are relative to the largest entry of all states. Pinocchio's functions are called with vectors "
        "that are ready; its regressor is of other parameters: compared are efforts. Results of batches are new "
        "arrays, whose memory the system clears: for those with many entries, that and writing them take most of the "
        "time, unless arrays are given as `out`. "
        "Loops go over the rows of arrays of states and fill arrays of results by the function for one state."
    ]
    return section


def batches(dynamics: Dynamics, model: Any, vectors: dict[str, Array], settings: Settings, section: Section) -> Table:
    """Times a state of batches, beside loops over both functions for one state that fill the same arrays."""
    tasks = {}
    data = model.createData()
    for name, pair in _PAIRS.items():
        states = [vectors[key] for key in pair.arguments]
        method = getattr(dynamics, name)
        tasks[f"batch {name}"] = TimedTask(partial(method, *states), BATCH)
        few = [x[:_STATES] for x in states]
        out = [np.empty(x.shape) for x in _tuple(method(*few))]
        function, results = partial(pair.function, model, data), lambda result, of=pair.results: of(result, data)
        tasks[name] = _loop(method, few, out)
        tasks[f"pin {name}"] = _loop(function, few, out, results)
    kept = np.empty((BATCH, dynamics.robot.n, len(dynamics.inertial_parameters)))
    reused = partial(dynamics.regressor, *(vectors[key] for key in _STATE), out=[kept])
    tasks["batch into old arrays"] = TimedTask(reused, BATCH)
    times = interleaved(tasks, settings.slow_rounds, at_least=0.02)
    table = Table(
        f"iiwa, batches of {BATCH:,} states, all cores",
        ("`Dynamics`", "median a state", "× loop over the same method", "× loop over Pinocchio's"),
    )

    def add(title: str, batch: str, name: str) -> float:
        own, theirs = times.ratio(name, batch), times.ratio(f"pin {name}", batch)
        table.add(title, seconds(times.median(batch)), f"{own:.1f}", f"{theirs:.1f}")
        return theirs

    faster = {name: add(f"`{name}`", f"batch {name}", name) for name in _PAIRS}
    add("`regressor`, with `out`", "batch into old arrays", "regressor")
    worst = min(faster, key=lambda name: faster[name])
    section.bars.append(
        Bar(
            "a batch at least 15 × faster than a loop over Pinocchio's function",
            f"at least {faster[worst]:.1f} × (`{worst}`)",
            faster[worst] >= 15,
        )
    )
    return table


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _loop(
    function: Callable[..., Any],
    states: list[Array],
    out: list[Array],
    results: Callable[[Any], tuple[Any, ...]] = _tuple,
) -> TimedTask:
    """Task of filling arrays of results, a row for each state, by a function for one state."""
    (first, *more) = out

    def run() -> None:
        for i, state in enumerate(zip(*states, strict=True)):
            first[i] = function(*state)

    def run_several() -> None:
        for i, state in enumerate(zip(*states, strict=True)):
            for array, value in zip(out, results(function(*state)), strict=True):
                array[i] = value

    return TimedTask(run_several if more else run, _STATES)


def _vectors(robot: Robot, count: int) -> dict[str, Array]:
    few = RandomStates(robot, _STATES)
    names = ("q", "qd", "qdd", "qddd", "qdddd")
    vectors = {name: np.resize(x, (count, robot.n)) for name, x in zip(names, few.states, strict=True)}
    return vectors | {"tau": np.resize(few.efforts[0], (count, robot.n))}


def _error(robot: Robot, dynamics: Dynamics, model: Any, name: str, pair: _Pair, each: list[dict[str, Array]]) -> float:
    """Largest difference from Pinocchio, relative to its largest entry."""
    data, ours, theirs = model.createData(), [], []
    for state in each:
        arguments = [state[key] for key in pair.arguments]
        mine = getattr(dynamics, name)(*arguments)
        found = pair.read(pair.function(model, data, *arguments), data)
        if name == "regressor":
            mine = mine @ dynamics.inertial_parameters
            found = found @ np.concatenate([i.toDynamicParameters() for i in model.inertias.tolist()[1:]])
        elif isinstance(mine, tuple):
            mine = np.array(mine[:2])
        ours.append(np.array(mine))
        theirs.append(np.array(found))
    a, b = np.array(ours), np.array(theirs)
    if name == "potential_energy":  # the same up to a constant
        a, b = a - a[0], b - b[0]
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))

# SPDX-License-Identifier: Apache-2.0
"""Closed form against recursion: tau, taud and taudd of the same robot, traced and compiled in the same way.

A. Müller and S. Kumar (Multibody System Dynamics 53, 2021) compare the closed form with recursions by the times of
programs in different languages, and leave open the closed form in spatial twists. Here each is traced by the library.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from harness import Section, Settings, TimedTask, error, interleaved, on_one_core, one_by_one, seconds, timed
from peers import RandomStates

from eom_dynamics import Robot, equations_of_motion, load_robot, recursion
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.codegen.backends import kernel_of
from eom_dynamics.codegen.functions import CompiledFunction, Signature, Vector
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.equations import spatial_equations_of_motion, system_matrices
from eom_dynamics.equations.spatial import lift, spatial_twists
from eom_dynamics.equations.system import inertia_matrix
from eom_dynamics.jet import Jet

_STATES, _BATCH = 64, 2_048
_ROUNDING = 1e-11

Efforts = Callable[[Robot, Sequence[Any]], Sequence[Any]]
"""From a robot and (q, qd, qdd, qddd, qdddd), arrays (n,) of numbers or expressions, to tau, taud, taudd."""


def matrices(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The paper's formulas in body-fixed twists: M, C, Q_grav and their derivatives, then the efforts."""
    return equations_of_motion(robot, *states[:-1], coriolis="paper").efforts(states[-1])


def vectors(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The same product from its right end: J' (M_b dV/dt - b' M_b V + M_b U G), in which no M and C is formed."""
    body = system_matrices(robot, *states)
    M_b = inertia_matrix(robot)
    up = np.concatenate([np.zeros(3, dtype=int), -robot.gravity])
    return tuple(body.J.T @ (M_b @ (body.V.rate + body.U @ up) - body.b.T @ (M_b @ body.V)))


def spatial_matrices(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The same in spatial twists."""
    return spatial_equations_of_motion(robot, *states[:-1]).efforts(states[-1])


def spatial_vectors(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The same product from its right end: J' (M_s (dV/dt + G) - b' M_s V)."""
    J, b, M_s, _ = spatial_twists(robot, states[0], states[1:])
    V = J @ Jet(states[1:])
    return tuple(J.T @ (M_s @ (V.rate + lift(robot)) - b.T @ (M_s @ V)))


def recursive(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The library's recursion."""
    return recursion.inverse_dynamics(recursion.link_tree(robot), [list(x) for x in states])


WAYS: dict[str, Efforts] = {
    "closed form, body-fixed twists": matrices,
    "closed form, spatial twists": spatial_matrices,
    "closed form, body-fixed twists, times vectors first": vectors,
    "closed form, spatial twists, times vectors first": spatial_vectors,
    "recursion": recursive,
}


def traced(robot: Robot, efforts: Efforts) -> Program:
    """Program of the efforts, without a tool wrench."""

    def results(x: Any) -> dict[str, list[Any]]:
        found = efforts(robot, [np.array(x[q], dtype=object) for q in STATE_NAMES])
        return dict(zip(EFFORT_NAMES, map(list, found), strict=True))

    return trace("efforts", dict.fromkeys(STATE_NAMES, robot.n), results)


def closed_form(section: Section, settings: Settings) -> None:
    """Compare results with the closed form in NumPy, count operations, and measure interleaved times."""
    robot = load_robot("planar_2r" if settings.quick else "iiwa")
    states = RandomStates(robot, _STATES)
    programs = {name: traced(robot, efforts) for name, efforts in WAYS.items()}
    many = [np.resize(x, (_BATCH, robot.n)) for x in states.states]
    tasks, errors, compile_times = {}, {}, {}
    for name, program in programs.items():
        function, compile_times[name] = timed(partial(_compiled, robot, program))
        errors[name] = max(states.errors(function(*states.states)))
        assert errors[name] < _ROUNDING, f"{name} is off by {errors[name]}"
        tasks[f"one {name}"] = one_by_one(function.state_call(), states.each)
        tasks[f"batch {name}"] = on_one_core(TimedTask(partial(function, *many), _BATCH))
    times = interleaved(tasks, settings.rounds)
    table = section.table(
        f"{robot.name}: tau, taud, taudd, without tool wrench",
        *("form", "operations", "× recursion", "compile", "one state", "× recursion", "in a batch", "× recursion"),
        "error",
    )
    least = programs["recursion"].operations
    for name, program in programs.items():
        cells = [f"{program.operations:,}", f"{program.operations / least:.1f}", seconds(compile_times[name])]
        for what in ("one", "batch"):
            key = f"{what} {name}"
            cells += [times.cell(key), f"{times.ratio(key, f'{what} recursion'):.1f}"]
        table.add(name, *cells, error(errors[name]))
    section.text.append(
        "All are written over scalars, traced by the library, which drops zeros and ones and shares equal "
        "subexpressions, and compiled with the same flags. One state: called from Python. In a batch: "
        f"{_BATCH:,} states on one core, a state. Errors are largest differences from the closed form in NumPy, "
        "relative to the largest effort."
    )


def _compiled(robot: Robot, program: Program) -> CompiledFunction:
    arguments, results = (tuple(Vector(x, (robot.n,)) for x in names) for names in (STATE_NAMES, EFFORT_NAMES))
    return CompiledFunction(Signature(arguments, results), kernel_of(program, "native"))

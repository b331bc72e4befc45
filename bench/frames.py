# SPDX-License-Identifier: Apache-2.0
"""Recursions in body-fixed and spatial frames: operations, times and errors, and the savings by each choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from casadi_peer import recursion_operations
from compiled import CompiledProgram
from report import Section, Table, error, seconds
from robots import chain, far_iiwa
from settings import Settings
from twists import Recursion, body_fixed, spatial, spatial_by_bodies
from variants import given_frames

from eom_dynamics import Robot, load_robot
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.recursion import LinkTree, inverse_dynamics, link_tree
from eom_dynamics.states import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.tools.benchmark.states import RandomStates
from eom_dynamics.tools.benchmark.timing import Task, interleaved

_STATES = 64
_BATCH = 4_096
_ROUNDING = 1e-11

# For the errors: number of states, decimal digits of the reference, distances of the base frame in m.
_EXACT_STATES = 8
_DIGITS = 50
_DISTANCES = (0.0, 1.0, 1000.0)

_RECURSIONS: dict[str, Recursion] = {
    "body-fixed, by accelerations (the library's)": inverse_dynamics,
    "body-fixed, by twists": body_fixed,
    "spatial twists, inertias carried to the base frame": spatial,
    "spatial twists, momenta in the bodies": spatial_by_bodies,
}


def run(settings: Settings) -> Section:
    """Compare results with the closed form; count operations, measure times and the errors far from the base."""
    section = Section("frames", "Body-fixed or spatial twists")
    section.tables = [_comparison(settings), _errors(), _savings()]
    section.text = [
        "All recursions use the same links (frames and regrouped inertias), gravity as an acceleration of the base, "
        "and the same tracing and compiler. Without a tool wrench.",
        "Errors: the largest of all joints and states, relative to the largest effort of the joint, against the same "
        f"formulas in {_DIGITS} digits. The arm is the iiwa, moved away from the origin of its base frame; efforts do "
        "not depend on its position.",
    ]
    return section


def traced(tree: LinkTree, recursion: Recursion, orders: int) -> Program:
    """Program of a recursion for the first ``orders`` of tau, taud, taudd."""
    names = STATE_NAMES[: orders + 2]
    return trace(
        "recursion",
        dict.fromkeys(names, len(tree.links)),
        lambda x: dict(zip(EFFORT_NAMES, recursion(tree, [x[name] for name in names]), strict=False)),
    )


def _comparison(settings: Settings) -> Table:
    table = Table(
        "tau, taud, taudd of the iiwa, and of a chain of 16 joints about axes in all directions",
        (
            *("recursion", "iiwa: operations (for tau)", "one state", "in a batch, 1 core", "× the first"),
            *("chain: operations (for tau)", "one state", "in a batch, 1 core", "× the first"),
        ),
    )
    robots = (load_robot("iiwa"), chain(16))
    tasks: dict[str, Task] = {}
    for k, robot in enumerate(robots):
        for name, recursion in _RECURSIONS.items():
            tasks |= {f"{what} {name} {k}": task for what, task in _tasks(robot, recursion).items()}
    times = interleaved(tasks, settings.rounds)
    first = next(iter(_RECURSIONS))
    for name, recursion in _RECURSIONS.items():
        cells = [name]
        for k, robot in enumerate(robots):
            all_three, tau = (traced(link_tree(robot), recursion, orders).operations for orders in (3, 1))
            one, batch = (seconds(times.median(f"{what} {name} {k}")) for what in ("one", "batch"))
            ratios = (times.ratio(f"{what} {name} {k}", f"{what} {first} {k}") for what in ("one", "batch"))
            cells += [f"{all_three:,} ({tau:,})", one, batch, ", ".join(f"{ratio:.2f}" for ratio in ratios)]
        table.add(*cells)
    return table


def _tasks(robot: Robot, recursion: Recursion) -> dict[str, Task]:
    states = RandomStates(robot, _STATES)
    compiled = CompiledProgram(traced(link_tree(robot), recursion, 3))
    batch, results = compiled.batch([np.resize(x, (_BATCH, robot.n)) for x in states.states])
    batch.run()
    off = max(states.errors([x[:_STATES] for x in results]))
    assert off < _ROUNDING, f"{recursion.__name__} is off by {off}"
    return {"one": compiled.state_loop(states.states), "batch": batch}


def _errors() -> Table:
    table = Table(
        "largest error of tau, taud, taudd",
        ("recursion", *(f"base frame {distance:g} m away" for distance in _DISTANCES)),
    )
    states = np.random.default_rng(0).uniform(-2, 2, (_EXACT_STATES, 5, 7))
    cells: dict[str, list[str]] = {name: [] for name in _RECURSIONS}
    for distance in _DISTANCES:
        tree = link_tree(far_iiwa(distance))
        exact = _efforts(tree, inverse_dynamics, states, lambda x: sympy.Float(x, _DIGITS))
        for name, recursion in _RECURSIONS.items():
            off = np.abs(_efforts(tree, recursion, states, float) - exact).max(axis=0)
            # For each joint: the small efforts of the last joints have the largest errors.
            errors = (off / np.abs(exact).max(axis=0)).max(axis=1)
            cells[name].append(", ".join(map(error, errors)))
    for name, columns in cells.items():
        table.add(name, *columns)
    return table


def _efforts(tree: LinkTree, recursion: Recursion, states: np.ndarray, number: Callable[[float], Any]) -> np.ndarray:
    rows = [recursion(tree, [[number(x) for x in row] for row in state.tolist()]) for state in states]
    return np.array(rows, dtype=float)


def _savings() -> Table:
    """Savings by frames, inertias, formulas, and the treatment of constants in the trace."""
    table = Table(
        "operations for tau, taud, taudd (for tau) by step, each with those above it",
        (
            *("body-fixed recursion", "iiwa, traced by CasADi", "iiwa, traced by the library"),
            *("chain of 16, traced by CasADi", "chain of 16, traced by the library"),
        ),
    )
    rows: dict[str, list[str]] = {}
    for robot in (load_robot("iiwa"), chain(16)):
        steps = {
            "twists, in the frames of the robot's file": (given_frames(robot, regrouped=False), body_fixed),
            "and inertias regrouped": (given_frames(robot, regrouped=True), body_fixed),
            "and frames on the common normals of the axes": (link_tree(robot), body_fixed),
            "accelerations instead of twists: velocities of points never enter": (link_tree(robot), inverse_dynamics),
        }
        for name, (tree, recursion) in steps.items():
            theirs = [recursion_operations(tree, recursion, orders) for orders in (3, 1)]
            ours = [traced(tree, recursion, orders).operations for orders in (3, 1)]
            rows.setdefault(name, []).extend(f"{all_three:,} ({tau:,})" for all_three, tau in (theirs, ours))
    for name, cells in rows.items():
        table.add(name, *cells)
    return table

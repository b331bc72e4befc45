# SPDX-License-Identifier: Apache-2.0
"""Cost for different numbers of joints: the recursion and the closed form, for random revolute chains."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from batch import on_one_core
from compiled import compile_seconds
from random_states import RandomStates
from report import Bar, Section, Table, seconds
from scipy.spatial.transform import Rotation
from settings import Settings
from timing import TimedTask, interleaved
from ways import Way, closed_form, pinocchio_rnea

from eom_dynamics import Dynamics, Joint, Robot, lie
from eom_dynamics.codegen.emit_c import c_source
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.robot.inertia import steiner

_STATES = 8
_BATCH = 2_048

# The efforts of a chain of 128 bodies differ by orders of magnitude.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class _Chain:
    operations: int
    tau_operations: int
    preparation: float
    compile_seconds: float
    tasks: dict[str, TimedTask]
    closed: TimedTask


def run(settings: Settings) -> Section:
    """Compare results with the closed form, then measure interleaved times of all chains."""
    section = Section("scaling", "Cost against the number of joints")
    counts = [n for n in (2, 4, 8, 16, 32, 64, 128) if n <= settings.most_joints]
    chains = {n: _prepare(n) for n in counts}
    fast = interleaved(
        {f"{what} {n}": task for n, x in chains.items() for what, task in x.tasks.items()}, settings.rounds
    )
    slow = interleaved({f"closed {n}": x.closed for n, x in chains.items()}, settings.slow_rounds)
    table = Table(
        "chains of n revolute joints: tau, taud, taudd",
        (
            *("n", "operations", "for tau", "trace, emit", "compile", "one state", "in a batch, 1 core"),
            *("closed form, NumPy", "closed form / one state", "Pinocchio `rnea`, from Python, tau"),
        ),
    )
    for n, x in chains.items():
        one = fast.median(f"one {n}")
        table.add(
            str(n),
            f"{x.operations:,}",
            f"{x.tau_operations:,}",
            seconds(x.preparation),
            seconds(x.compile_seconds),
            seconds(one),
            seconds(fast.median(f"batch {n}")),
            seconds(slow.median(f"closed {n}")),
            f"{slow.median(f'closed {n}') / one:,.0f}",
            seconds(fast.median(f"rnea {n}")),
        )
    section.tables = [table]
    large = counts[-1]
    small = large // 4
    ratios = {what: fast.ratio(f"{what} {large}", f"{what} {small}") for what in ("one", "batch")}
    compile_ratio = chains[large].compile_seconds / chains[small].compile_seconds
    closed_ratio = slow.ratio(f"closed {large}", f"closed {small}")
    section.text = [
        f"From {small} to {large} joints, the recursion takes {ratios['one']:.2f} × the time for one state, "
        f"{ratios['batch']:.2f} × in a batch, the compiler {compile_ratio:.1f} ×, and the closed form "
        f"{closed_ratio:.1f} ×.",
        f"One state: called from Python. Batch: {_BATCH:,} states in one call, on one core.",
    ]
    if large == 128:
        section.bars = [
            Bar(
                "from 32 to 128 joints at most 5 × the time",
                f"one state {ratios['one']:.2f} ×, batch {ratios['batch']:.2f} ×",
                max(ratios.values()) <= 5,
            )
        ]
    thirty_two = chains[32].compile_seconds
    section.bars.append(Bar("32 joints compile in at most 10 s", seconds(thirty_two), thirty_two <= 10))
    return section


def _prepare(n: int) -> _Chain:
    robot = chain(n)
    start = time.perf_counter()
    program = PROGRAMS["inverse_dynamics"](robot)
    source = c_source(program)
    preparation = time.perf_counter() - start
    states = RandomStates(robot, _STATES)
    dynamics = Dynamics(robot)
    one = Way(dynamics.inverse_dynamics, states.each)
    off = max(one.errors(states))
    assert off < _ROUNDING, f"chain of {n} is off by {off}"
    many = [np.resize(x, (_BATCH, n)) for x in states.states]
    batch = on_one_core(TimedTask(lambda: dynamics.inverse_dynamics(*many), _BATCH))
    return _Chain(
        operations=program.operations,
        tau_operations=PROGRAMS["effort"](robot).operations,
        preparation=preparation,
        compile_seconds=compile_seconds(source),
        tasks={"one": one.task, "batch": batch, "rnea": pinocchio_rnea(robot, states).task},
        closed=closed_form(robot, RandomStates(robot, 1)).task,
    )


def chain(n: int) -> Robot:
    """``n`` revolute joints about axes in all directions, with bodies of the size of an arm's."""
    rng = np.random.default_rng(20210721)
    return Robot(f"chain of {n}", tuple(_joint(rng, i) for i in range(n)))


def _joint(rng: np.random.Generator, index: int) -> Joint:
    axis = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    pose = lie.pose(_rotation(rng), rng.uniform(-0.3, 0.3, 3) if index else np.zeros(3))
    mass, center = rng.uniform(0.5, 3.0), rng.uniform(-0.1, 0.1, 3)
    principal = _rotation(rng)
    about_center = principal @ np.diag(rng.uniform(0.01, 0.02, 3)) @ principal.T
    inertia = about_center + steiner(mass, center)
    return Joint(f"joint_{index + 1}", axis, pose, index - 1, mass, center, inertia)


def _rotation(rng: np.random.Generator) -> np.ndarray:
    return Rotation.from_quat(rng.standard_normal(4)).as_matrix()

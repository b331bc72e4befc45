# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics compared with peers: one state, batches, first use of a robot, long chains, other forms."""

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from harness import (
    BATCH,
    Section,
    Settings,
    TimedTask,
    error,
    in_fresh_process,
    interleaved,
    largest_difference,
    on_one_core,
    one_by_one,
    scratch,
    seconds,
    timed,
)
from peers import PinocchioDerivatives, RandomStates, Way, in_closed_form, pinocchio_rnea
from pinocchio_model import pinocchio_model
from scipy.spatial.transform import Rotation

from eom_dynamics import Dynamics, Joint, Robot, equations_of_motion, lie, load_robot, recursion
from eom_dynamics.arrays import EFFORT_NAMES, STATE_NAMES
from eom_dynamics.codegen.backends import kernel_of
from eom_dynamics.codegen.compiler import FLAGS, find_compiler
from eom_dynamics.codegen.emit_c import c_source
from eom_dynamics.codegen.functions import CompiledFunction, Signature, Vector
from eom_dynamics.codegen.program import Program, trace
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.equations import spatial_equations_of_motion, system_matrices
from eom_dynamics.equations.spatial import lift, spatial_twists
from eom_dynamics.equations.system import inertia_matrix
from eom_dynamics.jet import Jet
from eom_dynamics.robot.inertia import steiner

OURS = "`Dynamics.inverse_dynamics`"
RNEA = "Pinocchio: `rnea`"
DIFFERENCES = "Pinocchio: `computeRNEADerivatives`, taudd by differences over 2 points"

# Allowed errors: of exact methods; of differences; of chains of 128 bodies with efforts of different size.
_ROUNDING, _TRUNCATION, _OF_CHAINS = 1e-11, 1e-2, 1e-10


def one_state(section: Section, settings: Settings) -> None:
    """tau, taud and taudd of one state, called from Python; results are first compared with the closed form."""
    robot = load_robot(settings.robot or "iiwa")
    states = RandomStates(robot, 64)
    each = states.each
    stacked = [(np.array(state),) for state in each]
    pinocchio = PinocchioDerivatives(robot, states)
    ways = {
        OURS: Way(Dynamics(robot, backend="native").inverse_dynamics, each),
        RNEA: pinocchio_rnea(robot, states),
        "Pinocchio: `computeRNEADerivatives`": Way(pinocchio.tau_taud, [state[:4] for state in each]),
        DIFFERENCES: Way(pinocchio.with_differences(2), stacked),
        "the same over 4 points": Way(pinocchio.with_differences(4), stacked),
        '`Dynamics(robot, backend="numpy")`': Way(Dynamics(robot, backend="numpy").inverse_dynamics, each),
        "closed form, NumPy": Way(partial(in_closed_form, robot), each),
    }
    errors = {name: way.errors(states) for name, way in ways.items()}
    for name, found in errors.items():
        allowed = _TRUNCATION if "differences" in name or "points" in name else _ROUNDING
        assert max(found) < allowed, f"{name} is off by {max(found)}"
    times = interleaved({name: way.task for name, way in ways.items()}, settings.rounds)
    table = section.table(
        f"{robot.name}, one state, called from Python",
        *("way", "gives", "median", "middle half", "× rnea", "× ours", "error of tau, taud, taudd"),
    )
    for name, found in errors.items():
        gives = ("tau", "tau, taud", "all three")[len(found) - 1]
        ratios = f"{times.ratio(name, RNEA):.2f}", f"{times.ratio(name, OURS):.1f}"
        table.add(name, gives, times.cell(name), times.middle_half(name), *ratios, ", ".join(map(error, found)))
    section.text.append(
        "Errors are against the closed form, relative to the largest effort of all states. Pinocchio's differences "
        "are central, along the motion of the state, with the step that minimizes the error of "
        f"taudd: {seconds(pinocchio.steps[2])} for 2 points, {seconds(pinocchio.steps[4])} for 4; "
        f"with a step of 1 ms, the period of many controllers, the errors are {error(pinocchio.error(1e-3, 2))} and "
        f"{error(pinocchio.error(1e-3, 4))}."
    )
    ratio, faster = times.ratio(OURS, RNEA), times.ratio(DIFFERENCES, OURS)
    own, theirs = errors[OURS][2], errors[DIFFERENCES][2]
    section.promise("all three orders in at most 1.5 × Pinocchio's `rnea` (tau only)", f"{ratio:.2f} ×", ratio <= 1.5)
    section.promise("at least 15 × faster than Pinocchio with differences for taudd", f"{faster:.1f} ×", faster >= 15)
    section.promise("error of taudd at most 1e-10", f"{error(own)}; of the differences {error(theirs)}", own <= 1e-10)


# --- Batches ----------------------------------------------------------------------------

_CORES, _FEW, _DIFFERENT = 2, 2_000, 500  # states for slow peers; different states, which have a closed form


def batch(section: Section, settings: Settings) -> None:
    """Batches of states of the iiwa; results are first compared with the closed form."""
    robot = load_robot("iiwa")
    some = RandomStates(robot, _DIFFERENT)
    states = [np.resize(x, (BATCH, robot.n)) for x in some.states]
    dynamics = Dynamics(robot)
    out = [np.empty((BATCH, robot.n)) for _ in EFFORT_NAMES]
    model = pinocchio_model(robot)
    data = model.createData()
    pool = pin.ModelPool(model, _CORES)
    columns = [np.asfortranarray(x.T) for x in states[:3]]
    tau = np.empty((robot.n, BATCH), order="F")
    rows = [(model, data, *(x[i].copy() for x in states[:3])) for i in range(_FEW)]
    new, reused = f"{OURS}, new arrays", f"{OURS}, `out=`"
    rnea = "Pinocchio: `rnea` in a loop, tau only"
    both, one = f"{_CORES} cores", "1 core"
    into_new = TimedTask(partial(dynamics.inverse_dynamics, *states), BATCH)
    into_old = TimedTask(partial(dynamics.inverse_dynamics, *states, out=out), BATCH)
    in_parallel = partial(pin.rneaInParallel, _CORES, pool, *columns, tau)
    tasks = {
        (new, both): into_new,
        (reused, both): into_old,
        (new, one): on_one_core(into_new),
        (reused, one): on_one_core(into_old),
        (rnea, one): one_by_one(pin.rnea, rows),
        ("Pinocchio: `rneaInParallel`, tau only", both): TimedTask(in_parallel, BATCH),
        ("NumPy's sines and cosines of the angles alone", one): TimedTask(
            lambda: (np.sin(states[0]), np.cos(states[0])), BATCH
        ),
    }
    for task in tasks.values():
        task.run()
    checks = {new: list(dynamics.inverse_dynamics(*states)), reused: out, "rneaInParallel": [tau.T]}
    for name, results in checks.items():
        for result, effort in zip(results, some.efforts, strict=False):
            off = largest_difference(result, np.resize(effort, result.shape))
            assert off < _ROUNDING, f"{name} is off by {off}"
    times = interleaved(tasks, settings.slow_rounds, at_least=0.02)
    table = section.table(
        f"iiwa, {BATCH:,} states",
        *("way", "on", "median a state", "middle half", "million states a second", "states a second, × `rnea` loop"),
    )
    for way in tasks:
        rates = f"{1e-6 / times.median(way):.3g}", f"{times.ratio((rnea, one), way):.3g}"
        table.add(*way, times.cell(way), times.middle_half(way), *rates)
    section.text.append(
        f"All compute tau, taud and taudd unless stated otherwise. The `rnea` loop runs on {_FEW:,} states."
    )
    faster = times.ratio((rnea, one), (new, both))
    promise = "on 2 cores at least 20 × more states a second than a loop over `rnea`"
    section.promise(promise, f"{faster:.1f} ×", faster >= 20)


# --- First use --------------------------------------------------------------------------

_STEPS = {
    "imports": "importing NumPy and `eom_dynamics`",
    "robot": "`load_robot`",
    "dynamics": "`Dynamics`: trace, emit, compile, load",
    "result": "first result",
}

# Steps of a process up to its first result; prints the seconds of each.
_FIRST_RESULT = """
import json
import time

at = [time.perf_counter()]

import numpy as np

import eom_dynamics as eom

at.append(time.perf_counter())
robot = eom.load_robot("iiwa")
at.append(time.perf_counter())
dynamics = eom.Dynamics(robot)
at.append(time.perf_counter())
dynamics.inverse_dynamics(*np.full((5, 7), 0.5))
at.append(time.perf_counter())
print(json.dumps(np.diff(at).tolist()))
"""


def first_use(section: Section, settings: Settings) -> None:
    """Start processes alternately with an empty cache and with a filled one."""
    empty, full = [], []

    def steps(cache: Path) -> dict[str, float]:
        found = in_fresh_process(_FIRST_RESULT, EOM_DYNAMICS_CACHE=str(cache))
        return dict(zip(_STEPS, found, strict=True))

    with tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_") as folder:
        filled = Path(folder) / "filled"
        steps(filled)
        for k in range(settings.fresh_processes):
            empty.append(steps(Path(folder) / str(k)))
            full.append(steps(filled))
    table = section.table("iiwa, fresh processes: medians", "step", "empty cache", "from the cache")
    for step, what in _STEPS.items():
        table.add(what, *(seconds(float(np.median([x[step] for x in runs]))) for runs in (empty, full)))
    totals = [[sum(x.values()) - x["imports"] for x in runs] for runs in (empty, full)]
    cold, warm = (float(np.median(total)) for total in totals)
    table.add("all but imports", seconds(cold), seconds(warm))
    table.add("middle half of that", *(" – ".join(map(seconds, np.quantile(total, [0.25, 0.75]))) for total in totals))
    section.promise("first use of a 7-joint robot to the first result in at most 2 s", seconds(cold), cold <= 2)
    section.promise("from the cache in at most 50 ms, imports apart", seconds(warm), warm <= 0.05)


# --- Chains of many joints --------------------------------------------------------------

_STATES, _CHAIN_BATCH = 8, 2_048


class _Chain(NamedTuple):
    operations: int
    tau_operations: int
    preparation: float
    compile_seconds: float
    tasks: dict[str, TimedTask]
    closed: TimedTask


def scaling(section: Section, settings: Settings) -> None:
    """Recursion and closed form for random revolute chains, all interleaved, and results of the closed form."""
    counts = [n for n in (2, 4, 8, 16, 32, 64, 128) if n <= settings.most_joints]
    chains = {n: _prepare(n) for n in counts}
    tasks = {(what, n): task for n, x in chains.items() for what, task in x.tasks.items()}
    fast = interleaved(tasks, settings.rounds)
    slow = interleaved({n: x.closed for n, x in chains.items()}, settings.slow_rounds)
    table = section.table(
        "chains of n revolute joints: tau, taud, taudd",
        *("n", "operations", "for tau", "trace, emit", "compile", "one state", "in a batch, 1 core"),
        *("closed form, NumPy", "closed form / one state", "Pinocchio `rnea`, from Python, tau"),
    )
    for n, x in chains.items():
        table.add(
            *(str(n), f"{x.operations:,}", f"{x.tau_operations:,}", seconds(x.preparation), seconds(x.compile_seconds)),
            *(fast.cell(("one", n)), fast.cell(("batch", n)), slow.cell(n)),
            *(f"{slow.median(n) / fast.median(('one', n)):,.0f}", fast.cell(("rnea", n))),
        )
    large = counts[-1]
    small = large // 4
    one, many = (fast.ratio((what, large), (what, small)) for what in ("one", "batch"))
    compile_ratio = chains[large].compile_seconds / chains[small].compile_seconds
    section.text = [
        f"From {small} to {large} joints, the recursion takes {one:.2f} × the time for one state, {many:.2f} × in a "
        f"batch, the compiler {compile_ratio:.1f} ×, and the closed form "
        f"{slow.ratio(large, small):.1f} ×.",
        f"One state: called from Python. Batch: {_CHAIN_BATCH:,} states in one call, on one core.",
    ]
    if large == 128:
        measured = f"one state {one:.2f} ×, batch {many:.2f} ×"
        section.promise("from 32 to 128 joints at most 5 × the time", measured, max(one, many) <= 5)
    thirty_two = chains[32].compile_seconds
    section.promise("32 joints compile in at most 10 s", seconds(thirty_two), thirty_two <= 10)


def _prepare(n: int) -> _Chain:
    robot, file = chain(n), scratch() / "source.c"

    def emitted() -> Program:
        program = PROGRAMS["inverse_dynamics"](robot)
        file.write_text(c_source(program))
        return program

    program, preparation = timed(emitted)
    command = [*find_compiler(), *FLAGS, str(file), "-o", str(file.with_suffix(".so"))]
    states, dynamics = RandomStates(robot, _STATES), Dynamics(robot)
    one = Way(dynamics.inverse_dynamics, states.each)
    off = max(one.errors(states))
    assert off < _OF_CHAINS, f"chain of {n} is off by {off}"
    many = [np.resize(x, (_CHAIN_BATCH, n)) for x in states.states]
    batches = on_one_core(TimedTask(partial(dynamics.inverse_dynamics, *many), _CHAIN_BATCH))
    return _Chain(
        operations=program.operations,
        tau_operations=PROGRAMS["effort"](robot).operations,
        preparation=preparation,
        compile_seconds=timed(partial(subprocess.run, command, check=True))[1],
        tasks={"one": one.task, "batch": batches, "rnea": pinocchio_rnea(robot, states).task},
        closed=Way(partial(in_closed_form, robot), RandomStates(robot, 1).each).task,
    )


def chain(n: int) -> Robot:
    """``n`` revolute joints about axes in all directions, with bodies as large as an arm's."""
    rng, joints = np.random.default_rng(20210721), []
    for k in range(n):
        pose = lie.pose(_rotation(rng), rng.uniform(-0.3, 0.3, 3) if k else np.zeros(3))
        mass, center, principal = rng.uniform(0.5, 3.0), rng.uniform(-0.1, 0.1, 3), _rotation(rng)
        inertia = principal @ np.diag(rng.uniform(0.01, 0.02, 3)) @ principal.T + steiner(mass, center)
        joints.append(Joint(f"joint_{k + 1}", np.eye(6)[2], pose, k - 1, mass, center, inertia))
    return Robot(f"chain of {n}", tuple(joints))


def _rotation(rng: np.random.Generator) -> np.ndarray:
    return Rotation.from_quat(rng.standard_normal(4)).as_matrix()


# --- Closed form against recursion ------------------------------------------------------

# A. Müller and S. Kumar (Multibody System Dynamics 53, 2021) compare the closed form with recursions by the times of
# programs in different languages, and leave open the closed form in spatial twists. Here each is traced by the library.

_TRACED = 64  # states

Efforts = Callable[[Robot, Sequence[Any]], Sequence[Any]]
"""Function from a robot and (q, qd, qdd, qddd, qdddd), arrays (n,) of numbers or expressions, to tau, taud, taudd."""


def matrices(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The paper's formulas in body-fixed twists: M, C, Q_grav and their derivatives, then the efforts."""
    return equations_of_motion(robot, *states[:-1], coriolis="paper").efforts(states[-1])


def vectors(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The product from its right end: J' (M_b dV/dt - b' M_b V + M_b U G), without forming M and C."""
    body = system_matrices(robot, *states)
    M_b = inertia_matrix(robot)
    up = np.concatenate([np.zeros(3, dtype=int), -robot.gravity])
    return tuple(body.J.T @ (M_b @ (body.V.rate + body.U @ up) - body.b.T @ (M_b @ body.V)))


def spatial_matrices(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The product in spatial twists."""
    return spatial_equations_of_motion(robot, *states[:-1]).efforts(states[-1])


def spatial_vectors(robot: Robot, states: Sequence[Any]) -> Sequence[Any]:
    """The product in spatial twists from its right end: J' (M_s (dV/dt + G) - b' M_s V)."""
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


def compiled(robot: Robot, program: Program) -> CompiledFunction:
    """The compiled function of a program of efforts."""
    arguments, results = (tuple(Vector(x, (robot.n,)) for x in names) for names in (STATE_NAMES, EFFORT_NAMES))
    return CompiledFunction(Signature(arguments, results), kernel_of(program, "native"))


def closed_form(section: Section, settings: Settings) -> None:
    """Compare results with the closed form in NumPy, count operations, and measure interleaved times."""
    robot = load_robot("planar_2r" if settings.quick else "iiwa")
    states = RandomStates(robot, _TRACED)
    programs = {name: traced(robot, efforts) for name, efforts in WAYS.items()}
    many = [np.resize(x, (_CHAIN_BATCH, robot.n)) for x in states.states]
    tasks, errors, compile_times = {}, {}, {}
    for name, program in programs.items():
        function, compile_times[name] = timed(partial(compiled, robot, program))
        errors[name] = max(states.errors(function(*states.states)))
        assert errors[name] < _ROUNDING, f"{name} is off by {errors[name]}"
        tasks["one", name] = one_by_one(function.state_call(), states.each)
        tasks["batch", name] = on_one_core(TimedTask(partial(function, *many), _CHAIN_BATCH))
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
            cells += [times.cell((what, name)), f"{times.ratio((what, name), (what, 'recursion')):.1f}"]
        table.add(name, *cells, error(errors[name]))
    section.text.append(
        "All are written over scalars, traced by the library, which drops zeros and ones and shares equal "
        "subexpressions, and compiled with the same flags. One state: called from Python. In a batch: "
        f"{_CHAIN_BATCH:,} states on one core, a state. Errors are largest differences from the closed form in NumPy, "
        "relative to the largest effort."
    )

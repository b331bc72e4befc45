# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics beside peers: one state, batches, the first use of a robot, and chains of many joints."""

import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

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
)
from peers import PinocchioDerivatives, RandomStates, Way, closed_form, pinocchio_rnea
from pinocchio_model import pinocchio_model
from scipy.spatial.transform import Rotation

from eom_dynamics import Dynamics, Joint, Robot, lie, load_robot
from eom_dynamics.arrays import EFFORT_NAMES
from eom_dynamics.codegen.compiler import FLAGS, find_compiler
from eom_dynamics.codegen.emit_c import c_source
from eom_dynamics.codegen.programs import PROGRAMS
from eom_dynamics.robot.inertia import steiner

OURS = "`Dynamics.inverse_dynamics`"
RNEA = "Pinocchio: `rnea`"
DIFFERENCES = "Pinocchio: `computeRNEADerivatives`, taudd by differences over 2 points"

# Allowed errors, of exact methods, of differences, and of chains of 128 bodies: their efforts differ by orders of
# magnitude.
_ROUNDING, _TRUNCATION, _OF_CHAINS = 1e-11, 1e-2, 1e-10


# --- One state --------------------------------------------------------------------------


def one_state(section: Section, settings: Settings) -> None:
    """tau, taud and taudd of one state, called from Python; results are first compared with the closed form."""
    robot = load_robot(settings.robot)
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
        "closed form, NumPy": closed_form(robot, states),
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
        "are central, along the motion of the state, with the step that minimises the error of "
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

_CORES = 2

# Numbers of states for slow peers, and of different states, for which the closed form is computed.
_FEW, _DIFFERENT = 2_000, 500


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
    into_new = TimedTask(lambda: dynamics.inverse_dynamics(*states), BATCH)
    into_old = TimedTask(lambda: dynamics.inverse_dynamics(*states, out=out), BATCH)
    tasks = {
        (new, both): into_new,
        (reused, both): into_old,
        (new, one): on_one_core(into_new),
        (reused, one): on_one_core(into_old),
        (rnea, one): one_by_one(pin.rnea, rows),
        ("Pinocchio: `rneaInParallel`, tau only", both): TimedTask(
            lambda: pin.rneaInParallel(_CORES, pool, *columns, tau), BATCH
        ),
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
    times = interleaved({" / ".join(key): task for key, task in tasks.items()}, settings.slow_rounds, at_least=0.02)
    table = section.table(
        f"iiwa, {BATCH:,} states",
        *("way", "on", "median a state", "middle half", "million states a second", "states a second, × `rnea` loop"),
    )
    reference = f"{rnea} / {one}"
    for way, cores in tasks:
        name = f"{way} / {cores}"
        rates = f"{1e-6 / times.median(name):.3g}", f"{times.ratio(reference, name):.3g}"
        table.add(way, cores, times.cell(name), times.middle_half(name), *rates)
    section.text.append(
        f"All compute tau, taud and taudd unless stated otherwise. The `rnea` loop runs on {_FEW:,} states."
    )
    faster = times.ratio(reference, f"{new} / {both}")
    section.promise(
        "on 2 cores at least 20 × more states a second than a loop over `rnea`", f"{faster:.1f} ×", faster >= 20
    )


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
    """Start processes alternately with an empty cache and with one that another process has filled."""
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


@dataclass(frozen=True)
class _Chain:
    operations: int
    tau_operations: int
    preparation: float
    compile_seconds: float
    tasks: dict[str, TimedTask]
    closed: TimedTask


def scaling(section: Section, settings: Settings) -> None:
    """Recursion and closed form for random revolute chains, all interleaved, beside the closed form's results."""
    counts = [n for n in (2, 4, 8, 16, 32, 64, 128) if n <= settings.most_joints]
    chains = {n: _prepare(n) for n in counts}
    fast = interleaved(
        {f"{what} {n}": task for n, x in chains.items() for what, task in x.tasks.items()}, settings.rounds
    )
    slow = interleaved({f"closed {n}": x.closed for n, x in chains.items()}, settings.slow_rounds)
    table = section.table(
        "chains of n revolute joints: tau, taud, taudd",
        *("n", "operations", "for tau", "trace, emit", "compile", "one state", "in a batch, 1 core"),
        *("closed form, NumPy", "closed form / one state", "Pinocchio `rnea`, from Python, tau"),
    )
    for n, x in chains.items():
        table.add(
            *(str(n), f"{x.operations:,}", f"{x.tau_operations:,}", seconds(x.preparation), seconds(x.compile_seconds)),
            *(fast.cell(f"one {n}"), fast.cell(f"batch {n}"), slow.cell(f"closed {n}")),
            *(f"{slow.median(f'closed {n}') / fast.median(f'one {n}'):,.0f}", fast.cell(f"rnea {n}")),
        )
    large = counts[-1]
    small = large // 4
    one, many = (fast.ratio(f"{what} {large}", f"{what} {small}") for what in ("one", "batch"))
    compile_ratio = chains[large].compile_seconds / chains[small].compile_seconds
    section.text = [
        f"From {small} to {large} joints, the recursion takes {one:.2f} × the time for one state, {many:.2f} × in a "
        f"batch, the compiler {compile_ratio:.1f} ×, and the closed form "
        f"{slow.ratio(f'closed {large}', f'closed {small}'):.1f} ×.",
        f"One state: called from Python. Batch: {_CHAIN_BATCH:,} states in one call, on one core.",
    ]
    if large == 128:
        measured = f"one state {one:.2f} ×, batch {many:.2f} ×"
        section.promise("from 32 to 128 joints at most 5 × the time", measured, max(one, many) <= 5)
    thirty_two = chains[32].compile_seconds
    section.promise("32 joints compile in at most 10 s", seconds(thirty_two), thirty_two <= 10)


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
    assert off < _OF_CHAINS, f"chain of {n} is off by {off}"
    many = [np.resize(x, (_CHAIN_BATCH, n)) for x in states.states]
    batches = on_one_core(TimedTask(lambda: dynamics.inverse_dynamics(*many), _CHAIN_BATCH))
    return _Chain(
        operations=program.operations,
        tau_operations=PROGRAMS["effort"](robot).operations,
        preparation=preparation,
        compile_seconds=_compile_seconds(source),
        tasks={"one": one.task, "batch": batches, "rnea": pinocchio_rnea(robot, states).task},
        closed=closed_form(robot, RandomStates(robot, 1)).task,
    )


def _compile_seconds(source: str) -> float:
    """Time to compile C source, s."""
    file = scratch() / "source.c"
    file.write_text(source)
    start = time.perf_counter()
    subprocess.run([*find_compiler(), *FLAGS, str(file), "-o", str(file.with_suffix(".so"))], check=True)
    return time.perf_counter() - start


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
